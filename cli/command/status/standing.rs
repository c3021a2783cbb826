//! How a run stands.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use engine::journal::{Cut, End, History, Moment, OutputRecord, SealedRun, Session, Why};
use engine::node::{Fault, Shard};

use super::place::Place;
use super::reading::Reading;
use super::shards::Shards;
use crate::failure::{exit, fault_code};

/// Older cuts say nothing about how fast rows are done now.
const WINDOW: Duration = Duration::from_secs(15);

/// How a run, or a shard of one, or all shards together stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Standing {
    pub(super) name: String,
    /// Which part of a run it is, if it is a part.
    pub(super) shard: Option<Shard>,
    /// Where its state is, as one would write it here.
    pub(super) folder: PathBuf,
    pub(super) state: State,
    /// The process that works on it, or was the last to do so.
    pub(super) process: Option<Process>,
    /// How many processes have worked on it.
    pub(super) n_sessions: u64,
    /// Rows that are durable, written or rejected.
    pub(super) rows: u64,
    /// Rows that there are, where that is known.
    pub(super) total: Option<u64>,
    /// Rows that were done before the last process.
    pub(super) resumed: u64,
    /// Rows done in a second lately, of a run that goes on.
    pub(super) pace: Option<f64>,
    /// How long it will take still, if that can be guessed.
    pub(super) left: Option<Duration>,
    /// When rows were last made durable.
    pub(super) committed: Option<Moment>,
    /// When it ended, if it could say so.
    pub(super) ended: Option<Moment>,
    /// Why it failed, or cannot be told of.
    pub(super) message: Option<String>,
    /// What may help.
    pub(super) help: Option<String>,
    pub(super) rejects: Rejects,
    pub(super) outputs: Vec<Output>,
    /// The exit code that a finished run repeats.
    pub(super) code: Option<u8>,
    /// Whether a limit ended it.
    pub(super) limited: bool,
    /// All rows are in the outputs, but these do not have their names yet.
    pub(super) is_sealed: bool,
    /// Bytes of a line that was being written when the process died.
    pub(super) n_torn: u64,
    pub(super) shards: Option<Shards>,
    /// What the command exits with on account of it.
    pub(super) told_with: u8,
}

/// What a run does, or how it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// There is no state.
    #[default]
    NeverStarted,
    /// A process has it, but has not noted that it works on it.
    Starting,
    /// A process works on it.
    Running,
    /// It was asked to stop.
    Interrupted,
    /// A fault ended it.
    Failed,
    /// The process is gone without a word.
    Killed,
    /// All is done.
    Done,
    /// The journal cannot be read.
    Unreadable,
}

/// A process that works on a run, or did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Option<u32>,
    pub(super) host: Option<String>,
    pub(super) since: Option<Moment>,
    /// What it says of itself, where nothing better is known.
    pub(super) note: Option<String>,
    /// Whether it is, or was, on another machine than this.
    pub(super) is_elsewhere: bool,
}

/// Rejected rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rejects {
    pub(super) total: u64,
    pub(super) by_code: BTreeMap<String, u64>,
    /// Their file, once it has its name.
    pub(super) path: Option<String>,
}

/// What has been written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) node: String,
    /// Once it has its name.
    pub(super) path: Option<String>,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl State {
    /// The word for it in JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            State::NeverStarted => "never_started",
            State::Starting => "starting",
            State::Running => "running",
            State::Interrupted => "interrupted",
            State::Failed => "failed",
            State::Killed => "killed",
            State::Done => "done",
            State::Unreadable => "unreadable",
        }
    }

    /// Whether a process works on it.
    pub(super) fn is_alive(self) -> bool {
        matches!(self, State::Starting | State::Running)
    }
}

impl Standing {
    /// Of the run at a place.
    pub(super) fn read(place: &Place) -> Standing {
        let whole = || Standing {
            name: place.name.clone(),
            folder: Place::shown(&place.folder),
            ..Standing::of(Reading::of(&place.folder), &place.name)
        };
        if place.shards.is_empty() {
            return whole();
        }
        let part = |&shard: &Shard| {
            let folder = place.shard(shard);
            let standing = Standing::of(Reading::of(&folder), &place.name);
            Standing { shard: Some(shard), folder: Place::shown(&folder), ..standing }
        };
        Shards::join(place.shards.iter().map(part).collect(), Place::shown(&place.folder))
    }

