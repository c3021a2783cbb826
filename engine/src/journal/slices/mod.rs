//! The slices of the sources' listings that shards read.
//!
//! A slice is a piece of a listing, from one item to before another, so that the shards' outputs one after the other are
//! the output of the whole run. The first shard that comes lists each source once and writes down where the slices
//! begin ([`Boundaries`]); from then on these stay, whatever is added: a new file belongs to the slice that it is listed
//! in. Where the items of a source are the same in every run, a slice is a range of numbers ([`ByNumber`]), elsewhere it
//! is found by the names of the items that it begins and ends with ([`ByName`]).
//!
//! No listing is held in memory. Which slice a shard has read is noted in its own state ([`Slice`]), so that shards whose
//! slices do not fit together are not merged.

mod boundaries;
mod by_name;
mod by_number;
mod record;

use std::path::PathBuf;

use super::{Fingerprint, StateFolder};
use crate::config::Journaling;
use crate::graph::Graph;
use crate::node::{Cancel, Fault, List, Role, Shard};

use boundaries::Boundaries;
use by_name::ByName;
use by_number::ByNumber;
pub use record::Slice;

/// The slices that one shard reads, one of each source.
#[derive(Clone, Debug)]
pub struct Slices {
    shard: Shard,
    /// Where the boundaries lie that all shards have in common.
    folder: PathBuf,
    /// The shard's own state; none is kept of a run without a journal.
    own: Option<StateFolder>,
    sources: Vec<SourceKey>,
}

/// What a source is, as far as its listing depends on it.
#[derive(Clone, Debug)]
struct SourceKey {
    name: String,
    checksum: u32,
}

impl SourceKey {
    /// The file for its boundaries: with other options it has others.
    fn file_name(&self) -> String {
        format!("{}-{:08x}.json", self.name, self.checksum)
    }
}

impl Slices {
    /// Those of `shard` in a run of `graph`. Reads nothing yet.
    pub fn open(graph: &Graph, shard: Shard) -> Self {
        let mut sources: Vec<_> = graph
            .with_role(Role::Source)
            .map(|node_idx| {
                let node = &graph.nodes[node_idx];
                let text = Fingerprint::of_node(graph, node_idx).to_string();
                let key = SourceKey { name: node.name.clone(), checksum: crc32fast::hash(text.as_bytes()) };
                (node.source, key)
            })
            .collect();
        sources.sort_by_key(|(number, _)| *number);
        let has_journal = graph.run.journal != Some(Journaling::Off);
        Slices {
            shard,
            folder: StateFolder::of(graph, None).boundaries(shard.of),
            own: has_journal.then(|| StateFolder::of(graph, Some(shard))),
            sources: sources.into_iter().map(|(_, key)| key).collect(),
        }
    }

    /// Makes of the listing of source number `source` that of the shard's slice alone, whose items are numbered from 0 on,
    /// and says which slice it is. The first shard to come lists all of the source for that.
    ///
    /// If the run is asked to stop meanwhile, the slice is empty, and nothing is written down.
    ///
    /// # Errors
    /// A listing that cannot be made, boundaries that cannot be written or read, and those that are others than the shard
    /// was begun with.
    pub fn take(
        &self,
        source: usize,
        mut list: Box<dyn List>,
        cancel: &Cancel,
    ) -> Result<(Box<dyn List>, Slice), Fault> {
        let key = &self.sources[source];
        let path = self.folder.join(key.file_name());
        let (of, is_fixed) = (self.shard.of, list.is_fixed());
        let boundaries = match Boundaries::read(&path, of, is_fixed)? {
            Some(boundaries) => boundaries,
            None => match Boundaries::make(&mut *list, of, cancel)? {
                Some(made) => made.publish(&path, is_fixed)?,
                None => return Ok((Box::new(ByNumber::new(list, 0, 0)), Slice::default())),
            },
        };
        let slice = boundaries.slice(&key.name, self.shard);
        if let Some(own) = &self.own {
            slice.note(&own.slice(source), &self.folder)?;
        }
        if is_fixed {
            return Ok((Box::new(ByNumber::new(list, slice.start, slice.end)), slice));
        }
        let by_name = ByName::new(list, &boundaries, self.shard, &self.folder, cancel.clone());
        Ok((Box::new(by_name), slice))
    }
}

#[cfg(test)]
mod tests;
