//! The files of `source.files`: those of its paths, then those of its manifest, without what is excluded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::node::{Counting, Fault, Item, List, SpecError, normalised};

use super::files_glob::Glob;
use super::listing::{Listed, bucket_key};
use super::manifest::Manifest;
use super::paths::OneOrMany;
use crate::store::Location;

/// Lists files.
pub(super) struct FilesList {
    pub(super) listed: Option<Listed>,
    pub(super) manifest: Option<Manifest>,
    pub(super) exclude: Exclude,
    is_behind_paths: bool,
}

impl FilesList {
    pub(super) fn new(listed: Option<Listed>, manifest: Option<Manifest>, exclude: Exclude) -> Self {
        FilesList { is_behind_paths: listed.is_none(), listed, manifest, exclude }
    }

    /// How many there are, unless counting is cancelled.
    pub(super) fn count(mut self, counting: &Counting) -> Option<u64> {
        let mut n_files = 0;
        let mut items = Vec::new();
        while !counting.cancel.is_draining() {
            self.next_items(256, &mut items).ok()?;
            if items.is_empty() {
                return Some(n_files);
            }
            n_files += items.len() as u64;
            counting.came_to(n_files);
            items.clear();
        }
        None
    }

    /// Appends items from the paths: none are left if none are appended.
    fn list_paths(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let Some(listed) = &mut self.listed else { return Ok(()) };
        let start = items.len();
        while items.len() == start {
            let before = items.len();
            listed.next_items(max, items)?;
            if items.len() == before {
                break;
            }
            let new = items.split_off(start);
            items.extend(new.into_iter().filter(|item| !self.exclude.matches(item)));
        }
        Ok(())
    }

    fn list_manifest(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let Some(manifest) = &mut self.manifest else { return Ok(()) };
        let start = items.len();
        while items.len() - start < max {
            match manifest.next_item()? {
                Some(item) if self.exclude.matches(&item) => {}
                Some(item) => items.push(item),
                None => break,
            }
        }
        Ok(())
    }
}

impl List for FilesList {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let start = items.len();
        if !self.is_behind_paths {
            self.list_paths(max, items)?;
            if items.len() > start {
                return Ok(());
            }
            self.is_behind_paths = true;
        }
        self.list_manifest(max, items)
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        if let Some(listed) = &mut self.listed {
            listed.seek(0)?;
        }
        if let Some(manifest) = &mut self.manifest {
            manifest.restart();
        }
        self.is_behind_paths = self.listed.is_none();
        let mut left = index;
        let mut items = Vec::new();
        while left > 0 {
            self.next_items(left.min(256) as usize, &mut items)?;
            if items.is_empty() {
                break;
            }
            left -= items.len() as u64;
            items.clear();
        }
        Ok(())
    }
}

/// What is left out.
#[derive(Clone, Debug)]
pub(super) struct Exclude {
    base: PathBuf,
    globs: Arc<[Glob]>,
}

impl Exclude {
    /// Reads the option `exclude`.
    ///
    /// # Errors
    /// If one of the globs is none.
    pub(super) fn parse(globs: Option<&OneOrMany>, base: &Path) -> Result<Self, SpecError> {
        let mut parsed = Vec::new();
        for (glob_idx, text) in globs.iter().flat_map(|globs| globs.texts()).enumerate() {
            let glob = Glob::parse(text).map_err(|error| {
                let place = globs.map_or_else(Vec::new, |globs| globs.place("exclude", glob_idx));
                error.at(&place.iter().map(String::as_str).collect::<Vec<_>>())
            });
            parsed.push(glob?);
        }
        Ok(Exclude { base: base.to_owned(), globs: parsed.into() })
    }

    fn matches(&self, item: &Item) -> bool {
        if self.globs.is_empty() {
            return false;
        }
        if Location::is_url(&item.uri) {
            let Ok(location) = Location::parse(&item.uri, &self.base) else { return false };
            return self.globs.iter().any(|glob| bucket_key(glob, &location));
        }
        let path = normalised(&self.base.join(&item.locator));
        self.globs.iter().any(|glob| glob.accepts(glob.places_of(&normalised(&self.base.join(&glob.prefix)), &path)))
    }
}
