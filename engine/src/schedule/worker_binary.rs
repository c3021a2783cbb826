//! Where the worker for GPUs is: the program that opens CUDA, which this one never does.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// The variable that names it.
pub const WORKER_VARIABLE: &str = "FLOWGPU_WORKER_CUDA";
/// Its name, beside the running program.
pub const WORKER_NAME: &str = "flowgpu-worker-cuda";

/// The worker for GPUs is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("the worker for GPUs was not found: looked for {}", names(.looked))]
pub struct NotFound {
    /// Where it was looked for.
    pub looked: Vec<PathBuf>,
}

impl NotFound {
    /// How to get it.
    pub fn help(&self) -> String {
        format!(
            "build it with `scripts/cuda-build.sh` and put it beside `flowgpu`, or name it in `{WORKER_VARIABLE}`; \
             `device: cpu` does without"
        )
    }
}

/// Finds it: the one that [`WORKER_VARIABLE`] names, or [`WORKER_NAME`] beside the running program.
///
/// # Errors
/// If it is not there. A variable that is set and names no file is an error too: nothing else is tried.
pub fn cuda_worker() -> Result<PathBuf, NotFound> {
    find(env::var_os(WORKER_VARIABLE), env::current_exe().ok(), Path::is_file)
}

fn find(
    variable: Option<OsString>,
    program: Option<PathBuf>,
    is_file: impl Fn(&Path) -> bool,
) -> Result<PathBuf, NotFound> {
    let named = variable.filter(|path| !path.is_empty()).map(PathBuf::from);
    let beside = program.as_deref().and_then(Path::parent).map(|folder| folder.join(WORKER_NAME));
    let looked: Vec<_> = named.or(beside).into_iter().collect();
    let found = looked.iter().find(|path| is_file(path)).cloned();
    found.ok_or(NotFound { looked })
}

fn names(looked: &[PathBuf]) -> String {
    let names: Vec<_> = looked.iter().map(|path| format!("`{}`", path.display())).collect();
    if names.is_empty() { format!("`{WORKER_NAME}`") } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variable: Option<&str>, there: &[&str]) -> Result<PathBuf, NotFound> {
        let is_file = |path: &Path| there.iter().any(|file| path == Path::new(file));
        find(variable.map(OsString::from), Some("/bin/flowgpu".into()), is_file)
    }

    #[test]
    fn it_stands_beside_the_program_unless_it_is_named() {
        let beside = "/bin/flowgpu-worker-cuda";
        assert_eq!(check(None, &[beside, "/x"]), Ok(beside.into()));
        assert_eq!(check(Some(""), &[beside]), Ok(beside.into()));
        assert_eq!(check(Some("/x"), &[beside, "/x"]), Ok("/x".into()));
    }

    #[test]
    fn nothing_else_is_tried_for_one_that_is_named() {
        let error = check(Some("/x"), &["/bin/flowgpu-worker-cuda"]).unwrap_err();
        assert_eq!(error.looked, [Path::new("/x")]);
        assert_eq!(error.to_string(), "the worker for GPUs was not found: looked for `/x`");
        assert_eq!(check(None, &[]).unwrap_err().looked, [Path::new("/bin/flowgpu-worker-cuda")]);
    }
}
