//! Compiles the CUDA kernels to PTX where the feature `cuda` asks for them, and does nothing otherwise.

// A build script speaks to cargo through its standard output.
#![allow(clippy::print_stdout)]

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// The capability that PTX is made for where `CUDA_COMPUTE_CAP` names none: the driver compiles it for any newer one.
const OLDEST: &str = "80";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    for file in ["src/cuda/kernels.cu", "src/cuda/kernels.inc"] {
        println!("cargo::rerun-if-changed={file}");
    }
    for variable in ["CUDA_HOME", "CUDA_COMPUTE_CAP"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let Some(out) = env::var_os("OUT_DIR") else {
        fail("cargo has set no OUT_DIR");
    };
    let nvcc = env::var_os("CUDA_HOME").map_or_else(|| PathBuf::from("nvcc"), |home| Path::new(&home).join("bin/nvcc"));
    let capability = env::var("CUDA_COMPUTE_CAP").unwrap_or_else(|_| OLDEST.to_owned());
    let ptx = Path::new(&out).join("kernels.ptx");
    let status = Command::new(&nvcc)
        .args(["--ptx", "-O3", &format!("-arch=compute_{capability}"), "-o"])
        .args([&ptx, Path::new("src/cuda/kernels.cu")])
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("`{}` failed on src/cuda/kernels.cu: {status}", nvcc.display())),
        Err(error) => fail(&format!("cannot run `{}`: {error}; build with scripts/cuda-build.sh", nvcc.display())),
    }
}

fn fail(what: &str) -> ! {
    println!("cargo::error={what}");
    exit(1)
}
