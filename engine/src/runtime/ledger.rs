//! How far each sink has come, and from that how far the run has come: the arithmetic of a cut.
//!
//! Every edge is in the order of positions, so a consistent cut needs no barrier that travels with the rows: a position
//! is asked for, each sink notes where it stands when it passes that position, and when all sinks that read the source
//! have, everything before it is in the outputs. Sources are asked for apart from each other, since independent ones
//! have nothing to do with each other; where a sink reads several, one after the other, a later one counts only when
//! the earlier one is complete.

use std::collections::{BTreeMap, BTreeSet};

use crate::data::RowPos;

/// The book of all sinks. `M` is what a sink notes: where it stands.
pub(super) struct Ledger<M> {
    sinks: Vec<Line<M>>,
    asked: BTreeSet<RowPos>,
    /// By source: how far the last cut went.
    frontier: Vec<RowPos>,
}

struct Line<M> {
    /// The numbers of the sources that it reads, ascending.
    reads: Vec<u32>,
    /// Everything before it is written.
    passed: RowPos,
    /// Everything before it is written, or about to be.
    claimed: RowPos,
    marks: BTreeMap<RowPos, M>,
}

/// The end of what a source gives in this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceEnd {
    /// The position behind its last row.
    pub(super) at: RowPos,
    /// Its rows, those of earlier runs among them.
    pub(super) rows: u64,
    /// Whether it gave all that was wanted of it, as opposed to one that was asked to stop.
    pub(super) is_complete: bool,
    /// Whether there is nothing behind it, as opposed to one that a limit has ended.
    pub(super) is_all: bool,
}

/// The position behind all rows of a source.
pub(super) fn end_of(source: u32) -> RowPos {
    RowPos::new(source, u64::MAX)
}

/// How far a watermark is in a source.
fn on(pos: RowPos, source: u32) -> RowPos {
    pos.clamp(RowPos::start_of(source), end_of(source))
}

impl<M> Ledger<M> {
    /// For sinks that read these sources, each with what it notes where it starts; sources start at these positions.
    pub(super) fn new(sinks: Vec<(Vec<u32>, M)>, starts: Vec<RowPos>) -> Self {
        let line = |(reads, mark): (Vec<u32>, M)| {
            // The first source that it is not past; a mark there stands for the start.
            let at = start_of(&reads, &starts);
            Line { reads, passed: at, claimed: at, marks: BTreeMap::from([(at, mark)]) }
        };
        let sinks = sinks.into_iter().map(line).collect();
        Ledger { sinks, asked: BTreeSet::new(), frontier: starts }
    }

    /// Sink number `sink` is about to write what is before `upto`: the positions on the way at which it has to note where
    /// it stands. Where it reads several sources, the ends of those are among them.
    pub(super) fn claim(&mut self, sink: usize, upto: RowPos) -> Vec<RowPos> {
        let line = &mut self.sinks[sink];
        let (from, to) = (line.passed, upto);
        line.claimed = line.claimed.max(to);
        let is_its = |pos: &RowPos| line.reads.contains(&pos.source);
        let mut points: BTreeSet<_> =
            self.asked.range(..=to).filter(|pos| **pos > from && is_its(pos)).copied().collect();
        if line.reads.len() > 1 || upto == RowPos::END {
            points.extend(line.reads.iter().map(|&source| end_of(source)).filter(|end| *end > from && *end <= to));
        }
        points.into_iter().filter(|pos| !line.marks.contains_key(pos)).collect()
    }

    /// Sink number `sink` has written what is before `upto`.
    pub(super) fn passed(&mut self, sink: usize, upto: RowPos) {
        self.sinks[sink].passed = upto;
    }

    /// Whether a position at which sink number `sink` stands right now was asked for: it has to note where that is.
    pub(super) fn due(&self, sink: usize) -> Option<RowPos> {
        let line = &self.sinks[sink];
        let at = line.passed;
        (self.asked.contains(&at) && line.reads.contains(&at.source) && !line.marks.contains_key(&at)).then_some(at)
    }

