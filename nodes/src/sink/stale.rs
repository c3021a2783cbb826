//! What an older run has left beside the parts of a new one.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use engine::durable::disk;
use engine::node::{Fault, Sealed, numbered};

use super::objects::{SinkStore, is_object, location};
use super::rotate::Rotate;

/// Removes parts with higher numbers than those of a complete run: an older one had more. `outputs` are all parts; where the
/// output is not divided, there is nothing to do.
pub(super) fn remove_stale(
    base: &Path,
    outputs: &[Sealed],
    rotate: Option<Rotate>,
    store: &SinkStore,
) -> Result<(), Fault> {
    if rotate.is_none() {
        return Ok(());
    }
    for (family, last) in last_parts(outputs) {
        if is_object(&family.folder) {
            remove_stale_objects(&family, last, store)?;
            continue;
        }
        let folder = base.join(&family.folder);
        let failed = |error| Fault::io("read the folder", &folder, &error);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let Some(name) = name.to_str() else { continue };
            let unfinished = name.strip_prefix('.').and_then(|name| name.strip_suffix(".partial"));
            if family.number_of(unfinished.unwrap_or(name)).is_some_and(|number| number > last) {
                disk::remove(&folder.join(name))?;
            }
        }
    }
    Ok(())
}

fn remove_stale_objects(family: &Family, last: u32, store: &SinkStore) -> Result<(), Fault> {
    let stores = store.stores();
    let prefix = location(&format!("{}{}-", family.folder, family.stem))?;
    for page in stores.list(&prefix)? {
        for (object, _) in page? {
            // What lies in a folder whose name begins in the same way is none of ours.
            let is_beside = object.key().strip_prefix(&*prefix.key()).is_some_and(|rest| !rest.contains('/'));
            if is_beside && family.number_of(&object.name()).is_some_and(|number| number > last) {
                stores.remove(&object)?;
            }
        }
    }
    Ok(())
}

/// Names that differ by the number of the part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Family {
    /// The folder, with its slash.
    pub(super) folder: String,
    pub(super) stem: String,
    pub(super) extension: String,
}

impl Family {
    /// The number of the part that the file `name` is, if it is one.
    pub(super) fn number_of(&self, name: &str) -> Option<u32> {
        let (stem, number, extension) = numbered(name)?;
        (stem == self.stem && extension == self.extension).then_some(number)
    }
}

/// The families of names among `outputs`, each with its highest number.
pub(super) fn last_parts(outputs: &[Sealed]) -> BTreeMap<Family, u32> {
    let mut last = BTreeMap::new();
    for output in outputs {
        let at = output.path.rfind('/').map_or(0, |slash| slash + 1);
        let (folder, name) = output.path.split_at(at);
        let Some((stem, number, extension)) = numbered(name) else { continue };
        let family = Family { folder: folder.to_owned(), stem: stem.to_owned(), extension: extension.to_owned() };
        let highest = last.entry(family).or_insert(number);
        *highest = number.max(*highest);
    }
    last
}

#[cfg(test)]
mod tests {
    use engine::node::Place;

    use super::*;

    #[test]
    fn only_parts_of_the_same_output_with_higher_numbers_go() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("out")).unwrap();
        let touch = |name: &str| fs::write(folder.path().join("out").join(name), "x").unwrap();
        let stay = [
            "e-00000.parquet",
            "e-00001.parquet",
            "e-00002.csv",
            "e-00003-of-00016.parquet",
            "e-00003-of-00016-00002.parquet",
            "f-00002.parquet",
            "e-2.parquet",
            "e.parquet",
        ];
        let go = ["e-00002.parquet", "e-00010.parquet", ".e-00002.parquet.partial"];
        stay.iter().chain(&go).for_each(|name| touch(name));
        let sealed = |number: u32| {
            let path = format!("out/e-{number:05}.parquet");
            Sealed { path, spooled: None, rows: 1, bytes: 1, place: Place::File }
        };
        let rotate = Some(Rotate::default());
        remove_stale(folder.path(), &[sealed(0), sealed(1)], rotate, &SinkStore::default()).unwrap();
        let mut left: Vec<_> = fs::read_dir(folder.path().join("out"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected = stay;
        expected.sort();
        assert_eq!(left, expected);
    }
}
