//! The items that paths stand for, one after the other.

use engine::node::{Cancel, Fault, Item, List};

use super::bucket_walk::{BucketWalk, Next};
use super::pattern::Pattern;
use super::patterns::Patterns;
use crate::source::files_walk::Walk;
use crate::store::{Location, Stores};

/// Lists the files of all paths, in the order written.
pub(in crate::source) struct Listed {
    patterns: Patterns,
    stores: Stores,
    cancel: Cancel,
    /// Whether a glob over a bucket may match nothing, because what it matched was read before.
    is_resumed: bool,
    /// The pattern that is being listed, and where.
    at: usize,
    within: Within,
}

enum Within {
    Start,
    Files(Walk),
    Objects(BucketWalk),
    Names(usize),
}

impl Listed {
    pub(in crate::source) fn new(patterns: Patterns, stores: Stores, cancel: Cancel, is_resumed: bool) -> Self {
        Listed { patterns, stores, cancel, is_resumed, at: 0, within: Within::Start }
    }

    /// The next item, unless some are `held` and the next one would have to be waited for.
    fn next_item(&mut self, is_held: bool) -> Result<Option<Item>, Fault> {
        let patterns = self.patterns.patterns.clone();
        while let Some(pattern) = patterns.get(self.at) {
            if self.cancel.is_draining() {
                return Ok(None);
            }
            match (&mut self.within, pattern) {
                (Within::Files(walk), _) => match walk.next_item() {
                    Some(item) => return Ok(Some(item)),
                    None => self.go_on(),
                },
                (Within::Names(number), Pattern::Named(named)) => match named.get(*number) {
                    Some(named) => {
                        *number += 1;
                        return Ok(Some(named.item()));
                    }
                    None => self.go_on(),
                },
                (Within::Objects(walk), Pattern::Bucket(glob)) => match walk.next(glob) {
                    Next::Object(location, item) if !was_listed(&patterns[..self.at], &location) => {
                        return Ok(Some(item));
                    }
                    Next::Object(..) => {}
                    _ if is_held => return Ok(None),
                    _ => {
                        let turned = walk.turn();
                        if turned.is_err() && self.cancel.is_draining() {
                            return Ok(None);
                        }
                        if let Next::End = turned? {
                            if !walk.has_matched && !self.is_resumed {
                                let message = format!("`{}` matches no object", glob.text);
                                return Err(Fault::permanent(message)
                                    .help(format!("what begins with `{}` was listed", glob.prefix)));
                            }
                            self.go_on();
                        }
                    }
                },
                (_, Pattern::Local(_)) => {
                    let is_local = |pattern: &&Pattern| matches!(pattern, Pattern::Local(_));
                    let number = patterns[..self.at].iter().filter(is_local).count();
                    let Patterns { base, globs, .. } = &self.patterns;
                    self.within = Within::Files(Walk::of_glob(base, globs.clone(), number, self.cancel.clone()));
                }
                (_, Pattern::Named(_)) => self.within = Within::Names(0),
                (_, Pattern::Bucket(glob)) => self.within = Within::Objects(BucketWalk::new(glob, &self.stores)?),
            }
        }
        Ok(None)
    }

    fn go_on(&mut self) {
        self.at += 1;
        self.within = Within::Start;
    }
}

/// Whether one of the patterns before lists an object too.
fn was_listed(earlier: &[Pattern], location: &Location) -> bool {
    earlier.iter().any(|pattern| matches!(pattern, Pattern::Bucket(glob) if glob.matches(location)))
}

impl List for Listed {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let start = items.len();
        while items.len() - start < max {
            match self.next_item(items.len() > start)? {
                Some(item) => items.push(item),
                None => break,
            }
        }
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        (self.at, self.within) = (0, Within::Start);
        for _ in 0..index {
            if self.next_item(false)?.is_none() {
                break;
            }
        }
        Ok(())
    }
}
