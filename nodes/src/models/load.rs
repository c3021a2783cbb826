//! Checks a set of weights against an architecture, naming every mistake at once.
//!
//! Promises that nothing is loaded before all names and shapes are right. Knows no file format.

use std::collections::HashSet;

use super::{
    arch::Arch,
    params::{ReadTensorError, TensorSource},
    scheme::Scheme,
};

/// How many mistakes a message spells out.
const N_SHOWN: usize = 10;

/// Entries that training leaves in files and that no network here reads.
const TRAINING_ONLY: &[&str] = &["num_batches_tracked"];

/// A model could not be made from these weights.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Names or shapes differ from what the architecture needs.
    #[error(transparent)]
    Mismatch(#[from] WeightsMismatch),
    /// A tensor's values could not be read.
    #[error("weights for `{arch}`: {error}")]
    Read {
        /// The architecture being loaded.
        arch: &'static str,
        /// What failed.
        #[source]
        error: ReadTensorError,
    },
    /// A tensor library call failed, such as an allocation on the device.
    #[error("weights for `{arch}`: {error}")]
    Device {
        /// The architecture being loaded.
        arch: &'static str,
        /// What failed.
        #[source]
        error: candle_core::Error,
    },
}

/// Everything that is wrong with the names and shapes of a set of weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsMismatch {
    /// The architecture that was asked for.
    pub arch: &'static str,
    /// Every mistake, missing tensors and wrong shapes in the order of the network, then surplus ones in that of the file.
    pub mistakes: Vec<Mistake>,
    /// The architecture that these weights fit instead, if there is one.
    pub fits: Option<&'static str>,
}

/// One thing wrong with a set of weights. Names are the file's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// The network needs a tensor that is not there.
    Missing(String),
    /// A tensor has another shape than the network needs.
    Shape {
        /// Its name in the file.
        name: String,
        /// The shape in the file.
        found: Vec<usize>,
        /// The shape needed, as text, because the number of classes may be free.
        wanted: String,
    },
    /// The network has no place for this tensor.
    Surplus(String),
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "tensor `{name}` is missing"),
            Self::Shape { name, found, wanted } => {
                write!(f, "`{name}` has shape {found:?}, wanted {wanted}")
            }
            Self::Surplus(name) => write!(f, "tensor `{name}` has no place in the network"),
        }
    }
}

impl std::fmt::Display for WeightsMismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "weights for `{}`: ", self.arch)?;
        for (mistake_idx, mistake) in self.mistakes.iter().take(N_SHOWN).enumerate() {
            let separator = if mistake_idx == 0 { "" } else { "; " };
            write!(f, "{separator}{mistake}")?;
        }
        if self.mistakes.len() > N_SHOWN {
            write!(f, "; and {} more", self.mistakes.len() - N_SHOWN)?;
        }
        if let Some(fits) = self.fits {
            write!(f, "; these are weights of `{fits}`")?;
        }
        Ok(())
    }
}

impl std::error::Error for WeightsMismatch {}

/// What a check of names and shapes found out.
#[derive(Debug, Clone, Copy)]
pub struct Checked {
    /// How the file names its tensors.
    pub scheme: Scheme,
    /// The length of the classifier's output.
    pub n_classes: usize,
}

/// Compares names and shapes with what `arch` needs, without reading any values.
pub fn check(arch: &dyn Arch, source: &dyn TensorSource) -> Result<Checked, WeightsMismatch> {
    let (checked, mistakes) = compare(arch, source);
    if mistakes.is_empty() {
        return Ok(checked);
    }
    Err(WeightsMismatch { arch: arch.name(), mistakes, fits: identify(source).map(|arch| arch.name()) })
}

/// The architecture that these weights fit, going by names and shapes.
pub fn identify(source: &dyn TensorSource) -> Option<&'static dyn Arch> {
    super::ARCHS.iter().copied().find(|arch| compare(*arch, source).1.is_empty())
}

fn compare(arch: &dyn Arch, source: &dyn TensorSource) -> (Checked, Vec<Mistake>) {
    let scheme = Scheme::detect(arch.schemes(), &arch.parameters(1), source);
    let classifier = (scheme.locate)(arch.classifier());
    let n_classes = source
        .shape(&classifier.names()[0])
        .and_then(|shape| shape.first().copied())
        .filter(|&n_classes| n_classes > 0)
        .unwrap_or(1);

    let mut mistakes = Vec::new();
    let mut known = HashSet::new();
    for parameter in arch.parameters(n_classes).iter() {
        let location = (scheme.locate)(&parameter.name);
        let mut wanted = parameter.shape.clone();
        wanted[0] /= location.names().len();
        for name in location.names() {
            match source.shape(name) {
                None => mistakes.push(Mistake::Missing(name.clone())),
                Some(found) if found != wanted => {
                    let wanted = if parameter.name == arch.classifier() {
                        let rest: Vec<String> = wanted[1..].iter().map(usize::to_string).collect();
                        format!("[n, {}]", rest.join(", "))
                    } else {
                        format!("{wanted:?}")
                    };
                    mistakes.push(Mistake::Shape { name: name.clone(), found, wanted });
                }
                Some(_) => {}
            }
            known.insert(name.clone());
        }
    }
    for name in source.names() {
        let ignored = TRAINING_ONLY.iter().chain(arch.ignored()).any(|part| name.contains(part));
        if !ignored && !known.contains(&name) {
            mistakes.push(Mistake::Surplus(name));
        }
    }
    (Checked { scheme, n_classes }, mistakes)
}
