//! How a weight file names an architecture's tensors.
//!
//! A scheme is a pure function from canonical names to the file's names. It knows nothing of shapes or files.

use super::{arch::Parameters, params::TensorSource};

/// One naming convention, such as torchvision's or Hugging Face's.
#[derive(Clone, Copy)]
pub struct Scheme {
    /// Whose convention it is, for messages and tests.
    pub name: &'static str,
    /// Where a canonical tensor is found.
    pub locate: fn(canonical: &str) -> Location,
}

/// Where the values of one canonical tensor are found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a tensor of this name and of the same shape.
    Whole(String),
    /// In tensors that give it when put one after the other along the first dimension, all of one shape.
    Stacked(Vec<String>),
}

impl Location {
    /// The names in the file.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Whole(name) => std::slice::from_ref(name),
            Self::Stacked(names) => names,
        }
    }
}

impl Scheme {
    /// The convention in which the file has the canonical names.
    pub const fn canonical(name: &'static str) -> Self {
        Self { name, locate: |canonical| Location::Whole(canonical.to_owned()) }
    }

    /// The scheme under which most of the parameters are found; the first one where several are equal.
    pub fn detect(schemes: &'static [Scheme], parameters: &Parameters, source: &dyn TensorSource) -> Scheme {
        let mut best = (schemes[0], 0);
        for &scheme in schemes {
            let n_found = parameters
                .iter()
                .flat_map(|parameter| (scheme.locate)(&parameter.name).names().to_vec())
                .filter(|name| source.shape(name).is_some())
                .count();
            if n_found > best.1 {
                best = (scheme, n_found);
            }
        }
        best.0
    }
}

impl std::fmt::Debug for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Scheme").field(&self.name).finish()
    }
}
