//! Made-up kinds, with schemas as the real ones have them.

use std::num::NonZeroU32;

use engine::config::{Devices, Duration, Fraction, KindSchemas, Size};
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::Value as Json;

/// A list of kinds.
pub struct Kinds(Vec<(&'static str, Json)>);

impl Kinds {
    pub fn new() -> Self {
        Self(vec![
            ("source.files", schema_for!(SourceFiles).to_value()),
            ("source.synthetic", schema_for!(SourceSynthetic).to_value()),
            ("decode.image", schema_for!(DecodeImage).to_value()),
            ("batch", schema_for!(Batch).to_value()),
            ("infer", schema_for!(Infer).to_value()),
            ("transform.topk", schema_for!(TransformTopk).to_value()),
            ("transform.scale", schema_for!(TransformScale).to_value()),
            ("sink.jsonl", schema_for!(SinkJsonl).to_value()),
        ])
    }
}

impl KindSchemas for Kinds {
    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }

    fn schema(&self, kind: &str) -> Option<&Json> {
        self.0.iter().find(|(name, _)| *name == kind).map(|(_, schema)| schema)
    }
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceFiles {
    /// A glob, or a list of globs.
    pub path: OneOrMany,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
pub struct SourceSynthetic {
    pub images: Images,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Images {
    /// How many.
    pub count: u64,
    /// Width and height.
    pub size: (u16, u16),
    #[serde(default)]
    pub seed: u64,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecodeImage {
    /// Take the preprocessing from the model.
    pub preset: Option<Preset>,
    /// The shorter side, or width and height.
    pub resize: Option<Resize>,
    pub crop: Option<NonZeroU32>,
    #[serde(default)]
    pub interpolation: Interpolation,
    pub max_pixels: Option<u64>,
    #[serde(default)]
    pub alpha: bool,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    Model,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Resize {
    Shorter(NonZeroU32),
    Exact([NonZeroU32; 2]),
}

#[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Interpolation {
    /// The nearest pixel.
    Nearest,
    #[default]
    /// Linear in both directions.
    Bilinear,
    Bicubic,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Rows in a batch.
    pub size: NonZeroU32,
    pub max_wait: Option<Duration>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Infer {
    /// A folder, an `.onnx` file, or `{arch, weights}`.
    pub model: Model,
    pub device: Option<Devices>,
    #[serde(default)]
    pub dtype: Dtype,
    pub normalize: Option<Normalize>,
    pub memory: Option<Size>,
    pub share: Option<Fraction>,
    pub token: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Model {
    Path(String),
    Arch(ArchModel),
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchModel {
    pub arch: Arch,
    pub weights: String,
    #[serde(default)]
    pub seed: u64,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arch {
    MobilenetV2,
    Resnet18,
    Resnet50,
}

#[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    #[default]
    F32,
    F16,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Normalize {
    Named(NamedNormalize),
    Own(OwnNormalize),
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NamedNormalize {
    Imagenet,
    Half,
    None,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnNormalize {
    pub mean: [f32; 3],
    pub std: [f32; 3],
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransformTopk {
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000))]
    pub k: u32,
    pub labels: Option<String>,
    pub names: Option<Vec<String>>,
}

fn five() -> u32 {
    5
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "lowercase", deny_unknown_fields)]
pub enum TransformScale {
    Factor { factor: f64 },
    Range { low: f64, high: f64 },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SinkJsonl {
    pub path: String,
}
