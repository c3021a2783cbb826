//! What is said while a run stops.

use std::time::Duration;

use super::stopping::{Asker, Order, Why};
use crate::progress::human::{count, duration, whole_duration};

/// What is told of, beside the order itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances<'a> {
    /// The run's name.
    pub(super) name: &'a str,
    /// How long it may take.
    pub(super) grace: Duration,
    /// The drain file, as one would write it here.
    pub(super) drain_file: &'a str,
    /// Rows that are durable, if any are.
    pub(super) safe: Option<u64>,
}

/// The line that goes with an order, if one does.
pub(super) fn line(order: Order, of: Circumstances<'_>) -> Option<String> {
    let safe = of.safe.map(|rows| format!("{}; ", are_safe(rows))).unwrap_or_default();
    let grace = time(of.grace);
    let text = match order {
        Order::Drain => return None,
        Order::Tell(by, left) => {
            let finishing = format!("{safe}finishing what is in flight, for {} at most", time(left));
            match by {
                Asker::Interrupt => format!("stopping: {finishing} (Ctrl-C again to abort)"),
                Asker::Terminate => format!("stopping after SIGTERM: {finishing} (a second signal aborts)"),
                Asker::HangUp => format!("stopping after SIGHUP: {finishing} (a second signal aborts)"),
                Asker::DrainFile => format!("stopping: the drain file `{}` is there: {finishing}", of.drain_file),
                Asker::EarlyDrainFile => {
                    format!("stopping at once: the drain file `{}` is there already; remove it to run", of.drain_file)
                }
            }
        }
        Order::Hurry(left) => {
            let rest = if of.safe.is_some() { "left to the next run" } else { "given up" };
            format!("{} of the grace of {grace} are left: what is not computed yet is {rest}", time(left))
        }
        Order::Leave(Why::AskedAgain) => format!("aborted: {}", what_stays(of.safe)),
        Order::Leave(Why::Late) => {
            format!("ended by the grace of {grace} (`--grace` gives more): {}", what_stays(of.safe))
        }
        Order::Leave(Why::Idle) => "aborted while no rows were under way".to_owned(),
    };
    Some(format!("{}: {text}\n", of.name))
}

fn what_stays(safe: Option<u64>) -> String {
    match safe {
        Some(rows) => format!("{}; the same command goes on from there", are_safe(rows)),
        None => "outputs are as they were before, unfinished ones lie beside them as `.NAME.partial`".to_owned(),
    }
}

fn are_safe(rows: u64) -> String {
    format!("{} {} safe", count(rows, "row"), if rows == 1 { "is" } else { "are" })
}

fn time(length: Duration) -> String {
    if length.subsec_millis() == 0 { whole_duration(length) } else { duration(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(order: Order, safe: Option<u64>, expected: &str) {
        let of = Circumstances { name: "p", grace: Duration::from_secs(2), drain_file: "stop", safe };
        assert_eq!(line(order, of).as_deref(), Some(&*format!("p: {expected}\n")));
    }

    #[test]
    fn each_step_says_what_happens_and_what_is_safe() {
        let (two, half) = (Duration::from_secs(2), Duration::from_millis(500));
        check(
            Order::Tell(Asker::Interrupt, two),
            Some(412_000),
            "stopping: 412,000 rows are safe; finishing what is in flight, for 2 s at most (Ctrl-C again to abort)",
        );
        check(
            Order::Tell(Asker::Terminate, half),
            None,
            "stopping after SIGTERM: finishing what is in flight, for 0.50 s at most (a second signal aborts)",
        );
        check(
            Order::Tell(Asker::DrainFile, two),
            Some(1),
            "stopping: the drain file `stop` is there: 1 row is safe; finishing what is in flight, for 2 s at most",
        );
        check(
            Order::Hurry(half),
            Some(1),
            "0.50 s of the grace of 2 s are left: what is not computed yet is left to the next run",
        );
        check(
            Order::Leave(Why::Late),
            Some(0),
            "ended by the grace of 2 s (`--grace` gives more): 0 rows are safe; the same command goes on from there",
        );
        check(
            Order::Leave(Why::AskedAgain),
            None,
            "aborted: outputs are as they were before, unfinished ones lie beside them as `.NAME.partial`",
        );
    }
}
