//! The golden features of the embedders, and their architectures as their `config.json` describes them.
#![allow(dead_code)]

use candle_core::{DType, Device};
use indexmap::IndexMap;
use nodes::models::folder::parse_config;
use nodes::models::{ARCHS, Arch, ArchRef, Params, RandomWeights, Scheme, TensorSource};
use serde::Deserialize;

/// What `golden/make_embedders.py` wrote of one model.
#[derive(Deserialize)]
pub struct Golden {
    pub config: serde_json::Value,
    pub outputs: Vec<GoldenOutput>,
    pub shapes: IndexMap<String, Vec<usize>>,
}

#[derive(Deserialize)]
pub struct GoldenOutput {
    pub input: [usize; 2],
    pub features: Summary,
}

#[derive(Deserialize)]
pub struct Summary {
    pub n: usize,
    pub argmax: usize,
    pub sum: f64,
    pub abs_max: f64,
    pub step: usize,
    pub values: Vec<f64>,
}

impl Golden {
    pub fn parse(json: &str) -> Self {
        serde_json::from_str(json).expect("golden features")
    }

    /// The architecture that the configuration describes.
    pub fn arch(&self) -> ArchRef {
        parse_config(&self.config.to_string()).expect("a configuration").arch.arch()
    }
}

/// Small ones of each form.
pub const TINY: [(&str, &str); 6] = [
    ("clip", include_str!("../golden/clip.tiny.json")),
    ("clip, vision model", include_str!("../golden/clip.tiny_vision.json")),
    ("siglip", include_str!("../golden/siglip.tiny.json")),
    ("dinov2", include_str!("../golden/dinov2.tiny.json")),
    ("dinov2, gated", include_str!("../golden/dinov2.tiny_swiglu.json")),
    ("dinov2, registers", include_str!("../golden/dinov2.tiny_registers.json")),
];

/// Every architecture: those of the list, and a small one of each form of those that a folder describes.
pub fn every_arch() -> Vec<(&'static str, ArchRef)> {
    let listed = ARCHS.iter().map(|&arch| (arch.name(), arch.into()));
    listed.chain(TINY.map(|(name, json)| (name, Golden::parse(json).arch()))).collect()
}

/// Made-up weights as a file of this scheme would hold them.
pub fn renamed(arch: &dyn Arch, scheme: Scheme, seed: u64) -> Params {
    let canonical = RandomWeights::new(arch, 10, seed);
    let mut params = Params::default();
    for name in canonical.names() {
        let tensor = canonical.load(&name, DType::F32, &Device::Cpu).expect("values");
        let location = (scheme.locate)(&name);
        let parts = location.names();
        for (name, part) in parts.iter().zip(tensor.chunk(parts.len(), 0).expect("parts")) {
            params.insert(name, part);
        }
    }
    params
}

/// Made-up weights under the names that most files have.
pub fn file(arch: &dyn Arch, seed: u64) -> Params {
    renamed(arch, arch.schemes()[0], seed)
}
