//! The objects of a bucket that a glob matches, page by page.

use std::vec;

use engine::node::{Fault, Item};

use super::pattern::BucketGlob;
use crate::store::{Location, Meta, Pages, Stores};

/// Lists the objects that a glob matches, in the order of their keys.
pub(super) struct BucketWalk {
    pages: Pages,
    page: vec::IntoIter<(Location, Meta)>,
    /// Whether something matched.
    pub(super) has_matched: bool,
}

/// What comes next.
pub(super) enum Next {
    /// An object.
    Object(Location, Item),
    /// The page is at its end.
    Page,
    /// The listing is.
    End,
}

impl BucketWalk {
    pub(super) fn new(glob: &BucketGlob, stores: &Stores) -> Result<Self, Fault> {
        Ok(BucketWalk { pages: stores.list(&glob.prefix)?, page: Vec::new().into_iter(), has_matched: false })
    }

    /// The next object that `glob` matches, of the page that was asked for last.
    pub(super) fn next(&mut self, glob: &BucketGlob) -> Next {
        for (location, meta) in self.page.by_ref() {
            if glob.matches(&location) {
                self.has_matched = true;
                let uri = location.to_string();
                let item = Item { locator: (&uri).into(), uri, id: None, size_hint: meta.size };
                return Next::Object(location, item);
            }
        }
        Next::Page
    }

    /// Asks for the next page.
    pub(super) fn turn(&mut self) -> Result<Next, Fault> {
        match self.pages.next().transpose()? {
            Some(page) => {
                self.page = page.into_iter();
                Ok(Next::Page)
            }
            None => Ok(Next::End),
        }
    }
}