    /// What a journal and its lock say.
    pub(super) fn of(reading: Reading, name: &str) -> Standing {
        let Reading { held, history, n_torn, host } = reading;
        let is_held = held.is_some();
        let beginning = Standing {
            name: name.to_owned(),
            process: held.as_ref().map(|held| Process {
                pid: held.pid,
                note: Some(held.note.clone()).filter(|note| !note.is_empty()),
                is_elsewhere: held.pid.is_none(),
                ..Process::default()
            }),
            // Of one that lives, it is a line that is being written.
            n_torn: if is_held { 0 } else { n_torn },
            ..Standing::default()
        };
        match history {
            Ok(None) => Standing { state: if is_held { State::Starting } else { State::NeverStarted }, ..beginning },
            Ok(Some(history)) => beginning.with(&history, is_held, host.as_deref()),
            Err(fault) => beginning.unreadable(&fault),
        }
    }

    fn unreadable(self, fault: &Fault) -> Standing {
        Standing {
            state: State::Unreadable,
            message: Some(fault.message.clone()),
            help: fault.help.clone(),
            told_with: fault_code(fault),
            ..self
        }
    }

    fn with(mut self, history: &History, is_held: bool, host: Option<&str>) -> Standing {
        self.name.clone_from(&history.begun.name);
        self.n_sessions = history.sessions.len() as u64;
        let session = history.sessions.last();
        if let Some(session) = session {
            self.resumed = session.resumed;
            self.rows = session.resumed;
            let is_elsewhere = host.is_some_and(|host| host != session.host);
            // Who holds the lock may be a process that has not noted itself yet.
            let is_the_holder = self.process.as_ref().is_none_or(|held| held.pid.is_none_or(|pid| pid == session.pid));
            if is_the_holder {
                let (pid, host) = (Some(session.pid), Some(session.host.clone()));
                self.process = Some(Process { pid, host, since: Some(session.at), note: None, is_elsewhere });
            }
        }
        if let Some(cut) = history.last_cut() {
            self.take_cut(cut, session);
            self.outputs = cut
                .sinks
                .iter()
                .map(|(node, sink)| Output {
                    node: node.clone(),
                    path: None,
                    rows: sink.pos.rows,
                    bytes: sink.pos.bytes,
                })
                .collect();
        }
        match &history.end {
            End::Done(sealed, done) => {
                self.take_sealed(sealed, session);
                (self.state, self.is_sealed) = (State::Done, false);
                (self.ended, self.code) = (Some(done.at), Some(sealed.code));
                self.rejects.path = sealed.rejects.as_ref().map(|rejects| rejects.path.clone());
                return self;
            }
            End::Sealed(sealed) => {
                self.take_sealed(sealed, session);
                self.state = if is_held { State::Running } else { State::Killed };
            }
            End::Left(left) if !is_held => {
                self.state = match left.why {
                    Why::Interrupted => State::Interrupted,
                    Why::Failed => State::Failed,
                };
                (self.ended, self.message) = (Some(left.at), left.message.clone());
            }
            End::Left(_) => self.state = State::Starting,
            End::Open => self.state = if is_held { State::Running } else { State::Killed },
        }
        if self.state == State::Running && !self.is_sealed {
            self.pace = pace(history);
            self.left = self.time_left();
        }
        self
    }

    fn take_cut(&mut self, cut: &Cut, session: Option<&Session>) {
        let limit = session.and_then(|session| session.limit).unwrap_or(u64::MAX);
        self.rows = cut.rows();
        self.total = cut.sources.iter().map(|source| source.total.map(|total| total.min(limit))).sum();
        self.committed = Some(cut.at);
        self.rejects.total = cut.rejects.total;
        self.rejects.by_code.clone_from(&cut.rejects.by_code);
    }

    fn take_sealed(&mut self, sealed: &SealedRun, session: Option<&Session>) {
        self.take_cut(&sealed.cut, session);
        self.is_sealed = true;
        self.limited = sealed.limited;
        let output = |OutputRecord { node, sealed, .. }: &OutputRecord| Output {
            node: node.clone(),
            path: Some(sealed.path.clone()),
            rows: sealed.rows,
            bytes: sealed.bytes,
        };
        self.outputs = Vec::new();
        for output in sealed.outputs.iter().map(output) {
            let rows = sealed.cut.sinks.get(&output.node).map_or(output.rows, |sink| sink.pos.rows);
            match self.outputs.iter_mut().find(|other| other.node == output.node) {
                // Of files that belong together each has all rows; of parts, each has some.
                Some(whole) if output.rows != rows => {
                    let first = whole.path.take().unwrap_or_default();
                    let first = first.split(" … ").next().unwrap_or_default();
                    whole.path = output.path.map(|last| format!("{first} … {last}"));
                    whole.rows = rows;
                    whole.bytes += output.bytes;
                }
                _ => self.outputs.push(output),
            }
        }
    }

    /// What is left at the present pace. Nothing is known of what came after the last cut.
    fn time_left(&self) -> Option<Duration> {
        let n_left = self.total?.saturating_sub(self.rows);
        Duration::try_from_secs_f64(n_left as f64 / self.pace.filter(|pace| *pace > 0.0)?).ok()
    }

