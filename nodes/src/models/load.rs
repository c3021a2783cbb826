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
    /// The length of the classifier's output; 0 where there is no classifier.
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
    let n_classes = arch.classifier().map_or(0, |classifier| {
        let shape = source.shape(&(scheme.locate)(classifier).names()[0]);
        shape.and_then(|shape| shape.first().copied()).filter(|&n_classes| n_classes > 0).unwrap_or(1)
    });

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
                    let wanted = if Some(parameter.name.as_str()) == arch.classifier() {
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

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Tensor};

    use super::*;
    use crate::models::{Params, arch};

    /// ResNet-18's tensors with their shapes and no values of their own.
    fn resnet18() -> Params {
        let mut params = Params::default();
        for parameter in arch("resnet18").expect("resnet18").parameters(10).iter() {
            let zero = Tensor::zeros(1, DType::F32, &Device::Cpu).expect("a tensor");
            params.insert(&parameter.name, zero.broadcast_as(parameter.shape.as_slice()).expect("a view"));
        }
        params
    }

    fn zeros(shape: &[usize]) -> Tensor {
        Tensor::zeros(shape, DType::F32, &Device::Cpu).expect("a tensor")
    }

    fn message(params: &Params) -> String {
        check(arch("resnet18").expect("resnet18"), params).expect_err("mistakes").to_string()
    }

    #[test]
    fn right_weights_pass_and_give_the_number_of_classes() {
        let mut params = resnet18();
        params.insert("bn1.num_batches_tracked", zeros(&[]));
        let checked = check(arch("resnet18").expect("resnet18"), &params).expect("right weights");
        assert_eq!((checked.scheme.name, checked.n_classes), ("torchvision", 10));
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        let mut params = resnet18();
        params.remove("layer1.0.conv1.weight");
        params.insert("fc.weight", zeros(&[10, 256]));
        params.insert("fc.bias", zeros(&[11]));
        params.insert("extra", zeros(&[2]));
        assert_eq!(
            message(&params),
            "weights for `resnet18`: tensor `layer1.0.conv1.weight` is missing; \
             `fc.weight` has shape [10, 256], wanted [n, 512]; `fc.bias` has shape [11], wanted [10]; \
             tensor `extra` has no place in the network"
        );
    }

    #[test]
    fn many_mistakes_are_counted() {
        let mut params = resnet18();
        for name_idx in 0..22 {
            params.insert(format!("extra{name_idx}"), zeros(&[1]));
        }
        assert!(message(&params).ends_with("tensor `extra9` has no place in the network; and 12 more"));
    }

    #[test]
    fn weights_of_another_architecture_are_recognised() {
        let error = check(arch("resnet50").expect("resnet50"), &resnet18()).expect_err("other weights").to_string();
        assert!(
            error.starts_with(
                "weights for `resnet50`: `layer1.0.conv1.weight` has shape [64, 64, 3, 3], wanted [64, 64, 1, 1]"
            ),
            "{error}"
        );
        assert!(error.ends_with("; these are weights of `resnet18`"), "{error}");
    }

    #[test]
    fn a_classifier_of_no_classes_is_refused() {
        let mut params = resnet18();
        params.insert("fc.weight", zeros(&[0, 512]));
        params.insert("fc.bias", zeros(&[0]));
        assert_eq!(
            message(&params),
            "weights for `resnet18`: `fc.weight` has shape [0, 512], wanted [n, 512]; `fc.bias` has shape [0], wanted [1]"
        );
    }

    #[test]
    fn no_tensors_at_all_is_every_tensor_missing() {
        let message = message(&Params::default());
        assert!(message.starts_with("weights for `resnet18`: tensor `conv1.weight` is missing; "), "{message}");
        assert!(message.ends_with("; and 92 more"), "{message}");
    }
}
