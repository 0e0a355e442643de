//! A fingerprint of the simulator's source. A snapshot continues as the device that was saved would
//! have only where it is read by the very same simulator, so its version holds this fingerprint.

use std::path::{Path, PathBuf};

fn main() {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for folder in ["src", "../core/src"] {
        println!("cargo:rerun-if-changed={folder}");
        for file in files_below(Path::new(folder)) {
            let bytes = std::fs::read(&file).expect("a source file can be read");
            // FNV-1a: a few lines, the same everywhere, and no crate to build first.
            for byte in file.to_string_lossy().bytes().chain(bytes) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    println!("cargo:rustc-env=UFLIP_SIM_FINGERPRINT={hash:016x}");
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a source folder can be read");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    paths.into_iter().flat_map(below).collect()
}
