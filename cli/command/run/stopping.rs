//! What follows from the wishes to stop: decisions alone, so that tests need neither signals nor time.

use std::time::{Duration, Instant};

/// How long a run may take to stop if nothing else is said.
pub(super) const GRACE: Duration = Duration::from_secs(20);

/// Wishes that come so soon after another are echoes of it: `timeout`, `srun` and the like signal the process, and then
/// the process group that it is in.
const ECHO: Duration = Duration::from_millis(100);

/// The longest time that is kept free before the end of the grace, for the last commit.
const MARGIN: Duration = Duration::from_millis(500);

/// Who wishes the run to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// SIGINT, as by Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal has gone.
    HangUp,
    /// The drain file has appeared.
    DrainFile,
    /// The drain file was there from the start.
    EarlyDrainFile,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Have the sources stop, and the rest finish.
    Drain,
    /// Say that this is so, and how long it may take.
    Tell(Asker, Duration),
    /// Have all stages stop: what is left of the grace is for the last commit.
    Hurry(Duration),
    /// End the process.
    Leave(Why),
}

/// Why the process ends before the run has stopped by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It was asked to twice.
    AskedAgain,
    /// The grace is over.
    Late,
    /// No run is under way: it has not begun, or has ended.
    Idle,
}

/// The runs of a process, one after the other, and the wishes that they stop.
#[derive(Debug)]
pub(super) struct Stopping {
    grace: Duration,
    is_running: bool,
    asked: Option<Asked>,
    /// The drain file was there when no run was under way.
    early: Option<Asker>,
}

#[derive(Debug)]
struct Asked {
    /// The one that is to be told, or was told last.
    by: Asker,
    first: Instant,
    last: Instant,
    is_told: bool,
    is_hurried: bool,
}

impl Stopping {
    /// Before the first run.
    pub(super) fn new(grace: Duration) -> Self {
        Stopping { grace, is_running: false, asked: None, early: None }
    }

    /// A run begins.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Order> {
        self.is_running = true;
        if let (None, Some(by)) = (&self.asked, self.early.take()) {
            self.asked = Some(Asked::now(by, now));
        }
        self.asked.is_some().then_some(Order::Drain)
    }

    /// Somebody wishes it to stop.
    pub(super) fn ask(&mut self, by: Asker, now: Instant) -> Option<Order> {
        let Some(asked) = &mut self.asked else {
            if self.is_running {
                self.asked = Some(Asked::now(by, now));
                return Some(Order::Drain);
            }
            if by.is_drain_file() {
                self.early = Some(by);
                return None;
            }
            return Some(Order::Leave(Why::Idle));
        };
        // A terminal that goes tells the process, and so does its shell: a second hang-up is no second wish.
        if by.is_drain_file() || by == Asker::HangUp || now < asked.last + ECHO {
            return None;
        }
        if !self.is_running {
            return Some(Order::Leave(Why::Idle));
        }
        if !asked.by.is_drain_file() {
            return Some(Order::Leave(Why::AskedAgain));
        }
        // Who gives notice by a file often sends a signal later: that is the first one.
        (asked.by, asked.last, asked.is_told) = (by, now, false);
        None
    }

    /// The run has ended, by itself or because it was asked to.
    pub(super) fn end(&mut self) {
        self.is_running = false;
    }

    /// What is to be done now, one thing after the other until there is nothing more.
    pub(super) fn due(&mut self, now: Instant) -> Option<Order> {
        let (hurry_at, leave_at) = (self.hurry_at(), self.leave_at());
        let asked = self.asked.as_mut()?;
        if leave_at.is_some_and(|at| at <= now) {
            return Some(Order::Leave(if self.is_running { Why::Late } else { Why::Idle }));
        }
        if !asked.is_told && (!self.is_running || asked.last + ECHO <= now) {
            asked.is_told = true;
            let late = asked.last.saturating_duration_since(asked.first);
            return Some(Order::Tell(asked.by, self.grace.saturating_sub(late)));
        }
        if self.is_running && !asked.is_hurried && hurry_at.is_some_and(|at| at <= now) {
            asked.is_hurried = true;
            return Some(Order::Hurry(margin(self.grace)));
        }
        None
    }

    /// When [`Stopping::due`] is to be called again, if nothing happens before.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let asked = self.asked.as_ref()?;
        let tell_at = (!asked.is_told).then_some(asked.last + ECHO);
        let hurry_at = if !self.is_running || asked.is_hurried { None } else { self.hurry_at() };
        [tell_at, hurry_at, self.leave_at()].into_iter().flatten().min()
    }

    /// None if that is beyond all time.
    fn hurry_at(&self) -> Option<Instant> {
        self.asked.as_ref()?.first.checked_add(self.grace - margin(self.grace))
    }

    /// A little before the grace is over: whoever gave it kills at its end, and a process takes a moment to go.
    fn leave_at(&self) -> Option<Instant> {
        self.asked.as_ref()?.first.checked_add(self.grace - margin(self.grace) / 4)
    }
}

impl Asked {
    fn now(by: Asker, now: Instant) -> Self {
        Asked { by, first: now, last: now, is_told: false, is_hurried: false }
    }
}

impl Asker {
    fn is_drain_file(self) -> bool {
        matches!(self, Asker::DrainFile | Asker::EarlyDrainFile)
    }
}

