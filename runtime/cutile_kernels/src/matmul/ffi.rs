//! The C entries of the products.

use super::problem::{Planes, Problem, element};
use crate::ffi_util::{BAD_ENUM, DType, Failure, Outcome, TensorDesc};
use crate::ffi_util::{finish, given, optional, required, to_i32};
use crate::launch::{Slots, Target, submit};
use crate::variant::{Kernel, Options, Variant};
use crate::view::{Dim, View, ceil_div};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
const HALVES: [DType; 2] = [DType::F16, DType::BF16];

/// Rows and columns of a tile of the splitting kernel.
const SPLIT_TILE: [i32; 2] = [32, 128];

/// How a call is to run; part of the C interface.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MatmulConfig {
    /// 0 the product as it is (float16, bfloat16); float32 through three bfloat16 terms, added up
    /// outside the tensor cores: 1 once in a k step, 2 with the small products in the same sum,
    /// 3 as 1, once in four k steps.
    pub variant: i32,
    /// Sides of a tile, powers of two.
    pub m: i32,
    pub n: i32,
    pub k: i32,
    /// Row tiles that are worked on before the next column.
    pub group: i32,
    /// Blocks per multiprocessor that stride over the tiles; 0: one block for each tile.
    pub persistent: i32,
    pub options: Options,
}

/// What happens to a sum before it is stored; part of the C interface.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Epilogue {
    pub alpha: f32,
    /// 0 none, 1 relu, 2 gelu, 3 gelu by tanh, 4 silu.
    pub activation: i32,
}

/// c = activation(alpha * a @ b + bias): a is (…, m, k), b (…, k, n), c (…, m, n), where batch
/// dimensions are broadcast; bias is null or (n,), of c's dtype.
///
/// Variants 1 to 3 take float32 and need a 16-byte aligned `workspace` of
/// `cutile_matmul_workspace` bytes (any dtype, contiguous); else it may be null. Enqueued on
/// `raw_stream`; nothing waits.
///
/// # Safety
/// Descriptors and configurations are null or valid through the call; the memory they describe
/// is valid until the stream has run the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutile_matmul(
    c: *const TensorDesc,
    a: *const TensorDesc,
    b: *const TensorDesc,
    bias: *const TensorDesc,
    workspace: *const TensorDesc,
    epilogue: *const Epilogue,
    config: *const MatmulConfig,
    device_id: i32,
    raw_stream: u64,
) -> i32 {
    let target = Target {
        device: device_id,
        stream: raw_stream,
    };
    finish(|| {
        let operands = unsafe {
            Operands {
                c: required(c, "c")?,
                a: required(a, "a")?,
                b: required(b, "b")?,
                bias: optional(bias)?,
                workspace: optional(workspace)?,
            }
        };
        let epilogue = unsafe { given(epilogue, "epilogue") }?;
        let config = unsafe { given(config, "config") }?;
        run(&operands, epilogue, config, target)
    })
}

/// Bytes of workspace that variants 1 to 3 of `cutile_matmul` need for these operands, or a negative
/// return code.
///
/// # Safety
/// Descriptors are null or valid through the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutile_matmul_workspace(
    c: *const TensorDesc,
    a: *const TensorDesc,
    b: *const TensorDesc,
) -> i64 {
    let mut bytes = 0;
    let code = finish(|| {
        let [c, a, b] = unsafe { [required(c, "c")?, required(a, "a")?, required(b, "b")?] };
        let problem = Problem::new(c, a, b)?;
        bytes = problem.a.planes().bytes() + problem.b.planes().bytes();
        Ok(())
    });
    if code < 0 { i64::from(code) } else { bytes }
}

struct Operands<'a> {
    c: &'a TensorDesc,
    a: &'a TensorDesc,
    b: &'a TensorDesc,
    bias: Option<&'a TensorDesc>,
    workspace: Option<&'a TensorDesc>,
}

fn run(operands: &Operands, epilogue: &Epilogue, config: &MatmulConfig, target: Target) -> Outcome {
    let taken: &[DType] = if config.variant != 0 {
        &[DType::F32]
    } else {
        &HALVES
    };
    let input = operands.a.element_type_in("a", taken)?;
    operands.b.element_type_in("b", &[input])?;
    let output = operands.c.element_type_in("c", &FLOATS)?;
    check(epilogue, config)?;
    let problem = Problem::new(operands.c, operands.a, operands.b)?;
    let bias = bias_view(operands.bias, output, &problem)?;
    if problem.is_empty() {
        return Ok(());
    }
    let call = Call {
        problem,
        bias,
        types: [input, output],
        epilogue,
        config,
        target,
    };
    match config.variant {
        0 => call.plain(operands.bias.is_some()),
        _ => call.split(operands.bias.is_some(), operands.workspace),
    }
}

fn check(epilogue: &Epilogue, config: &MatmulConfig) -> Outcome {
    if !(0..=3).contains(&config.variant) {
        let text = format!("the product has no variant {}", config.variant);
        return Err(Failure::new(BAD_ENUM, text));
    }
    if !(0..=4).contains(&epilogue.activation) {
        return Err(Failure::new(
            BAD_ENUM,
            format!("no activation {}", epilogue.activation),
        ));
    }
    for side in [config.m, config.n, config.k] {
        if side < 1 || !(side as u32).is_power_of_two() {
            return Err(Failure::new(BAD_ENUM, format!("a tile's side of {side}")));
        }
    }
    if config.group < 1 {
        return Err(Failure::new(
            BAD_ENUM,
            format!("a group of {} rows", config.group),
        ));
    }
    Ok(())
}