    /// The position at which sink number `sink` stands, unless it has noted that.
    pub(super) fn stands_at(&self, sink: usize) -> Option<RowPos> {
        let line = &self.sinks[sink];
        (line.passed == line.claimed && !line.marks.contains_key(&line.passed)).then_some(line.passed)
    }

    /// Whether sink number `sink` has noted where it stands at a position.
    pub(super) fn has_noted(&self, sink: usize, at: RowPos) -> bool {
        self.sinks[sink].marks.contains_key(&at)
    }

    /// Sink number `sink` notes where it stands before the row at `at`.
    pub(super) fn mark(&mut self, sink: usize, at: RowPos, mark: M) {
        self.sinks[sink].marks.insert(at, mark);
    }

    /// Asks, in each source, for the furthest position that a sink has claimed: all sinks will pass it.
    pub(super) fn ask(&mut self) {
        for source in 0..self.frontier.len() as u32 {
            let readers = self.sinks.iter().filter(|line| line.reads.contains(&source));
            let Some(furthest) = readers.map(|line| on(line.claimed, source)).max() else { continue };
            if furthest > self.frontier[source as usize] {
                self.asked.insert(furthest);
            }
        }
    }

    /// How far each source is done in all sinks, its [`end_of`] where it is done to its end; `None` if that is no further
    /// than it was. `ends` are those of sources that have ended.
    pub(super) fn advance(&mut self, ends: &[Option<SourceEnd>]) -> Option<Vec<RowPos>> {
        let mut frontier = self.frontier.clone();
        for source in 0..frontier.len() as u32 {
            let best = self.noted_by_all(source);
            let waits = self.sinks.iter().filter(|line| line.reads.contains(&source)).any(|line| {
                let earlier = line.reads.iter().filter(|&&earlier| earlier < source);
                earlier.into_iter().any(|&earlier| !is_complete(frontier[earlier as usize], ends[earlier as usize]))
            });
            if !waits && best > frontier[source as usize] {
                frontier[source as usize] = best;
            }
        }
        if frontier == self.frontier {
            return None;
        }
        self.frontier = frontier.clone();
        self.asked.retain(|pos| *pos > frontier[pos.source as usize]);
        Some(frontier)
    }

    /// The furthest position of a source at which all sinks that read it have noted where they stand.
    fn noted_by_all(&self, source: u32) -> RowPos {
        let mut readers = self.sinks.iter().filter(|line| line.reads.contains(&source));
        let start = RowPos::start_of(source);
        let Some(first) = readers.next() else { return start };
        let others: Vec<_> = readers.collect();
        let noted = first.marks.range(start..=end_of(source)).rev().map(|(pos, _)| *pos);
        noted.into_iter().find(|pos| others.iter().all(|line| line.marks.contains_key(pos))).unwrap_or(start)
    }

    /// Where sink number `sink` stood at the last frontier, and at which position. What it noted before that is forgotten.
    pub(super) fn at_frontier(&mut self, sink: usize) -> Option<(RowPos, &mut M)> {
        let line = &mut self.sinks[sink];
        let at = start_of(&line.reads, &self.frontier);
        // At the start of a source it stands where it stood at the end of the one before.
        let found = line.marks.range(..=at).next_back().map(|(pos, _)| *pos)?;
        let is_start = at == RowPos::start_of(at.source);
        let exact = found == at || (is_start && line.marks.contains_key(&found));
        line.marks = line.marks.split_off(&found);
        exact.then(|| Some((found, line.marks.get_mut(&found)?))).flatten()
    }
}

/// Whether a source is done to its very end.
fn is_complete(frontier: RowPos, end: Option<SourceEnd>) -> bool {
    end.is_some_and(|end| end.is_complete && frontier >= end.at)
}

