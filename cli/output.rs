//! The only place that writes to the standard streams, apart from the progress display.
//!
//! A reader that goes away (`flowgpu graph … | head -1`) is no error: the program ends quietly.

use std::io::{self, ErrorKind, Write};

use crate::failure::{Failure, exit, reason};

/// Writes to standard output, where data and answers go.
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(error) => Err(Failure::fault(format!("cannot write to standard output: {}", reason(&error)))),
        Ok(()) => Ok(()),
    }
}

/// Writes to the standard error stream, where everything about the program's own work goes. If that cannot be written
/// either, there is nobody left to tell.
pub(crate) fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// What clap has to say: a mistake in the arguments, or the help that was asked for.
pub(crate) fn usage(error: &clap::Error) -> u8 {
    // As above: a closed pipe leaves nobody to tell.
    let _ = error.print();
    if error.use_stderr() { exit::USAGE } else { exit::DONE }
}
