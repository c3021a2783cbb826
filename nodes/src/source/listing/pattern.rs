//! One path as written in a pipeline file: a glob over local files, one over a bucket, or files by name.

use std::ffi::OsString;
use std::path::Path;

use engine::node::{Item, SpecError};

use super::braces;
use super::locators::{has_secrets, secret};
use super::patterns::{Braces, spec_error};
use crate::source::files_glob::Glob;
use crate::store::Location;

/// What a path stands for.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// Local files that a glob matches. What has no wildcard is a glob too, which matches one file or nothing.
    Local(Glob),
    /// Objects of a bucket that a glob matches.
    Bucket(BucketGlob),
    /// Files by name, whether they are there or not.
    Named(Vec<Named>),
}

/// A file by name.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) uri: String,
    pub(super) locator: OsString,
}

impl Named {
    pub(super) fn item(&self) -> Item {
        Item { uri: self.uri.clone(), id: None, locator: self.locator.clone(), size_hint: 0 }
    }
}

/// A glob over the keys of a bucket.
#[derive(Clone, Debug)]
pub(super) struct BucketGlob {
    /// As written.
    pub(super) text: String,
    /// The part that all keys begin with, so that no others are listed.
    pub(super) prefix: Location,
    /// `s3://bucket/`.
    bucket: String,
    glob: Glob,
}

impl BucketGlob {
    fn parse(text: &str) -> Result<Self, SpecError> {
        let scheme = text.find("://").map_or(0, |at| at + 3);
        let key_at = text[scheme..].find('/').map_or(text.len(), |at| scheme + at + 1);
        let (bucket, key) = text.split_at(key_at);
        if is_wild(bucket) {
            return Err(SpecError::new(format!("`{text}`: the name of a bucket has no wildcards")));
        }
        let prefix = Location::parse(&text[..key_at + literal_start(key)], Path::new("/")).map_err(spec_error)?;
        Ok(BucketGlob { text: text.to_owned(), prefix, bucket: bucket.to_owned(), glob: Glob::parse(key)? })
    }

    /// Whether it matches the object at `location`.
    pub(super) fn matches(&self, location: &Location) -> bool {
        let Ok(bucket) = Location::parse(&self.bucket, Path::new("/")) else { return false };
        if !location.to_string().starts_with(&bucket.to_string()) {
            return false;
        }
        bucket_key(&self.glob, location)
    }
}

/// Whether `glob` matches the key of an object. What ends with a slash is a folder's mark.
pub(in crate::source) fn bucket_key(glob: &Glob, location: &Location) -> bool {
    let key = location.key();
    if key.ends_with('/') {
        return false;
    }
    // What cannot be named is matched by its other parts, so that it is told and not passed over.
    let is_odd = |part: &str| matches!(part, "" | "." | "..");
    let path = match key.split('/').any(is_odd) {
        true => key.split('/').filter(|part| !is_odd(part)).collect::<Vec<_>>().join("/").into(),
        false => key,
    };
    glob.accepts(glob.places_of(Path::new(&glob.prefix), Path::new(&*path)))
}

impl Pattern {
    /// Reads what was written. URLs with something secret in them are put into `secrets`.
    pub(super) fn parse(
        text: &str,
        base: &Path,
        braces: Braces,
        secrets: &mut Vec<Location>,
    ) -> Result<Self, SpecError> {
        if !Location::is_url(text) {
            let is_list = braces == Braces::List && braces::has_list(text) && !is_wild_but_for_braces(text);
            if !is_list {
                return Ok(Pattern::Local(Glob::parse(&ranges_as_lists(text)?)?.written_as(text)));
            }
            let named = words(text)?.into_iter().map(|word| {
                let uri = tidy(&word);
                Named { locator: (&uri).into(), uri }
            });
            return Ok(Pattern::Named(named.collect()));
        }
        let is_web = text.starts_with("http://") || text.starts_with("https://");
        let path_end = if is_web { text.find(['?', '#']).unwrap_or(text.len()) } else { text.len() };
        let is_wild = if is_web { text[..path_end].contains('*') } else { is_wild_but_for_braces(text) };
        if is_wild && is_web {
            let shown = Location::parse(text, base).map_err(spec_error)?;
            return Err(SpecError::new(format!("`{shown}` cannot be listed: a web server has no listing"))
                .label("name the files: a list in braces such as `{000..099}`"));
        }
        if let Some(path) = text.strip_prefix("file://") {
            if !path.starts_with('/') {
                // What stands there is a host, or somebody's name and password.
                let location = Location::parse(text, base).map_err(spec_error)?;
                let uri = location.to_string();
                return Ok(Pattern::Named(vec![Named { locator: (&uri).into(), uri }]));
            }
            return Pattern::parse(path, base, braces, secrets);
        }
        if is_wild {
            let glob = BucketGlob::parse(&ranges_as_lists(text)?)?;
            return Ok(Pattern::Bucket(BucketGlob { text: text.to_owned(), ..glob }));
        }
        let mut named = Vec::new();
        for word in words(text)? {
            let location = Location::parse(&word, base).map_err(spec_error)?;
            let uri = location.to_string();
            if has_secrets(&location) {
                named.push(Named { locator: secret(secrets.len()), uri });
                secrets.push(location);
            } else {
                named.push(Named { locator: (&uri).into(), uri });
            }
        }
        Ok(Pattern::Named(named))
    }
}

fn words(text: &str) -> Result<Vec<String>, SpecError> {
    braces::expand(text).ok_or_else(|| too_many(text))
}

fn ranges_as_lists(text: &str) -> Result<String, SpecError> {
    braces::with_ranges_as_lists(text).ok_or_else(|| too_many(text))
}

fn too_many(text: &str) -> SpecError {
    let shown = crate::store::redacted(text);
    SpecError::new(format!("`{shown}` stands for more than {} files", braces::MAX_WORDS))
}

/// A path without `.` and doubled slashes, as one would write it.
pub(in crate::source) fn tidy(path: &str) -> String {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

fn is_wild(text: &str) -> bool {
    text.contains(['*', '?', '[', '{', '\\'])
}

fn is_wild_but_for_braces(text: &str) -> bool {
    text.contains(['*', '?', '[', '\\'])
}

/// Bytes before the first wildcard.
fn literal_start(key: &str) -> usize {
    key.find(['*', '?', '[', '{', '\\']).unwrap_or(key.len())
}
