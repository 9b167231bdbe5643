//! What can be tested without a GPU: descriptors, return codes, and the compilation of every
//! kernel for every architecture, which needs tileiras.

use crate::attention::ffi::{AttentionConfig, cutile_attention};
use crate::ffi_util::{BAD_ENUM, DEVICE, LAUNCH, MAX_DIMS, NULL, OK, TensorDesc};
use crate::matmul::ffi::{Epilogue, MatmulConfig, cutile_matmul, cutile_matmul_workspace};
use crate::softmax::ffi::{SoftmaxConfig, cutile_softmax};
use crate::variant::Options;
use crate::{cutile_compile_for, cutile_init, cutile_last_error};
use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::ptr::null;
use std::sync::{Mutex, MutexGuard};

const F32: i32 = 0;
const F16: i32 = 1;
const BF16: i32 = 2;
const I32: i32 = 3;
const NO_DEVICE: i32 = 4096;
const ARCHITECTURES: [&str; 4] = ["sm_80", "sm_90", "sm_100", "sm_120"];

/// Where cubins are is set for the whole process: these tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let guard = TURN.lock().unwrap_or_else(|e| e.into_inner());
    assert_eq!(unsafe { cutile_init(null(), null(), null()) }, OK);
    guard
}

fn desc(shape: &[i64], dtype: i32) -> TensorDesc {
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at];
    }
    strided(shape, &strides, dtype)
}

fn strided(shape: &[i64], strides: &[i64], dtype: i32) -> TensorDesc {
    let mut desc = TensorDesc {
        ptr: 1 << 20,
        ndim: shape.len() as i32,
        shape: [0; MAX_DIMS],
        strides: [0; MAX_DIMS],
        dtype,
    };
    desc.shape[..shape.len()].copy_from_slice(shape);
    desc.strides[..shape.len()].copy_from_slice(strides);
    desc
}

fn error() -> String {
    unsafe { CStr::from_ptr(cutile_last_error()) }
        .to_string_lossy()
        .into_owned()
}

fn softmax_config(variant: i32, rows: i32, columns: i32) -> SoftmaxConfig {
    SoftmaxConfig {
        variant,
        rows,
        columns,
        tiles: 1,
        fast: 1,
        pointers: 0,
        persistent: 0,
        options: Options::default(),
    }
}

fn matmul_config(variant: i32) -> MatmulConfig {
    MatmulConfig {
        variant,
        m: 64,
        n: 64,
        k: 32,
        group: 8,
        persistent: 0,
        options: Options::default(),
    }
}

fn softmax(out: &TensorDesc, x: &TensorDesc, axis: i32, config: &SoftmaxConfig) -> i32 {
    let workspace = desc(&[1 << 20], F32);
    unsafe { cutile_softmax(out, x, &workspace, axis, 0, config, NO_DEVICE, 0) }
}

fn matmul(c: &TensorDesc, a: &TensorDesc, b: &TensorDesc, config: &MatmulConfig) -> i32 {
    let workspace = desc(&[1 << 24], F32);
    let epilogue = Epilogue {
        alpha: 1.0,
        activation: 0,
    };
    unsafe { cutile_matmul(c, a, b, null(), &workspace, &epilogue, config, NO_DEVICE, 0) }
}

fn attention(q: &TensorDesc, k: &TensorDesc, mask: Option<&TensorDesc>, causal: i32) -> i32 {
    let config = AttentionConfig {
        queries: 64,
        keys: 64,
        options: Options::default(),
    };
    let mask = mask.map_or(null(), std::ptr::from_ref);
    unsafe { cutile_attention(q, q, k, k, mask, 1.0, causal, &config, NO_DEVICE, 0) }
}

#[test]
fn null_is_refused() {
    let (x, config) = (desc(&[4, 8], F32), softmax_config(0, 1, 8));
    let call =
        |out, x, config| unsafe { cutile_softmax(out, x, null(), 1, 0, config, NO_DEVICE, 0) };
    assert_eq!(call(null(), &x, &config), NULL);
    assert!(error().contains("out"), "{}", error());
    assert_eq!(call(&x, null(), &config), NULL);
    assert_eq!(call(&x, &x, null()), NULL);
    assert_eq!(call(&x, &x, &softmax_config(2, 1, 8)), NULL);
    assert!(error().contains("workspace"), "{}", error());
    assert_eq!(
        unsafe { cutile_matmul_workspace(null(), &x, &x) },
        i64::from(NULL)
    );
}

