//! The C entry of softmax.

use crate::ffi_util::{BAD_ENUM, DType, Failure, LAUNCH, Outcome, TensorDesc};
use crate::ffi_util::{finish, optional, required, to_i32};
use crate::launch::{Slots, Target, submit};
use crate::variant::{Kernel, Options, Variant};
use crate::view::{Dim, Shape, View, ceil_div, collapse};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// Bytes of a row group that the second kernel of the split variant finds in the L2 cache.
const GROUP_BYTES: i64 = 20 << 20;

/// How a call is to run; part of the C interface.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SoftmaxConfig {
    /// 0 whole rows in a tile, 1 online, 2 several blocks per row (needs the workspace), 3 as 0,
    /// but a block reads its next tile before it writes this one.
    pub variant: i32,
    /// Rows and columns of a tile, powers of two. Variants 0 and 3: columns >= the row's length.
    pub rows: i32,
    pub columns: i32,
    /// Variant 2: tiles of a row that one block goes through.
    pub tiles: i32,
    /// 1: exp2 of the hardware.
    pub fast: i32,
    /// 1: through pointers even where views can be used.
    pub pointers: i32,
    /// Blocks per multiprocessor that stride over the tiles; 0: one block for each tile.
    pub persistent: i32,
    pub options: Options,
}

/// out and x as (outer, rows, columns).
struct Shapes {
    out: View,
    x: View,
    /// 0 views, 1 views with contiguous rows, 2 and 3 pointers; see kernel.rs.
    access: i32,
    /// (outer, rows, columns) strides of out, then of x.
    strides: [[i32; 3]; 2],
    outer: i64,
    rows: i64,
    columns: i64,
}

/// out = softmax(x, axis), or log_softmax with `log` 1, computed in float32.
///
/// `workspace` is float32 and contiguous, of at least 2 * rows * chunks elements, chunks being
/// ceil(row length / (config.columns * config.tiles)); only variant 2 reads it, else it may be
/// null. Enqueued on `raw_stream`; nothing waits.
///
/// # Safety
/// Descriptors and the configuration are null or valid through the call; the memory they
/// describe is valid until the stream has run the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutile_softmax(
    out: *const TensorDesc,
    x: *const TensorDesc,
    workspace: *const TensorDesc,
    axis: i32,
    log: i32,
    config: *const SoftmaxConfig,
    device_id: i32,
    raw_stream: u64,
) -> i32 {
    let target = Target {
        device: device_id,
        stream: raw_stream,
    };
    finish(|| {
        let out = unsafe { required(out, "out") }?;
        let x = unsafe { required(x, "x") }?;
        let workspace = unsafe { optional(workspace) }?;
        let config = unsafe { crate::ffi_util::given(config, "config") }?;
        run(out, x, workspace, axis, log != 0, config, target)
    })
}

fn run(
    out: &TensorDesc,
    x: &TensorDesc,
    workspace: Option<&TensorDesc>,
    axis: i32,
    log: bool,
    config: &SoftmaxConfig,
    target: Target,
) -> Outcome {
    let types = [
        x.element_type_in("x", &FLOATS)?,
        out.element_type_in("out", &FLOATS)?,
    ];
    if x.shape() != out.shape() {
        let text = format!("x is {:?}, out is {:?}", x.shape(), out.shape());
        return Err(Failure::new(BAD_ENUM, text));
    }
    let axis = usize::try_from(axis)
        .ok()
        .filter(|&axis| axis < x.shape().len());
    let axis = axis.ok_or_else(|| Failure::new(BAD_ENUM, "the axis is not one of x's"))?;
    check_tile(config)?;
    if x.shape().contains(&0) {
        return Ok(());
    }
    let shapes = shapes(out, x, axis, types, config.pointers != 0)?;
    match config.variant {
        0 | 1 | 3 => whole(&shapes, types, log, config, target),
        2 => split(&shapes, types, workspace, log, config, target),
        other => Err(Failure::new(
            BAD_ENUM,
            format!("softmax has no variant {other}"),
        )),
    }
}

