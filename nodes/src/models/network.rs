//! A network put together: normalised images in, numbers out.

use candle_core::Tensor;

/// What is read off a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outputs {
    /// One number per class, before any softmax.
    #[default]
    Logits,
    /// The pooled feature vector that the classifier reads, or that the network is for.
    Features,
}

impl Outputs {
    /// The word for it in a pipeline.
    pub fn name(self) -> &'static str {
        match self {
            Self::Logits => "logits",
            Self::Features => "features",
        }
    }
}

/// The layers of one model with their weights in memory.
///
/// `&self` and `Send + Sync`: several threads may run it at once on one copy of the weights.
pub trait Network: Send + Sync {
    /// Runs a batch of images `[rows, 3, height, width]` of a size that the architecture takes, in the data type of the
    /// weights; gives `[rows, classes]` or `[rows, features]`.
    fn forward(&self, images: &Tensor, outputs: Outputs) -> candle_core::Result<Tensor>;
}