#[test]
fn dtypes_and_enums_are_checked() {
    let (x, config) = (desc(&[4, 8], F32), softmax_config(0, 1, 8));
    assert_eq!(softmax(&x, &desc(&[4, 8], I32), 1, &config), BAD_ENUM);
    assert!(error().contains("i32"), "{}", error());
    assert_eq!(softmax(&x, &desc(&[4, 8], 9), 1, &config), BAD_ENUM);
    assert_eq!(softmax(&x, &x, 1, &softmax_config(7, 1, 8)), BAD_ENUM);
    assert_eq!(softmax(&x, &x, 1, &softmax_config(0, 1, 12)), BAD_ENUM);
    assert_eq!(softmax(&x, &x, 1, &softmax_config(0, 1, 4)), BAD_ENUM);
    assert_eq!(softmax(&x, &x, 2, &config), BAD_ENUM);
    let mut deep = x;
    deep.ndim = 9;
    assert_eq!(softmax(&deep, &x, 1, &config), BAD_ENUM);
    // float32 goes through the split, never through one product of less precision.
    assert_eq!(matmul(&x, &x, &x, &matmul_config(0)), BAD_ENUM);
    assert_eq!(matmul(&x, &x, &x, &matmul_config(4)), BAD_ENUM);
    assert_eq!(
        matmul(&x, &desc(&[4, 8], BF16), &x, &matmul_config(1)),
        BAD_ENUM
    );
}

#[test]
fn shapes_are_told() {
    let (x, y) = (desc(&[4, 8], F32), desc(&[4, 9], F32));
    assert_eq!(softmax(&y, &x, 1, &softmax_config(0, 1, 8)), BAD_ENUM);
    assert!(
        error().contains("[4, 8]") && error().contains("[4, 9]"),
        "{}",
        error()
    );
    let (a, b) = (desc(&[2, 4, 8], BF16), desc(&[3, 8, 5], BF16));
    assert_eq!(
        matmul(&desc(&[2, 4, 5], BF16), &a, &b, &matmul_config(0)),
        BAD_ENUM
    );
    assert!(
        error().contains("[2, 4, 8]") && error().contains("[3, 8, 5]"),
        "{}",
        error()
    );
    let (q, k) = (desc(&[1, 2, 4, 16], F16), desc(&[1, 2, 4, 32], F16));
    assert_eq!(attention(&q, &k, None, 0), BAD_ENUM);
    assert!(error().contains("[1, 2, 4, 32]"), "{}", error());
}

#[test]
fn layouts_that_no_view_has_ask_for_a_copy() {
    let x = strided(&[4, 8], &[-8, 1], F32);
    assert_eq!(
        softmax(&desc(&[4, 8], F32), &x, 1, &softmax_config(0, 1, 8)),
        LAUNCH
    );
    assert!(error().contains("copy"), "{}", error());
}

#[test]
fn a_device_that_is_not_there() {
    let x = desc(&[4, 8], F32);
    assert_eq!(softmax(&x, &x, 1, &softmax_config(0, 1, 8)), DEVICE);
    assert!(error().contains("4096"), "{}", error());
}

#[test]
fn nothing_to_do_needs_no_device() {
    let x = desc(&[0, 8], F32);
    assert_eq!(softmax(&x, &x, 1, &softmax_config(0, 1, 8)), OK);
    let (a, b) = (desc(&[0, 4, 8], BF16), desc(&[0, 8, 5], BF16));
    assert_eq!(
        matmul(&desc(&[0, 4, 5], BF16), &a, &b, &matmul_config(0)),
        OK
    );
}

