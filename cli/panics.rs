//! What a panic says.
//!
//! In a run, panics are expected in one place: foreign bytes in a decoder cost their row. The runtime catches them all
//! and makes rejects and faults of them, so their raw text would only spoil the display; it goes to the log. A panic of
//! the main thread is caught by nobody and is told at once. With `RUST_BACKTRACE` everything is shown as usual.

use std::panic::{self, PanicHookInfo};
use std::{env, thread};

use crate::output;

/// Puts this in place of Rust's own message.
pub(crate) fn install() {
    if env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        return;
    }
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let thread = thread::current();
        let name = thread.name().unwrap_or("unnamed");
        tracing::debug!(thread = name, place, message = text(info), "panic");
        if name == "main" {
            output::tell(&format!(
                "error: flowgpu panicked at {place}: {}\n  help: this is a bug in flowgpu: please report it with these lines (`RUST_BACKTRACE=1` shows more)\n",
                text(info)
            ));
        }
    }));
}

fn text<'a>(info: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is no text")
}