/// The bias as (n,); without one a view of c that no kernel reads.
fn bias_view(bias: Option<&TensorDesc>, output: DType, problem: &Problem) -> Outcome<View> {
    let Some(bias) = bias else {
        let none = Dim {
            size: problem.n.max(1),
            stride: 1,
        };
        return View::new("bias", problem.c.pointer & !15, &[none], output.size());
    };
    bias.element_type_in("bias", &[output])?;
    if bias.shape() != [problem.n] {
        let text = format!("bias is {:?}, not [{}]", bias.shape(), problem.n);
        return Err(Failure::new(BAD_ENUM, text));
    }
    let dim = Dim {
        size: problem.n,
        stride: bias.strides[0],
    };
    View::new("bias", bias.ptr, &[dim], output.size())
}

struct Call<'a> {
    problem: Problem,
    bias: View,
    types: [DType; 2],
    epilogue: &'a Epilogue,
    config: &'a MatmulConfig,
    target: Target,
}

impl Call<'_> {
    fn plain(&self, biased: bool) -> Outcome {
        let Problem { c, a, b, .. } = &self.problem;
        let mut generics = self.generics(biased).to_vec();
        generics.push((self.config.persistent != 0).into());
        let options = self.config.options;
        let mut variant = Variant::new(Kernel::Matmul, self.types, &generics, options);
        variant.views(&[*c, a.view, b.view, self.bias]);
        self.submit(&variant, [a.view, b.view], [a.keep, b.keep])
    }

    fn split(&self, biased: bool, workspace: Option<&TensorDesc>) -> Outcome {
        let Problem { c, a, b, .. } = &self.problem;
        let workspace =
            workspace.ok_or_else(|| Failure::new(crate::ffi_util::NULL, "workspace is null"))?;
        let [planes_a, planes_b] = [a.planes(), b.planes()];
        let given = workspace.shape().iter().product::<i64>() * element(workspace)?;
        let needed = planes_a.bytes() + planes_b.bytes();
        if given < needed || workspace.ptr % 16 != 0 {
            let text = format!("a workspace of {given} bytes where {needed} are needed");
            return Err(Failure::new(BAD_ENUM, text));
        }
        let terms_a = planes_a.view(workspace.ptr)?;
        let terms_b = planes_b.view(workspace.ptr + planes_a.bytes() as u64)?;
        self.split_factor(&a.view, &planes_a, terms_a)?;
        self.split_factor(&b.view, &planes_b, terms_b)?;
        let types = [DType::BF16, self.types[1]];
        let options = self.config.options;
        let mut generics = self.generics(biased).to_vec();
        generics.push(self.config.variant - 1);
        let mut variant = Variant::new(Kernel::MatmulSplit, types, &generics, options);
        variant.views(&[*c, terms_a, terms_b, self.bias]);
        // The terms have one batch dimension: outer steps go over the inner one's batches.
        let keep = [a, b].map(|f| [f.keep[0] * f.view.sizes[1], f.keep[1]]);
        self.submit(&variant, [terms_a, terms_b], keep)
    }

    fn split_factor(&self, factor: &View, planes: &Planes, terms: View) -> Outcome {
        let types = [DType::F32, DType::BF16];
        let mut variant = Variant::new(Kernel::Split, types, &SPLIT_TILE, Options::default());
        variant.views(&[terms, *factor]);
        let mut slots = Slots::new();
        slots.view(&terms).view(factor).int(factor.sizes[1]);
        let [rows, columns] = SPLIT_TILE.map(i64::from);
        let grid = [
            to_i32(ceil_div(planes.columns, columns), "columns")? as u32,
            to_i32(ceil_div(planes.rows, rows), "rows")? as u32,
            to_i32(planes.batches, "batches")? as u32,
        ];
        submit(&variant, self.target, &slots, |_| grid)
    }

    fn generics(&self, biased: bool) -> [i32; 9] {
        let MatmulConfig { m, n, k, group, .. } = *self.config;
        let Problem { a, b, .. } = &self.problem;
        let activation = self.epilogue.activation;
        [
            m,
            n,
            k,
            group,
            a.swapped.into(),
            b.swapped.into(),
            biased.into(),
            activation,
            (self.types[1] != DType::F32).into(),
        ]
    }

    fn submit(&self, variant: &Variant, factors: [View; 2], keep: [[i32; 2]; 2]) -> Outcome {
        let Problem {
            c, batch, m, n, k, ..
        } = &self.problem;
        let tiles_of = |size: i64, side: i32| ceil_div(size, side.into());
        let row_tiles = tiles_of(*m, self.config.m);
        let column_tiles = tiles_of(*n, self.config.n);
        let tiles = row_tiles * column_tiles * batch[0] * batch[1];
        let tiles = to_i32(tiles, "the number of tiles")?;
        let mut slots = Slots::new();
        slots
            .view(c)
            .view(&factors[0])
            .view(&factors[1])
            .view(&self.bias);
        slots.float(self.epilogue.alpha).int(batch[1] as i32);
        slots.int(row_tiles as i32).int(column_tiles as i32);
        slots.int(tiles_of(*k, self.config.k) as i32).int(tiles);
        slots.ints(keep.as_flattened());
        let persistent = self.config.persistent;
        submit(variant, self.target, &slots, |device| {
            let blocks = match persistent {
                0 => tiles,
                each => tiles.min(device.multiprocessors * each),
            };
            [blocks as u32, 1, 1]
        })
    }
}
