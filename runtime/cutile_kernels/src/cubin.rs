//! Machine code by variant and architecture: shipped, cached, or assembled now.

use crate::ffi_util::{Failure, LAUNCH, Outcome};
use crate::variant::Variant;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Default)]
pub struct Places {
    pub shipped: Option<PathBuf>,
    pub cache: Option<PathBuf>,
    pub tileiras: Option<PathBuf>,
}

static PLACES: RwLock<Places> = RwLock::new(Places {
    shipped: None,
    cache: None,
    tileiras: None,
});

const MISSING_ASSEMBLER: &str = "no cubin of this kernel is at hand and tileiras, which \
    assembles one, was not found; it is in the PyPI packages of \
    pip install 'cuda-toolkit[nvcc,nvvm,tileiras]==13.3.*'";

pub fn set_places(places: Places) {
    *PLACES.write().unwrap_or_else(|e| e.into_inner()) = places;
}

fn places() -> Places {
    PLACES.read().unwrap_or_else(|e| e.into_inner()).clone()
}

/// The cubin of a variant for a device of compute capability major.minor.
pub fn obtain(variant: &Variant, major: i32, minor: i32) -> Outcome<Vec<u8>> {
    let places = places();
    let exact = format!("sm_{major}{minor}");
    // Code for x.0 runs on every x.y.
    for architecture in [exact.clone(), format!("sm_{major}0")] {
        for place in [&places.shipped, &places.cache].into_iter().flatten() {
            if let Some(cubin) = read(&place.join(file_name(variant, &architecture))) {
                return Ok(cubin);
            }
        }
    }
    let cubin = assemble(variant, &exact, &places)?;
    if let Some(cache) = &places.cache {
        // A cache that cannot be written only costs the next process a compilation.
        let _ = write(&cache.join(file_name(variant, &exact)), &cubin);
    }
    Ok(cubin)
}

/// Puts the cubin of a variant into a folder, unless a whole one is there.
pub fn build_into(variant: &Variant, architecture: &str, folder: &Path) -> Outcome {
    let path = folder.join(file_name(variant, architecture));
    if read(&path).is_some() {
        return Ok(());
    }
    let cubin = assemble(variant, architecture, &places())?;
    write(&path, &cubin)
        .map_err(|e| Failure::new(LAUNCH, format!("{} was not written: {e}", path.display())))
}

/// Digest of every kernel's text: cubins of other kernels are never taken for these.
fn kernels_digest() -> String {
    let mut hash = Sha256::new();
    for text in [
        include_str!("softmax/kernel.rs"),
        include_str!("softmax/tiles.rs"),
        include_str!("matmul/kernel.rs"),
        include_str!("matmul/split.rs"),
        include_str!("matmul/tiles.rs"),
        include_str!("attention/kernel.rs"),
        include_str!("../Cargo.toml"),
    ] {
        hash.update(text);
    }
    hex(&hash.finalize()[..6])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file_name(variant: &Variant, architecture: &str) -> String {
    static DIGEST: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let digest = DIGEST.get_or_init(kernels_digest);
    format!("{}-{architecture}-{digest}.cubin", variant.name())
}

/// A stored cubin whose digest, kept behind it, is right.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = std::fs::read(path).ok()?;
    let length = bytes.len().checked_sub(32)?;
    let digest = Sha256::digest(&bytes[..length]);
    if digest[..] != bytes[length..] {
        return None;
    }
    bytes.truncate(length);
    Some(bytes)
}

/// Whole or not at all: a temporary file of this process, then a rename.
fn write(path: &Path, cubin: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let temporary = unique(path, "tmp");
    let digest = Sha256::digest(cubin);
    let stored = std::fs::write(&temporary, [cubin, &digest[..]].concat())
        .and_then(|()| std::fs::rename(&temporary, path));
    if stored.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    stored
}

fn unique(path: &Path, ending: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}-{count}.{ending}", std::process::id()))
}

fn assemble(variant: &Variant, architecture: &str, places: &Places) -> Outcome<Vec<u8>> {
    let tileiras = find_tileiras(places).ok_or_else(|| Failure::new(LAUNCH, MISSING_ASSEMBLER))?;
    let bytecode = variant.bytecode(architecture)?;
    let base = std::env::temp_dir().join("fklarray-tile");
    let (source, target) = (unique(&base, "bc"), unique(&base, "cubin"));
    let result = run(&tileiras, architecture, &bytecode, &source, &target);
    let _ = std::fs::remove_file(&source);
    let _ = std::fs::remove_file(&target);
    result.map_err(|text| {
        Failure::new(
            LAUNCH,
            format!("{} for {architecture}: {text}", variant.name()),
        )
    })
}

fn run(
    tileiras: &Path,
    architecture: &str,
    bytecode: &[u8],
    source: &Path,
    target: &Path,
) -> Result<Vec<u8>, String> {
    std::fs::write(source, bytecode).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut command = Command::new(tileiras);
    command
        .args(["--gpu-name", architecture, "-o"])
        .arg(target)
        .arg(source);
    for (variable, value) in toolkit_environment(tileiras) {
        command.env(variable, value);
    }
    let output = command
        .output()
        .map_err(|e| format!("{}: {e}", tileiras.display()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("tileiras, {}: {}", output.status, text.trim()));
    }
    std::fs::read(target).map_err(|e| format!("tileiras left no cubin: {e}"))
}

/// tileiras runs the ptxas and libnvvm it finds through these: they must be its own.
fn toolkit_environment(tileiras: &Path) -> Vec<(&'static str, OsString)> {
    let Some(folder) = tileiras
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    else {
        return Vec::new();
    };
    let mut path = OsString::from(folder);
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    let root = folder.parent().unwrap_or(folder).as_os_str();
    let mut variables = vec![("PATH", path)];
    for name in ["CUDA_TOOLKIT_PATH", "CUDA_HOME", "CUDA_PATH"] {
        variables.push((name, root.to_owned()));
    }
    variables
}

fn find_tileiras(places: &Places) -> Option<PathBuf> {
    if let Some(path) = &places.tileiras {
        return path.is_file().then(|| path.clone());
    }
    let toolkit = std::env::var_os("CUDA_TOOLKIT_PATH").map(|root| PathBuf::from(root).join("bin"));
    let search = std::env::var_os("PATH").unwrap_or_default();
    toolkit
        .into_iter()
        .chain(std::env::split_paths(&search))
        .map(|folder| folder.join("tileiras"))
        .find(|path| path.is_file())
}
