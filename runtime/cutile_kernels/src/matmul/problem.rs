//! A product's operands as its kernels see them.

use crate::ffi_util::{BAD_ENUM, DType, Failure, LAUNCH, Outcome, TensorDesc};
use crate::view::{Dim, View, ceil_div, collapse};

/// One factor: two batch dimensions, then rows and columns as they lie.
pub struct Factor {
    pub view: View,
    /// Rows and columns are exchanged in the view.
    pub swapped: bool,
    /// 0 where the factor is the same along a batch dimension.
    pub keep: [i32; 2],
}

pub struct Problem {
    pub c: View,
    pub a: Factor,
    pub b: Factor,
    pub batch: [i64; 2],
    pub m: i64,
    pub n: i64,
    pub k: i64,
}

impl Problem {
    pub fn new(c: &TensorDesc, a: &TensorDesc, b: &TensorDesc) -> Outcome<Self> {
        let [rows_a, columns_a] = matrix(a, "a")?;
        let [rows_b, columns_b] = matrix(b, "b")?;
        let [rows_c, columns_c] = matrix(c, "c")?;
        let fits = rows_a.size == rows_c.size
            && columns_b.size == columns_c.size
            && columns_a.size == rows_b.size;
        let batch = batch_dims(c, a, b).filter(|_| fits).ok_or_else(|| {
            let text = format!("{:?} @ {:?} is not {:?}", a.shape(), b.shape(), c.shape());
            Failure::new(BAD_ENUM, text)
        })?;
        let mut batch = if batch.iter().any(|dims| dims[0].size == 0) {
            vec![[Dim { size: 0, stride: 1 }; 3]]
        } else {
            collapse(&batch)
        };
        if batch.len() > 2 {
            let text = "the batches lie in more than two strides: copy an operand first";
            return Err(Failure::new(LAUNCH, text));
        }
        while batch.len() < 2 {
            batch.insert(0, [Dim { size: 1, stride: 0 }; 3]);
        }
        let of = |which: usize| [batch[0][which], batch[1][which]];
        let [outer, inner] = of(0);
        Ok(Self {
            c: View::new("c", c.ptr, &[outer, inner, rows_c, columns_c], element(c)?)?,
            a: Factor::new("a", a, of(1), [rows_a, columns_a])?,
            b: Factor::new("b", b, of(2), [rows_b, columns_b])?,
            batch: [outer.size, inner.size],
            m: rows_c.size,
            n: columns_c.size,
            k: columns_a.size,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.batch.contains(&0) || self.m == 0 || self.n == 0
    }
}

pub fn element(desc: &TensorDesc) -> Outcome<i64> {
    Ok(desc.element_type()?.size())
}

/// The last two dimensions.
fn matrix(desc: &TensorDesc, name: &str) -> Outcome<[Dim; 2]> {
    let count = desc.shape().len();
    if count < 2 {
        let text = format!("{name} has {count} dimensions, not two or more");
        return Err(Failure::new(BAD_ENUM, text));
    }
    let dim = |at: usize| Dim {
        size: desc.shape[at],
        stride: desc.strides[at],
    };
    Ok([dim(count - 2), dim(count - 1)])
}

/// The batch dimensions of c, a and b, with stride 0 where one is broadcast.
fn batch_dims(c: &TensorDesc, a: &TensorDesc, b: &TensorDesc) -> Option<Vec<[Dim; 3]>> {
    let count = c.shape().len() - 2;
    let along = |desc: &TensorDesc, at: usize| {
        let own = desc.shape().len() - 2;
        let size = c.shape[at];
        let Some(place) = (at + own).checked_sub(count) else {
            return Some(Dim { size, stride: 0 });
        };
        match desc.shape[place] {
            1 => Some(Dim { size, stride: 0 }),
            same if same == size => Some(Dim {
                size,
                stride: desc.strides[place],
            }),
            _ => None,
        }
    };
    if a.shape().len() > c.shape().len() || b.shape().len() > c.shape().len() {
        return None;
    }
    (0..count)
        .map(|at| {
            let own = Dim {
                size: c.shape[at],
                stride: c.strides[at],
            };
            Some([own, along(a, at)?, along(b, at)?])
        })
        .collect()
}

impl Factor {
    fn new(name: &str, desc: &TensorDesc, batch: [Dim; 2], matrix: [Dim; 2]) -> Outcome<Self> {
        let [rows, columns] = matrix;
        let swapped = columns.stride != 1 && columns.size != 1 && rows.stride == 1;
        let matrix = if swapped {
            [columns, rows]
        } else {
            [rows, columns]
        };
        let keep = batch.map(|dim| i32::from(dim.stride != 0 && dim.size != 1));
        let used = |at: usize| match keep[at] {
            0 => Dim { size: 1, stride: 0 },
            _ => batch[at],
        };
        // Nothing is read along an empty dimension, but a view has to have one element.
        let filled = matrix.map(|dim| Dim {
            size: dim.size.max(1),
            stride: dim.stride,
        });
        let dims = [used(0), used(1), filled[0], filled[1]];
        Ok(Self {
            view: View::new(name, desc.ptr, &dims, element(desc)?)?,
            swapped,
            keep,
        })
    }

    /// Where the terms of this factor go: (3, batches, rows, columns padded for TMA).
    pub fn planes(&self) -> Planes {
        let [outer, inner, rows, columns] = self.view.sizes.map(i64::from);
        Planes {
            batches: outer * inner,
            rows,
            columns,
            pitch: ceil_div(columns, 8) * 8,
        }
    }
}

pub struct Planes {
    pub batches: i64,
    pub rows: i64,
    pub columns: i64,
    pub pitch: i64,
}

impl Planes {
    pub fn bytes(&self) -> i64 {
        3 * self.batches * self.rows * self.pitch * DType::BF16.size()
    }

    pub fn view(&self, pointer: u64) -> Outcome<View> {
        let matrix = self.rows * self.pitch;
        let dims = [
            Dim {
                size: 3,
                stride: self.batches * matrix,
            },
            Dim {
                size: self.batches,
                stride: matrix,
            },
            Dim {
                size: self.rows,
                stride: self.pitch,
            },
            Dim {
                size: self.columns,
                stride: 1,
            },
        ];
        View::new("workspace", pointer, &dims, DType::BF16.size())
    }
}