    /// What the command exits with on account of it.
    pub(super) fn exit_code(&self) -> u8 {
        let of_shards = self.shards.iter().flat_map(|shards| &shards.runs).map(Standing::exit_code).max();
        self.told_with.max(of_shards.unwrap_or(exit::DONE))
    }
}

/// Rows done in a second over the last cuts of the last process.
fn pace(history: &History) -> Option<f64> {
    let last = history.sessions.len().checked_sub(1)?;
    let beginning = history.sessions.last().map(|session| (session.at, session.resumed));
    let cuts = history.cuts.iter().filter(|(session, ..)| *session == last).map(|(.., cut)| (cut.at, cut.rows()));
    let points: Vec<(Moment, u64)> = beginning.into_iter().chain(cuts).collect();
    let (&(end, rows), before) = points.split_last()?;
    // One from before the window, so that the window is always spanned; the beginning, which comes before any row, only
    // if there is nothing else.
    let first = before.iter().rposition(|(at, _)| end.since(*at) >= WINDOW).unwrap_or(0);
    let first = if first == 0 && before.len() > 1 { 1 } else { first };
    let (at, rows_before) = *before.get(first)?;
    let seconds = end.since(at).as_secs_f64();
    (seconds > 0.0).then(|| rows.saturating_sub(rows_before) as f64 / seconds)
}

#[cfg(test)]
pub(super) mod tests {
    use engine::durable::Held;
    use engine::durable::{Lines, Log};
    use engine::journal::{Begun, Done, Fingerprint, Left, Record, RejectCut, SinkCut, SourceCut};
    use engine::node::{Place as OutputPlace, Sealed, SinkPos};

    use super::*;

    /// So many seconds after a beginning.
    pub(in super::super) fn at(seconds: u64) -> Moment {
        let text = format!("2026-12-01T{:02}:{:02}:{:02}.000Z", 3 + seconds / 3600, seconds / 60 % 60, seconds % 60);
        text.parse().unwrap()
    }

    fn begun() -> Record {
        Record::Begun(Begun {
            version: 1,
            at: at(0),
            name: "classify".into(),
            shard: None,
            sources: vec!["photos".into()],
            fingerprint: Fingerprint::default(),
        })
    }

    fn session(seconds: u64, pid: u32, resumed: u64) -> Session {
        let (host, build) = ("node7".to_owned(), "0.1.0".to_owned());
        Session { at: at(seconds), pid, host, build, from: None, resumed, limit: None, in_flight: Vec::new() }
    }

    fn cut(seconds: u64, done: u64) -> Cut {
        let rejected = done / 1000;
        let pos = SinkPos { rows: done - rejected, bytes: 100 * (done - rejected), ..SinkPos::default() };
        Cut {
            at: at(seconds),
            sources: vec![SourceCut { done, next: None, total: Some(1_000_000), ended: false }],
            sinks: [("out".to_owned(), SinkCut { pos, rejected, ends: Vec::new(), closed: Vec::new() })].into(),
            rejects: RejectCut {
                total: rejected,
                by_code: [("truncated".to_owned(), rejected)].into(),
                ..RejectCut::default()
            },
        }
    }

    fn sealed(seconds: u64) -> SealedRun {
        let output = Sealed {
            path: "out/labels.jsonl".into(),
            spooled: None,
            rows: 999_000,
            bytes: 99_900_000,
            place: OutputPlace::File,
        };
        let rejects = Sealed {
            path: "out/classify.rejects.jsonl".into(),
            spooled: None,
            rows: 1_000,
            bytes: 9,
            place: OutputPlace::File,
        };
        SealedRun {
            at: at(seconds),
            cut: cut(seconds, 1_000_000),
            outputs: vec![OutputRecord { node: "out".into(), sealed: output, ends: Vec::new() }],
            rejects: Some(rejects),
            code: 3,
            limited: false,
        }
    }

    fn left(seconds: u64, why: Why, message: Option<&str>) -> Record {
        Record::Left(Left { at: at(seconds), why, message: message.map(str::to_owned) })
    }

