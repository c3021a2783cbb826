//! A place: a local path or a URL.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::node::normalised;
use percent_encoding::percent_decode_str;
use url::Url;

use super::error::{ErrorKind, StoreError};
use super::redacted::redacted;

/// A place: a local path or a URL. Two that are equal are the same place. Shown without user info and query string.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(Place);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    Local(PathBuf),
    Object(Container, String),
    Web(Url),
}

/// The clouds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cloud {
    S3,
    Google,
    Azure,
}

/// A bucket, or Azure's container.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Container {
    pub(super) cloud: Cloud,
    pub(super) name: Arc<str>,
    /// Azure's storage account, as `account` or with its host, where the location names it.
    pub(super) account: Option<Arc<str>>,
}

const SCHEMES: &str = "`s3`, `gs`, `az`, `abfs`, `http`, `https`, `file`";

impl Location {
    /// The place that `text` names: a URL, or a local path that starts from `base`.
    ///
    /// The part of `s3://`, `gs://` and `az://` after the bucket is the object's key as it is, without percent-encoding.
    ///
    /// # Errors
    /// Of kind `Config`, without secrets, if it is neither.
    pub fn parse(text: &str, base: &Path) -> Result<Self, StoreError> {
        let Some((scheme, rest)) = scheme_of(text) else {
            if text.is_empty() {
                return Err(StoreError::new(ErrorKind::Config, "the location is empty"));
            }
            return Ok(Location(Place::Local(normalised(&base.join(text)))));
        };
        let cloud = match scheme.to_ascii_lowercase().as_str() {
            "s3" | "s3a" => Cloud::S3,
            "gs" => Cloud::Google,
            "az" | "azure" | "adl" | "abfs" | "abfss" => Cloud::Azure,
            "http" | "https" => return web(text),
            "file" => return file(text),
            _ => {
                let message = format!("`{}` has no scheme that is known; there are {SCHEMES}", redacted(text));
                let help = if scheme.eq_ignore_ascii_case("gcs") { "write `gs://`" } else { "local paths have none" };
                return Err(StoreError::new(ErrorKind::Config, message).help(help));
            }
        };
        let (container, key) = rest.split_once('/').unwrap_or((rest, ""));
        let container = Container::parse(cloud, container)?;
        check_key(&container, key)?;
        Ok(Location(Place::Object(container, key.to_owned())))
    }

    /// Whether `text` is a URL and no local path.
    pub fn is_url(text: &str) -> bool {
        scheme_of(text).is_some()
    }

    /// A local path as it is.
    pub fn local(path: impl Into<PathBuf>) -> Self {
        Location(Place::Local(normalised(&path.into())))
    }

    pub(super) fn object(container: Container, key: String) -> Self {
        Location(Place::Object(container, key))
    }

    pub(super) fn place(&self) -> &Place {
        &self.0
    }

    /// The place `relative` to this one, which is taken for a folder. A query string stays.
    ///
    /// # Errors
    /// Of kind `Config` if `relative` is absolute, empty, or climbs out with `..`.
    pub fn join(&self, relative: &str) -> Result<Location, StoreError> {
        let climbs = relative.split('/').any(|part| part == "..");
        if relative.is_empty() || relative.starts_with('/') || climbs || Location::is_url(relative) {
            let message = format!("`{}` is not the name of something in `{self}`", redacted(relative));
            return Err(StoreError::new(ErrorKind::Config, message));
        }
        match &self.0 {
            Place::Local(path) => Ok(Location(Place::Local(normalised(&path.join(relative))))),
            Place::Object(container, key) => {
                let key = match key.strip_suffix('/').unwrap_or(key) {
                    "" => relative.to_owned(),
                    folder => format!("{folder}/{relative}"),
                };
                check_key(container, &key)?;
                Ok(Location(Place::Object(container.clone(), key)))
            }
            Place::Web(url) => {
                let mut url = url.clone();
                if let Ok(mut parts) = url.path_segments_mut() {
                    parts.pop_if_empty().extend(relative.split('/').filter(|part| !matches!(*part, "" | ".")));
                }
                Ok(Location(Place::Web(url)))
            }
        }
    }

    /// Whether it is a local path.
    pub fn is_local(&self) -> bool {
        matches!(self.0, Place::Local(_))
    }

    /// The local path, if it is one.
    pub fn local_path(&self) -> Option<&Path> {
        match &self.0 {
            Place::Local(path) => Some(path),
            _ => None,
        }
    }

    /// Whether the place has a listing: a web server has none.
    pub fn can_be_listed(&self) -> bool {
        !matches!(self.0, Place::Web(_))
    }

