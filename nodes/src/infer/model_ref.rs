//! The `model` option: a folder, or an architecture and its weights.

use std::fs;
use std::path::{Path, PathBuf};

use engine::config::{list, nearest};
use engine::node::SpecError;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::models::{ARCHS, Arch, ArchRef, DESCRIBED, Preset, RandomWeights, arch, folder, load};
use crate::weights;

/// Classes of a model with random weights, as many as ImageNet has.
const RANDOM_CLASSES: usize = 1000;

/// A model as the pipeline names it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ModelRef {
    /// A folder in Hugging Face form: `config.json`, weights, and where it has one `preprocessor_config.json`. Or an ONNX file,
    /// or a folder with one.
    Folder(String),
    /// An architecture and its weights.
    Parts(Parts),
}

/// An architecture and its weights.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Parts {
    /// The architecture: `efficientnet_lite0`, `mobilenet_v2`, `resnet18`, `resnet50` or `vit_base_patch16_224`.
    arch: String,
    /// The weights: a `.safetensors` file, a `.pth` file of either of torch's forms, a folder with one, or `random`.
    weights: String,
    /// Which random weights.
    #[serde(default)]
    seed: u64,
}

/// Where the values of a model come from.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// A file or folder.
    File(PathBuf),
    /// A formula.
    Random {
        /// Which.
        seed: u64,
    },
}

/// A model with its header read.
#[derive(Clone)]
pub(super) struct Resolved {
    pub(super) arch: ArchRef,
    pub(super) n_classes: usize,
    pub(super) preset: Preset,
    pub(super) values: Values,
    /// The files that hold the values.
    pub(super) files: Vec<PathBuf>,
}

impl ModelRef {
    /// Whether it is a folder with weights that are read here.
    pub(super) fn has_weights(&self, base: &Path) -> bool {
        match self {
            ModelRef::Folder(folder) => {
                base.join(folder).join("config.json").is_file() && weights::open(&base.join(folder)).is_ok()
            }
            ModelRef::Parts(_) => true,
        }
    }

    /// Finds the architecture, and checks the names and shapes of the weights against it. Reads headers only.
    pub(super) fn resolve(&self, base: &Path) -> Result<Resolved, SpecError> {
        match self {
            ModelRef::Folder(folder) => {
                resolve_folder(folder, &base.join(folder)).map_err(|error| error.at(&["model"]))
            }
            ModelRef::Parts(parts) => parts.resolve(base),
        }
    }
}

impl Parts {
    fn resolve(&self, base: &Path) -> Result<Resolved, SpecError> {
        let Some(arch) = arch(&self.arch) else {
            let names = || ARCHS.iter().map(|arch| arch.name());
            if DESCRIBED.contains(&self.arch.as_str()) {
                let message = format!("`{}` comes in several sizes, which a folder's `config.json` tells", self.arch);
                let label = "write `model: FOLDER`, with `config.json` beside the weights";
                return Err(SpecError::new(message).at(&["model", "arch"]).label(label));
            }
            let error = SpecError::new(format!("there is no architecture `{}`", self.arch)).at(&["model", "arch"]);
            let error = match nearest(&self.arch, names()) {
                Some(name) => error.label(format!("did you mean `{name}`?")),
                None => error,
            };
            return Err(error.note(format!("architectures: {}", list(names()))));
        };
        if self.weights == "random" {
            let values = Values::Random { seed: self.seed };
            let (n_classes, preset) = (RANDOM_CLASSES, arch.preset());
            return Ok(Resolved { arch: arch.into(), n_classes, preset, values, files: Vec::new() });
        }
        let path = base.join(&self.weights);
        let (n_classes, files) = check(arch, &path).map_err(|error| error.at(&["model", "weights"]))?;
        Ok(Resolved { arch: arch.into(), n_classes, preset: arch.preset(), values: Values::File(path), files })
    }
}

fn resolve_folder(written: &str, path: &Path) -> Result<Resolved, SpecError> {
    if !path.is_dir() {
        let what = if path.exists() { "is a file" } else { "does not exist" };
        return Err(SpecError::new(format!("the model folder `{written}` {what}"))
            .label("a folder with `config.json` and weights, or `{arch: …, weights: …}`")
            .note(format!("looked for `{}`", path.display())));
    }
    let read = |name: &str| match fs::read_to_string(path.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SpecError::new(format!("cannot read `{name}` of the model folder `{written}`: {error}"))),
    };
    let told = |name: &str, error: folder::FolderError| {
        SpecError::new(format!("`{name}` of the model folder `{written}`: {error}"))
    };
    let Some(config) = read("config.json")? else {
        return Err(SpecError::new(format!("the model folder `{written}` has no `config.json`"))
            .label("write `{arch: …, weights: …}` instead"));
    };
    let config = folder::parse_config(&config).map_err(|error| told("config.json", error))?;
    let arch = config.arch.arch();
    let preset = match read("preprocessor_config.json")? {
        Some(text) => folder::parse_preprocessor(&text).map_err(|error| told("preprocessor_config.json", error))?,
        None => match read("processor_config.json")? {
            Some(text) => folder::parse_processor(&text).map_err(|error| told("processor_config.json", error))?,
            None => None,
        }
        .or(config.preset)
        .unwrap_or_else(|| arch.preset()),
    };
    let (n_classes, files) = check(&*arch, path)?;
    Ok(Resolved { arch, n_classes, preset, values: Values::File(path.to_owned()), files })
}

/// The number of classes, and the files that the weights lie in.
fn check(arch: &dyn Arch, path: &Path) -> Result<(usize, Vec<PathBuf>), SpecError> {
    let weights = weights::open(path).map_err(|error| SpecError::new(error.to_string()))?;
    let files: Vec<_> = weights.files().map(Path::to_owned).collect();
    let checked = load::check(arch, &weights).map_err(|mismatch| {
        // Then which tensors differ says nothing more.
        match mismatch.fits {
            Some(fits) => {
                SpecError::new(format!("`{}` holds weights of `{fits}`, not of `{}`", path.display(), arch.name()))
                    .label(format!("these fit `arch: {fits}`"))
            }
            None => {
                let path = if let [file] = &files[..] { file } else { path };
                SpecError::new(format!("`{}`: {mismatch}", path.display()))
            }
        }
    })?;
    Ok((checked.n_classes, files))
}

impl Values {
    /// The values as the models read them.
    pub(super) fn open(
        &self,
        arch: &dyn Arch,
        n_classes: usize,
    ) -> Result<Box<dyn crate::models::TensorSource>, weights::WeightsError> {
        Ok(match self {
            Values::File(path) => Box::new(weights::open(path)?),
            Values::Random { seed } => Box::new(RandomWeights::new(arch, n_classes, *seed)),
        })
    }
}
