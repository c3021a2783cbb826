//! What `torch.save` writes since torch 1.6: a zip archive with the pickle as `NAME/data.pkl` and each storage's bytes as
//! `NAME/data/KEY`, all stored without compression, so that they are used where they lie in the file.
//!
//! Names in the archive are only compared, never made into paths, and nothing is unpacked: an archive of compressed
//! entries, which may be small and unpack to any size, is refused.

use std::io::Cursor;
use std::ops::Range;

use indexmap::IndexMap;
use zip::{CompressionMethod, ZipArchive};

use super::error::{WeightsFault, grouped, listed, quoted};
use super::layout::{Layout, Region};
use super::pickle::{Pickle, StorageRef};
use super::state_dict;

const PICKLE: &str = "/data.pkl";

/// Whether the first bytes are those of a zip archive.
pub(super) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// The tensors of a zip `.pth`, in the order of its state dict.
pub(super) fn read_header(file: &[u8]) -> Result<IndexMap<String, Layout>, WeightsFault> {
    let entries = entries(file)?;
    let folder = folder(&entries)?;
    if entries.contains_key(&format!("{folder}/constants.pkl")) {
        let problem =
            "is a TorchScript program, of which only torch can make sense; save the model's `state_dict()` instead";
        return Err(WeightsFault::malformed("the archive", problem));
    }
    if let Some(order) = entries.get(&format!("{folder}/byteorder"))
        && &file[stored("byteorder", order)?] != b"little"
    {
        return Err(WeightsFault::malformed("the archive", "was written on a big-endian machine, which is not read"));
    }
    let pickle = stored("data.pkl", &entries[&format!("{folder}{PICKLE}")])?;
    let (pickle, _) = Pickle::read(&file[..pickle.end], pickle.start)?;
    state_dict::layouts(&pickle, |storage| region(&entries, folder, storage))
}

enum Entry {
    Stored(Range<usize>),
    Unusable(String),
}

/// Where every entry's bytes are in the file.
fn entries(file: &[u8]) -> Result<IndexMap<String, Entry>, WeightsFault> {
    let fail = |error: zip::result::ZipError| {
        let problem = format!("has no readable directory at its end ({error}): the file is probably cut off");
        WeightsFault::malformed("the archive", problem)
    };
    let mut archive = ZipArchive::new(Cursor::new(file)).map_err(fail)?;
    let mut entries = IndexMap::with_capacity(archive.len());
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(fail)?;
        let name = entry.name().map_err(fail)?.into_owned();
        let end = entry.data_start().and_then(|start| start.checked_add(entry.size()));
        let place = if entry.encrypted() {
            Entry::Unusable("is encrypted".into())
        } else if entry.compression() != CompressionMethod::Stored {
            let unpacked = grouped(entry.size());
            Entry::Unusable(format!(
                "is compressed ({unpacked} bytes when unpacked), and torch stores entries as they are"
            ))
        } else if entry.size() != entry.compressed_size() {
            Entry::Unusable("has two different sizes".into())
        } else if let (Some(start), Some(end)) = (entry.data_start(), end.filter(|end| *end <= file.len() as u64)) {
            Entry::Stored(start as usize..end as usize)
        } else {
            let end = end.unwrap_or(u64::MAX);
            return Err(WeightsFault::Truncated {
                part: format!("entry {}", quoted(&name)),
                end,
                len: file.len() as u64,
            });
        };
        entries.insert(name, place);
    }
    Ok(entries)
}

/// The folder in the archive that holds everything; its name is that of the file when it was saved.
fn folder(entries: &IndexMap<String, Entry>) -> Result<&str, WeightsFault> {
    let mut folders =
        entries.keys().filter_map(|name| name.strip_suffix(PICKLE)).filter(|folder| !folder.contains('/'));
    match (folders.next(), folders.next()) {
        (Some(folder), None) => Ok(folder),
        (None, _) => {
            let names: Vec<String> = entries.keys().cloned().collect();
            let problem = format!("has no `data.pkl`, so it was not made by `torch.save`; it holds {}", listed(&names));
            Err(WeightsFault::malformed("the archive", problem))
        }
        (Some(_), Some(_)) => Err(WeightsFault::malformed("the archive", "has several `data.pkl`")),
    }
}

fn stored(name: &str, entry: &Entry) -> Result<Range<usize>, WeightsFault> {
    match entry {
        Entry::Stored(place) => Ok(place.clone()),
        Entry::Unusable(why) => Err(WeightsFault::malformed(format!("entry {}", quoted(name)), why.as_str())),
    }
}

fn region(entries: &IndexMap<String, Entry>, folder: &str, storage: &StorageRef<'_>) -> Result<Region, WeightsFault> {
    let part = || format!("storage {}", quoted(storage.key));
    let Some(entry) = entries.get(&format!("{folder}/data/{}", storage.key)) else {
        return Err(WeightsFault::malformed(part(), "is named in `data.pkl` and missing in the archive"));
    };
    let bytes = stored(storage.key, entry)?;
    if storage.n_elements.checked_mul(storage.element.size()).is_none_or(|n_bytes| n_bytes > bytes.len()) {
        let problem = format!(
            "should hold {} elements of {:?} and has {} bytes",
            grouped(storage.n_elements as u64),
            storage.element,
            grouped(bytes.len() as u64)
        );
        return Err(WeightsFault::malformed(part(), problem));
    }
    Ok(Region { element: storage.element, bytes })
}
