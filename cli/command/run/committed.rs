//! How many rows of a run are durable, for whoever has to say so.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

type Count = Box<dyn Fn() -> u64 + Send>;

/// Rows that are durable. Unknown until the run that is under way tells it; one without a journal never does.
#[derive(Clone, Default)]
pub(super) struct Committed(Arc<Mutex<Option<Count>>>);

impl Committed {
    /// From now on `count` tells it.
    pub(super) fn is_told_by(&self, count: impl Fn() -> u64 + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(count));
    }

    /// Nothing tells it any more.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Rows that are durable, if the run keeps any.
    pub(super) fn rows(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|count| count())
    }
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Committed").field(&self.rows()).finish()
    }
}
