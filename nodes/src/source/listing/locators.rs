//! What an item's locator stands for.
//!
//! A locator is a path relative to the pipeline file, an absolute path, or a URL. It is noted on disk with the listing, so
//! a URL with something secret in it (user info, a query string) is none: such a one is written as a number, of a URL in
//! the pipeline file, or as the place of a line in a manifest.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::data::{Reject, code};
use engine::node::{Item, Stamp};

use super::stamps::Now;
use crate::store::{Location, StoreError, Stores};

/// Finds what locators stand for.
#[derive(Clone, Debug)]
pub(in crate::source) struct Locators {
    /// The folder that relative paths start from.
    pub(in crate::source) base: PathBuf,
    /// The URLs of the pipeline file that have something secret in them.
    pub(in crate::source) secrets: Arc<[Location]>,
    /// The list file, if there is one.
    pub(in crate::source) manifest: Option<Location>,
    /// How objects are reached.
    pub(in crate::source) stores: Stores,
}

/// Marks what is no path: a path has no NUL in it.
const MARK: u8 = 0;

/// The locator of number `number` of the pipeline file's URLs that are secret.
pub(super) fn secret(number: usize) -> OsString {
    OsString::from(format!("\0{number}"))
}

/// The locator of a line of the manifest.
pub(in crate::source) fn secret_line(start: u64, end: u64) -> OsString {
    OsString::from(format!("\0{start}-{end}"))
}

/// The locator of a line that is no location, because of `error`.
pub(in crate::source) fn unreadable(error: &StoreError) -> OsString {
    OsString::from(format!("\0!{error}"))
}

/// Whether a location has something in it that must not be shown.
pub(in crate::source) fn has_secrets(location: &Location) -> bool {
    !location.is_local() && Location::parse(&location.to_string(), Path::new("/")).as_ref() != Ok(location)
}

impl Locators {
    /// Where `item` is.
    ///
    /// # Errors
    /// A list file or a pipeline file that is another one than when the item was listed.
    pub(in crate::source) fn location(&self, item: &Item) -> Result<Location, Reject> {
        let bytes = item.locator.as_bytes();
        if let Some((&MARK, rest)) = bytes.split_first() {
            let text = std::str::from_utf8(rest).unwrap_or_default();
            if let Some(message) = text.strip_prefix('!') {
                return Err(Reject::new(code::UNSUPPORTED, message));
            }
            let found = self.secret(text);
            return match found.transpose()? {
                Some(location) if location.to_string() == item.uri => Ok(location),
                _ => Err(Reject::new(code::NOT_FOUND, format!("`{}` is not in the list of URLs any more", item.uri))),
            };
        }
        match item.locator.to_str() {
            Some(text) if Location::is_url(text) => Ok(Location::parse(text, &self.base)?),
            _ => Ok(Location::local(self.base.join(&item.locator))),
        }
    }

    /// What `item` is now, without reading it.
    pub(in crate::source) fn stamp(&self, item: &Item) -> Stamp {
        let meta = self.location(item).ok().and_then(|location| self.stores.stat(&location).ok());
        meta.map_or(Stamp::NONE, |meta| meta.stamp())
    }

    /// What items are now, in the order in which they were listed; `None` where a store does not say. Of a bucket the pages
    /// of its listing are read, which say it of a thousand at once.
    pub(in crate::source) fn stamps(&self, items: &[Item]) -> Vec<Option<Stamp>> {
        let places: Vec<_> = items.iter().map(|item| self.location(item).ok()).collect();
        let mut now = Now::new(&self.stores, &places);
        now.list();
        now.ask();
        now.stamps
    }

    fn secret(&self, text: &str) -> Option<Result<Location, Reject>> {
        let Some((start, end)) = text.split_once('-') else {
            return self.secrets.get(text.parse::<usize>().ok()?).cloned().map(Ok);
        };
        let (start, end) = (start.parse::<u64>().ok()?, end.parse::<u64>().ok()?);
        let manifest = self.manifest.as_ref()?;
        let line = match self.stores.read_range(manifest, start..end) {
            Ok(line) => line,
            Err(error) => return Some(Err(error.into())),
        };
        let line = std::str::from_utf8(&line).ok()?;
        Location::parse(line.trim(), &self.base).ok().map(Ok)
    }
}
