//! What one architecture promises to the rest of the program, and the parameters that it is made of.
//!
//! An [`Arch`] is pure description plus `build`: it never opens a file and never decodes an image.

use std::{ops::Deref, sync::Arc};

use super::{
    load::LoadError,
    network::{Network, Outputs},
    preset::Preset,
    reader::ParamReader,
    scheme::Scheme,
};

/// One model architecture. Adding one is a file, a line in [`ARCHS`](super::ARCHS) and a test; one whose figures stand
/// in a folder's `config.json` is described by [`Described`](super::folder::Described) instead of the list.
pub trait Arch: Send + Sync {
    /// The name in a pipeline file, such as `resnet18`.
    fn name(&self) -> &'static str;

    /// Every tensor that the network needs, under its canonical name.
    fn parameters(&self, n_classes: usize) -> Parameters;

    /// The canonical name of the tensor whose first dimension is the number of classes; `None` where there are no
    /// classes and features are all that the network gives.
    fn classifier(&self) -> Option<&'static str>;

    /// What can be read off the network; the first one is taken where nobody says.
    fn outputs(&self) -> &'static [Outputs] {
        match self.classifier() {
            Some(_) => &[Outputs::Logits, Outputs::Features],
            None => &[Outputs::Features],
        }
    }

    /// The length of the feature vector: what the classifier reads, or what the network is for.
    fn n_features(&self) -> usize;

    /// The ways in which weight files name these tensors; the first one is taken where none fits.
    fn schemes(&self) -> &'static [Scheme];

    /// Tensors that published files carry and that this network has no use for, by a part of the name.
    fn ignored(&self) -> &'static [&'static str] {
        &[]
    }

    /// The preprocessing that the published weights were evaluated with.
    fn preset(&self) -> Preset;

    /// The image sizes that the network takes.
    fn input_size(&self) -> InputSize;

    /// Elements that must be in a GPU's memory at once while one image of this size is computed, the normalised image
    /// among them.
    fn activations(&self, height: usize, width: usize) -> u64;

    /// The same in the memory of a thread of the processor, where the layers that stand alone hold about as much.
    fn activations_on_cpu(&self, height: usize, width: usize) -> u64 {
        self.activations(height, width)
    }

    /// Puts the network together from weights that were checked against [`parameters`](Self::parameters).
    fn build(&self, reader: &ParamReader<'_>) -> Result<Box<dyn Network>, LoadError>;
}

/// An architecture of the list, or one that a folder describes. Cheap to clone.
#[derive(Clone)]
pub struct ArchRef(Held);

#[derive(Clone)]
enum Held {
    Listed(&'static dyn Arch),
    Described(Arc<dyn Arch>),
}

impl ArchRef {
    /// An architecture with figures of its own.
    pub fn described(arch: impl Arch + 'static) -> Self {
        Self(Held::Described(Arc::new(arch)))
    }
}

impl From<&'static dyn Arch> for ArchRef {
    fn from(arch: &'static dyn Arch) -> Self {
        Self(Held::Listed(arch))
    }
}

impl Deref for ArchRef {
    type Target = dyn Arch;

    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Held::Listed(arch) => *arch,
            Held::Described(arch) => &**arch,
        }
    }
}

/// Which heights and widths a network takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSize {
    /// Any height and width from this one on.
    AtLeast(usize),
    /// This height and width only.
    Exactly(usize, usize),
}

impl InputSize {
    /// Whether an image of this size may go in.
    pub fn admits(self, height: usize, width: usize) -> bool {
        match self {
            Self::AtLeast(least) => height >= least && width >= least,
            Self::Exactly(h, w) => (height, width) == (h, w),
        }
    }
}

impl std::fmt::Display for InputSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "at least {least}×{least}"),
            Self::Exactly(height, width) => write!(f, "{height}×{width}"),
        }
    }
}

/// One tensor that a network needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The canonical name.
    pub name: String,
    /// The shape, given the number of classes.
    pub shape: Vec<usize>,
}

/// The list of parameters, written layer by layer.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    list: Vec<Parameter>,
}

impl Parameters {
    /// Adds one tensor.
    pub fn tensor(&mut self, name: impl Into<String>, shape: &[usize]) {
        self.list.push(Parameter { name: name.into(), shape: shape.to_vec() });
    }

    /// Adds the weight of a square convolution without a bias.
    pub fn conv(&mut self, name: &str, n_out: usize, n_in_per_group: usize, kernel: usize) {
        self.tensor(format!("{name}.weight"), &[n_out, n_in_per_group, kernel, kernel]);
    }

    /// Adds the four tensors of a batch norm.
    pub fn batch_norm(&mut self, name: &str, n: usize) {
        for part in ["weight", "bias", "running_mean", "running_var"] {
            self.tensor(format!("{name}.{part}"), &[n]);
        }
    }

    /// Adds the weight and bias of a layer norm.
    pub fn layer_norm(&mut self, name: &str, n: usize) {
        self.tensor(format!("{name}.weight"), &[n]);
        self.tensor(format!("{name}.bias"), &[n]);
    }

    /// Adds the weight and bias of a linear layer.
    pub fn linear(&mut self, name: &str, n_out: usize, n_in: usize) {
        self.tensor(format!("{name}.weight"), &[n_out, n_in]);
        self.tensor(format!("{name}.bias"), &[n_out]);
    }

    /// Elements that a loaded network keeps: the statistics of batch norms go into the weights before them.
    pub fn n_kept(&self) -> u64 {
        let is_kept = |parameter: &&Parameter| {
            !parameter.name.ends_with(".running_mean") && !parameter.name.ends_with(".running_var")
        };
        self.list.iter().filter(is_kept).map(|parameter| parameter.shape.iter().product::<usize>() as u64).sum()
    }

    /// The parameters in the order in which they were added.
    pub fn iter(&self) -> std::slice::Iter<'_, Parameter> {
        self.list.iter()
    }
}
