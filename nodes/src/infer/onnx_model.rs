//! A model in an ONNX file, as a node uses it: found, and its inputs and outputs checked, without ONNX Runtime.

use std::fs;
use std::path::{Path, PathBuf};

use engine::config::{Devices, list, nearest};
use engine::data::{ColumnType, DType, Dim};
use engine::node::{FileStamp, HostNeed, ModelNeed, SpecError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::models::{Normalize, Preset, folder};
use crate::onnx::{Axis, Channels, Element, Layout, Prefix, Signature, Value};

/// Bytes that ONNX Runtime takes for itself on a GPU, by the default limit of its workspace for convolutions.
const WORKSPACE: u64 = 32 << 20;

/// Bytes that ONNX Runtime takes before any weights: its code as far as it is used, and its tables; by `benches/foretold.py`.
const LIBRARY: u64 = 36 << 20;

/// Where a model's colours lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LayoutOption {
    /// Where the input has its side of 3.
    #[default]
    Auto,
    /// `[rows, 3, height, width]`.
    Nchw,
    /// `[rows, height, width, 3]`.
    Nhwc,
}

/// What a node says of its ONNX model.
pub(super) struct Said<'a> {
    pub(super) channels: Channels,
    pub(super) layout: LayoutOption,
    pub(super) normalize: Option<Normalize>,
    /// The outputs that it names.
    pub(super) outputs: Option<&'a [String]>,
}

/// An ONNX model.
#[derive(Clone, Debug)]
pub(super) struct OnnxModel {
    pub(super) path: PathBuf,
    signature: Signature,
    /// By the `preprocessor_config.json` beside it.
    pub(super) preset: Option<Preset>,
}

/// What a node makes of it.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    /// The input that pixels come in by.
    pub(super) input: String,
    pub(super) prefix: Prefix,
    pub(super) outputs: Vec<FittedOutput>,
    /// Height and width, where the input fixes them.
    pub(super) size: [Option<usize>; 2],
}

/// An output as a column.
#[derive(Clone, Debug)]
pub(super) struct FittedOutput {
    pub(super) name: String,
    pub(super) dtype: DType,
    /// The shape of a row.
    pub(super) shape: Vec<Dim>,
}

impl OnnxModel {
    /// The ONNX file that `written` names, by itself or as a folder that has one; `None` where it names no such thing.
    pub(super) fn find(written: &str, base: &Path) -> Result<Option<PathBuf>, SpecError> {
        let path = base.join(written);
        if is_onnx(&path) {
            if path.is_file() {
                return Ok(Some(path));
            }
            let what = if path.exists() { "is no file" } else { "does not exist" };
            let error = SpecError::new(format!("the model `{written}` {what}"));
            return Err(error.note(format!("looked for `{}`", path.display())));
        }
        let files = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<_> = files.filter(|file| is_onnx(file) && file.is_file()).collect();
        files.sort();
        match &files[..] {
            [] => Ok(None),
            [file] => Ok(Some(file.clone())),
            several => {
                let plain = several.iter().find(|file| file.file_name().is_some_and(|name| name == "model.onnx"));
                plain.cloned().map(Some).ok_or_else(|| {
                    let names = several.iter().filter_map(|file| file.file_name()?.to_str());
                    SpecError::new(format!("the folder `{written}` has several ONNX files"))
                        .label("name one of them")
                        .note(format!("files: {}", list(names)))
                })
            }
        }
    }

    /// Reads the signature of the file, and how its pictures are prepared, where a file beside it says so.
    pub(super) fn read(path: PathBuf) -> Result<Self, SpecError> {
        let signature = Signature::read(&path).map_err(|error| SpecError::new(error.to_string()))?;
        let beside = path.with_file_name("preprocessor_config.json");
        let preset = match fs::read_to_string(&beside) {
            Ok(text) => Some(
                folder::parse_preprocessor(&text)
                    .map_err(|error| SpecError::new(format!("`{}`: {error}", beside.display())))?,
            ),
            Err(_) => None,
        };
        Ok(Self { path, signature, preset })
    }

    /// The file's name.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What the node makes of it.
    ///
    /// # Errors
    /// An input that takes no pictures, outputs that no column can hold, and what is not said but has to be.
    pub(super) fn fit(&self, said: &Said<'_>) -> Result<Fitted, SpecError> {
        let input = self.pictures()?;
        let axes = input.shape.as_deref().unwrap_or_default();
        let element = input.element.unwrap_or(Element::FLOAT);
        let layout = match said.layout {
            LayoutOption::Nchw => Layout::Nchw,
            LayoutOption::Nhwc => Layout::Nhwc,
            LayoutOption::Auto => match (axes[1].fixed(), axes[3].fixed()) {
                (Some(3), other) if other != Some(3) => Layout::Nchw,
                (other, Some(3)) if other != Some(3) => Layout::Nhwc,
                _ => {
                    let message =
                        format!("whether colours come first or last in `{}` ({input}) cannot be seen", input.name);
                    return Err(SpecError::new(message).label("say `layout: nchw` or `layout: nhwc`"));
                }
            },
        };
        let [colours, height, width] = match layout {
            Layout::Nchw => [1, 2, 3],
            Layout::Nhwc => [3, 1, 2],
        };
        if axes[colours].fixed().is_some_and(|n_colours| n_colours != 3) {
            let message = format!("`{}` ({input}) does not have three colours", input.name);
            return Err(SpecError::new(message).at(&["layout"]));
        }
        if axes[0].fixed().is_some_and(|n_rows| n_rows != 1) {
            let message = format!("`{}` ({input}) takes no other number of images than that", input.name);
            return Err(SpecError::new(message).at(&["model"]).label("export it with a batch of 1, or an open one"));
        }
        let normalize = said.normalize.or(self.preset.map(|preset| preset.normalize));
        let normalize = match normalize {
            Some(normalize) => normalize,
            None if element == Element::UINT8 => Normalize::None,
            None => {
                let message = format!("`{}` does not say how pixels become its numbers", self.name());
                let error = SpecError::new(message).label("say `normalize`, as it was trained with");
                return Err(error.note("`imagenet`, `tf127`, `half`, `none` or `{mean: [r, g, b], std: [r, g, b]}`"));
            }
        };
        if element == Element::UINT8 && normalize != Normalize::None {
            let message = format!("`{}` takes bytes, and `normalize` makes other numbers of them", input.name);
            return Err(SpecError::new(message).at(&["normalize"]).label("leave it out"));
        }
        let prefix = Prefix { channels: said.channels, layout, normalize, element };
        let outputs = self.outputs(said.outputs)?;
        let size = [axes[height].fixed(), axes[width].fixed()];
        Ok(Fitted { input: input.name.clone(), prefix, outputs, size })
    }

