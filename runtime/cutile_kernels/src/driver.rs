//! The few calls of the CUDA driver, looked up when the first kernel is launched: loading this
//! library needs neither a GPU nor libcuda.

use crate::ffi_util::{DEVICE, Failure, LAUNCH, Outcome};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

type Status = c_int;
type Handle = *mut c_void;

macro_rules! driver {
    ($($field:ident = $symbol:literal : ($($arg:ty),*);)*) => {
        pub struct Driver {
            $(pub $field: unsafe extern "C" fn($($arg),*) -> Status,)*
            _library: Library,
        }

        impl Driver {
            fn open() -> Result<Self, libloading::Error> {
                let library = unsafe { Library::new("libcuda.so.1") }?;
                Ok(Self {
                    $($field: *unsafe { library.get(concat!($symbol, "\0").as_bytes()) }?,)*
                    _library: library,
                })
            }
        }
    };
}

driver! {
    init = "cuInit": (c_uint);
    error_string = "cuGetErrorString": (Status, *mut *const c_char);
    device_get = "cuDeviceGet": (*mut c_int, c_int);
    device_attribute = "cuDeviceGetAttribute": (*mut c_int, c_int, c_int);
    retain_primary = "cuDevicePrimaryCtxRetain": (*mut Handle, c_int);
    current = "cuCtxGetCurrent": (*mut Handle);
    push = "cuCtxPushCurrent_v2": (Handle);
    pop = "cuCtxPopCurrent_v2": (*mut Handle);
    load = "cuModuleLoadData": (*mut Handle, *const c_void);
    function = "cuModuleGetFunction": (*mut Handle, Handle, *const c_char);
    launch = "cuLaunchKernel": (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
        *mut *mut c_void, *mut *mut c_void
    );
}

static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();

impl Driver {
    pub fn get() -> Outcome<&'static Self> {
        let opened = DRIVER.get_or_init(|| {
            let driver = Self::open().map_err(|e| format!("the CUDA driver did not load: {e}"))?;
            let status = unsafe { (driver.init)(0) };
            if status != 0 {
                return Err(format!("cuInit: {}", driver.describe(status)));
            }
            Ok(driver)
        });
        opened
            .as_ref()
            .map_err(|text| Failure::new(DEVICE, text.clone()))
    }

    fn describe(&self, status: Status) -> String {
        let mut text: *const c_char = std::ptr::null();
        let found = unsafe { (self.error_string)(status, &mut text) };
        if found != 0 || text.is_null() {
            return format!("error {status}");
        }
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        format!("{text} (error {status})")
    }

    pub fn check(&self, status: Status, code: i32, what: &str) -> Outcome {
        if status == 0 {
            return Ok(());
        }
        Err(Failure::new(
            code,
            format!("{what}: {}", self.describe(status)),
        ))
    }
}

/// A device and its primary context, which the caller's streams belong to.
pub struct Device {
    context: usize,
    pub major: i32,
    pub minor: i32,
    pub multiprocessors: i32,
}

const ATTRIBUTE_MULTIPROCESSORS: c_int = 16;
const ATTRIBUTE_MAJOR: c_int = 75;
const ATTRIBUTE_MINOR: c_int = 76;
const MAX_DEVICES: usize = 64;

static DEVICES: [OnceLock<Result<Device, Failure>>; MAX_DEVICES] =
    [const { OnceLock::new() }; MAX_DEVICES];

impl Device {
    pub fn get(ordinal: i32) -> Outcome<&'static Self> {
        let slot = usize::try_from(ordinal)
            .ok()
            .and_then(|ordinal| DEVICES.get(ordinal))
            .ok_or_else(|| Failure::new(DEVICE, format!("there is no device {ordinal}")))?;
        slot.get_or_init(|| Self::open(ordinal))
            .as_ref()
            .map_err(Clone::clone)
    }

    fn open(ordinal: i32) -> Outcome<Self> {
        let driver = Driver::get()?;
        let mut device = 0;
        driver.check(
            unsafe { (driver.device_get)(&mut device, ordinal) },
            DEVICE,
            "cuDeviceGet",
        )?;
        let attribute = |which| {
            let mut value = 0;
            let status = unsafe { (driver.device_attribute)(&mut value, which, device) };
            driver
                .check(status, DEVICE, "cuDeviceGetAttribute")
                .map(|()| value)
        };
        let mut context: Handle = std::ptr::null_mut();
        let status = unsafe { (driver.retain_primary)(&mut context, device) };
        driver.check(status, DEVICE, "cuDevicePrimaryCtxRetain")?;
        Ok(Self {
            context: context as usize,
            major: attribute(ATTRIBUTE_MAJOR)?,
            minor: attribute(ATTRIBUTE_MINOR)?,
            multiprocessors: attribute(ATTRIBUTE_MULTIPROCESSORS)?,
        })
    }

    /// Runs `work` with this device's context current, as the driver's calls need it.
    pub fn with_context<T>(&self, work: impl FnOnce(&Driver) -> Outcome<T>) -> Outcome<T> {
        let driver = Driver::get()?;
        let mut current: Handle = std::ptr::null_mut();
        driver.check(
            unsafe { (driver.current)(&mut current) },
            DEVICE,
            "cuCtxGetCurrent",
        )?;
        if current as usize == self.context {
            return work(driver);
        }
        let status = unsafe { (driver.push)(self.context as Handle) };
        driver.check(status, DEVICE, "cuCtxPushCurrent")?;
        let result = work(driver);
        let mut popped: Handle = std::ptr::null_mut();
        let status = unsafe { (driver.pop)(&mut popped) };
        let result = result?;
        driver.check(status, DEVICE, "cuCtxPopCurrent")?;
        Ok(result)
    }
}

/// A loaded kernel. Modules live as long as the process: kernels may still be running when the
/// last handle would go.
#[derive(Clone, Copy)]
pub struct Function(usize);

impl Function {
    pub fn load(driver: &Driver, cubin: &[u8], entry: &str) -> Outcome<Self> {
        let mut module: Handle = std::ptr::null_mut();
        let status = unsafe { (driver.load)(&mut module, cubin.as_ptr().cast()) };
        driver.check(status, LAUNCH, "cuModuleLoadData")?;
        let name = CString::new(entry).unwrap_or_default();
        let mut function: Handle = std::ptr::null_mut();
        let status = unsafe { (driver.function)(&mut function, module, name.as_ptr()) };
        driver.check(status, LAUNCH, "cuModuleGetFunction")?;
        Ok(Self(function as usize))
    }

    /// Enqueues the kernel. A tile kernel's block is 1x1x1: the driver knows its threads.
    pub fn enqueue(self, driver: &Driver, grid: [u32; 3], slots: &[u64], stream: u64) -> Outcome {
        let mut pointers = [std::ptr::null_mut::<c_void>(); crate::launch::MAX_SLOTS];
        for (pointer, slot) in pointers.iter_mut().zip(slots) {
            *pointer = std::ptr::from_ref(slot).cast_mut().cast();
        }
        let [x, y, z] = grid;
        let status = unsafe {
            (driver.launch)(
                self.0 as Handle,
                x,
                y,
                z,
                1,
                1,
                1,
                0,
                stream as Handle,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        driver.check(status, LAUNCH, "cuLaunchKernel")
    }
}
