//! `infer`: runs a model on batches of images.

mod image_loader;
mod input;
mod model_ref;
mod need;
mod onnx_loader;
mod onnx_model;
mod onnx_options;
mod onnx_runner;
mod side_by_side;
mod twin;

use std::path::Path;
use std::sync::Arc;

use engine::config::Devices;
use engine::data::{ColumnType, DType, Dim, Field, Role, Schema};
use engine::node::{
    Advice, BuildCx, Fault, InferStage, Node, NodeKind, NodeSpec, Padding, SpecCx, SpecError, Stage, find_column,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::models::{InputSize, Length, Normalize, Outputs, Preset};
use crate::onnx::Channels;
use image_loader::ImageLoader;
use model_ref::{ModelRef, Resolved};
use onnx_loader::OnnxLoader;
use onnx_model::LayoutOption;
pub use twin::Twin;

/// Runs a model on batches. A row whose output has a NaN or an infinity in it is a reject `non_finite`. A row's result
/// does not depend on its batch: each row is computed by itself on the CPU.
///
/// # Input
/// A column of images of one size, `u8 [height, width, 3]`, in batches: where no batch node stands before it, one is put
/// there. The column is used up.
///
/// # Output
/// `logits` or `features`: `f32 [n]`, one number for each class, or the vector that the classifier reads. Folders of CLIP
/// (image half), SigLIP (image half) and DINOv2 give features only: `image_embeds` of CLIP where it has a projection, else
/// `pooler_output`, as transformers calls them.
///
/// # Example
/// ```yaml
/// scores: {kind: infer, with: {model: {arch: resnet50, weights: models/resnet50.safetensors}}}
/// vectors: {kind: infer, with: {model: models/clip-vit-base-patch32, l2_normalize: true}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Infer {
    /// The model: a folder in Hugging Face form, an ONNX file or a folder with one, or an architecture and its weights.
    model: ModelRef,
    /// What runs the model: `candle`, in this program, from weights; `onnx`, by ONNX Runtime, from an ONNX file. Default: what
    /// `model` has, `candle` where it has both.
    backend: Option<Backend>,
    /// Where it runs: `auto` (the GPUs where there are some, else the CPU), `cpu`, `cuda` (any GPU), or GPUs by number such
    /// as `cuda:1` or `cuda:0,2`. Default: what `run.device` says.
    device: Option<Devices>,
    /// The type of the weights. On the CPU they are rounded to it and the arithmetic stays f32.
    #[serde(default)]
    dtype: Precision,
    /// From bytes x to the model's numbers: `imagenet` (x/255 − mean)/std, `tf127` (x − 127)/128, `half` (x/255 − 0.5)/0.5,
    /// `none`, or `{mean, std}` in units of x/255. Default: the model's own. An ONNX file has none of its own unless it takes
    /// bytes, but `preprocessor_config.json` beside it may.
    normalize: Option<Normalize>,
    /// The order of colours that an ONNX model was trained with. Default `rgb`.
    channels: Option<Channels>,
    /// Where the input of an ONNX model has its colours: `nchw`, `nhwc`, or `auto`, by its side of 3. Default `auto`.
    layout: Option<LayoutOption>,
    /// What computes an ONNX model on a GPU: `cuda`, or `tensorrt`, which is faster once it has built its engine, and keeps it in
    /// `~/.cache/flowgpu/tensorrt`. Default `cuda`.
    provider: Option<GpuProvider>,
    /// What to read off the model: `logits`, one number for each class, or `features`, the vector that the classifier reads.
    /// Default: `logits` where the model has them, else `features`. Of an ONNX model, a list of its outputs, each of which
    /// becomes a column of its name; default: all of them.
    outputs: Option<OutputsOption>,
    /// Whether features are divided by their Euclidean length, so that the dot product of two is their cosine.
    #[serde(default)]
    l2_normalize: bool,
    /// The name of the new column, where there is one. Default: `logits`, `features` or the ONNX output's own.
    #[serde(rename = "as")]
    output: Option<String>,
    /// Rows of a batch, where no batch node stands before this one.
    #[serde(default = "default_batch")]
    #[schemars(range(min = 1, max = 65536))]
    batch: usize,
    /// The column of images. Default: the only one that fits.
    column: Option<String>,
}