fn check_tile(config: &SoftmaxConfig) -> Outcome {
    for side in [config.rows, config.columns] {
        if !(side as u32).is_power_of_two() || side < 1 {
            return Err(Failure::new(BAD_ENUM, format!("a tile's side of {side}")));
        }
    }
    if config.variant == 2 && config.tiles < 1 {
        return Err(Failure::new(
            BAD_ENUM,
            format!("{} tiles in a block", config.tiles),
        ));
    }
    Ok(())
}

fn shapes(
    out: &TensorDesc,
    x: &TensorDesc,
    axis: usize,
    types: [DType; 2],
    pointers: bool,
) -> Outcome<Shapes> {
    let dim = |at: usize| {
        let size = x.shape[at];
        [
            Dim {
                size,
                stride: out.strides[at],
            },
            Dim {
                size,
                stride: x.strides[at],
            },
        ]
    };
    let others: Vec<_> = (0..x.shape().len())
        .filter(|&at| at != axis)
        .map(dim)
        .collect();
    let mut others = collapse(&others);
    if others.len() > 2 {
        return Err(Failure::new(
            LAUNCH,
            "the rows lie in more than two strides: copy x first",
        ));
    }
    while others.len() < 2 {
        others.insert(0, [Dim { size: 1, stride: 0 }; 2]);
    }
    let columns = dim(axis);
    let unit = |dims: &[Dim; 2]| dims.iter().all(|dim| dim.stride == 1);
    if unit(&others[0]) {
        others.swap(0, 1);
    }
    let across = unit(&others[1]) && others[1][0].size > 1 && !unit(&columns);
    let [outer, rows] = [others[0], others[1]];
    let view = |name, desc: &TensorDesc, which: usize, dtype: DType| {
        let dims = if across {
            [outer[which], columns[which], rows[which]]
        } else {
            [outer[which], rows[which], columns[which]]
        };
        View::new(name, desc.ptr, &dims, dtype.size())
    };
    let [input, output] = types;
    let (mut out, mut x) = (view("out", out, 0, output)?, view("x", x, 1, input)?);
    let aligned = out.shape.aligned && x.shape.aligned;
    let along = !across && unit(&columns);
    let access = match (aligned && !pointers, along) {
        (true, _) => across.into(),
        (false, true) => 3,
        (false, false) => 2,
    };
    let mut strides = [[0; 3]; 2];
    for (which, view) in [&mut out, &mut x].into_iter().enumerate() {
        for (stride, dim) in strides[which].iter_mut().zip([outer, rows, columns]) {
            *stride = to_i32(dim[which].stride, "a stride")?;
        }
        // The kernel is the same for every stride, but alignment lets it load vectors.
        if access == 2 {
            view.shape = Shape::default();
        }
    }
    Ok(Shapes {
        out,
        x,
        access,
        strides,
        outer: outer[0].size,
        rows: rows[0].size,
        columns: columns[0].size,
    })
}

fn whole(
    shapes: &Shapes,
    types: [DType; 2],
    log: bool,
    config: &SoftmaxConfig,
    target: Target,
) -> Outcome {
    let online = config.variant == 1;
    if !online && shapes.columns > i64::from(config.columns) {
        let text = format!("{} columns in a tile of {}", shapes.columns, config.columns);
        return Err(Failure::new(BAD_ENUM, text));
    }
    let kernel = match config.variant {
        1 => Kernel::SoftmaxOnline,
        3 => Kernel::SoftmaxAhead,
        _ => Kernel::SoftmaxRows,
    };
    let whole = (shapes.columns % i64::from(config.columns) == 0).into();
    let generics = [
        config.rows,
        config.columns,
        shapes.access,
        log.into(),
        config.fast,
        whole,
    ];
    let mut variant = Variant::new(kernel, types, &generics, config.options);
    variant.views(&[shapes.out, shapes.x]);
    let row_tiles = to_i32(ceil_div(shapes.rows, config.rows.into()), "rows")?;
    let tiles = to_i32(i64::from(row_tiles) * shapes.outer, "the number of tiles")?;
    let mut slots = Slots::new();
    slots
        .view(&shapes.out)
        .view(&shapes.x)
        .int(row_tiles)
        .int(tiles);
    slots
        .int(to_i32(shapes.rows, "rows")?)
        .int(to_i32(shapes.columns, "columns")?);
    slots.ints(shapes.strides.as_flattened());
    if online {
        slots.int(to_i32(
            ceil_div(shapes.columns, config.columns.into()),
            "columns",
        )?);
    }
    submit(&variant, target, &slots, |device| {
        let blocks = match config.persistent {
            0 => tiles,
            each => tiles.min(device.multiprocessors * each),
        };
        [blocks as u32, 1, 1]
    })
}

