//! Keeps `^C` off the screen while bars are drawn.
//!
//! A terminal echoes Ctrl-C as two letters at the cursor, which stands at the end of the bars' last line: they would go
//! on in the next line, and the bars would be wiped one line too low. So the echo of control characters is turned off
//! as long as there are bars.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcgetpgrp, tcsetattr};

/// Whether it was turned off by us. The terminal is the process's, so this is too.
static HIDDEN: Mutex<bool> = Mutex::new(false);

/// Turns the echo off, if it is on.
pub(super) fn hide() {
    set(true);
}

/// Turns it on again, if it was turned off here.
pub(super) fn restore() {
    set(false);
}

fn set(hide: bool) {
    let mut hidden = HIDDEN.lock().unwrap_or_else(PoisonError::into_inner);
    if *hidden == hide {
        return;
    }
    let stderr = io::stderr();
    // Changing the terminal from the background would stop the process.
    if tcgetpgrp(&stderr) != Ok(getpgrp()) {
        return;
    }
    let Ok(mut modes) = tcgetattr(&stderr) else {
        return;
    };
    if hide && !modes.local_modes.contains(LocalModes::ECHOCTL) {
        return;
    }
    modes.local_modes.set(LocalModes::ECHOCTL, !hide);
    if tcsetattr(&stderr, OptionalActions::Now, &modes).is_ok() {
        *hidden = hide;
    }
}
