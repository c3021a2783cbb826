//! What torchvision needs to build the network of an `infer` node by itself.

use std::path::{Path, PathBuf};

use super::model_ref::Values;
use super::{Infer, Precision};
use crate::models::Outputs;

/// A network of torchvision's with the same weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Twin {
    /// The function of `torchvision.models` that makes it.
    pub arch: &'static str,
    /// The file of its weights.
    pub weights: PathBuf,
    /// How many classes it tells apart.
    pub n_classes: usize,
    /// What is subtracted from each byte, by colour.
    pub mean: [f64; 3],
    /// What the difference is divided by.
    pub std: [f64; 3],
}

impl Infer {
    /// The same network in torchvision.
    ///
    /// # Errors
    /// Why there is none, as the rest of a sentence.
    pub fn twin(&self, base: &Path) -> Result<Twin, String> {
        if self.onnx(base).map_err(|error| error.message)?.is_some() {
            return Err("it is an ONNX model".to_owned());
        }
        let resolved = self.model.resolve(base).map_err(|error| error.message)?;
        if self.outputs(&resolved).map_err(|error| error.message)? != Outputs::Logits {
            return Err("it gives features".to_owned());
        }
        if self.dtype != Precision::F32 {
            return Err("its weights are rounded".to_owned());
        }
        let arch = match resolved.arch.name() {
            "mobilenet_v2" => "mobilenet_v2",
            "resnet18" => "resnet18",
            "resnet50" => "resnet50",
            "vit_base_patch16_224" => "vit_b_16",
            other => return Err(format!("torchvision has no `{other}`")),
        };
        if matches!(resolved.values, Values::Random { .. }) {
            return Err("its weights are random".to_owned());
        }
        let weights = match &resolved.files[..] {
            [weights] => weights.clone(),
            files => return Err(format!("its weights lie in {} files", files.len())),
        };
        let (mean, std) = self.normalize(&resolved).mean_std();
        Ok(Twin { arch, weights, n_classes: resolved.n_classes, mean, std })
    }
}
