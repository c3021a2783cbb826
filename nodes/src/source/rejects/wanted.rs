//! Rows that are wanted again, as an item of the listing.
//!
//! All that is needed stands in the item itself, so a run goes on even where the reject file has changed or is gone.

use std::ffi::OsString;

use engine::data::{Reject, code};
use engine::node::Item;
use serde::{Deserialize, Serialize};

/// Parts the name of the file from what is wanted of it: a path has no NUL in it.
const MARK: &str = "\0\0";

/// What an item stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Wanted {
    /// Files, each of them a row.
    #[serde(rename = "f")]
    Files(Vec<Row>),
    /// Rows of a file.
    #[serde(rename = "r")]
    Rows(Vec<Row>),
    /// All of its rows.
    #[serde(rename = "a")]
    All,
    /// All rows of one of its row groups.
    #[serde(rename = "g")]
    Group(usize),
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    /// A file's uri, or what stands behind the `#`.
    #[serde(rename = "n")]
    pub(super) name: String,
    /// Its id, where that is not its uri.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// Why there is no such row: the line was none.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub(super) wrong: Option<String>,
}

impl Row {
    /// Bytes that it takes in an item, about.
    pub(super) fn n_bytes(&self) -> usize {
        16 + self.name.len() + [&self.id, &self.wrong].into_iter().flatten().map(String::len).sum::<usize>()
    }
}

impl Wanted {
    /// The item for this, of rows of `file`. It is called after its first row: no other item is, so that listings can be
    /// compared by names.
    pub(super) fn item(&self, file: &str) -> Item {
        let uri = match self {
            Wanted::Files(rows) => rows.first().map(|row| row.name.clone()),
            Wanted::Rows(rows) => rows.first().map(|row| format!("{file}#{}", row.name)),
            Wanted::All => None,
            Wanted::Group(number) => Some(format!("{file}#group-{number}")),
        };
        let wanted = serde_json::to_string(self).expect("texts are JSON");
        let locator = OsString::from(format!("{file}{MARK}{wanted}"));
        Item { uri: uri.unwrap_or_else(|| file.to_owned()), id: None, locator, size_hint: 0 }
    }

    /// What `item` stands for, and the file whose rows are meant.
    pub(super) fn of(item: &Item) -> Result<(&str, Wanted), Reject> {
        let text = item.locator.to_str().and_then(|text| text.split_once(MARK));
        text.and_then(|(file, wanted)| Some((file, serde_json::from_str(wanted).ok()?)))
            .ok_or_else(|| Reject::new(code::CORRUPT, format!("the listing of `{}` makes no sense", item.uri)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_comes_back() {
        let row = |name: &str, id: Option<&str>| Row { name: name.into(), id: id.map(Into::into), wrong: None };
        for (wanted, uri) in [
            (
                Wanted::Files(vec![row("a\n\"#.jpg", None), Row { wrong: Some("why".into()), ..row("x#1", None) }]),
                "a\n\"#.jpg",
            ),
            (Wanted::Rows(vec![row("1", Some("id")), row("2", None)]), "x#1"),
            (Wanted::All, "x"),
            (Wanted::Group(7), "x#group-7"),
        ] {
            let item = wanted.item("x");
            assert_eq!((Wanted::of(&item).unwrap(), &*item.uri), (("x", wanted), uri));
        }
        assert!(Wanted::of(&Item { uri: "x".into(), id: None, locator: "x".into(), size_hint: 0 }).is_err());
    }
}
