//! What is known of an object without its bytes.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use engine::node::Stamp;

/// What is known of an object without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Bytes.
    pub size: u64,
    /// The store's own name for this version of the content, where it has one.
    pub etag: Option<String>,
    /// When it was written last: seconds since 1970 and nanoseconds.
    pub modified: Option<(i64, i64)>,
}

impl Meta {
    /// Of a local file.
    pub(super) fn of_file(metadata: &Metadata) -> Self {
        Meta { size: metadata.len(), etag: None, modified: Some((metadata.mtime(), metadata.mtime_nsec())) }
    }

    /// What changes when the content does: of the size and the version, or of when it was written where there is none.
    pub fn stamp(&self) -> Stamp {
        let text = match (&self.etag, self.modified) {
            // In a listing it may stand without its quotes.
            (Some(etag), _) => format!("{} {}", self.size, etag.trim_start_matches("W/").trim_matches('"')),
            (None, Some((seconds, nanos))) => format!("{} {seconds} {nanos}", self.size),
            (None, None) => self.size.to_string(),
        };
        // None is for what is not there.
        Stamp(crc32fast::hash(text.as_bytes()).max(1))
    }
}

/// What an answer says of the object it is about: a web server need not know the size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) size: Option<u64>,
    pub(super) etag: Option<String>,
    pub(super) modified: Option<(i64, i64)>,
}

impl Head {
    /// Whether another answer about the same object is about the same content, as far as the two say.
    pub(super) fn is_same(&self, other: &Head) -> bool {
        fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        let by_version = match (&self.etag, &other.etag) {
            (Some(one), Some(other)) => one == other,
            _ => agree(&self.modified, &other.modified),
        };
        by_version && agree(&self.size, &other.size)
    }

    pub(super) fn with_size(self, size: u64) -> Meta {
        Meta { size, etag: self.etag, modified: self.modified }
    }
}

impl From<Meta> for Head {
    fn from(meta: Meta) -> Self {
        Head { size: Some(meta.size), etag: meta.etag, modified: meta.modified }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_size_version_and_time() {
        let meta = |size, etag: Option<&str>, modified| Meta { size, etag: etag.map(str::to_owned), modified };
        let all = [
            meta(1, None, None),
            meta(2, None, None),
            meta(1, Some("a"), None),
            meta(1, Some("b"), None),
            meta(1, None, Some((1, 0))),
            meta(1, None, Some((1, 1))),
        ];
        for (one_idx, one) in all.iter().enumerate() {
            for (other_idx, other) in all.iter().enumerate() {
                assert_eq!(one.stamp() == other.stamp(), one_idx == other_idx, "{one:?} {other:?}");
            }
        }
        assert_eq!(meta(1, Some("a"), Some((1, 1))).stamp(), meta(1, Some("a"), None).stamp());
    }

    #[test]
    fn answers_are_about_the_same_content_unless_they_contradict_each_other() {
        let head = |size, etag: Option<&str>, seconds: Option<i64>| Head {
            size,
            etag: etag.map(str::to_owned),
            modified: seconds.map(|seconds| (seconds, 0)),
        };
        let known = head(Some(5), Some("a"), Some(1));
        assert!(known.is_same(&head(Some(5), Some("a"), Some(2))));
        assert!(known.is_same(&head(None, None, None)));
        assert!(!known.is_same(&head(Some(6), Some("a"), Some(1))));
        assert!(!known.is_same(&head(Some(5), Some("b"), Some(1))));
        assert!(!known.is_same(&head(Some(5), None, Some(2))));
    }
}
