//! What many items are now: by as few requests as a store allows, and side by side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use engine::node::Stamp;

use crate::source::columns::REMOTE_READERS;
use crate::store::{Location, Stores};

/// Fewer objects than this are asked for one by one.
const WORTH_LISTING: usize = 16;
/// A listing in which fewer than one object of so many is wanted is not read on.
const SPARSE: usize = 20;

/// What items are now, as far as it is known.
pub(super) struct Now<'a> {
    stores: &'a Stores,
    /// Where they are; none for what is not to be found any more.
    places: &'a [Option<Location>],
    /// Of each item, once it is known: `None` is for what a store does not say.
    pub(super) stamps: Vec<Option<Stamp>>,
    is_known: Vec<bool>,
}

impl<'a> Now<'a> {
    pub(super) fn new(stores: &'a Stores, places: &'a [Option<Location>]) -> Self {
        let is_known = places.iter().map(Option::is_none).collect();
        let stamps = places.iter().map(|place| place.is_none().then_some(Stamp::NONE)).collect();
        Now { stores, places, stamps, is_known }
    }

    /// Finds out by listings what they can say: of runs of objects of one bucket in the order of their keys.
    pub(super) fn list(&mut self) {
        let places = self.places;
        let follows = |one: &Option<Location>, next: &Option<Location>| match (one, next) {
            (Some(one), Some(next)) => one.is_before_in_bucket(next),
            _ => false,
        };
        let mut start = 0;
        for run in places.chunk_by(follows) {
            if let [Some(first), .., Some(last)] = run
                && run.len() >= WORTH_LISTING
            {
                self.list_run(start, run.len(), first, last);
            }
            start += run.len();
        }
    }

    /// The first of a run is left to be asked for: a listing begins behind a key.
    fn list_run(&mut self, start: usize, len: usize, first: &Location, last: &Location) {
        let Ok(pages) = self.stores.list_after(&first.common_prefix(last), first) else { return };
        let (mut at, mut n_listed) = (start + 1, 0);
        let end = start + len;
        for page in pages {
            let Ok(page) = page else { return };
            n_listed += page.len();
            for (object, meta) in page {
                // What the listing has passed is not there any more.
                while at < end && self.places[at].as_ref().is_some_and(|place| place.key() < object.key()) {
                    self.know(at, Some(Stamp::NONE));
                    at += 1;
                }
                if at < end && self.places[at].as_ref() == Some(&object) {
                    self.know(at, Some(meta.stamp()));
                    at += 1;
                }
            }
            if at == end || n_listed > (at - start) * SPARSE {
                return;
            }
        }
        (at..end).for_each(|item_idx| self.know(item_idx, Some(Stamp::NONE)));
    }

    fn know(&mut self, item_idx: usize, stamp: Option<Stamp>) {
        (self.stamps[item_idx], self.is_known[item_idx]) = (stamp, true);
    }

    /// Asks for each that is not known yet.
    pub(super) fn ask(&mut self) {
        let unknown: Vec<_> = (0..self.places.len()).filter(|&item_idx| !self.is_known[item_idx]).collect();
        let is_remote = |item_idx: &usize| self.places[*item_idx].as_ref().is_some_and(|place| !place.is_local());
        let n_threads = unknown.iter().filter(|item_idx| is_remote(item_idx)).count().clamp(1, REMOTE_READERS.get());
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(unknown.len())));
        let (stores, places) = (self.stores, self.places);
        let look = || {
            while let Some(&item_idx) = unknown.get(next.fetch_add(1, Ordering::Relaxed)) {
                let stamp = places[item_idx].as_ref().and_then(|place| match stores.stat(place) {
                    Ok(meta) => Some(meta.stamp()),
                    Err(error) if !error.kind().is_transient() => Some(Stamp::NONE),
                    Err(_) => None,
                });
                found.lock().unwrap_or_else(PoisonError::into_inner).push((item_idx, stamp));
            }
        };
        std::thread::scope(|scope| {
            (1..n_threads).for_each(|_| drop(scope.spawn(look)));
            look();
        });
        for (item_idx, stamp) in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.know(item_idx, stamp);
        }
    }
}
