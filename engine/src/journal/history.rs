//! A journal as it was read back.

use super::{Begun, Cut, Done, Left, Record, SealedRun, Session};
use crate::durable::Lines;
use crate::node::Fault;

/// What a journal says.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// What is run.
    pub begun: Begun,
    /// The processes that worked on it.
    pub sessions: Vec<Session>,
    /// The cuts, in order, each with the number of the session that made it and of its line.
    pub cuts: Vec<(usize, usize, Cut)>,
    /// How the last process ended.
    pub end: End,
}

/// How far the last process has come.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// It runs, or it died.
    Open,
    /// It ended before the run was done.
    Left(Left),
    /// Outputs may or may not have their final names.
    Sealed(SealedRun),
    /// All is done.
    Done(SealedRun, Done),
}

impl History {
    /// Of the lines of a journal; `None` if there are none.
    ///
    /// # Errors
    /// If a line cannot be understood: its checksum was right, so another version of the program wrote it.
    pub fn of(lines: &Lines) -> Result<Option<History>, Fault> {
        let mut history: Option<History> = None;
        for (line_idx, line) in lines.lines.iter().enumerate() {
            let record = serde_json::from_str(line).map_err(|error| {
                Fault::permanent(format!("line {} of the journal cannot be understood: {error}", line_idx + 1))
                    .help("it is of another version of flowgpu; `--fresh` begins anew")
            })?;
            match (&mut history, record) {
                (None, Record::Begun(begun)) => {
                    history = Some(History { begun, sessions: Vec::new(), cuts: Vec::new(), end: End::Open });
                }
                (Some(history), record) => history.take(line_idx, record),
                (None, _) => return Err(Fault::permanent("the journal has no beginning").help("`--fresh` begins anew")),
            }
        }
        Ok(history)
    }

    fn take(&mut self, line_idx: usize, record: Record) {
        match record {
            Record::Begun(begun) => self.begun = begun,
            Record::Session(session) => {
                self.cuts.retain(|(_, line_idx, _)| session.from.is_some_and(|from| *line_idx <= from));
                self.sessions.push(session);
                self.end = End::Open;
            }
            Record::Cut(cut) => self.cuts.push((self.sessions.len().saturating_sub(1), line_idx, cut)),
            // Once sealed, a run is as good as done: it only lacks names, whatever has kept it from giving them.
            Record::Left(_) if matches!(self.end, End::Sealed(_)) => {}
            Record::Left(left) => self.end = End::Left(left),
            Record::Sealed(sealed) => self.end = End::Sealed(sealed),
            Record::Done(done) => {
                if let End::Sealed(sealed) = &self.end {
                    self.end = End::Done(sealed.clone(), done);
                }
            }
        }
    }

    /// The last cut.
    pub fn last_cut(&self) -> Option<&Cut> {
        self.cuts.last().map(|(_, _, cut)| cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Fingerprint, Moment, Why};

    #[test]
    fn a_run_that_is_sealed_stays_so_whatever_keeps_its_outputs_from_their_names() {
        let at = Moment::now();
        let begun = Begun {
            version: 1,
            at,
            name: "p".into(),
            shard: None,
            sources: vec!["rows".into()],
            fingerprint: Fingerprint::default(),
        };
        let sealed = SealedRun { at, cut: Cut::default(), outputs: vec![], rejects: None, code: 3, limited: false };
        let left = Left { at, why: Why::Failed, message: Some("no space left on the device".into()) };
        let of = |records: &[Record]| {
            let lines = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
            History::of(&Lines { lines, ..Lines::default() }).unwrap().unwrap().end
        };
        let begun = Record::Begun(begun);
        assert_eq!(of(&[begun.clone(), Record::Left(left.clone())]), End::Left(left.clone()));
        let records = [begun, Record::Sealed(sealed.clone()), Record::Left(left), Record::Done(Done { at })];
        assert_eq!(of(&records[..3]), End::Sealed(sealed.clone()));
        assert_eq!(of(&records), End::Done(sealed, Done { at }));
    }
}