/// The first place, in the sources that a sink reads, that is not done.
fn start_of(reads: &[u32], frontier: &[RowPos]) -> RowPos {
    let open = reads.iter().find(|&&source| frontier[source as usize] != end_of(source));
    match (open, reads.last()) {
        (Some(&source), _) => frontier[source as usize],
        (None, Some(&last)) => end_of(last),
        (None, None) => RowPos::END,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(source: u32, rows: u64) -> Option<SourceEnd> {
        Some(SourceEnd { at: RowPos::new(source, rows), rows, is_complete: true, is_all: true })
    }

    fn stopped(source: u32, rows: u64) -> Option<SourceEnd> {
        Some(SourceEnd { is_complete: false, is_all: false, ..all(source, rows).unwrap() })
    }

    /// The positions of these indices, one of each source.
    fn places(indices: &[u64]) -> Vec<RowPos> {
        let place = |(source, &index)| RowPos::new(source, index);
        (0..).zip(indices).map(place).collect()
    }

    /// A sink that writes up to `upto`, and notes at each point what it is told to.
    fn write(ledger: &mut Ledger<RowPos>, sink: usize, upto: RowPos) {
        for at in ledger.claim(sink, upto) {
            ledger.mark(sink, at, at);
        }
        ledger.passed(sink, upto);
        if let Some(at) = ledger.due(sink) {
            ledger.mark(sink, at, at);
        }
    }

    fn at(ledger: &mut Ledger<RowPos>, sink: usize) -> Option<RowPos> {
        ledger.at_frontier(sink).map(|(_, mark)| *mark)
    }

    #[test]
    fn a_cut_is_where_all_sinks_have_passed() {
        let start = RowPos::new(0, 0);
        let mut ledger = Ledger::new(vec![(vec![0], start), (vec![0], start)], places(&[0]));
        write(&mut ledger, 0, RowPos::new(0, 64));
        write(&mut ledger, 1, RowPos::new(0, 10));
        ledger.ask();
        assert_eq!(ledger.due(0), Some(RowPos::new(0, 64)), "the first stands where is asked for");
        ledger.mark(0, RowPos::new(0, 64), RowPos::new(0, 64));
        assert_eq!(ledger.advance(&[None]), None);
        write(&mut ledger, 0, RowPos::new(0, 128));
        assert_eq!(ledger.claim(1, RowPos::new(0, 70)), [RowPos::new(0, 64)], "the second notes it on its way");
        ledger.mark(1, RowPos::new(0, 64), RowPos::new(0, 64));
        ledger.passed(1, RowPos::new(0, 70));
        assert_eq!(ledger.advance(&[None]), Some(places(&[64])));
        assert_eq!((at(&mut ledger, 0), at(&mut ledger, 1)), (Some(RowPos::new(0, 64)), Some(RowPos::new(0, 64))));
        assert_eq!(ledger.advance(&[None]), None);
    }

    #[test]
    fn a_cut_may_lie_between_rows_of_one_item() {
        let start = RowPos::new(0, 0);
        let mut ledger = Ledger::new(vec![(vec![0], start), (vec![0], start)], places(&[0]));
        let (middle, later) = (RowPos { sub: 40, ..RowPos::new(0, 2) }, RowPos { sub: 60, ..RowPos::new(0, 2) });
        write(&mut ledger, 0, middle);
        write(&mut ledger, 1, RowPos::new(0, 2));
        ledger.ask();
        ledger.mark(0, ledger.due(0).unwrap(), middle);
        write(&mut ledger, 0, later);
        write(&mut ledger, 1, later);
        assert_eq!(ledger.advance(&[None]), Some(vec![middle]));
        assert_eq!((at(&mut ledger, 0), at(&mut ledger, 1)), (Some(middle), Some(middle)));
        write(&mut ledger, 0, RowPos::new(0, 3));
        write(&mut ledger, 1, RowPos::new(0, 3));
        ledger.ask();
        for sink in 0..2 {
            ledger.mark(sink, ledger.due(sink).unwrap(), start);
        }
        assert_eq!(ledger.advance(&[None]), Some(vec![RowPos::new(0, 3)]));
    }

    #[test]
    fn what_is_asked_for_while_a_sink_is_at_work_is_behind_that_work() {
        let start = RowPos::new(0, 0);
        let mut ledger = Ledger::new(vec![(vec![0], start)], places(&[0]));
        assert_eq!(ledger.claim(0, RowPos::new(0, 32)), []);
        ledger.ask();
        ledger.passed(0, RowPos::new(0, 32));
        assert_eq!(ledger.due(0), Some(RowPos::new(0, 32)));
    }

    #[test]
    fn independent_sources_are_cut_apart_from_each_other() {
        let mut ledger = Ledger::new(vec![(vec![0], RowPos::new(0, 0)), (vec![1], RowPos::new(1, 0))], places(&[0, 0]));
        write(&mut ledger, 1, RowPos::new(1, 50));
        ledger.ask();
        let due = ledger.due(1).unwrap();
        ledger.mark(1, due, due);
        assert_eq!(ledger.advance(&[None, None]), Some(places(&[0, 50])));
        assert_eq!((at(&mut ledger, 0), at(&mut ledger, 1)), (Some(RowPos::new(0, 0)), Some(RowPos::new(1, 50))));
        write(&mut ledger, 1, RowPos::END);
        assert_eq!(ledger.advance(&[None, all(1, 60)]), Some(places(&[0, u64::MAX])));
    }

    #[test]
    fn what_was_noted_at_a_position_is_known() {
        let start = RowPos::new(0, 0);
        let mut ledger = Ledger::new(vec![(vec![0], start), (vec![0], start)], places(&[0]));
        let at = RowPos::new(0, 20);
        assert!(!ledger.has_noted(0, at));
        ledger.mark(0, at, at);
        // The second row of a position, from another branch of a union, must not move what was noted before the first.
        assert!(ledger.has_noted(0, at) && !ledger.has_noted(1, at));
    }

    #[test]
    fn a_later_source_counts_when_the_earlier_one_is_complete() {
        // One sink reads both, another one only the first, and lags.
        let start = RowPos::new(0, 0);
        let mut ledger = Ledger::new(vec![(vec![0, 1], start), (vec![0], start)], places(&[0, 0]));
        write(&mut ledger, 0, RowPos::new(1, 7));
        write(&mut ledger, 1, RowPos::new(0, 3));
        ledger.ask();
        let due = ledger.due(0).unwrap();
        ledger.mark(0, due, due);
        assert_eq!(ledger.advance(&[all(0, 9), None]), None, "the second sink is not at the end of the first source");
        write(&mut ledger, 1, RowPos::END);
        assert_eq!(ledger.advance(&[all(0, 9), None]), Some(places(&[u64::MAX, 7])));
        assert_eq!(at(&mut ledger, 0), Some(RowPos::new(1, 7)));
    }

    #[test]
    fn a_source_that_was_stopped_holds_back_those_behind_it() {
        let mut ledger = Ledger::new(vec![(vec![0, 1], RowPos::new(0, 0))], places(&[0, 0]));
        write(&mut ledger, 0, RowPos::new(1, 0));
        write(&mut ledger, 0, RowPos::new(1, 20));
        write(&mut ledger, 0, RowPos::END);
        assert_eq!(ledger.advance(&[stopped(0, 5), stopped(1, 20)]), Some(places(&[u64::MAX, 0])));
        assert_eq!(at(&mut ledger, 0), Some(end_of(0)), "rows of the second source are cut off");
    }

    #[test]
    fn it_goes_on_behind_a_source_that_was_complete_before() {
        let mut ledger = Ledger::new(vec![(vec![0, 1], RowPos::new(1, 7))], places(&[u64::MAX, 7]));
        write(&mut ledger, 0, RowPos::new(1, 8));
        write(&mut ledger, 0, RowPos::END);
        assert_eq!(ledger.advance(&[all(0, 9), all(1, 8)]), Some(places(&[u64::MAX, u64::MAX])));
        assert_eq!(at(&mut ledger, 0), Some(end_of(1)));
    }
}
