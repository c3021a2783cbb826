//! ONNX Runtime for the examples that need it: that of the Python environment of the nodes' own tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library.
pub fn library() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let requirements = root.join("nodes/tests/onnx/requirements.txt");
    let made =
        Command::new("python3").arg(root.join("scripts/python_env.py")).arg(requirements).output().expect("python3");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let python = PathBuf::from(String::from_utf8(made.stdout).expect("a path").trim());
    let environment = python.parent().and_then(Path::parent).expect("an environment").to_owned();
    let places = nodes::onnx::Places { environments: vec![environment], ..nodes::onnx::Places::default() };
    places.find().expect("ONNX Runtime").path
}
