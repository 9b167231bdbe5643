//! From a variant and its parameters to one asynchronous launch, in about a microsecond.

use crate::cubin;
use crate::driver::{Device, Function};
use crate::ffi_util::Outcome;
use crate::variant::Variant;
use crate::view::View;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

pub const MAX_SLOTS: usize = 64;

/// Kernel parameters in order, each in a slot of its own as cuLaunchKernel wants them.
#[derive(Clone, Copy)]
pub struct Slots {
    values: [u64; MAX_SLOTS],
    count: usize,
}

impl Slots {
    pub fn new() -> Self {
        Self {
            values: [0; MAX_SLOTS],
            count: 0,
        }
    }

    fn push(&mut self, value: u64) {
        self.values[self.count] = value;
        self.count += 1;
    }

    pub fn pointer(&mut self, value: u64) -> &mut Self {
        self.push(value);
        self
    }

    pub fn int(&mut self, value: i32) -> &mut Self {
        self.push(u64::from(value as u32));
        self
    }

    pub fn ints(&mut self, values: &[i32]) -> &mut Self {
        for value in values {
            self.int(*value);
        }
        self
    }

    pub fn float(&mut self, value: f32) -> &mut Self {
        self.push(u64::from(value.to_bits()));
        self
    }

    /// A tensor parameter: the pointer, the sizes, the strides.
    pub fn view(&mut self, view: &View) -> &mut Self {
        self.push(view.pointer);
        self.ints(&view.sizes[..view.rank])
            .ints(&view.strides[..view.rank])
    }

    fn filled(&self) -> &[u64] {
        &self.values[..self.count]
    }
}

/// Where a kernel runs: the caller's device and stream.
#[derive(Clone, Copy)]
pub struct Target {
    pub device: i32,
    pub stream: u64,
}

/// A multiplication a word: the standard hash costs as much as the rest of a launch.
#[derive(Clone, Copy, Default)]
struct Words(u64);

impl Hasher for Words {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_i32(&mut self, value: i32) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

type Functions = HashMap<(i32, Variant), Function, BuildHasherDefault<Words>>;

thread_local! {
    static COMPILE_FOR: RefCell<Option<(String, PathBuf)>> = const { RefCell::new(None) };
    /// The process's table again, read without a lock.
    static SEEN: RefCell<Functions> = RefCell::new(HashMap::default());
}

static LOADED: OnceLock<Mutex<Functions>> = OnceLock::new();

/// Until it is unset, this thread's calls only put cubins for an architecture into a folder.
pub fn compile_for(target: Option<(String, PathBuf)>) {
    COMPILE_FOR.with(|slot| slot.replace(target));
}

/// Enqueues a kernel; `grid` is asked once the device is known. An empty grid is no launch.
pub fn submit(
    variant: &Variant,
    target: Target,
    slots: &Slots,
    grid: impl FnOnce(&Device) -> [u32; 3],
) -> Outcome {
    let compiled = COMPILE_FOR.with(|slot| {
        let slot = slot.borrow();
        let (architecture, folder) = slot.as_ref()?;
        Some(cubin::build_into(variant, architecture, folder))
    });
    if let Some(outcome) = compiled {
        return outcome;
    }
    let device = Device::get(target.device)?;
    let grid = grid(device);
    if grid.contains(&0) {
        return Ok(());
    }
    device.with_context(|driver| {
        let function = match seen(variant, target.device) {
            Some(function) => function,
            None => load(variant, target.device, device)?,
        };
        function.enqueue(driver, grid, slots.filled(), target.stream)
    })
}

fn seen(variant: &Variant, device: i32) -> Option<Function> {
    SEEN.with(|table| table.borrow().get(&(device, *variant)).copied())
}

/// Holding the lock through a compilation makes one thread compile for all.
fn load(variant: &Variant, ordinal: i32, device: &Device) -> Outcome<Function> {
    let loaded = LOADED.get_or_init(|| Mutex::new(HashMap::default()));
    let mut loaded = loaded.lock().unwrap_or_else(|e| e.into_inner());
    let key = (ordinal, *variant);
    let function = match loaded.get(&key) {
        Some(&function) => function,
        None => {
            let cubin = cubin::obtain(variant, device.major, device.minor)?;
            let entry = format!("{}_entry", variant.kernel.source().entry);
            device.with_context(|driver| Function::load(driver, &cubin, &entry))?
        }
    };
    loaded.insert(key, function);
    SEEN.with(|table| table.borrow_mut().insert(key, function));
    Ok(function)
}
