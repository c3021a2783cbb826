//! ONNX models: what they say of themselves, and the operators that are put before their graphs. ONNX Runtime is not asked.

use nodes::models::Normalize;
use nodes::onnx::{Channels, Element, Layout, PIXELS, Prefix, Rewrite, Signature};

use crate::target::{Check, Target, as_it_is, nothing_made};
use crate::unpacking::Scratch;

pub const TARGET: Target = Target {
    name: "onnx",
    n_cases: 15_000,
    max_memory: 16 << 20,
    seeds: &[],
    made: nothing_made,
    dress: as_it_is,
    prepare,
};

fn prepare() -> Check {
    let scratch = Scratch::new();
    let prefix = Prefix {
        channels: Channels::Bgr,
        layout: Layout::Nchw,
        normalize: Normalize::Imagenet,
        element: Element::FLOAT,
    };
    Box::new(move |input| {
        let path = scratch.write("x.onnx", input);
        let signature = match Signature::read(&path) {
            Ok(signature) => signature,
            Err(error) => return assert!(error.to_string().contains("x.onnx"), "{error}"),
        };
        let folder = path.parent().expect("a folder");
        assert!(signature.files.iter().all(|file| file.starts_with(folder)), "{:?}", signature.files);
        let Some(pixels) = signature.inputs.first() else { return };
        let rewrite = Rewrite { prefix: Some((prefix, &pixels.name)), weights_in: Some("x.onnx") };
        let Ok(changed) = rewrite.apply(input) else { return };
        let changed = Signature::read(&scratch.write("y.onnx", &changed)).expect("what is changed breaks nothing");
        assert_eq!(changed.outputs, signature.outputs);
        assert!(changed.inputs.iter().any(|input| input.name == PIXELS), "{:?}", changed.inputs);
    })
}
