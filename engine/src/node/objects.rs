//! Outputs that are objects of a store: what the engine asks of the kinds that know stores.

use std::path::Path;

use super::Fault;

/// Gives outputs their place in a store. An output is written to a local file first; it is an object when it is complete.
pub trait Objects: Send + Sync {
    /// Makes the file `local` the object `url`. Done again after it was interrupted, it leaves one object and no remains.
    ///
    /// # Errors
    /// What the store says, after it was tried again where that may help.
    fn publish(&self, local: &Path, url: &str) -> Result<(), Fault>;

    /// Ends what an earlier process has left under way, of which there are notes in `folder`, a sink's spool.
    ///
    /// # Errors
    /// A store that does not do it.
    fn abandon(&self, folder: &Path) -> Result<(), Fault>;

    /// Whether the object `url` is there and has `bytes` bytes.
    ///
    /// # Errors
    /// A store that does not answer.
    fn is_there(&self, url: &str, bytes: u64) -> Result<bool, Fault>;
}
