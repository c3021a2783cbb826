//! Ends the process when a case does not end: an endless loop is a failure with its input, not a test that hangs.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::drive::keep;
use crate::target::Target;

/// A thousand times what the slowest case takes.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(500);

type UnderWay = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

/// Knows which case is under way.
pub struct Watch(UnderWay);

impl Watch {
    /// Begins to watch.
    pub fn new(target: &'static Target) -> Self {
        let under_way = UnderWay::default();
        let watched = Arc::downgrade(&under_way);
        thread::spawn(move || {
            while let Some(under_way) = watched.upgrade() {
                let late = under_way.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((_, input)) = late.as_ref().filter(|(began, _)| began.elapsed() > PATIENCE) {
                    let path = keep(target, input, "hangs");
                    eprintln!("`{}` does not come to an end with {}", target.name, path.display());
                    std::process::exit(101);
                }
                drop(late);
                drop(under_way);
                thread::sleep(LOOK);
            }
        });
        Watch(under_way)
    }

    /// A case begins.
    pub fn begins(&self, input: &[u8]) {
        self.set(Some((Instant::now(), input.to_owned())));
    }

    /// It has ended.
    pub fn ends(&self) {
        self.set(None);
    }

    fn set(&self, case: Option<(Instant, Vec<u8>)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = case;
    }
}
