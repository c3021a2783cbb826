//! What happens to a run before it is done.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::dice::Dice;
use crate::progress;

/// An interruption of one session.
#[derive(Clone, Debug)]
pub enum Disturbance {
    /// Processes die.
    Kill(Who, Moment),
    /// The run is asked to stop.
    Drain(Moment),
    /// It is asked twice.
    Abort(Moment),
    /// A step of the disk fails, or is the last thing that the process does.
    Step { fault: String, ends: Ends },
}

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Coordinator,
    OneWorker,
    AllWorkers,
    Everybody,
}

/// How a step ends the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    ByDeath,
    ByFault,
}

/// A moment in a session.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// After so many more cuts than there were,
    pub n_cuts: u64,
    /// and so much later.
    pub micros: u64,
}

impl Moment {
    fn draw(dice: &mut Dice) -> Self {
        // Seldom before the first cut: most runs are killed when there is something to go on with.
        let n_cuts = dice.pick(&[0, 1, 1, 1, 2, 2, 3, 4, 5, 7]);
        Moment { n_cuts, micros: dice.between(0, 40_000) }
    }
}

impl Disturbance {
    /// Draws one.
    pub fn draw(dice: &mut Dice) -> Self {
        match dice.between(0, 99) {
            0..=44 => Disturbance::Kill(Who::Coordinator, Moment::draw(dice)),
            45..=49 => Disturbance::Kill(Who::OneWorker, Moment::draw(dice)),
            50..=54 => Disturbance::Kill(Who::AllWorkers, Moment::draw(dice)),
            55..=62 => Disturbance::Kill(Who::Everybody, Moment::draw(dice)),
            63..=70 => Disturbance::Drain(Moment::draw(dice)),
            71..=73 => Disturbance::Abort(Moment::draw(dice)),
            _ => Disturbance::step(dice),
        }
    }

    fn step(dice: &mut Dice) -> Self {
        // About as many of each as a run has.
        let (step, most) =
            dice.pick(&[("write", 24), ("sync", 40), ("rename", 4), ("append", 16), ("cut", 8), ("append", 4)]);
        let when = dice.pick(&["before", "after"]);
        let (action, ends) = dice.pick(&[
            ("kill", Ends::ByDeath),
            ("kill", Ends::ByDeath),
            ("kill", Ends::ByDeath),
            ("enospc", Ends::ByFault),
            ("eio", Ends::ByFault),
            ("erofs", Ends::ByFault),
            ("edquot", Ends::ByFault),
        ]);
        let fault = format!("{step}:{when}:{}:{action}", dice.between(1, most));
        Disturbance::Step { fault, ends }
    }
}

/// Damages the end of a journal, as a crash of the whole machine may; says whether it did.
pub fn tear(folder: &Path, dice: &mut Dice) -> bool {
    // A record that outputs are about to get their names is on the disk before the first of them has: no crash takes it.
    if progress::is_sealed(folder) {
        return false;
    }
    let path = progress::journal(folder);
    let Ok(bytes) = fs::read(&path) else { return false };
    // Nor one that parts got their names after.
    let closed = bytes.windows(9).rposition(|part| part == b"\"closed\":");
    let end = closed.and_then(|at| bytes[at..].iter().position(|&byte| byte == b'\n').map(|length| at + length + 1));
    let kept = end.unwrap_or_default() as u64;
    match dice.between(0, 5) {
        0 => {
            let mut file = OpenOptions::new().append(true).open(&path).expect("the journal");
            file.write_all(b"5d41402a {\"cut\":{\"at\":\"20").expect("bytes");
        }
        1 => fs::write(&path, &bytes[..dice.between(kept, bytes.len() as u64) as usize]).expect("the journal"),
        _ => {
            let least = kept.max(bytes.len().saturating_sub(500) as u64);
            fs::write(&path, &bytes[..dice.between(least, bytes.len() as u64) as usize]).expect("the journal");
        }
    }
    true
}