    /// How a run stands by a real journal with these records.
    pub(in super::super) fn standing(records: &[Record], held: Option<Held>) -> Standing {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut log, _) = Log::open(&path).unwrap();
        records.iter().for_each(|record| log.append(&serde_json::to_string(record).unwrap()).unwrap());
        let lines = Lines::read(&path).unwrap();
        let reading = Reading { held, history: History::of(&lines), n_torn: lines.n_torn, host: Some("node7".into()) };
        Standing::of(reading, "classify")
    }

    pub(in super::super) fn held(pid: u32) -> Option<Held> {
        Some(Held { pid: Some(pid), note: format!("pid {pid} on node7 since 2026-12-01T03:00:00.000Z") })
    }

    /// A run that goes on: 400 rows a second lately, after a slow beginning.
    pub(in super::super) fn running() -> Vec<Record> {
        let cuts = [(60, 400_000), (80, 408_000), (90, 412_000), (99, 415_600)];
        let session = Record::Session(session(50, 4121, 395_000));
        [begun(), session].into_iter().chain(cuts.map(|(seconds, done)| Record::Cut(cut(seconds, done)))).collect()
    }

    pub(in super::super) fn done() -> Vec<Record> {
        [&running()[..], &[Record::Sealed(sealed(100)), Record::Done(Done { at: at(100) })]].concat()
    }

    pub(in super::super) fn interrupted() -> Vec<Record> {
        [running(), vec![left(99, Why::Interrupted, None)]].concat()
    }

    pub(in super::super) fn failed() -> Vec<Record> {
        [running(), vec![left(99, Why::Failed, Some("`out`: cannot write `o`: no space left on the device"))]].concat()
    }

    #[test]
    fn a_run_alive_has_a_pace_and_an_end_in_sight() {
        let standing = standing(&running(), held(4121));
        assert_eq!(standing.state, State::Running);
        assert_eq!((standing.rows, standing.total, standing.resumed), (415_600, Some(1_000_000), 395_000));
        assert_eq!(standing.pace, Some(400.0));
        assert_eq!(standing.left, Some(Duration::from_secs(1461)));
        assert_eq!(standing.process.as_ref().unwrap().since, Some(at(50)));
        assert_eq!((standing.rejects.total, standing.rejects.by_code["truncated"]), (415, 415));
        assert_eq!((standing.outputs[0].rows, &standing.outputs[0].path), (415_185, &None));
    }

    #[test]
    fn the_first_cut_alone_counts_from_the_beginning_of_the_process() {
        let standing = standing(&running()[..3], held(4121));
        assert_eq!(standing.pace, Some(500.0));
    }

    #[test]
    fn how_a_run_ended_is_told() {
        assert_eq!(standing(&interrupted(), None).state, State::Interrupted);
        let failed = standing(&failed(), None);
        assert_eq!((failed.state, failed.rows), (State::Failed, 415_600));
        assert_eq!(failed.message.as_deref(), Some("`out`: cannot write `o`: no space left on the device"));
        let killed = standing(&running(), None);
        assert_eq!((killed.state, killed.pace, killed.left), (State::Killed, None, None));
        let done = standing(&done(), None);
        assert_eq!((done.state, done.code, done.rows, done.is_sealed), (State::Done, Some(3), 1_000_000, false));
        assert_eq!(done.outputs[0].path.as_deref(), Some("out/labels.jsonl"));
        let sealed = [running(), vec![Record::Sealed(sealed(100))]].concat();
        let unnamed = standing(&sealed, None);
        assert_eq!((unnamed.state, unnamed.is_sealed), (State::Killed, true));
    }

    #[test]
    fn a_process_that_has_noted_nothing_yet_is_starting() {
        assert_eq!(standing(&[], held(7)).state, State::Starting);
        assert_eq!(standing(&[], None).state, State::NeverStarted);
        let taking_up = standing(&interrupted(), held(7));
        assert_eq!((taking_up.state, taking_up.process.unwrap().pid), (State::Starting, Some(7)));
        assert_eq!(standing(&[begun()], None).state, State::Killed);
    }

    #[test]
    fn a_limit_is_the_end_of_each_source() {
        let mut records = running();
        records[1] = Record::Session(Session { limit: Some(500_000), ..session(50, 4121, 395_000) });
        assert_eq!(standing(&records, held(4121)).total, Some(500_000));
    }

    #[test]
    fn a_journal_of_another_version_and_a_torn_one_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let state = engine::journal::StateFolder::at(folder.path().to_owned());
        let (mut log, _) = Log::open(&state.journal()).unwrap();
        for record in running() {
            log.append(&serde_json::to_string(&record).unwrap()).unwrap();
        }
        let whole = std::fs::read(state.journal()).unwrap();
        std::fs::write(state.journal(), &whole[..whole.len() - 9]).unwrap();
        let torn = Standing::of(Reading::of(&state), "classify");
        assert_eq!((torn.state, torn.rows, torn.exit_code()), (State::Killed, 412_000, exit::DONE));
        assert!(torn.n_torn > 0);
        let (mut log, _) = Log::open(&state.journal()).unwrap();
        log.append(r#"{"folded":{"at":"2027-01-01T00:00:00.000Z"}}"#).unwrap();
        let other = Standing::of(Reading::of(&state), "classify");
        assert_eq!((other.state, other.exit_code()), (State::Unreadable, exit::USAGE));
        assert!(other.message.unwrap().starts_with("line 6 of the journal cannot be understood: "));
        assert_eq!(other.help.as_deref(), Some("it is of another version of flowgpu; `--fresh` begins anew"));
    }
}
