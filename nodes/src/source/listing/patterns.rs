//! All paths of one option.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::node::{Cancel, Fault, Item, SpecError, normalised};

use super::locators::Locators;
use super::pattern::Pattern;
use crate::source::files_glob::Glob;
use crate::source::files_walk::Walk;
use crate::source::no_match::no_match;
use crate::source::paths::OneOrMany;
use crate::store::{Location, StoreError, Stores};

/// What a list in braces is where there is no other wildcard in a local path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum Braces {
    /// The files that it names, each of which should be there.
    List,
    /// A part of a glob.
    Glob,
}

/// All paths of one option, made ready.
#[derive(Clone, Debug)]
pub(in crate::source) struct Patterns {
    pub(super) base: PathBuf,
    pub(super) patterns: Arc<[Pattern]>,
    /// The globs over local files among them.
    pub(super) globs: Arc<[Glob]>,
    secrets: Arc<[Location]>,
    /// As they may be shown.
    shown: Vec<String>,
}

impl Patterns {
    /// Reads the paths of the option `option`.
    ///
    /// # Errors
    /// If one is none.
    pub(in crate::source) fn parse(
        option: &str,
        paths: &OneOrMany,
        base: &Path,
        braces: Braces,
    ) -> Result<Self, SpecError> {
        let texts = paths.texts();
        if texts.is_empty() {
            return Err(SpecError::new("the list of paths is empty").at(&[option]));
        }
        let (mut patterns, mut secrets) = (Vec::new(), Vec::new());
        for (text_idx, text) in texts.iter().enumerate() {
            let pattern = Pattern::parse(text, base, braces, &mut secrets);
            patterns.push(pattern.map_err(|error| {
                let place = paths.place(option, text_idx);
                error.at(&place.iter().map(String::as_str).collect::<Vec<_>>())
            })?);
        }
        let globs = patterns.iter().filter_map(|pattern| match pattern {
            Pattern::Local(glob) => Some(glob.clone()),
            _ => None,
        });
        let globs = globs.collect();
        let shown =
            texts.iter().map(|text| if Location::is_url(text) { crate::store::redacted(text) } else { text.clone() });
        let shown = shown.collect();
        Ok(Patterns { base: base.to_owned(), patterns: patterns.into(), globs, secrets: secrets.into(), shown })
    }

    /// The paths in one line, without what is secret.
    pub(in crate::source) fn detail(&self) -> String {
        self.shown.join(", ")
    }

    /// What finds the items that are listed.
    pub(in crate::source) fn locators(&self, stores: &Stores) -> Locators {
        Locators { base: self.base.clone(), secrets: self.secrets.clone(), manifest: None, stores: stores.clone() }
    }

    /// Whether there is something to read, as far as that can be seen without asking a store.
    ///
    /// # Errors
    /// A glob over local files that matches none.
    pub(in crate::source) fn check(&self, cancel: &Cancel) -> Result<(), Fault> {
        for glob in self.globs.iter() {
            let mut walk = Walk::new(&self.base, [glob.clone()].into(), cancel.clone());
            if walk.next_item().is_none() && !cancel.is_draining() {
                return Err(no_match(glob, &self.base, cancel));
            }
        }
        Ok(())
    }

    /// The first file, for a look into it; none if there is none or a store would have to be listed.
    pub(in crate::source) fn first(&self) -> Option<Item> {
        match self.patterns.first()? {
            Pattern::Local(glob) => Walk::new(&self.base, [glob.clone()].into(), Cancel::new()).next_item(),
            Pattern::Named(named) => named.first().map(|named| named.item()),
            Pattern::Bucket(_) => None,
        }
    }

    /// Whether a bucket is listed.
    pub(in crate::source) fn has_buckets(&self) -> bool {
        self.patterns.iter().any(|pattern| matches!(pattern, Pattern::Bucket(_)))
    }

    /// Whether something is read from a store or a web server.
    pub(in crate::source) fn are_remote(&self) -> bool {
        self.patterns.iter().any(|pattern| match pattern {
            Pattern::Local(_) => false,
            Pattern::Bucket(_) => true,
            Pattern::Named(named) => named.iter().any(|named| Location::is_url(&named.uri)),
        })
    }

    /// Whether one of them is a local path that matches `path`.
    pub(in crate::source) fn reads(&self, path: &Path) -> bool {
        let path = normalised(path);
        self.patterns.iter().any(|pattern| match pattern {
            Pattern::Local(glob) => {
                let root = normalised(&self.base.join(&glob.prefix));
                glob.accepts(glob.places_of(&root, &path))
            }
            Pattern::Named(named) => named
                .iter()
                .any(|named| !Location::is_url(&named.uri) && normalised(&self.base.join(&named.locator)) == path),
            Pattern::Bucket(_) => false,
        })
    }
}

/// A mistake in a location as one in an option.
pub(in crate::source) fn spec_error(error: StoreError) -> SpecError {
    let spec = SpecError::new(error.to_string());
    match error.what_to_do() {
        Some(help) => spec.label(help.to_owned()),
        None => spec,
    }
}