/// Small, because processors are quickest on batches that stay in their caches. GPUs want more.
fn default_batch() -> usize {
    8
}

/// The type of a model's arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// Half precision.
    F16,
    /// Brain float.
    Bf16,
}

impl Precision {
    fn candle(self) -> candle_core::DType {
        match self {
            Precision::F32 => candle_core::DType::F32,
            Precision::F16 => candle_core::DType::F16,
            Precision::Bf16 => candle_core::DType::BF16,
        }
    }
}

/// What runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// This program.
    Candle,
    /// ONNX Runtime.
    Onnx,
}

/// What computes an ONNX model on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GpuProvider {
    /// ONNX Runtime's own kernels and NVIDIA's libraries.
    #[default]
    Cuda,
    /// TensorRT, and the others for what it cannot do.
    Tensorrt,
}

/// What is read off a model, or which outputs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OutputsOption {
    /// `logits` or `features`.
    Reading(Reading),
    /// Outputs of an ONNX model, by name.
    Names(Vec<String>),
}

/// What is read off a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// One number for each class.
    Logits,
    /// The vector that the classifier reads.
    Features,
}

impl Infer {
    fn column(&self, input: &Schema) -> Result<usize, SpecError> {
        let hint = "put a `decode.image` node between them";
        find_column(input, self.column.as_deref(), "a column of images", hint, |field: &Field| is_image(&field.ty))
    }

    /// Height and width of the images, which must be known.
    fn size(&self, cx: &SpecCx<'_>, column: usize, resolved: &Resolved) -> Result<[usize; 2], SpecError> {
        let field = &cx.input().fields[column];
        let [height, width] = image_size(field)?;
        let takes = resolved.arch.input_size();
        if takes.admits(height, width) {
            return Ok([height, width]);
        }
        let wanted = match takes {
            InputSize::AtLeast(least) => format!("sides of at least {least}"),
            InputSize::Exactly(height, width) => format!("{width}×{height}"),
        };
        let message =
            format!("`{}` takes images of {wanted}, and `{}` has {width}×{height}", resolved.arch.name(), field.name);
        let label = match takes {
            InputSize::AtLeast(_) => "let the decode node say `preset: model`".to_owned(),
            InputSize::Exactly(height, width) => {
                format!("let the decode node say `preset: model`, or `resize: [{width}, {height}]`")
            }
        };
        Err(SpecError::new(message).label(label))
    }

    /// What is read off the model, which must give it.
    fn outputs(&self, resolved: &Resolved) -> Result<Outputs, SpecError> {
        let given = resolved.arch.outputs();
        let outputs = match self.outputs {
            Some(OutputsOption::Reading(Reading::Logits)) => Outputs::Logits,
            Some(OutputsOption::Reading(Reading::Features)) => Outputs::Features,
            // A list is of an ONNX model.
            None | Some(OutputsOption::Names(_)) => given[0],
        };
        if !given.contains(&outputs) {
            let names: Vec<_> = given.iter().map(|outputs| format!("`{}`", outputs.name())).collect();
            let message = format!(
                "`{}` has no classes and gives no `{}`, but {}",
                resolved.arch.name(),
                outputs.name(),
                names.join(" and ")
            );
            return Err(SpecError::new(message).at(&["outputs"]).label("leave `outputs` out"));
        }
        if self.l2_normalize && outputs != Outputs::Features {
            let message = "`l2_normalize` is for features, and this node gives logits";
            return Err(SpecError::new(message).at(&["l2_normalize"]).label("add `outputs: features`"));
        }
        Ok(outputs)
    }

