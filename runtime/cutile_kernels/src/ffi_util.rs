//! What every C entry shares: descriptors, dtype codes, return codes, the last error's text.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub const MAX_DIMS: usize = 8;

/// A borrowed tensor: the caller owns the memory and keeps it alive through the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorDesc {
    pub ptr: u64,
    pub ndim: i32,
    pub shape: [i64; MAX_DIMS],
    /// In elements, not bytes.
    pub strides: [i64; MAX_DIMS],
    pub dtype: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DType {
    F32 = 0,
    F16 = 1,
    BF16 = 2,
    I32 = 3,
}

impl DType {
    pub fn from_code(code: i32) -> Option<Self> {
        [Self::F32, Self::F16, Self::BF16, Self::I32]
            .get(usize::try_from(code).ok()?)
            .copied()
    }

    /// The name cutile's generics use.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::I32 => "i32",
        }
    }

    pub fn size(self) -> i64 {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }
}

/// Why a call failed; `code` is what the C entry returns.
#[derive(Debug, Clone)]
pub struct Failure {
    pub code: i32,
    pub text: String,
}

pub const OK: i32 = 0;
pub const BAD_ENUM: i32 = -2;
pub const LAUNCH: i32 = -3;
pub const DEVICE: i32 = -4;
pub const NULL: i32 = -5;

impl Failure {
    pub fn new(code: i32, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

pub type Outcome<T = ()> = Result<T, Failure>;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::new(CString::default());
}

/// The return code of a C entry's work, with its text kept for `cutile_last_error` of this
/// thread. A panic must not leave through C: it is a failure as well.
pub fn finish(work: impl FnOnce() -> Outcome) -> i32 {
    let outcome = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Failure::new(LAUNCH, "the tile library panicked")));
    let Err(failure) = outcome else { return OK };
    let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
    LAST_ERROR.with(|slot| slot.replace(text));
    failure.code
}

pub fn last_error() -> *const c_char {
    LAST_ERROR.with(|slot| slot.borrow().as_ptr())
}

/// An optional C string; null and "" both mean that nothing was given.
///
/// # Safety
/// `text` is null or a NUL-terminated string that outlives the call.
pub unsafe fn optional_text(text: *const c_char) -> Outcome<Option<String>> {
    if text.is_null() {
        return Ok(None);
    }
    let text = unsafe { CStr::from_ptr(text) };
    match text.to_str() {
        Ok("") => Ok(None),
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => Err(Failure::new(BAD_ENUM, "a path is not UTF-8")),
    }
}

/// A descriptor that must be there.
///
/// # Safety
/// `desc` is null or points to a descriptor that outlives the call.
pub unsafe fn required<'a>(desc: *const TensorDesc, name: &str) -> Outcome<&'a TensorDesc> {
    match unsafe { optional(desc) }? {
        Some(desc) => Ok(desc),
        None => Err(Failure::new(
            NULL,
            format!("the descriptor of {name} is null"),
        )),
    }
}

/// A configuration that must be there.
///
/// # Safety
/// `config` is null or points to a value that outlives the call.
pub unsafe fn given<'a, T>(config: *const T, name: &str) -> Outcome<&'a T> {
    let config = unsafe { config.as_ref() };
    config.ok_or_else(|| Failure::new(NULL, format!("{name} is null")))
}

/// A descriptor that may be null; one that is there must be well formed.
///
/// # Safety
/// As for [`required`].
pub unsafe fn optional<'a>(desc: *const TensorDesc) -> Outcome<Option<&'a TensorDesc>> {
    let Some(desc) = (unsafe { desc.as_ref() }) else {
        return Ok(None);
    };
    if !(0..=MAX_DIMS as i32).contains(&desc.ndim) {
        return Err(Failure::new(
            BAD_ENUM,
            format!("a tensor has {} dimensions", desc.ndim),
        ));
    }
    desc.element_type()?;
    if desc.shape().iter().any(|&n| n < 0) {
        return Err(Failure::new(
            BAD_ENUM,
            format!("a shape is negative: {:?}", desc.shape()),
        ));
    }
    Ok(Some(desc))
}

impl TensorDesc {
    pub fn shape(&self) -> &[i64] {
        &self.shape[..self.ndim as usize]
    }

    pub fn element_type(&self) -> Outcome<DType> {
        DType::from_code(self.dtype)
            .ok_or_else(|| Failure::new(BAD_ENUM, format!("no dtype has the code {}", self.dtype)))
    }

    /// Its dtype when the operation takes it.
    pub fn element_type_in(&self, name: &str, taken: &[DType]) -> Outcome<DType> {
        let dtype = self.element_type()?;
        if taken.contains(&dtype) {
            return Ok(dtype);
        }
        let taken: Vec<_> = taken.iter().map(|d| d.name()).collect();
        Err(Failure::new(
            BAD_ENUM,
            format!("{name} is {}; taken are {}", dtype.name(), taken.join(", ")),
        ))
    }
}

/// A size or stride as the kernels' 32-bit integers.
pub fn to_i32(value: i64, what: &str) -> Outcome<i32> {
    i32::try_from(value)
        .map_err(|_| Failure::new(LAUNCH, format!("{what} = {value} does not fit in 32 bits")))
}