    /// Whether both are objects of one bucket, and this one comes first in its listing.
    pub fn is_before_in_bucket(&self, next: &Location) -> bool {
        match (&self.0, &next.0) {
            (Place::Object(one, key), Place::Object(other, next)) => one == other && key.as_bytes() < next.as_bytes(),
            _ => false,
        }
    }

    /// Of two objects of a bucket, what the listing is called that both are in and no others that it can do without.
    pub fn common_prefix(&self, other: &Location) -> Location {
        let (Place::Object(container, key), Place::Object(_, other)) = (&self.0, &other.0) else { return self.clone() };
        let same = key.chars().zip(other.chars()).take_while(|(one, other)| one == other);
        let len = same.map(|(letter, _)| letter.len_utf8()).sum();
        Location(Place::Object(container.clone(), key[..len].to_owned()))
    }

    /// What comes after the bucket or the host: an object's key, the path of a URL or of a file.
    pub fn key(&self) -> Cow<'_, str> {
        match &self.0 {
            Place::Local(path) => path.to_string_lossy(),
            Place::Object(_, key) => Cow::Borrowed(key),
            Place::Web(url) => percent_decode_str(url.path()).decode_utf8_lossy(),
        }
    }

    /// The last part of the path, decoded; empty for a bucket, a host, or what ends with `/`.
    pub fn name(&self) -> Cow<'_, str> {
        let last = |text: &str| text.rfind('/').map_or(0, |at| at + 1);
        match self.key() {
            Cow::Borrowed(key) => Cow::Borrowed(&key[last(key)..]),
            Cow::Owned(key) => Cow::Owned(key[last(&key)..].to_owned()),
        }
    }

    /// What comes after the last dot of the name, if there is one and it is not the first letter.
    pub fn extension(&self) -> Option<String> {
        let name = self.name();
        let (stem, extension) = name.rsplit_once('.')?;
        (!stem.is_empty()).then(|| extension.to_owned())
    }
}

impl Container {
    fn parse(cloud: Cloud, text: &str) -> Result<Self, StoreError> {
        let (name, account) = match text.split_once('@') {
            Some((name, account)) if cloud == Cloud::Azure => (name, Some(account)),
            _ => (text, None),
        };
        let is_name = |name: &str| {
            let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_' | b'.' | b'$');
            !name.is_empty() && name.bytes().all(is_letter)
        };
        if !is_name(name) || !account.is_none_or(is_name) {
            // What is wrong may be credentials: it is not shown.
            let message = format!("what stands after `{}://` is not the name of a bucket", cloud.scheme());
            return Err(StoreError::new(ErrorKind::Config, message)
                .help("write `s3://bucket/key`; credentials come from the environment, an endpoint from `store:`"));
        }
        Ok(Container { cloud, name: name.into(), account: account.map(Into::into) })
    }
}

impl Cloud {
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Cloud::S3 => "s3",
            Cloud::Google => "gs",
            Cloud::Azure => "az",
        }
    }
}

/// The scheme of a URL and what comes after `://`.
fn scheme_of(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'-' | b'.'));
    is_scheme.then_some((scheme, rest))
}

fn web(text: &str) -> Result<Location, StoreError> {
    let bad = |what: &str| StoreError::new(ErrorKind::Config, format!("`{}` is no URL: {what}", redacted(text)));
    let mut url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(bad("it names no host"));
    }
    url.set_fragment(None);
    Ok(Location(Place::Web(url)))
}

fn file(text: &str) -> Result<Location, StoreError> {
    let path = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
    let bad = || {
        let message = format!("`{}` is no `file://` URL of this machine", redacted(text));
        StoreError::new(ErrorKind::Config, message).help("write `file:///path/to/it`, or the path alone")
    };
    path.map(Location::local).ok_or_else(bad)
}

/// Whether the client for stores has a form for a key.
pub(super) fn can_be_named(key: &str) -> bool {
    let parts = key.strip_suffix('/').unwrap_or(key);
    let is_bad = |part: &str| matches!(part, "" | "." | "..") || part.bytes().any(|byte| byte.is_ascii_control());
    parts.is_empty() && key.is_empty() || !parts.split('/').any(is_bad)
}

