//! A trace of a run in Chrome's form (the JSON array of the Trace Event Format), which Perfetto shows too.
//!
//! Events are written as they come, so a trace takes no memory, and a run that dies leaves one that viewers still read:
//! the form allows the closing bracket to be missing. One process of the trace is this program, with its threads; each
//! worker is one, with a track for each stream of each model.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use crate::node::monotonic_ns;

/// Where an event took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// In this program.
    Here,
    /// In a worker, by its place in the placement.
    Worker(usize),
}

/// A trace that is being written.
pub struct Trace {
    out: Mutex<Out>,
}

struct Out {
    writer: Box<dyn Write + Send>,
    tracks: HashMap<(Place, String), usize>,
    start_ns: u64,
    is_empty: bool,
    /// What made the trace incomplete; then nothing more is written.
    error: Option<io::Error>,
}

impl Trace {
    /// Writes to `writer`, which should buffer.
    pub fn new(writer: Box<dyn Write + Send>) -> Self {
        let out = Out { writer, tracks: HashMap::new(), start_ns: monotonic_ns(), is_empty: true, error: None };
        Trace { out: Mutex::new(out) }
    }

    /// Writes the end.
    ///
    /// # Errors
    /// The first that was met since the beginning.
    pub fn finish(&self) -> io::Result<()> {
        let mut out = self.lock();
        match out.error.take() {
            Some(error) => Err(error),
            None => {
                let end: &[u8] = if out.is_empty { b"[]\n" } else { b"\n]\n" };
                out.writer.write_all(end)?;
                out.writer.flush()
            }
        }
    }

    /// The name that a process of the trace is shown under.
    pub(super) fn name(&self, place: Place, name: &str) {
        let event = json!({"ph": "M", "name": "process_name", "pid": pid(place), "args": {"name": name}});
        self.lock().write(&event);
    }

    /// Something that took from `start` to now, on the track of this thread.
    pub(super) fn worked(&self, name: &str, start: Instant) {
        let end_ns = monotonic_ns();
        let start_ns = end_ns.saturating_sub(super::stats::nanos(start.elapsed()));
        let thread = std::thread::current();
        self.span(Place::Here, thread.name().unwrap_or("thread"), name, (start_ns, end_ns), Value::Null);
    }

    /// Something that took from one time to another on a track of its own; on one track nothing may overlap.
    pub(super) fn span(&self, place: Place, track: &str, name: &str, (start_ns, end_ns): (u64, u64), args: Value) {
        let mut out = self.lock();
        let tid = out.track(place, track);
        let (ts, dur) = (out.micros(start_ns), (end_ns.saturating_sub(start_ns)) as f64 / 1e3);
        let mut event = json!({"ph": "X", "name": name, "pid": pid(place), "tid": tid, "ts": ts, "dur": dur});
        if !args.is_null() {
            event["args"] = args;
        }
        out.write(&event);
    }

    /// Something that took from one time to another beside others of its kind.
    pub(super) fn flight(&self, name: &str, id: u64, (start_ns, end_ns): (u64, u64), args: Value) {
        let mut out = self.lock();
        let (start, end) = (out.micros(start_ns), out.micros(end_ns));
        let id = format!("{name}/{id}");
        let pid = pid(Place::Here);
        out.write(&json!({"ph": "b", "cat": "job", "name": name, "id": id, "pid": pid, "ts": start, "args": args}));
        out.write(&json!({"ph": "e", "cat": "job", "name": name, "id": id, "pid": pid, "ts": end}));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trace")
    }
}

impl Out {
    /// Microseconds since the beginning of the run.
    fn micros(&self, ns: u64) -> f64 {
        (ns as f64 - self.start_ns as f64) / 1e3
    }

    /// The number of a track, which is told with its name when it is first used.
    fn track(&mut self, place: Place, name: &str) -> usize {
        if let Some(&tid) = self.tracks.get(&(place, name.to_owned())) {
            return tid;
        }
        let tid = self.tracks.len() + 1;
        self.tracks.insert((place, name.to_owned()), tid);
        let event = json!({"ph": "M", "name": "thread_name", "pid": pid(place), "tid": tid, "args": {"name": name}});
        self.write(&event);
        tid
    }

    fn write(&mut self, event: &Value) {
        if self.error.is_some() {
            return;
        }
        let separator = if self.is_empty { "[\n" } else { ",\n" };
        self.is_empty = false;
        let written = write!(self.writer, "{separator}{event}");
        self.error = written.err();
    }
}

/// The number of a process in the trace: not the system's, since a worker that is replaced goes on under its name.
fn pid(place: Place) -> usize {
    match place {
        Place::Here => 1,
        Place::Worker(worker) => worker + 2,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_trace_is_a_list_of_events_with_named_tracks() {
        let written = Shared::default();
        let trace = Trace::new(Box::new(written.clone()));
        let start = monotonic_ns();
        trace.name(Place::Worker(0), "worker 0");
        trace.span(Place::Worker(0), "scores compute", "compute", (start, start + 5_000), json!({"rows": 8}));
        trace.span(Place::Worker(0), "scores compute", "compute", (start + 5_000, start + 7_000), Value::Null);
        trace.flight("scores", 7, (start, start + 1), json!({}));
        trace.finish().unwrap();
        let events: Value = serde_json::from_slice(&written.0.lock().unwrap()).unwrap();
        let events = events.as_array().unwrap();
        let phases: Vec<_> = events.iter().map(|event| event["ph"].as_str().unwrap()).collect();
        assert_eq!(phases, ["M", "M", "X", "X", "b", "e"]);
        assert_eq!(events[1]["args"]["name"], "scores compute");
        assert_eq!((&events[2]["tid"], events[2]["dur"].as_f64()), (&events[1]["tid"], Some(5.0)));
        assert_eq!(events[2]["args"]["rows"], 8);
    }

    #[test]
    fn a_trace_without_events_is_an_empty_list() {
        let written = Shared::default();
        Trace::new(Box::new(written.clone())).finish().unwrap();
        assert_eq!(*written.0.lock().unwrap(), b"[]\n");
    }
}
