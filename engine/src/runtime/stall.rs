//! A node that does not come on.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A node that holds something and has made no progress with it for a while.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// The node.
    pub node: String,
    /// For how long, in seconds: so far, or in all.
    pub seconds: f64,
    /// What it holds: ``reading `photos/a.jpg` (1 of 8 threads)``.
    pub holds: String,
    /// What speaks for a cause, if anything does: ``it lies on `/mnt/photos` (nfs4)``.
    pub hint: Option<String>,
}

/// Who is told of stalls, on the watchdog's thread.
#[derive(Clone)]
pub struct OnStall(Arc<dyn Fn(&Stall) + Send + Sync>);

impl OnStall {
    /// Calls `tell` for each.
    pub fn new(tell: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        OnStall(Arc::new(tell))
    }

    pub(super) fn call(&self, stall: &Stall) {
        (self.0)(stall);
    }
}

impl fmt::Debug for OnStall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnStall")
    }
}
