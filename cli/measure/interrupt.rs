//! Ctrl-C while something is measured: there is nothing to finish or to keep.

use std::io;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Failure, abort_now, reason};
use crate::output;

/// Has the first signal end the process, which says so. Worker processes end with it.
pub(crate) fn end_on_signals(name: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::fault(format!("cannot listen for signals: {}", reason(&error)));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let name = name.to_owned();
    let listen = move || {
        if signals.forever().next().is_some() {
            output::tell(&format!("{name}: interrupted; nothing was written\n"));
            abort_now();
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop).map_err(failed)
}
