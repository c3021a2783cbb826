//! Names the build: the version and a hash of the sources.
//!
//! A run and its worker processes must be of one source, and they may be two programs: one is built with CUDA. So the
//! name depends on what the sources say and on nothing else: no feature, no profile, no folder, no clock.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What the programs are made of.
const SOURCES: [&str; 3] = ["cli", "engine/src", "nodes/src"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut hash = Fnv::new();
    for folder in SOURCES {
        println!("cargo:rerun-if-changed={folder}");
        let mut files = Vec::new();
        list(&root.join(folder), &mut files)?;
        files.sort();
        for file in files {
            let path = file.strip_prefix(&root)?;
            hash.add(path.as_os_str().as_encoded_bytes());
            hash.add(&fs::read(&file)?);
        }
    }
    println!("cargo:rustc-env=FLOWGPU_BUILD={}+{:016x}", env::var("CARGO_PKG_VERSION")?, hash.0);
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// FNV-1a, with the length of each piece before it, so that no two lists of pieces are alike by accident.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, piece: &[u8]) {
        for byte in (piece.len() as u64).to_le_bytes().iter().chain(piece) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
