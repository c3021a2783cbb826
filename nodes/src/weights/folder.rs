//! Folders in Hugging Face form: which file in one holds the weights, and sharded weights with their index.

use std::path::{Path, PathBuf};

use indexmap::{IndexMap, IndexSet};
use serde::Deserialize;

use super::error::{WeightsError, WeightsFault, quoted};
use super::mapped::Mapped;
use super::weight_set::WeightSet;
use super::{open_file, read_file};

/// The names tried, in this order.
const NAMES: [&str; 4] =
    ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"];
const EXTENSIONS: [&str; 4] = ["safetensors", "pth", "pt", "bin"];
const INDEX: &str = ".index.json";

/// The weights of a folder.
pub(super) fn open_folder(folder: &Path) -> Result<WeightSet, WeightsError> {
    let path = find(folder)?;
    match path.to_string_lossy().ends_with(INDEX) {
        true => open_shards(folder, &path),
        false => open_file(&path),
    }
}

/// The well-known file, or the only one whose ending says that it holds weights.
fn find(folder: &Path) -> Result<PathBuf, WeightsError> {
    for name in NAMES {
        let path = folder.join(name);
        if path.is_file() {
            return Ok(path);
        }
    }
    let fail = |fault| WeightsError::new(folder, fault);
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(|error| fail(error.into()))? {
        found.push(entry.map_err(|error| fail(error.into()))?.file_name().to_string_lossy().into_owned());
    }
    found.sort();
    let is_weights =
        |name: &String| Path::new(name).extension().is_some_and(|found| EXTENSIONS.iter().any(|known| found == *known));
    let mut weights: Vec<String> = found.iter().filter(|name| is_weights(name)).cloned().collect();
    match weights.len() {
        1 => Ok(folder.join(weights.remove(0))),
        0 => {
            let names = NAMES.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let patterns = EXTENSIONS.iter().map(|extension| format!("`*.{extension}`")).collect::<Vec<_>>().join(", ");
            Err(fail(WeightsFault::NoneInFolder { looked_for: format!("{names}, then for one of {patterns}"), found }))
        }
        _ => Err(fail(WeightsFault::SeveralInFolder(weights))),
    }
}

#[derive(Deserialize)]
struct Index {
    weight_map: IndexMap<String, String>,
}

/// The tensors that an index names, each out of the file that it names.
fn open_shards(folder: &Path, index_path: &Path) -> Result<WeightSet, WeightsError> {
    let fail = |part: &str, problem: String| WeightsError::new(index_path, WeightsFault::malformed(part, problem));
    let text = Mapped::open(index_path)?;
    let index: Index =
        serde_json::from_slice(&text).map_err(|error| fail("the index", format!("is not valid: {error}")))?;
    if index.weight_map.is_empty() {
        return Err(WeightsError::new(index_path, WeightsFault::NoTensors(Vec::new())));
    }
    let mut shards: IndexSet<&str> = IndexSet::new();
    let mut places = IndexMap::with_capacity(index.weight_map.len());
    for (tensor, shard) in &index.weight_map {
        // An index is data from elsewhere: it may name files beside it, and no others.
        if shard.contains(['/', '\\']) || matches!(shard.as_str(), "" | "." | "..") {
            let problem =
                format!("names the file {} for tensor {}; it must lie beside the index", quoted(shard), quoted(tensor));
            return Err(fail("the index", problem));
        }
        let (place, _) = shards.insert_full(shard);
        places.insert(tensor.clone(), place);
    }
    let opened: Vec<WeightSet> = shards.iter().map(|shard| read_file(&folder.join(shard))).collect::<Result<_, _>>()?;
    WeightSet::of_shards(opened, places).map_err(|tensor| {
        let shard = index.weight_map.get(&tensor).map_or("", String::as_str);
        fail("the index", format!("says that tensor {} is in {}, and it is not", quoted(&tensor), quoted(shard)))
    })
}