    fn length(&self) -> Length {
        if self.l2_normalize { Length::One } else { Length::Kept }
    }

    fn normalize(&self, resolved: &Resolved) -> Normalize {
        self.normalize.unwrap_or(resolved.preset.normalize)
    }
}

/// Height and width of the images of a column, which must be known.
fn image_size(field: &Field) -> Result<[usize; 2], SpecError> {
    match field.ty.fixed_shape() {
        Some((_, shape)) => Ok([shape[0], shape[1]]),
        None => {
            let message = format!("the images in `{}` differ in size, and a batch needs one size", field.name);
            let label = "give the decode node a `crop`, `resize: [w, h]` or `preset: model`";
            Err(SpecError::new(message).label(label))
        }
    }
}

fn is_image(ty: &ColumnType) -> bool {
    matches!(ty, ColumnType::Tensor { dtype: DType::U8, shape } if matches!(shape[..], [_, _, Dim::Fixed(3)]))
}

impl NodeKind for Infer {
    const NAME: &'static str = "infer";
    /// 2: on the CPU sums are fused, and in another order.
    const REVISION: u32 = 2;
    const INCIDENTAL: &'static [&'static str] = &["batch", "device"];
    const EXAMPLE: &'static str = "scores: {kind: infer, with: {model: models/efficientnet_lite0}}";
}

impl Node for Infer {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        if let Some(normalize) = &self.normalize {
            normalize.check().map_err(|error| SpecError::new(error.to_string()).at(&["normalize"]))?;
        }
        if let Some(model) = self.onnx(cx.base)? {
            return self.onnx_spec(&model, cx);
        }
        let resolved = self.model.resolve(cx.base)?;
        let column = self.column(cx.input())?;
        let size = self.size(cx, column, &resolved)?;
        let outputs = self.outputs(&resolved)?;
        let n_outputs = match outputs {
            Outputs::Logits => resolved.n_classes,
            Outputs::Features => resolved.arch.n_features(),
        };
        let output = ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(n_outputs)] };
        let detail =
            format!("{} {}, {}", resolved.arch.name(), self.dtype.candle().as_str(), self.normalize(&resolved));
        Ok(NodeSpec::passing(cx.input(), &[column])
            .with_new(self.output.as_deref().unwrap_or(outputs.name()), output, Role::Result)
            .map_err(|error| error.at(&["as"]))?
            .with_detail(detail)
            .with_need(need::of(&resolved, size, self.dtype.candle(), self.device.clone())))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let mistaken = |error: SpecError| Fault::permanent(error.message);
        let column = self.column(cx.input()).map_err(mistaken)?;
        if let Some(model) = self.onnx(cx.base).map_err(mistaken)? {
            let fitted = self.fitted(&model).map_err(mistaken)?;
            let model = Arc::new(OnnxLoader::new(model.path, fitted, self.provider.unwrap_or_default()));
            return Ok(Stage::Infer(InferStage { model, inputs: vec![column], padding: Padding::None }));
        }
        let resolved = self.model.resolve(cx.base).map_err(mistaken)?;
        let outputs = self.outputs(&resolved).map_err(mistaken)?;
        let normalize = self.normalize(&resolved);
        let loader = ImageLoader::new(resolved, self.dtype.candle(), normalize, (outputs, self.length()));
        Ok(Stage::Infer(InferStage { model: Arc::new(loader), inputs: vec![column], padding: Padding::None }))
    }

    fn advice(&self, base: &Path) -> Result<Option<Advice>, SpecError> {
        let preset = match self.onnx(base)? {
            Some(model) => model.preset,
            None => Some(self.model.resolve(base)?.preset),
        };
        let Some(Preset { pixels, .. }) = preset else { return Ok(None) };
        let value = serde_json::to_value(pixels).expect("options are JSON");
        Ok(Some(Advice { value, text: format!("{pixels}") }))
    }

    fn batch_size(&self) -> Option<usize> {
        Some(self.batch)
    }
}