type NamedCall = (&'static str, Box<dyn Fn() -> i32>);

/// Every kernel in the shapes of its operands that make different code.
fn everything() -> Vec<NamedCall> {
    let mut calls: Vec<NamedCall> = Vec::new();
    for dtype in [F32, F16, BF16] {
        for (name, columns, variant) in [
            ("rows", 512, 0),
            ("rows of no vectors", 511, 0),
            ("read ahead", 512, 3),
            ("online", 2048, 1),
            ("split", 8192, 2),
        ] {
            let x = desc(&[4, columns], dtype);
            let config = softmax_config(variant, 1, if columns < 1024 { 512 } else { 1024 });
            calls.push((name, Box::new(move || softmax(&x, &x, 1, &config))));
        }
        let x = desc(&[64, 64], dtype);
        let across = move || softmax(&x, &x, 0, &softmax_config(0, 16, 64));
        calls.push(("across", Box::new(across)));
    }
    for dtype in [F16, BF16] {
        let [a, b, c] = [[2, 64, 32], [2, 32, 64], [2, 64, 64]].map(|s| desc(&s, dtype));
        calls.push((
            "product",
            Box::new(move || matmul(&c, &a, &b, &matmul_config(0))),
        ));
        let turned = strided(&[2, 32, 64], &[2048, 1, 32], dtype);
        calls.push((
            "b swapped",
            Box::new(move || matmul(&c, &a, &turned, &matmul_config(0))),
        ));
        let mut persistent = matmul_config(0);
        persistent.persistent = 1;
        calls.push((
            "persistent",
            Box::new(move || matmul(&c, &a, &b, &persistent)),
        ));
        let (q, mask) = (
            desc(&[1, 2, 128, 64], dtype),
            desc(&[1, 1, 128, 128], dtype),
        );
        calls.push(("causal", Box::new(move || attention(&q, &q, None, 1))));
        calls.push((
            "masked",
            Box::new(move || attention(&q, &q, Some(&mask), 0)),
        ));
    }
    let [a, b, c] = [[2, 64, 32], [2, 32, 64], [2, 64, 64]].map(|s| desc(&s, F32));
    for (name, variant) in [("float32", 1), ("in one sum", 2), ("four steps", 3)] {
        let config = matmul_config(variant);
        calls.push((name, Box::new(move || matmul(&c, &a, &b, &config))));
    }
    for activation in 1..=4 {
        let [a, b, c] = [[2, 64, 32], [2, 32, 64], [2, 64, 64]].map(|s| desc(&s, BF16));
        let bias = desc(&[64], BF16);
        let biased = move || {
            let epilogue = Epilogue {
                alpha: 0.5,
                activation,
            };
            let config = matmul_config(0);
            unsafe { cutile_matmul(&c, &a, &b, &bias, null(), &epilogue, &config, NO_DEVICE, 0) }
        };
        calls.push(("epilogue", Box::new(biased)));
    }
    calls
}

fn compile_for(architecture: &str, folder: &std::path::Path) {
    let architecture = CString::new(architecture).unwrap();
    let folder = CString::new(folder.to_str().unwrap()).unwrap();
    assert_eq!(
        unsafe { cutile_compile_for(architecture.as_ptr(), folder.as_ptr()) },
        OK
    );
}

fn fresh_folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("cutile-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn every_kernel_compiles_for_every_architecture() {
    let _turn = turn();
    let folder = fresh_folder("all");
    for architecture in ARCHITECTURES {
        compile_for(architecture, &folder);
        for (name, call) in everything() {
            assert_eq!(call(), OK, "{name} for {architecture}: {}", error());
        }
    }
    assert_eq!(unsafe { cutile_compile_for(null(), null()) }, OK);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_damaged_cubin_is_built_again() {
    let _turn = turn();
    let folder = fresh_folder("damaged");
    compile_for("sm_90", &folder);
    let x = desc(&[4, 64], F32);
    let call = || softmax(&x, &x, 1, &softmax_config(0, 1, 64));
    assert_eq!(call(), OK, "{}", error());
    let path = std::fs::read_dir(&folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..100]).unwrap();
    assert_eq!(call(), OK, "{}", error());
    assert_eq!(std::fs::read(&path).unwrap().len(), whole.len());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    assert_eq!(unsafe { cutile_compile_for(null(), null()) }, OK);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_missing_assembler_is_named() {
    let _turn = turn();
    let nowhere = c"/nonexistent/tileiras";
    assert_eq!(unsafe { cutile_init(null(), null(), nowhere.as_ptr()) }, OK);
    compile_for("sm_90", &fresh_folder("missing"));
    let x = desc(&[4, 64], F32);
    assert_eq!(softmax(&x, &x, 1, &softmax_config(0, 1, 64)), LAUNCH);
    assert!(error().contains("pip install"), "{}", error());
    assert_eq!(unsafe { cutile_compile_for(null(), null()) }, OK);
}
