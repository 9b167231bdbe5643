//! A descriptor seen as the kernel's tensor parameter: few dimensions, 32-bit sizes and strides.

use crate::ffi_util::{Failure, LAUNCH, Outcome, to_i32};

pub const MAX_RANK: usize = 4;

/// How many of `each` hold `all`; neither is negative.
pub fn ceil_div(all: i64, each: i64) -> i64 {
    (all + each - 1) / each
}

/// One dimension: how many elements, how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    pub size: i64,
    pub stride: i64,
}

/// What the kernel is specialised for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The last stride is 1.
    pub unit: bool,
    /// The pointer and all other strides are multiples of 16 bytes, so that TMA can be used.
    pub aligned: bool,
    /// Aligned, and the last size is such a multiple as well.
    pub filled: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct View {
    pub pointer: u64,
    pub rank: usize,
    pub sizes: [i32; MAX_RANK],
    pub strides: [i32; MAX_RANK],
    pub shape: Shape,
}

impl View {
    /// A view of `dims`, outermost first, of elements of `size` bytes.
    pub fn new(name: &str, pointer: u64, dims: &[Dim], size: i64) -> Outcome<Self> {
        let rank = dims.len();
        let mut view = Self {
            pointer,
            rank,
            sizes: [1; MAX_RANK],
            strides: [0; MAX_RANK],
            shape: Shape::default(),
        };
        let mut extent = 1;
        let mut aligned = pointer.is_multiple_of(16);
        for (at, dim) in dims.iter().enumerate().rev() {
            // A stride that is never taken is as good as any: one that keeps the alignment.
            let stride = if dim.size == 1 { extent } else { dim.stride };
            if stride < 0 {
                return Err(Failure::new(
                    LAUNCH,
                    format!("{name} has a negative stride, {stride}: copy it first"),
                ));
            }
            if at + 1 < rank {
                aligned &= stride > 0 && stride * size % 16 == 0;
            }
            extent = ceil_div((stride * dim.size).max(extent).max(1), 16) * 16;
            view.sizes[at] = to_i32(dim.size, "a size")?;
            view.strides[at] = to_i32(stride, "a stride")?;
        }
        let unit = rank > 0 && view.strides[rank - 1] == 1;
        let aligned = aligned && unit;
        let filled = aligned && dims[rank - 1].size * size % 16 == 0;
        view.shape = Shape {
            unit,
            aligned,
            filled,
        };
        Ok(view)
    }
}

/// Joins dimensions that lie behind one another in every one of the tensors. `dims[i][t]` is
/// dimension i of tensor t; sizes are the same in all, and none is 0.
pub fn collapse<const T: usize>(dims: &[[Dim; T]]) -> Vec<[Dim; T]> {
    let mut joined: Vec<[Dim; T]> = Vec::new();
    for next in dims.iter().filter(|dims| dims[0].size != 1) {
        let Some(last) = joined.last_mut() else {
            joined.push(*next);
            continue;
        };
        let behind = last
            .iter()
            .zip(next)
            .all(|(l, n)| l.stride == n.stride * n.size);
        if behind {
            for (l, n) in last.iter_mut().zip(next) {
                *l = Dim {
                    size: l.size * n.size,
                    stride: n.stride,
                };
            }
        } else {
            joined.push(*next);
        }
    }
    joined
}
