//! From an unpickled object to the tensors of a model.
//!
//! Most files hold the state dict itself. Checkpoints of training hold it under a name, beside optimisers and epochs;
//! where there are averaged weights (EMA), those are what the training was for, and are taken.

use indexmap::IndexMap;

use super::error::WeightsFault;
use super::layout::{Layout, Region};
use super::pickle::{MAX_NAME, Pickle, StorageRef, TensorRef, Value};

/// In order of preference.
const WRAPPERS: [&str; 5] = ["state_dict_ema", "model_ema", "state_dict", "model", "module"];
const MAX_WRAPPERS: usize = 4;

/// The layouts of all tensors in `pickle`, `region` saying where the elements of a storage lie.
pub(super) fn layouts(
    pickle: &Pickle<'_>,
    region: impl Fn(&StorageRef<'_>) -> Result<Region, WeightsFault>,
) -> Result<IndexMap<String, Layout>, WeightsFault> {
    let mut layouts = IndexMap::new();
    for (name, tensor) in tensors(pickle)? {
        if name.len() > MAX_NAME {
            return Err(WeightsFault::tensor(name, format!("has a name of {} bytes", name.len())));
        }
        let region = view(region(&tensor.storage)?, &tensor.storage)
            .ok_or_else(|| WeightsFault::tensor(name, "is a view that reaches out of its storage"))?;
        let layout = Layout::strided(name, tensor.shape.clone(), &tensor.strides, tensor.offset, &region)?;
        layouts.insert(name.to_string(), layout);
    }
    Ok(layouts)
}

/// The part of a storage's bytes that a view of it is.
fn view(region: Region, storage: &StorageRef<'_>) -> Option<Region> {
    let Some((offset, n_elements)) = storage.view else {
        return Some(region);
    };
    let size = region.element.size();
    let start = region.bytes.start.checked_add(offset.checked_mul(size)?)?;
    let end = start.checked_add(n_elements.checked_mul(size)?)?;
    (end <= region.bytes.end).then_some(Region { bytes: start..end, ..region })
}

fn tensors<'p, 'a>(pickle: &'p Pickle<'a>) -> Result<Vec<(&'a str, &'p TensorRef<'a>)>, WeightsFault> {
    let mut dict = pickle.root();
    for _ in 0..=MAX_WRAPPERS {
        let tensors: Vec<_> = pickle
            .items(dict)
            .filter_map(|(name, value)| if let Value::Tensor(tensor) = value { Some((name, &**tensor)) } else { None })
            .collect();
        if !tensors.is_empty() {
            return Ok(tensors);
        }
        let is_filled = |value: &Value<'_>| matches!(value, Value::Dict(pairs) if !pairs.is_empty());
        let wrapped = |wrapper: &&str| {
            let mut items = pickle.items(dict);
            items.find(|(name, value)| name == wrapper && is_filled(value))
        };
        match WRAPPERS.iter().find_map(wrapped) {
            Some((_, inner)) => dict = inner,
            None => break,
        }
    }
    // Enough for a message; a hostile file may have any number, each of any length.
    let keys = pickle.items(dict).map(|(name, _)| name).filter(|name| name.len() <= MAX_NAME);
    Err(WeightsFault::NoTensors(keys.take(100).map(String::from).collect()))
}
