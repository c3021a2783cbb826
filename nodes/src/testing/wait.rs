//! Waiting for a file: what hangs in a test until the test says go.

use std::path::Path;
use std::time::Duration;

/// Comes back when the file is there; at once, if none is named.
pub(super) fn wait_for(path: Option<&Path>) {
    while path.is_some_and(|path| !path.exists()) {
        std::thread::sleep(Duration::from_millis(2));
    }
}
