//! Wishes that the run stop: signals, and a drain file. The first lets it finish what is in flight, within the grace; a
//! second signal ends the process at once. What is committed stays either way.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use engine::config::Document;
use engine::node::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::committed::Committed;
use super::drain_file::{self, DrainFile};
use super::stopping::{Asker, GRACE, Order, Stopping};
use super::stopping_words::{self, Circumstances};
use crate::failure::{Failure, abort_now, reason};
use crate::pipeline::from_here;
use crate::progress::AboveBars;

/// How long a message may take: a terminal that is held must not hold the process.
const PATIENCE: Duration = Duration::from_millis(100);

/// On what terms the run may be asked to stop.
pub(super) struct Terms {
    name: String,
    grace: Duration,
    drain_file: Option<PathBuf>,
}

/// Listens until it is dropped.
pub(super) struct Interrupts {
    events: Sender<Event>,
    signals: Handle,
    _drain_file: Option<DrainFile>,
}

enum Event {
    Asked(Asker),
    /// A run begins; answered when it knows of what was asked before.
    RunBegins(Cancel, SyncSender<()>),
    /// The run has ended; answered when all that belongs before its summary has been said.
    RunEnded(SyncSender<()>),
    Closed,
}

impl Terms {
    /// What a pipeline says, with the command line put over it.
    pub(super) fn of(document: &Document) -> Self {
        Terms {
            name: document.name.value.clone(),
            grace: document.run.grace.map_or(GRACE, |grace| grace.get()),
            drain_file: document.run.drain_file.as_deref().map(|path| document.resolve(path)),
        }
    }
}

impl Interrupts {
    /// Brings the first wish to the run, and sees to it that the process ends in time. Where no run is under way, a wish
    /// ends the process.
    pub(super) fn watch(terms: Terms, above: &AboveBars, committed: &Committed) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::fault(format!("cannot listen for signals: {}", reason(&error)));
        let (events, received) = mpsc::channel();
        let mut signals = Signals::new(obeyed()).map_err(failed)?;
        let handle = signals.handle();
        let drain_file = terms.drain_file.clone();
        let obeying = Obeying { terms, cancel: Cancel::new(), above: above.clone(), committed: committed.clone() };
        thread::Builder::new().name("interrupts".to_owned()).spawn(move || obeying.run(&received)).map_err(failed)?;
        let heard = events.clone();
        let listen = move || signals.forever().filter_map(asker).all(|by| heard.send(Event::Asked(by)).is_ok());
        thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(failed)?;
        let drain_file = drain_file.map(|path| watch_for(path, &events)).transpose()?.flatten();
        Ok(Interrupts { events, signals: handle, _drain_file: drain_file })
    }

    /// A run begins, which `cancel` stops.
    pub(super) fn run_begins(&self, cancel: &Cancel) {
        self.tell(|answer| Event::RunBegins(cancel.clone(), answer));
    }

    /// The run has ended: what is still to be said of its stopping is said.
    pub(super) fn run_has_ended(&self) {
        self.tell(Event::RunEnded);
    }

    fn tell(&self, event: impl FnOnce(SyncSender<()>) -> Event) {
        let (answer, answered) = mpsc::sync_channel(1);
        if self.events.send(event(answer)).is_ok() {
            // An error says that the other thread has ended: then it has nothing more to tell.
            let _ = answered.recv();
        }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.signals.close();
        // As above.
        let _ = self.events.send(Event::Closed);
    }
}

/// Looks whether the drain file is there, and otherwise has it looked for.
fn watch_for(path: PathBuf, events: &Sender<Event>) -> Result<Option<DrainFile>, Failure> {
    let failed = |error: io::Error| {
        let shown = from_here(&path);
        Failure::usage(format!("cannot look for the drain file `{}`: {}", shown.display(), reason(&error)))
    };
    let events = events.clone();
    if drain_file::is_there(&path).map_err(failed)? {
        // The thread that hears of it lives as long as the interrupts.
        let _ = events.send(Event::Asked(Asker::EarlyDrainFile));
        return Ok(None);
    }
    let found = move || drop(events.send(Event::Asked(Asker::DrainFile)));
    DrainFile::watch(path.clone(), found).map(Some).map_err(failed)
}

/// The signals that ask to stop. A hang-up that is ignored already is none: whoever typed `nohup` wants the run to go on.
fn obeyed() -> Vec<i32> {
    let is_nohup = fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, SIGHUP));
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_nohup).collect()
}

/// Whether a process ignores a signal, by what the system says of the process.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn asker(signal: i32) -> Option<Asker> {
    match signal {
        SIGINT => Some(Asker::Interrupt),
        SIGTERM => Some(Asker::Terminate),
        SIGHUP => Some(Asker::HangUp),
        _ => None,
    }
}

/// The thread that does what is asked.
struct Obeying {
    terms: Terms,
    /// Of the run that is under way.
    cancel: Cancel,
    above: AboveBars,
    committed: Committed,
}

impl Obeying {
    fn run(mut self, events: &Receiver<Event>) {
        let mut stopping = Stopping::new(self.terms.grace);
        loop {
            let received = match stopping.wake_at() {
                Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let mut answer = None;
            match received {
                Ok(Event::Asked(by)) => {
                    if let Some(order) = stopping.ask(by, Instant::now()) {
                        self.follow(order);
                    }
                }
                Ok(Event::RunBegins(cancel, sender)) => {
                    self.cancel = cancel;
                    self.committed.forget();
                    if let Some(order) = stopping.begin(Instant::now()) {
                        self.follow(order);
                    }
                    answer = Some(sender);
                }
                Ok(Event::RunEnded(sender)) => {
                    stopping.end();
                    answer = Some(sender);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Event::Closed) | Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Some(order) = stopping.due(Instant::now()) {
                self.follow(order);
            }
            if let Some(answer) = answer {
                // Whoever asked is waiting.
                let _ = answer.send(());
            }
        }
    }

    fn follow(&self, order: Order) {
        match order {
            Order::Drain => self.cancel.drain(),
            Order::Hurry(_) => self.cancel.abort(),
            Order::Tell(..) | Order::Leave(_) => {}
        }
        let drain_file = self.terms.drain_file.as_deref().map(from_here).unwrap_or_default();
        let of = Circumstances {
            name: &self.terms.name,
            grace: self.terms.grace,
            drain_file: &drain_file.display().to_string(),
            safe: self.committed.rows(),
        };
        let line = stopping_words::line(order, of);
        if let Order::Leave(_) = order {
            let above = self.above.clone();
            self.say(line, move || above.wipe());
            abort_now()
        }
        self.say(line, || {});
    }

    /// Writes a line, after `prepare`, on a thread of its own: if nobody reads, only that one waits for ever.
    fn say(&self, line: Option<String>, prepare: impl FnOnce() + Send + 'static) {
        let Some(line) = line else { return };
        let (done, said) = mpsc::sync_channel(1);
        let mut above = self.above.clone();
        let write = move || {
            prepare();
            // A message that cannot be written has nobody to read it.
            let _ = above.write_all(line.as_bytes());
            let _ = done.send(());
        };
        // Without a thread for it nothing is said; what is done matters more.
        if thread::Builder::new().name("say".to_owned()).spawn(write).is_ok() {
            let _ = said.recv_timeout(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_found_in_what_the_system_says() {
        let status =
            "Name:\tflowgpu\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0000000100000440\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGINT) && !ignores(status, SIGTERM));
        assert!(ignores(status, 13));
        assert!(!ignores("SigIgn:\tmany", SIGHUP) && !ignores("", SIGHUP));
    }
}