    /// The input that takes pictures, which has to be the only one.
    fn pictures(&self) -> Result<&Value, SpecError> {
        let told: Vec<_> = self.signature.inputs.iter().map(|input| format!("`{}` {input}", input.name)).collect();
        let refused = |what: &str| {
            let message = format!("`{}` {what}", self.name());
            Err(SpecError::new(message).at(&["model"]).note(format!("inputs: {}", told.join(", "))))
        };
        let [input] = &self.signature.inputs[..] else {
            return refused("takes more than pictures: models of one input are run");
        };
        let is_number =
            matches!(input.element, Some(Element::FLOAT | Element::FLOAT16 | Element::DOUBLE | Element::UINT8));
        match &input.shape {
            Some(shape) if shape.len() == 4 && is_number => Ok(input),
            _ => refused("does not take pictures: four dimensions of floats or bytes are wanted"),
        }
    }

    fn outputs(&self, named: Option<&[String]>) -> Result<Vec<FittedOutput>, SpecError> {
        let all = &self.signature.outputs;
        let chosen: Vec<(&Value, Option<usize>)> = match named {
            None => all.iter().map(|output| (output, None)).collect(),
            Some(names) => {
                let find = |(place, name): (usize, &String)| {
                    let found = all.iter().find(|output| output.name == *name);
                    found.map(|output| (output, Some(place))).ok_or_else(|| {
                        let names = || all.iter().map(|output| output.name.as_str());
                        let place = place.to_string();
                        let error = SpecError::new(format!("`{}` has no output `{name}`", self.name()))
                            .at(&["outputs", &place]);
                        let error = match nearest(name, names()) {
                            Some(near) => error.label(format!("did you mean `{near}`?")),
                            None => error,
                        };
                        error.note(format!("outputs: {}", list(names())))
                    })
                };
                names.iter().enumerate().map(find).collect::<Result<_, _>>()?
            }
        };
        if chosen.is_empty() {
            return Err(SpecError::new("`outputs` is empty").at(&["outputs"]));
        }
        chosen.into_iter().map(|(output, place)| self.column(output, place)).collect()
    }

    fn column(&self, output: &Value, place: Option<usize>) -> Result<FittedOutput, SpecError> {
        let at = place.map(|place| place.to_string());
        let refused = |what: String| {
            let path: &[&str] = match &at {
                Some(place) => &["outputs", place],
                None => &["model"],
            };
            let error = SpecError::new(format!("the output `{}` of `{}` is {what}", output.name, self.name())).at(path);
            if place.is_some() { error } else { error.label("name those that are wanted with `outputs: […]`") }
        };
        let dtype = output
            .element
            .and_then(Element::dtype)
            .ok_or_else(|| refused(format!("{output}, which no column can hold")))?;
        let axes = output.shape.as_deref().unwrap_or_default();
        let Some((rows, rest)) = axes.split_first() else {
            return Err(refused(format!("{output}, which is not one for each image")));
        };
        if rows.fixed().is_some_and(|n_rows| n_rows != 1) {
            return Err(refused(format!("{output}, which is not one for each image")));
        }
        let shape = rest.iter().map(|axis| match axis {
            Axis::Fixed(length) => Dim::Fixed(*length),
            Axis::Open(_) => Dim::Any,
        });
        Ok(FittedOutput { name: output.name.clone(), dtype, shape: shape.collect() })
    }

    /// What it needs of a device. How much memory lies between its input and its outputs is not in the file; as much as eight
    /// copies of the input is what common classifiers take at their peak.
    pub(super) fn need(&self, [height, width]: [usize; 2], devices: Option<Devices>) -> ModelNeed {
        let pixels = 3 * height as u64 * width as u64;
        ModelNeed {
            weights: self.signature.n_weight_bytes,
            activations_per_row: pixels + 8 * 4 * pixels,
            workspace: WORKSPACE,
            host: HostNeed {
                // Most weights are packed, some are read where they lie in the file.
                weights: LIBRARY + self.signature.n_weight_bytes * 5 / 4,
                per_thread: pixels + 8 * 4 * pixels,
            },
            devices,
            files: self.signature.files.iter().filter_map(|path| FileStamp::of(path)).collect(),
        }
    }
}

impl FittedOutput {
    /// The column's type.
    pub(super) fn ty(&self) -> ColumnType {
        ColumnType::Tensor { dtype: self.dtype, shape: self.shape.clone() }
    }
}

fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}
