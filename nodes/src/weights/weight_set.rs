//! Opened weights: names, shapes and places of all tensors, and the mapped files that hold their values.

use std::path::Path;

use candle_core::{DType, Device, Tensor};
use indexmap::IndexMap;

use super::element::Element;
use super::error::{ReadValuesError, WeightsError, WeightsFault};
use super::layout::Layout;
use super::mapped::Mapped;
use crate::models::{ReadTensorError, TensorSource};

const DATA_PARALLEL: &str = "module.";

/// The tensors of one weight file, or of several that belong together.
///
/// Opening reads headers only. Every tensor listed lies wholly in its file, so that after opening, reading fails only
/// for want of memory. Names are those of the file, without the `module.` that torch's data-parallel wrapper puts before
/// every one of them.
#[derive(Debug)]
pub struct WeightSet {
    files: Vec<Mapped>,
    tensors: IndexMap<String, Stored>,
}

#[derive(Debug)]
struct Stored {
    file: usize,
    layout: Layout,
}

impl WeightSet {
    /// The tensors of one file.
    pub(super) fn of_file(file: Mapped, layouts: IndexMap<String, Layout>) -> Result<Self, WeightsError> {
        if layouts.is_empty() {
            return Err(WeightsError::new(file.path(), WeightsFault::NoTensors(Vec::new())));
        }
        let tensors = layouts.into_iter().map(|(name, layout)| (name, Stored { file: 0, layout }));
        Ok(Self { files: vec![file], tensors: tensors.collect() })
    }

    /// The tensors of several files, each named by the file (its place in `shards`) that holds it.
    pub(super) fn of_shards(shards: Vec<Self>, index: IndexMap<String, usize>) -> Result<Self, String> {
        let mut set = Self { files: Vec::new(), tensors: IndexMap::new() };
        let mut found: Vec<IndexMap<String, Stored>> = Vec::new();
        for shard in shards {
            set.files.extend(shard.files);
            found.push(shard.tensors);
        }
        for (name, file) in index {
            let Some(stored) = found.get_mut(file).and_then(|tensors| tensors.swap_remove(&name)) else {
                return Err(name);
            };
            set.tensors.insert(name, Stored { file, ..stored });
        }
        Ok(set.without_wrapper_prefix())
    }

    /// How many tensors there are.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there is none; opening refuses such files.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// What one tensor's elements are stored as.
    pub fn element(&self, name: &str) -> Option<Element> {
        self.tensors.get(name).map(|stored| stored.layout.element)
    }

    /// The number of parameters: elements of all floating-point tensors. Known from the headers.
    pub fn n_parameters(&self) -> u64 {
        let floats = self.tensors.values().filter(|stored| stored.layout.element.is_float());
        floats.map(|stored| (stored.layout.n_bytes / stored.layout.element.size()) as u64).fold(0, u64::saturating_add)
    }

    /// Bytes of all tensors as they are stored. Known from the headers.
    pub fn n_bytes(&self) -> u64 {
        self.tensors.values().map(|stored| stored.layout.n_bytes as u64).fold(0, u64::saturating_add)
    }

    /// The files that the tensors lie in.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(Mapped::path)
    }

    pub(super) fn without_wrapper_prefix(mut self) -> Self {
        if self.tensors.keys().all(|name| name.len() > DATA_PARALLEL.len() && name.starts_with(DATA_PARALLEL)) {
            let renamed =
                self.tensors.into_iter().map(|(name, stored)| (name[DATA_PARALLEL.len()..].to_string(), stored));
            self.tensors = renamed.collect();
        }
        self
    }
}

impl TensorSource for WeightSet {
    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.tensors.get(name).map(|stored| stored.layout.shape.clone())
    }

    fn load(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor, ReadTensorError> {
        let stored = self.tensors.get(name).ok_or_else(|| ReadTensorError::new(name, "there is no such tensor"))?;
        let layout = &stored.layout;
        let file = &self.files[stored.file];
        let bytes = layout.bytes(file).expect("a layout is made only for bytes within its file");
        let tensor = layout.element.tensor(&bytes, &layout.shape);
        file.release(layout.span());
        tensor
            .and_then(|tensor| tensor.to_dtype(dtype)?.to_device(device))
            .map_err(|cause| ReadTensorError::new(name, ReadValuesError { path: file.path().to_path_buf(), cause }))
    }
}
