//! Weight files: safetensors, zip and legacy torch pickles, Hugging Face folders.
//!
//! [`open`] tells the format by the content and gives a [`WeightSet`]: names, shapes and places of all tensors, read from
//! the header and checked against the file, values left where they are until a model loads them. The same weights give
//! equal bits from every format.
//!
//! Every byte of a file is taken as hostile: nothing in it is run, no length in it is believed, and what is wrong is an
//! error that names the file and the tensor. This module knows no architecture; names are as they stand in the file.

mod element;
mod error;
mod folder;
mod freed;
mod layout;
mod legacy_pth;
mod mapped;
mod pickle;
mod safetensors;
mod state_dict;
mod weight_set;
mod zip_pth;

use std::path::Path;

pub use element::Element;
pub use error::{ReadValuesError, WeightsError, WeightsFault};
pub(crate) use freed::give_back;
pub(crate) use mapped::Mapped;
pub use weight_set::WeightSet;

/// Opens a weight file, or the weights in a folder of Hugging Face form.
pub fn open(path: &Path) -> Result<WeightSet, WeightsError> {
    match path.is_dir() {
        true => folder::open_folder(path),
        false => open_file(path),
    }
}

/// Opens one weight file.
fn open_file(path: &Path) -> Result<WeightSet, WeightsError> {
    read_file(path).map(WeightSet::without_wrapper_prefix)
}

/// Opens one weight file, names exactly as in it.
fn read_file(path: &Path) -> Result<WeightSet, WeightsError> {
    let file = Mapped::open(path)?;
    let layouts = if zip_pth::is_zip(&file) {
        zip_pth::read_header(&file)
    } else if legacy_pth::is_legacy(&file) {
        legacy_pth::read_header(&file)
    } else if safetensors::is_safetensors(&file) {
        safetensors::read_header(&file)
    } else {
        Err(WeightsFault::Unrecognised(likeness(&file)))
    };
    match layouts {
        Ok(layouts) => WeightSet::of_file(file, layouts),
        Err(fault) => Err(WeightsError::new(path, fault)),
    }
}

/// What a file that holds no weights looks like instead.
fn likeness(file: &[u8]) -> String {
    let beginning = &file[..file.len().min(64)];
    if beginning.starts_with(b"version https://git-lfs") {
        return "is a Git LFS pointer and not the weights: fetch them with `git lfs pull`".into();
    }
    if beginning.starts_with(b"<") {
        return "is a web page or XML and not weights".into();
    }
    if beginning.starts_with(&[0x80]) {
        return "is a pickle that `torch.save` did not make".into();
    }
    let hex: Vec<String> = beginning.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("is not a weight file (it begins with {})", hex.join(" "))
}
