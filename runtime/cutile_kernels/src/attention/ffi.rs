//! The C entry of attention.

use crate::ffi_util::{BAD_ENUM, DType, Failure, Outcome, TensorDesc};
use crate::ffi_util::{finish, given, optional, required, to_i32};
use crate::launch::{Slots, Target, submit};
use crate::variant::{Kernel, Options, Variant};
use crate::view::{Dim, View, ceil_div};

const HALVES: [DType; 2] = [DType::F16, DType::BF16];
const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// How a call is to run; part of the C interface.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AttentionConfig {
    /// Queries and keys of a tile, powers of two.
    pub queries: i32,
    pub keys: i32,
    pub options: Options,
}

/// out = softmax(scale * q @ k^T + mask) @ v.
///
/// q, out: (batch, heads, queries, d); k, v: (batch, key heads, keys, d), key heads dividing
/// heads; mask: null or (batch or 1, heads or 1, queries, keys), added. `causal` 1: query i sees
/// keys 0 to i. A query that sees no key gives NaN. Enqueued on `raw_stream`; nothing waits.
///
/// # Safety
/// Descriptors and the configuration are null or valid through the call; the memory they
/// describe is valid until the stream has run the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutile_attention(
    out: *const TensorDesc,
    q: *const TensorDesc,
    k: *const TensorDesc,
    v: *const TensorDesc,
    mask: *const TensorDesc,
    scale: f32,
    causal: i32,
    config: *const AttentionConfig,
    device_id: i32,
    raw_stream: u64,
) -> i32 {
    let target = Target {
        device: device_id,
        stream: raw_stream,
    };
    finish(|| {
        let tensors = unsafe {
            [
                ("out", required(out, "out")?),
                ("q", required(q, "q")?),
                ("k", required(k, "k")?),
                ("v", required(v, "v")?),
            ]
        };
        let mask = unsafe { optional(mask) }?;
        let config = unsafe { given(config, "config") }?;
        run(tensors, mask, scale, causal != 0, config, target)
    })
}

fn run(
    tensors: [(&str, &TensorDesc); 4],
    mask: Option<&TensorDesc>,
    scale: f32,
    causal: bool,
    config: &AttentionConfig,
    target: Target,
) -> Outcome {
    let types = types(tensors, mask)?;
    for side in [config.queries, config.keys] {
        if side < 1 || !(side as u32).is_power_of_two() {
            return Err(Failure::new(BAD_ENUM, format!("a tile's side of {side}")));
        }
    }
    let [out, q, k, v] = tensors.map(|(_, desc)| desc);
    let [batch, heads, queries, keys, width] = sizes(out, q, k, v, mask)?;
    if [batch, heads, queries, width].contains(&0) {
        return Ok(());
    }
    let views = views(tensors, mask)?;
    let generics = [
        config.queries,
        config.keys,
        (width as u32).next_power_of_two().max(16) as i32,
        causal.into(),
        mask.is_some().into(),
    ];
    let mut variant = Variant::new(Kernel::Attention, types, &generics, config.options);
    variant.views(&views);
    let tiles = ceil_div(queries, config.queries.into());
    let keep = |at: usize| mask.map_or(0, |mask| i32::from(mask.shape[at] != 1));
    let mut slots = Slots::new();
    for view in &views {
        slots.view(view);
    }
    slots.float(scale * std::f32::consts::LOG2_E);
    slots
        .int(to_i32(heads, "heads")?)
        .int((heads / k.shape[1]) as i32);
    slots
        .int(to_i32(keys, "keys")?)
        .int(to_i32(tiles, "tiles")?);
    slots.int(keep(0)).int(keep(1));
    let grid = [
        tiles as u32,
        to_i32(batch * heads, "batch * heads")? as u32,
        1,
    ];
    submit(&variant, target, &slots, |_| grid)
}

/// The dtype of the four tensors and the mask's.
fn types(tensors: [(&str, &TensorDesc); 4], mask: Option<&TensorDesc>) -> Outcome<[DType; 2]> {
    let dtype = tensors[0].1.element_type_in("out", &HALVES)?;
    for (name, desc) in tensors {
        desc.element_type_in(name, &[dtype])?;
    }
    let mask = mask.map_or(Ok(dtype), |mask| mask.element_type_in("mask", &FLOATS))?;
    Ok([dtype, mask])
}

/// out, q, k, v and the mask; without one a view that no kernel reads.
fn views(tensors: [(&str, &TensorDesc); 4], mask: Option<&TensorDesc>) -> Outcome<[View; 5]> {
    let view = |(name, desc): (&str, &TensorDesc)| {
        let dims: Vec<_> = (0..4)
            .map(|at| Dim {
                size: desc.shape[at].max(1),
                stride: desc.strides[at],
            })
            .collect();
        View::new(name, desc.ptr, &dims, desc.element_type()?.size())
    };
    let [out, q, k, v] = tensors;
    let out = view(out)?;
    let mask = match mask {
        Some(mask) => view(("mask", mask))?,
        None => View {
            shape: Default::default(),
            ..out
        },
    };
    Ok([out, view(q)?, view(k)?, view(v)?, mask])
}

/// batch, heads, queries, keys, d; what does not fit raises with all shapes.
fn sizes(
    out: &TensorDesc,
    q: &TensorDesc,
    k: &TensorDesc,
    v: &TensorDesc,
    mask: Option<&TensorDesc>,
) -> Outcome<[i64; 5]> {
    let text = || {
        let mask = mask.map(|mask| mask.shape());
        format!(
            "attention of q {:?}, k {:?}, v {:?}, mask {mask:?} into {:?}",
            q.shape(),
            k.shape(),
            v.shape(),
            out.shape()
        )
    };
    let fits = || {
        let &[batch, heads, queries, width] = q.shape() else {
            return None;
        };
        let &[batch_k, heads_k, keys, width_k] = k.shape() else {
            return None;
        };
        let groups = heads_k > 0 && heads % heads_k == 0 || heads == 0;
        let same = k.shape() == v.shape() && q.shape() == out.shape();
        let mask_fits = mask.is_none_or(|mask| {
            let &[b, h, rows, columns] = mask.shape() else {
                return false;
            };
            [1, batch].contains(&b) && [1, heads].contains(&h) && rows == queries && columns == keys
        });
        let fits = batch == batch_k && width == width_k && groups && same && mask_fits;
        fits.then_some([batch, heads, queries, keys, width])
    };
    fits().ok_or_else(|| Failure::new(BAD_ENUM, text()))
}
