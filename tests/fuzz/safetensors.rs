//! Weight files in the form `safetensors`.

use nodes::testing::read_weights;

use crate::target::{Check, Target, as_it_is, nothing_made};
use crate::unpacking::Scratch;

pub const TARGET: Target = Target {
    name: "safetensors",
    n_cases: 15_000,
    max_memory: 16 << 20,
    seeds: &["nodes/tests/weights/sharded"],
    made: nothing_made,
    dress: as_it_is,
    prepare,
};

fn prepare() -> Check {
    let scratch = Scratch::new();
    Box::new(move |input| {
        let path = scratch.write("x.safetensors", input);
        match read_weights(&path) {
            Ok(tensors) => {
                let n_bytes: usize = tensors.iter().map(|tensor| tensor.stored_bytes).sum();
                // An archive of PyTorch's may have tensors that share their bytes; here each has its own.
                let is_ours = !input.starts_with(b"PK") && !input.starts_with(&[0x80]);
                assert!(!is_ours || n_bytes <= input.len(), "{n_bytes} bytes of tensors in {}", input.len());
            }
            Err(error) => assert!(error.to_string().contains("x.safetensors"), "{error}"),
        }
    })
}
