//! A stand-in for the NVIDIA management library: a shared library with the symbols that flowgpu asks for, which tells of
//! the GPUs that a file describes.
//!
//! `FLOWGPU_STANDIN` names the file, which is read at `nvmlInit`; see [`description`] for what stands in it. A symbol that
//! is not here is an error of that call, as with an old driver.

pub mod description;
mod machine;
mod symbols;

use std::path::PathBuf;

/// Where the library is, for the test that calls this: Cargo builds it into the folder of the tests' own programs, because
/// the root package depends on it for its tests.
///
/// # Panics
/// If it was not built.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own program");
    let path = test.parent().expect("its folder").join("libflowgpu_standin_nvml.so");
    assert!(path.is_file(), "`{}` is not there: build with `cargo test --workspace`", path.display());
    path
}