fn split(
    shapes: &Shapes,
    types: [DType; 2],
    workspace: Option<&TensorDesc>,
    log: bool,
    config: &SoftmaxConfig,
    target: Target,
) -> Outcome {
    let workspace =
        workspace.ok_or_else(|| Failure::new(crate::ffi_util::NULL, "workspace is null"))?;
    workspace.element_type_in("workspace", &[DType::F32])?;
    if shapes.access == 1 {
        return Err(Failure::new(
            LAUNCH,
            "several blocks per row need contiguous rows",
        ));
    }
    let chunks = ceil_div(shapes.columns, chunk(config));
    let all_rows = shapes.outer * shapes.rows;
    if workspace.shape().iter().product::<i64>() < 2 * all_rows * chunks {
        return Err(Failure::new(
            BAD_ENUM,
            format!("workspace < 2 * {all_rows} * {chunks}"),
        ));
    }
    let parts = View::new(
        "workspace",
        workspace.ptr,
        &[
            Dim {
                size: 2,
                stride: all_rows * chunks,
            },
            Dim {
                size: all_rows,
                stride: chunks,
            },
            Dim {
                size: chunks,
                stride: 1,
            },
        ],
        4,
    )?;
    let columns = to_i32(shapes.columns, "columns")?;
    let [rows, tiles] = [to_i32(shapes.rows, "rows")?, config.tiles];
    let [all, count] = [to_i32(all_rows, "rows")?, to_i32(chunks, "chunks")?];
    to_i32(2 * all_rows * chunks, "the workspace")?;
    let group = (GROUP_BYTES / (shapes.columns * types[0].size())).max(1);
    let first = partial_variant(types, config, shapes);
    let second = finish_variant(types, config, shapes, &parts, log);
    let mut start = 0;
    while start < all_rows {
        let here = group.min(all_rows - start).min(65535);
        let grid = [count as u32, here as u32, 1];
        let start_row = start as i32;
        let mut slots = Slots::new();
        slots.pointer(workspace.ptr).view(&shapes.x);
        slots
            .int(start_row)
            .int(rows)
            .int(all)
            .int(columns)
            .int(count)
            .int(tiles);
        slots.ints(&shapes.strides[1]);
        submit(&first, target, &slots, |_| grid)?;
        let mut slots = Slots::new();
        slots.view(&shapes.out).view(&shapes.x).view(&parts);
        slots
            .int(start_row)
            .int(rows)
            .int(columns)
            .int(count)
            .int(tiles);
        slots.ints(shapes.strides.as_flattened());
        submit(&second, target, &slots, |_| grid)?;
        start += here;
    }
    Ok(())
}

/// Columns that a block of the split variant goes through.
fn chunk(config: &SoftmaxConfig) -> i64 {
    i64::from(config.columns) * i64::from(config.tiles)
}

fn partial_variant(types: [DType; 2], config: &SoftmaxConfig, shapes: &Shapes) -> Variant {
    let whole = (shapes.columns % chunk(config) == 0).into();
    let generics = [config.columns, shapes.access, config.fast, whole];
    let mut variant = Variant::new(Kernel::SoftmaxPartial, types, &generics, config.options);
    // The result's type makes no difference here.
    variant.output = types[0];
    variant.views(&[shapes.x]);
    variant
}

fn finish_variant(
    types: [DType; 2],
    config: &SoftmaxConfig,
    shapes: &Shapes,
    parts: &View,
    log: bool,
) -> Variant {
    let chunks = (parts.sizes[2] as u32).next_power_of_two().max(4) as i32;
    let whole = (shapes.columns % chunk(config) == 0).into();
    let generics = [
        config.columns,
        chunks,
        shapes.access,
        log.into(),
        config.fast,
        whole,
    ];
    let mut variant = Variant::new(Kernel::SoftmaxFinish, types, &generics, config.options);
    variant.views(&[shapes.out, shapes.x, *parts]);
    variant
}
