//! Tile kernels behind a C interface; see README.md for every entry.

mod attention;
mod cubin;
mod driver;
mod ffi_util;
mod launch;
mod matmul;
mod softmax;
mod variant;
mod view;

use ffi_util::{Failure, NULL, finish, last_error, optional_text};
use std::ffi::c_char;

/// Where cubins and the assembler are; each may be null. `shipped` and `cache` are folders,
/// searched in this order; new cubins go to `cache`. `tileiras` is the assembler's path; without
/// it $CUDA_TOOLKIT_PATH/bin and PATH are searched when one is needed.
///
/// # Safety
/// Every argument is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutile_init(
    shipped: *const c_char,
    cache: *const c_char,
    tileiras: *const c_char,
) -> i32 {
    finish(|| {
        cubin::set_places(cubin::Places {
            shipped: unsafe { optional_text(shipped) }?.map(Into::into),
            cache: unsafe { optional_text(cache) }?.map(Into::into),
            tileiras: unsafe { optional_text(tileiras) }?.map(Into::into),
        });
        Ok(())
    })
}

/// From now on this thread's calls launch nothing: they put their cubins for `architecture`
/// ("sm_90") into `folder`. Null for `architecture` ends that.
///
/// # Safety
/// Every argument is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutile_compile_for(
    architecture: *const c_char,
    folder: *const c_char,
) -> i32 {
    finish(|| {
        let architecture = unsafe { optional_text(architecture) }?;
        let folder = unsafe { optional_text(folder) }?;
        let target = match (architecture, folder) {
            (None, _) => None,
            (Some(architecture), Some(folder)) => Some((architecture, folder.into())),
            (Some(_), None) => return Err(Failure::new(NULL, "the folder is null")),
        };
        launch::compile_for(target);
        Ok(())
    })
}

/// Why this thread's last failed call failed; valid until its next failure.
#[unsafe(no_mangle)]
pub extern "C" fn cutile_last_error() -> *const c_char {
    last_error()
}

#[cfg(test)]
mod tests;
