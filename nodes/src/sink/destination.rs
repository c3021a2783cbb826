//! Where an output goes: a file beside which it grows, or an object of a store, for which it grows in the spool.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use engine::durable::{Partial, STDOUT, partial_path};
use engine::node::{BuildCx, Fault, Place, Sealed, is_url, named_with, normalised};

/// Where an output and its parts go.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    /// The path or URL as the user wrote it, of this run or shard.
    path: String,
    base: PathBuf,
    spool: PathBuf,
    parts: Parts,
}

/// Whether an output has parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    /// It is one.
    One,
    /// It is any number of them, with numbers in their names.
    Numbered,
}

impl Parts {
    /// Those of an output that is divided by an option, if that is there.
    pub(super) fn of<T>(rotate: Option<T>) -> Self {
        if rotate.is_some() { Parts::Numbered } else { Parts::One }
    }
}

/// What becomes of the local file of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spooled {
    /// It goes when the object is there.
    Goes,
    /// It stays, so that the run can be gone on with.
    Stays,
}

impl Destination {
    /// Of the output that is written as `path`.
    pub(super) fn new(cx: &BuildCx<'_>, path: &str, parts: Parts) -> Self {
        Destination { path: cx.output(path), base: cx.base.to_owned(), spool: cx.spool.clone(), parts }
    }

    /// The path or URL of part number `part`.
    pub(super) fn name(&self, part: u32) -> String {
        match self.parts {
            Parts::One => self.path.clone(),
            Parts::Numbered => named_with(&self.path, &format!("-{part:05}")),
        }
    }

    /// Opens what is going to be `name`.
    pub(super) fn open(&self, name: &str) -> Result<Partial, Fault> {
        Partial::open(name, &self.local(name))
    }

    /// Where what is going to be `name` grows; nothing for standard output.
    pub(super) fn unfinished(&self, name: &str) -> Option<PathBuf> {
        (name != STDOUT).then(|| partial_path(&self.local(name)))
    }

    /// What is complete, as it is published.
    pub(super) fn sealed(&self, sealed: Sealed, spooled: Spooled) -> Result<Sealed, Fault> {
        if !is_url(Path::new(&sealed.path)) {
            return Ok(sealed);
        }
        let partial = partial_path(&self.local(&sealed.path));
        let local = match spooled {
            Spooled::Goes => partial,
            Spooled::Stays => {
                let mut second = OsString::from(&partial);
                second.push(".upload");
                let second = PathBuf::from(second);
                second_name(&partial, &second)?;
                second
            }
        };
        let local = local.strip_prefix(&self.base).unwrap_or(&local).to_owned();
        let spooled = local.into_os_string().into_string().map_err(|path| {
            Fault::permanent(format!("the folder of the run's state, {}, is not UTF-8", path.display()))
                .help("put it elsewhere: `run: {state: PATH}`")
        })?;
        Ok(Sealed { spooled: Some(spooled), place: Place::Object, ..sealed })
    }

    /// The local path of `name`.
    fn local(&self, name: &str) -> PathBuf {
        if is_url(Path::new(name)) {
            let file = name.rsplit('/').next().unwrap_or(name);
            return self.spool.join(file);
        }
        self.base.join(name)
    }
}

/// Gives a file a second name; where the file system has none, makes a copy.
fn second_name(file: &Path, second: &Path) -> Result<(), Fault> {
    engine::durable::disk::remove(second)?;
    let named = fs::hard_link(file, second).or_else(|_| fs::copy(file, second).map(drop));
    named.map_err(|error| Fault::io("create", second, &error))
}

/// The files or objects that a sink with the option `path` gives their final names.
pub(super) fn final_paths(base: &Path, path: &str) -> Vec<PathBuf> {
    match path {
        STDOUT => Vec::new(),
        url if is_url(Path::new(url)) => vec![PathBuf::from(url)],
        path => vec![normalised(&base.join(path))],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::data::HeapPool;
    use engine::node::NodeSpec;

    use super::*;

    fn destination(folder: &Path, path: &str, parts: Parts) -> Destination {
        let spec = NodeSpec::default();
        let cx = BuildCx::alone("node", &[], &spec, folder, Arc::new(HeapPool::new()));
        Destination::new(&cx, path, parts)
    }

    #[test]
    fn parts_have_numbers_before_their_endings() {
        let check = |path: &str, parts, expected: &str| {
            assert_eq!(destination(Path::new("/base"), path, parts).name(3), expected);
        };
        check("out/e.parquet", Parts::One, "out/e.parquet");
        check("out/e.parquet", Parts::Numbered, "out/e-00003.parquet");
        check("s3://bucket/out/labels.jsonl.gz", Parts::Numbered, "s3://bucket/out/labels-00003.jsonl.gz");
    }

    #[test]
    fn an_object_grows_in_the_spool_and_may_stay_there() {
        let folder = tempfile::tempdir().unwrap();
        let place = destination(folder.path(), "s3://bucket/out/x.jsonl", Parts::One);
        for (spooled, expected) in [(Spooled::Stays, ".x.jsonl.partial.upload"), (Spooled::Goes, ".x.jsonl.partial")] {
            let mut out = place.open(&place.name(0)).unwrap();
            out.buffer().extend_from_slice(b"abc");
            let sealed = place.sealed(out.seal(1).unwrap(), spooled).unwrap();
            assert_eq!(
                (sealed.path.as_str(), sealed.place, sealed.bytes),
                ("s3://bucket/out/x.jsonl", Place::Object, 3)
            );
            let local = sealed.spooled.unwrap();
            assert_eq!(local, format!(".flowgpu/alone/{expected}"));
            assert_eq!(fs::read(folder.path().join(local)).unwrap(), b"abc");
        }
    }

    #[test]
    fn what_is_written_is_known_before_the_run() {
        let base = Path::new("/base");
        assert_eq!(final_paths(base, "./out/../o.jsonl"), [PathBuf::from("/base/o.jsonl")]);
        assert_eq!(final_paths(base, "s3://bucket/o.jsonl"), [PathBuf::from("s3://bucket/o.jsonl")]);
        assert!(final_paths(base, "-").is_empty());
    }
}