/// Refuses keys that cannot be named.
fn check_key(container: &Container, key: &str) -> Result<(), StoreError> {
    if can_be_named(key) {
        return Ok(());
    }
    let shown = key.escape_default();
    let message =
        format!("`{container}/{shown}` cannot be named: its key has an empty part, `.`, `..` or a control character");
    Err(StoreError::new(ErrorKind::Unsupported, message).help("copy the object to another key"))
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.cloud.scheme(), self.name)?;
        match &self.account {
            Some(account) => write!(f, "@{account}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Local(path) => write!(f, "{}", path.display()),
            Place::Object(container, key) => write!(f, "{container}/{key}"),
            Place::Web(url) => {
                write!(f, "{}://{}", url.scheme(), url.host_str().unwrap_or_default())?;
                if let Some(port) = url.port() {
                    write!(f, ":{port}")?;
                }
                f.write_str(url.path())
            }
        }
    }
}

/// As it is displayed: a URL's secrets must not come out this way either.
impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Location {
        Location::parse(text, Path::new("/base")).unwrap()
    }

    fn refused(text: &str) -> StoreError {
        Location::parse(text, Path::new("/base")).unwrap_err()
    }

    #[test]
    fn paths_and_urls_are_places() {
        for (text, shown) in [
            ("photos/../a.jpg", "/base/a.jpg"),
            ("/x/./a.jpg", "/x/a.jpg"),
            ("file:///x/a%20b.jpg", "/x/a b.jpg"),
            ("s3://b/k/a b%20?.jpg", "s3://b/k/a b%20?.jpg"),
            ("S3A://b", "s3://b/"),
            ("gs://b/k/", "gs://b/k/"),
            ("az://c/k", "az://c/k"),
            ("abfss://c@acc.dfs.core.windows.net/k", "az://c@acc.dfs.core.windows.net/k"),
            ("https://host/a%20b.jpg?sig=1#f", "https://host/a%20b.jpg"),
            ("http://u:p@Host:8080/a", "http://host:8080/a"),
            ("c:/a", "/base/c:/a"),
        ] {
            let location = parse(text);
            assert_eq!(location.to_string(), shown, "{text}");
            assert_eq!(format!("{location:?}"), format!("Location({shown})"));
        }
        assert_eq!(parse("s3a://b/k"), parse("s3://b/k"));
        assert_eq!(parse("file:///base/a"), parse("b/../a"));
        assert_ne!(parse("https://h/a?v=1"), parse("https://h/a?v=2"));
    }

    #[test]
    fn what_is_no_place_is_refused_without_its_secrets() {
        for text in [
            "",
            "ftp://u:S3CRET@h/a",
            "s3://AKIA:S3CRET@bucket/k",
            "s3:///k",
            "az://c@a@S3CRET/k",
            "https://u:S3CRET@/x",
            "file://host/S3CRET/../?",
            "s3://b/a//k",
            "s3://b/../k",
            "s3://b/a\nb",
        ] {
            let error = refused(text);
            assert!(matches!(error.kind(), ErrorKind::Config | ErrorKind::Unsupported), "{text}");
            assert!(!error.to_string().contains("S3CRET") || text.starts_with("file:"), "{error}");
        }
    }

    #[test]
    fn names_and_extensions_are_the_last_parts() {
        for (text, name, extension) in [
            ("a/b.tar.gz", "b.tar.gz", Some("gz")),
            ("s3://b/k/x.JPG", "x.JPG", Some("JPG")),
            ("s3://b/k/", "", None),
            ("https://h/d/a%20b.jpg?x=y.z", "a b.jpg", Some("jpg")),
            ("/x/.hidden", ".hidden", None),
            ("/x/none", "none", None),
        ] {
            let location = parse(text);
            assert_eq!((&*location.name(), location.extension().as_deref()), (name, extension), "{text}");
        }
    }

    #[test]
    fn joining_stays_inside() {
        for (base, relative, expected) in [
            ("d", "a/b.jpg", Some("/base/d/a/b.jpg")),
            ("s3://b", "a", Some("s3://b/a")),
            ("s3://b/k/", "a b", Some("s3://b/k/a b")),
            ("https://h/d/", "a b?.jpg", Some("https://h/d/a%20b%3F.jpg")),
            ("https://h", "./a", Some("https://h/a")),
            ("d", "../a", None),
            ("s3://b/k", "x/../../a", None),
            ("https://h/d", "/a", None),
            ("d", "s3://b/k", None),
            ("d", "", None),
        ] {
            let joined = parse(base).join(relative).ok().map(|location| location.to_string());
            assert_eq!(joined.as_deref(), expected, "{base} {relative}");
        }
        let Location(Place::Web(url)) = parse("https://h/d?sig=1").join("a").unwrap() else { panic!() };
        assert_eq!(url.as_str(), "https://h/d/a?sig=1");
    }
}