fn margin(grace: Duration) -> Duration {
    (grace / 4).min(MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Duration = Duration::from_secs(2);

    /// Milliseconds at which something happens, and what follows at once.
    fn check(grace: Duration, events: &[(u64, Option<Asker>)], expected: &[(u64, Order)]) {
        let (start, mut stopping, mut found) = (Instant::now(), Stopping::new(grace), Vec::new());
        assert_eq!(stopping.begin(start), None);
        let mut events = events.iter().peekable();
        loop {
            let now = |millis: u64| start + Duration::from_millis(millis);
            let millis = |at: Instant| (at - start).as_millis() as u64;
            let due_at = stopping.wake_at().map(millis);
            let at = match (events.peek(), due_at) {
                (Some((at, _)), due_at) if due_at.is_none_or(|due_at| *at <= due_at) => {
                    match events.next().unwrap().1 {
                        Some(by) => found.extend(stopping.ask(by, now(*at)).map(|order| (*at, order))),
                        None => stopping.end(),
                    }
                    *at
                }
                (_, Some(due_at)) => due_at,
                (_, None) => break,
            };
            while !matches!(found.last(), Some((_, Order::Leave(_)))) {
                let Some(order) = stopping.due(now(at)) else { break };
                found.push((at, order));
            }
            if matches!(found.last(), Some((_, Order::Leave(_)))) {
                break;
            }
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn the_grace_ends_with_room_for_the_last_commit() {
        let half = Duration::from_millis(500);
        let term = Asker::Terminate;
        check(
            TWO,
            &[(0, Some(term))],
            &[
                (0, Order::Drain),
                (100, Order::Tell(term, TWO)),
                (1_500, Order::Hurry(half)),
                (1_875, Order::Leave(Why::Late)),
            ],
        );
        let short = Duration::from_millis(400);
        check(
            short,
            &[(0, Some(term))],
            &[
                (0, Order::Drain),
                (100, Order::Tell(term, short)),
                (300, Order::Hurry(short / 4)),
                (375, Order::Leave(Why::Late)),
            ],
        );
        check(Duration::ZERO, &[(5, Some(term))], &[(5, Order::Drain), (5, Order::Leave(Why::Late))]);
        check(
            Duration::MAX,
            &[(0, Some(term)), (500, Some(term))],
            &[(0, Order::Drain), (100, Order::Tell(term, Duration::MAX)), (500, Order::Leave(Why::AskedAgain))],
        );
    }

    #[test]
    fn a_second_signal_leaves_but_an_echo_and_a_hang_up_do_not() {
        let (int, term, hup) = (Asker::Interrupt, Asker::Terminate, Asker::HangUp);
        check(
            TWO,
            &[(0, Some(term)), (1, Some(term)), (99, Some(int)), (120, Some(hup)), (130, Some(int))],
            &[(0, Order::Drain), (100, Order::Tell(term, TWO)), (130, Order::Leave(Why::AskedAgain))],
        );
        check(
            TWO,
            &[(0, Some(hup)), (200, Some(hup)), (300, Some(term))],
            &[(0, Order::Drain), (100, Order::Tell(hup, TWO)), (300, Order::Leave(Why::AskedAgain))],
        );
    }

    #[test]
    fn the_first_signal_after_a_drain_file_only_says_how_long_it_may_take() {
        let (file, term) = (Asker::DrainFile, Asker::Terminate);
        check(
            TWO,
            &[(0, Some(file)), (1_000, Some(term)), (1_200, Some(term))],
            &[
                (0, Order::Drain),
                (100, Order::Tell(file, TWO)),
                (1_100, Order::Tell(term, TWO / 2)),
                (1_200, Order::Leave(Why::AskedAgain)),
            ],
        );
        check(
            TWO,
            &[(0, Some(term)), (1_000, Some(file)), (1_300, None)],
            &[(0, Order::Drain), (100, Order::Tell(term, TWO)), (1_875, Order::Leave(Why::Idle))],
        );
    }

    #[test]
    fn a_wish_before_a_run_is_not_lost() {
        let now = Instant::now();
        let mut stopping = Stopping::new(TWO);
        assert_eq!(stopping.ask(Asker::EarlyDrainFile, now), None);
        assert_eq!((stopping.due(now), stopping.wake_at()), (None, None));
        assert_eq!(stopping.begin(now), Some(Order::Drain));
        stopping.end();
        assert_eq!(stopping.begin(now), Some(Order::Drain), "of several runs the later ones stop too");
        assert_eq!(Stopping::new(TWO).ask(Asker::Terminate, now), Some(Order::Leave(Why::Idle)));
    }

    #[test]
    fn what_comes_after_the_run_may_be_left_too() {
        let int = Asker::Interrupt;
        check(TWO, &[(0, None), (7, Some(Asker::DrainFile))], &[]);
        check(TWO, &[(0, None), (7, Some(int))], &[(7, Order::Leave(Why::Idle))]);
        check(
            TWO,
            &[(0, Some(int)), (10, None), (20, Some(int)), (150, Some(int))],
            &[(0, Order::Drain), (10, Order::Tell(int, TWO)), (150, Order::Leave(Why::Idle))],
        );
    }
}
