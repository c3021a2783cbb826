//! What was merged, so that it is not done again.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::shards::Finished;
use super::{Joined, Merged};
use crate::durable::disk;
use crate::graph::Graph;
use crate::journal::Moment;
use crate::journal::publish::stays;
use crate::node::{Fault, Sealed};

/// What was merged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    /// The checksum of what the shards said when they were done.
    pub(super) key: u32,
    pub(super) at: Moment,
    pub(super) outputs: Vec<Joined>,
    pub(super) rejects: Option<Sealed>,
}

impl Note {
    /// The checksum of what these shards have done: another one if one of them was run again.
    pub(super) fn key(shards: &[Finished]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        for shard in shards {
            // It was read from JSON.
            hasher.update(&serde_json::to_vec(&shard.sealed).unwrap_or_default());
        }
        hasher.finalize()
    }

    /// The one at `path`. One that cannot be read is as good as none: merging again is always right.
    pub(super) fn read(path: &Path) -> Option<Note> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Whether this is what these shards would give, and still there.
    pub(super) fn holds(&self, key: u32, graph: &Graph) -> Result<bool, Fault> {
        if self.key != key {
            return Ok(false);
        }
        let outputs = self.outputs.iter().map(|output| (Some(&*output.node), &output.sealed));
        for (sink, sealed) in outputs.chain(self.rejects.iter().map(|rejects| (None, rejects))) {
            if !stays(graph, sink, sealed)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes it to `path`.
    pub(super) fn write(&self, path: &Path) -> Result<(), Fault> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Fault::bug(format!("what was merged is no JSON: {error}")))?;
        disk::replace(path, text.as_bytes())
    }

    pub(super) fn into_merged(self) -> Merged {
        Merged { at: self.at, was_done: true, outputs: self.outputs, rejects: self.rejects }
    }
}
