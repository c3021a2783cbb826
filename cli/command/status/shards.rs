//! All shards of a run together.

use std::collections::BTreeMap;
use std::path::PathBuf;

use engine::node::Shard;

use super::standing::{Output, Standing, State};

/// The shards of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shards {
    /// How many there are.
    pub(super) of: u32,
    /// How many are in each state; those without any state have never started.
    pub(super) states: BTreeMap<State, u64>,
    /// Those that have a state, in order.
    pub(super) runs: Vec<Standing>,
}

impl Shards {
    /// Shards that have a state as one run: of several ways to divide it, the one that was taken up last.
    pub(super) fn join(runs: Vec<Standing>, folder: PathBuf) -> Standing {
        let of = |run: &Standing| run.shard.map_or(1, |shard| shard.of);
        let since = |run: &Standing| run.process.as_ref().and_then(|process| process.since);
        let last = runs.iter().max_by_key(|run| (since(run), of(run))).map_or(1, of);
        let runs: Vec<_> = runs.into_iter().filter(|run| of(run) == last).collect();
        let mut states = BTreeMap::new();
        runs.iter().for_each(|run| *states.entry(run.state).or_default() += 1);
        let n_missing = u64::from(last).saturating_sub(runs.len() as u64);
        if n_missing > 0 {
            *states.entry(State::NeverStarted).or_default() += n_missing;
        }
        let mut whole = Standing {
            name: runs.first().map(|run| run.name.clone()).unwrap_or_default(),
            folder,
            state: state(&states),
            rows: runs.iter().map(|run| run.rows).sum(),
            resumed: runs.iter().map(|run| run.resumed).sum(),
            n_sessions: runs.iter().map(|run| run.n_sessions).sum(),
            committed: runs.iter().filter_map(|run| run.committed).max(),
            limited: runs.iter().any(|run| run.limited),
            ..Standing::default()
        };
        // How much shards have that nobody has looked at is not known.
        whole.total = if n_missing == 0 { runs.iter().map(|run| run.total).sum() } else { None };
        let paces: Vec<f64> = runs.iter().filter_map(|run| run.pace).collect();
        whole.pace = (!paces.is_empty()).then(|| paces.iter().sum());
        let is_all = states.keys().all(|state| matches!(state, State::Running | State::Done));
        whole.left = runs.iter().filter(|run| run.state == State::Running).map(|run| run.left).max().flatten();
        whole.left = whole.left.filter(|_| is_all && whole.total.is_some());
        for run in &runs {
            whole.rejects.total += run.rejects.total;
            for (code, rows) in &run.rejects.by_code {
                *whole.rejects.by_code.entry(code.clone()).or_default() += rows;
            }
            run.outputs.iter().for_each(|output| add(&mut whole.outputs, output));
        }
        if whole.state == State::Done {
            (whole.ended, whole.code) =
                (runs.iter().filter_map(|run| run.ended).max(), runs.iter().filter_map(|run| run.code).max());
        }
        Standing { shards: Some(Shards { of: last, states, runs }), ..whole }
    }

    /// Those that have never started, as ranges: `3, 7-15`.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut next = 0;
        let mut ranges = Vec::new();
        let mut push = |from: u32, to: u32| match to.checked_sub(from) {
            None | Some(0) => {}
            Some(1) => ranges.push(from.to_string()),
            Some(_) => ranges.push(format!("{from}-{}", to - 1)),
        };
        for Shard { index, .. } in self.runs.iter().filter_map(|run| run.shard) {
            push(next, index);
            next = index.saturating_add(1);
        }
        push(next, self.of);
        ranges
    }
}

/// What all together do: they run as long as one does, and are done when all are.
fn state(states: &BTreeMap<State, u64>) -> State {
    let only = |state: State| states.keys().all(|other| *other == state);
    let by_weight = [
        State::Running,
        State::Starting,
        State::Unreadable,
        State::Failed,
        State::Killed,
        State::Interrupted,
        State::NeverStarted,
        State::Done,
    ];
    // Some done and some never started is a run that has been interrupted between its shards.
    let found = by_weight.into_iter().find(|state| states.contains_key(state)).unwrap_or_default();
    if found == State::NeverStarted && !only(State::NeverStarted) { State::Interrupted } else { found }
}

fn add(outputs: &mut Vec<Output>, more: &Output) {
    match outputs.iter_mut().find(|output| output.node == more.node) {
        Some(output) => {
            output.rows += more.rows;
            output.bytes += more.bytes;
        }
        None => outputs.push(Output { path: None, ..more.clone() }),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::standing::tests::{done, failed, held, running, standing};
    use super::*;

    pub(in super::super) fn shards(of: u32, runs: &[(u32, Standing)]) -> Standing {
        let part =
            |(index, run): &(u32, Standing)| Standing { shard: Some(Shard { index: *index, of }), ..run.clone() };
        Shards::join(runs.iter().map(part).collect(), ".flowgpu/classify".into())
    }

    #[test]
    fn all_together_are_their_sums() {
        let whole = shards(2, &[(0, standing(&running(), held(1))), (1, standing(&done(), None))]);
        assert_eq!((whole.state, whole.rows, whole.total), (State::Running, 1_415_600, Some(2_000_000)));
        assert_eq!((whole.pace, whole.left), (Some(400.0), Some(Duration::from_secs(1461))));
        assert_eq!((whole.rejects.total, whole.outputs[0].rows), (1_415, 999_000 + 415_185));
        assert_eq!(whole.code, None);
        let whole = shards(2, &[(0, standing(&done(), None)), (1, standing(&done(), None))]);
        assert_eq!((whole.state, whole.code, whole.outputs[0].path.clone()), (State::Done, Some(3), None));
    }

    #[test]
    fn what_nobody_has_looked_at_is_not_guessed() {
        let whole = shards(16, &[(2, standing(&running(), held(1))), (3, standing(&failed(), None))]);
        assert_eq!((whole.state, whole.total, whole.left), (State::Running, None, None));
        let shards = whole.shards.unwrap();
        assert_eq!(shards.missing(), ["0-1", "4-15"]);
        assert_eq!(shards.states[&State::NeverStarted], 14);
    }

    #[test]
    fn the_worst_is_told_of_shards_of_which_none_runs() {
        let check = |runs: &[(u32, Standing)], expected| assert_eq!(shards(3, runs).state, expected);
        let of = |records: &[_]| standing(records, None);
        check(&[(0, of(&done())), (1, of(&failed())), (2, of(&running()))], State::Failed);
        check(&[(0, of(&done())), (1, of(&running())), (2, of(&done()))], State::Killed);
        check(&[(0, of(&done())), (1, of(&done()))], State::Interrupted);
    }
}
