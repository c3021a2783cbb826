//! Where the state of runs lies.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::config::Document;
use engine::journal::StateFolder;
use engine::node::{Registry, Shard};

use crate::args::Vars;
use crate::failure::{Failure, reason};
use crate::pipeline::from_here;

/// The folder beside pipelines that holds the states of their runs.
const STATES: &str = ".flowgpu";

/// One run, by where its state is or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The run's name, as far as the place tells it.
    pub(super) name: String,
    /// The state of the whole.
    pub(super) folder: StateFolder,
    /// The shards that have a state, in order.
    pub(super) shards: Vec<Shard>,
}

impl Place {
    /// The runs that `of` stands for: a pipeline file, or a folder.
    pub(super) fn all(of: &Path, vars: &Vars, registry: &Registry) -> Result<Vec<Place>, Failure> {
        if !of.is_dir() {
            return Ok(vec![Place::of_pipeline(of, vars, registry)?]);
        }
        let places = Place::in_folder(of).map_err(|error| {
            Failure::usage(format!("cannot read the folder `{}`: {}", of.display(), reason(&error)))
        })?;
        if places.is_empty() {
            return Err(Failure::Usage {
                message: format!("no run has its state in `{}`", of.display()),
                help: Some(format!(
                    "name a pipeline file, the folder of a run's state such as `{STATES}/NAME`, or a folder with `{STATES}` in it"
                )),
            });
        }
        Ok(places)
    }

    /// What is wrong with the nodes of the pipeline does not matter, unless there is nothing to show: it may be in the
    /// middle of being changed while its run goes on.
    fn of_pipeline(file: &Path, vars: &Vars, registry: &Registry) -> Result<Place, Failure> {
        let variable = |name: &str| env::var(name).ok();
        let document = Document::read_mistaken(file, &vars.set, &variable, registry)?;
        let place = Place::at(document.name.value.clone(), StateFolder::of_document(&document));
        let mistakes = document.mistakes();
        if !place.is_there() && !mistakes.is_empty() {
            return Err(mistakes.into());
        }
        Ok(place)
    }

    fn in_folder(folder: &Path) -> io::Result<Vec<Place>> {
        let named = |path: &Path| {
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let place = Place::at(named(folder), StateFolder::at(folder.to_owned()));
        if place.is_there() {
            return Ok(vec![place]);
        }
        let states = folder.join(STATES);
        let mut found = Vec::new();
        for entry in fs::read_dir(if states.is_dir() { &states } else { folder })? {
            let path = entry?.path();
            let place = Place::at(named(&path), StateFolder::at(path));
            if place.is_there() {
                found.push(place);
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn at(name: String, folder: StateFolder) -> Place {
        let entries = fs::read_dir(folder.path()).into_iter().flatten().flatten();
        let mut shards: Vec<_> = entries.filter_map(|entry| shard(entry.file_name().to_str()?)).collect();
        // The same part of the same whole is there once: two names of one shard cannot be.
        shards.sort_by_key(|shard| (shard.of, shard.index));
        Place { name, folder, shards }
    }

    /// Whether there is any state.
    fn is_there(&self) -> bool {
        !self.shards.is_empty() || self.folder.journal().exists() || self.folder.lock().exists()
    }

    /// The state of one shard.
    pub(super) fn shard(&self, shard: Shard) -> StateFolder {
        StateFolder::at(self.folder.path().join(shard.to_string()))
    }

    /// The folder as one would write it here.
    pub(super) fn shown(folder: &StateFolder) -> PathBuf {
        from_here(folder.path())
    }
}

/// The shard that a folder is named after.
fn shard(name: &str) -> Option<Shard> {
    let (index, of) = name.split_once("-of-")?;
    let shard = Shard { index: index.parse().ok()?, of: of.parse().ok()? };
    (shard.index < shard.of && shard.to_string() == name).then_some(shard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_names_of_their_own() {
        assert_eq!(shard("00003-of-00016"), Some(Shard { index: 3, of: 16 }));
        for name in ["3-of-16", "00016-of-00016", "of-00016", "listing.0.gz", "00003-of-00016.old", "+0003-of-00016"] {
            assert_eq!(shard(name), None, "{name}");
        }
    }

    #[test]
    fn a_folder_is_a_state_or_has_states_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let check = |of: &str, expected: &[&str]| {
            let found = Place::in_folder(&root.join(of)).unwrap();
            assert_eq!(found.iter().map(|place| &*place.name).collect::<Vec<_>>(), expected, "{of}");
        };
        check("", &[]);
        for name in ["b", "a", "empty", "parts/00001-of-00002", "parts/00000-of-00002"] {
            fs::create_dir_all(root.join(STATES).join(name)).unwrap();
        }
        fs::write(root.join(".flowgpu/b/journal"), "").unwrap();
        fs::write(root.join(".flowgpu/a/lock"), "").unwrap();
        fs::write(root.join(".flowgpu/stray"), "").unwrap();
        check("", &["a", "b", "parts"]);
        check(".flowgpu", &["a", "b", "parts"]);
        check(".flowgpu/b", &["b"]);
        check(".flowgpu/b/../a", &["a"]);
        check(".flowgpu/empty", &[]);
        let parts = Place::in_folder(&root.join(".flowgpu/parts")).unwrap();
        assert_eq!(parts[0].shards, [0, 1].map(|index| Shard { index, of: 2 }));
    }
}
