//! What a file says of its model: inputs, outputs, and the size of its weights. Needs no ONNX Runtime.

use std::collections::HashSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use prost::Message;

use super::element::Element;
use super::error::OnnxError;
use super::proto::{Dimension, DimensionValue, ModelHeader, ValueInfo};
use crate::weights::Mapped;

/// The oldest opset whose operators are the ones that are put before a graph.
const LEAST_OPSET: i64 = 7;

/// What a model takes and gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// Inputs that are not stored in the file, in its order.
    pub inputs: Vec<Value>,
    /// Outputs, in the file's order.
    pub outputs: Vec<Value>,
    /// Bytes of its weights.
    pub n_weight_bytes: u64,
    /// The files that it is read from: itself, and those that its weights lie in.
    pub files: Vec<PathBuf>,
}

/// An input or an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Its name.
    pub name: String,
    /// Its type; `None` if it is no tensor.
    pub element: Option<Element>,
    /// Its dimensions; `None` if the file leaves their number open.
    pub shape: Option<Vec<Axis>>,
}

/// A dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Axis {
    /// This long.
    Fixed(usize),
    /// As long as whoever calls it wants, or as it turns out; with the name that the file has for it.
    Open(String),
}

impl Axis {
    /// Its length, where it has one.
    pub fn fixed(&self) -> Option<usize> {
        match self {
            Axis::Fixed(length) => Some(*length),
            Axis::Open(_) => None,
        }
    }
}

/// `float32 [N, 3, 224, 224]`
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(element) = self.element else { return f.write_str("no tensor") };
        write!(f, "{element}")?;
        let Some(shape) = &self.shape else { return f.write_str(" of any shape") };
        f.write_str(" [")?;
        for (place, axis) in shape.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            match axis {
                Axis::Fixed(length) => write!(f, "{comma}{length}")?,
                Axis::Open(name) if name.is_empty() => write!(f, "{comma}?")?,
                Axis::Open(name) => write!(f, "{comma}{name}")?,
            }
        }
        f.write_str("]")
    }
}

impl Signature {
    /// Reads it from the file, of whose weights nothing is copied.
    ///
    /// # Errors
    /// A file that cannot be read or is no ONNX model.
    pub fn read(path: &Path) -> Result<Self, OnnxError> {
        Self::parse(&Mapped::open(path)?, path)
    }

    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self, OnnxError> {
        let broken = |reason: String| OnnxError::NotAModel { path: path.to_owned(), reason };
        let model = ModelHeader::decode(bytes).map_err(|error| broken(error.to_string()))?;
        let graph = model.graph.ok_or_else(|| broken("it has no graph".to_owned()))?;
        if model.ir_version <= 0 || graph.output.is_empty() {
            return Err(broken("it has no version or no outputs".to_owned()));
        }
        let opset = model.opset_import.iter().find(|opset| matches!(opset.domain.as_str(), "" | "ai.onnx"));
        if let Some(opset) = opset.filter(|opset| opset.version < LEAST_OPSET) {
            return Err(broken(format!(
                "it is of opset {}, and {LEAST_OPSET} is the oldest that is run: export it anew",
                opset.version
            )));
        }
        let mut files = vec![path.to_owned()];
        let mut n_weight_bytes = 0_u64;
        for stored in &graph.initializer {
            let elements =
                stored.dims.iter().try_fold(1_u64, |total, &side| total.checked_mul(u64::try_from(side).ok()?));
            let elements = elements.ok_or_else(|| broken(format!("`{}` has no possible shape", stored.name)))?;
            n_weight_bytes =
                n_weight_bytes.saturating_add(elements.saturating_mul(Element(stored.data_type).size() as u64));
            if let Some(place) = stored.external_data.iter().find(|pair| pair.key == "location") {
                let file = beside(path, &place.value).ok_or_else(|| {
                    broken(format!("the weights `{}` lie outside of its folder, in `{}`", stored.name, place.value))
                })?;
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        let stored: HashSet<_> = graph.initializer.iter().map(|stored| stored.name.as_str()).collect();
        let is_stored = |value: &&ValueInfo| stored.contains(value.name.as_str());
        let inputs = graph.input.iter().filter(|value| !is_stored(value)).map(Value::of).collect();
        let outputs = graph.output.iter().map(Value::of).collect();
        Ok(Self { inputs, outputs, n_weight_bytes, files })
    }
}

impl Value {
    fn of(value: &ValueInfo) -> Self {
        let tensor = value.ty.as_ref().and_then(|ty| ty.tensor.as_ref());
        let axis = |dimension: &Dimension| match &dimension.value {
            Some(DimensionValue::Fixed(length)) if *length > 0 => {
                Axis::Fixed(usize::try_from(*length).unwrap_or(usize::MAX))
            }
            Some(DimensionValue::Named(name)) => Axis::Open(name.clone()),
            // Some exporters write 0 or -1 for what is open.
            _ => Axis::Open(String::new()),
        };
        let shape = tensor.and_then(|tensor| tensor.shape.as_ref());
        Self {
            name: value.name.clone(),
            element: tensor.map(|tensor| Element(tensor.elem_type)),
            shape: shape.map(|shape| shape.dim.iter().map(axis).collect()),
        }
    }
}

/// The file that a model names for its weights: in its own folder or below.
fn beside(path: &Path, location: &str) -> Option<PathBuf> {
    let location = Path::new(location);
    let stays = location.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    stays.then(|| path.parent().unwrap_or(Path::new("")).join(location))
}
