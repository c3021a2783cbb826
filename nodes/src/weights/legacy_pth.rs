//! What `torch.save` wrote before torch 1.6, and writes still if asked: five pickles (a magic number, a version, facts of
//! the machine, the object, the storages' keys), then for each key its number of elements and their bytes.

use indexmap::IndexMap;

use super::element::Element;
use super::error::{WeightsFault, grouped, quoted};
use super::layout::{Layout, Region};
use super::pickle::{Pickle, Value};
use super::state_dict;

const MAGIC: i128 = 0x1950_a86a_20f9_469c_fc6c;
const MAGIC_BYTES: &[u8] = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
const VERSION: i128 = 1001;

/// Whether a pickle of torch's magic number is at the beginning.
pub(super) fn is_legacy(bytes: &[u8]) -> bool {
    let beginning = &bytes[..bytes.len().min(32)];
    beginning.first() == Some(&0x80) && beginning.windows(MAGIC_BYTES.len()).any(|window| window == MAGIC_BYTES)
}

/// The tensors of a legacy `.pth`, in the order of its state dict.
pub(super) fn read_header(file: &[u8]) -> Result<IndexMap<String, Layout>, WeightsFault> {
    let mut at = 0;
    if next(file, &mut at)?.root() != &Value::Int(MAGIC) {
        return Err(WeightsFault::malformed("the file", "does not begin with torch's magic number"));
    }
    let version = next(file, &mut at)?;
    if version.root() != &Value::Int(VERSION) {
        return Err(WeightsFault::malformed(
            "the file",
            format!("is not of version {VERSION} but {:?}", version.root()),
        ));
    }
    let machine = next(file, &mut at)?;
    if machine.items(machine.root()).any(|(name, value)| name == "little_endian" && value != &Value::Bool(true)) {
        return Err(WeightsFault::malformed("the file", "was written on a big-endian machine, which is not read"));
    }
    let object = next(file, &mut at)?;
    let keys = next(file, &mut at)?;
    let regions = regions(file, at, &object, &keys)?;
    state_dict::layouts(&object, |storage| {
        let part = || format!("storage {}", quoted(storage.key));
        let region = regions.get(storage.key);
        region.cloned().ok_or_else(|| WeightsFault::malformed(part(), "is named by a tensor and missing in the file"))
    })
}

fn next<'a>(file: &'a [u8], at: &mut usize) -> Result<Pickle<'a>, WeightsFault> {
    let (pickle, end) = Pickle::read(file, *at)?;
    *at = end;
    Ok(pickle)
}

/// Where each storage's elements are, the first count being at byte `at`.
fn regions<'a>(
    file: &[u8],
    mut at: usize,
    object: &Pickle<'a>,
    keys: &Pickle<'a>,
) -> Result<IndexMap<&'a str, Region>, WeightsFault> {
    let expected = expected(object)?;
    let Value::List(keys_in_order) = keys.root() else {
        return Err(WeightsFault::malformed("the list of storages", "is not a list"));
    };
    let mut regions = IndexMap::with_capacity(expected.len());
    for key in keys_in_order {
        let Value::Text(key) = *keys.get(*key) else {
            return Err(WeightsFault::malformed("the list of storages", "holds something other than keys"));
        };
        let part = || format!("storage {}", quoted(key));
        let truncated = |end: u64| WeightsFault::Truncated { part: part(), end, len: file.len() as u64 };
        let Some((element, n_elements)) = expected.get(key).copied() else {
            return Err(WeightsFault::malformed(part(), "belongs to no tensor, so that its type is unknown"));
        };
        let Some((count, _)) = file[at..].split_first_chunk::<8>() else {
            return Err(truncated(at as u64 + 8));
        };
        let count = i64::from_le_bytes(*count);
        if usize::try_from(count) != Ok(n_elements) {
            let problem = format!("has {count} elements, and its tensors expect {}", grouped(n_elements as u64));
            return Err(WeightsFault::malformed(part(), problem));
        }
        at += 8;
        let end = n_elements.checked_mul(element.size()).and_then(|n_bytes| n_bytes.checked_add(at));
        let end =
            end.filter(|end| *end <= file.len()).ok_or_else(|| truncated(end.map_or(u64::MAX, |end| end as u64)))?;
        if regions.insert(key, Region { element, bytes: at..end }).is_some() {
            return Err(WeightsFault::malformed(part(), "stands twice in the file"));
        }
        at = end;
    }
    Ok(regions)
}

/// What the tensors say of each storage: its type and number of elements.
fn expected<'a>(object: &Pickle<'a>) -> Result<IndexMap<&'a str, (Element, usize)>, WeightsFault> {
    let mut expected = IndexMap::new();
    for storage in object.storages() {
        let says = (storage.element, storage.n_elements);
        if *expected.entry(storage.key).or_insert(says) != says {
            let problem = "is described in two different ways";
            return Err(WeightsFault::malformed(format!("storage {}", quoted(storage.key)), problem));
        }
    }
    Ok(expected)
}
