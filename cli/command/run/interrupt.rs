//! Ctrl-C: once to finish what is in flight, twice to stop at once.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use engine::node::Cancel;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};

use crate::failure::{Failure, abort_now, reason};
use crate::progress::AboveBars;

/// The signals that ask to stop.
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// Listens until it is dropped.
pub(super) struct Interrupts {
    registered: Vec<SigId>,
}

impl Interrupts {
    /// Brings the first signal to `cancel`; the second ends the process.
    pub(super) fn watch(name: &str, cancel: &Cancel, above: &AboveBars) -> Result<Self, Failure> {
        let listen = || -> io::Result<(UnixStream, Vec<SigId>)> {
            let (receiver, sender) = UnixStream::pair()?;
            let register = |signal: &i32| pipe::register(*signal, sender.try_clone()?);
            Ok((receiver, SIGNALS.iter().map(register).collect::<io::Result<_>>()?))
        };
        let failed = |error: io::Error| Failure::fault(format!("cannot listen for Ctrl-C: {}", reason(&error)));
        let (receiver, registered) = listen().map_err(failed)?;
        let (name, cancel, above) = (name.to_owned(), cancel.clone(), above.clone());
        let obey = move || obey(receiver, &name, &cancel, above);
        thread::Builder::new().name("interrupts".to_owned()).spawn(obey).map_err(failed)?;
        Ok(Interrupts { registered })
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // The signals' writing ends are closed with that, and the thread ends.
        for &id in &self.registered {
            unregister(id);
        }
    }
}

fn obey(mut signals: UnixStream, name: &str, cancel: &Cancel, mut above: AboveBars) {
    let mut byte = [0];
    if signals.read_exact(&mut byte).is_err() {
        return;
    }
    cancel.drain();
    // A message that cannot be written has nobody to read it.
    let _ =
        above.write_all(format!("{name}: stopping: finishing what is in flight (Ctrl-C again to abort)\n").as_bytes());
    if signals.read_exact(&mut byte).is_err() {
        return;
    }
    above.wipe();
    let _ = above.write_all(
        format!(
            "{name}: aborted: outputs are as they were before, unfinished ones lie beside them as `.NAME.partial`\n"
        )
        .as_bytes(),
    );
    abort_now()
}
