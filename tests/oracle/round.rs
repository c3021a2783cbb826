//! One pipeline, run undisturbed and then with interruptions until it is done.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::case::Case;
use crate::dice::Dice;
use crate::disturbance::{self, Disturbance, Ends};
use crate::session::{Ended, Session, wait_until_alone};
use crate::settings::Settings;
use crate::tally::Tally;
use crate::{check, progress};

/// Runs the round that follows from `seed` in an empty folder. Panics where something does not hold.
pub fn run(seed: u64, folder: &Path) -> Tally {
    let mut dice = Dice::new(seed);
    let case = Case::draw(&mut dice);
    let folder = fs::canonicalize(folder).expect("a folder");
    let (reference, place) = (folder.join("undisturbed"), folder.join("disturbed"));
    case.files.iter().for_each(|file| file.write(&folder));
    for folder in [&reference, &place] {
        fs::create_dir(folder).expect("a folder");
        symlink("../in", folder.join("in")).expect("a link");
    }

    let mut settings = Settings::draw(&mut dice);
    if dice.chance(50) {
        settings = settings.without_journal();
    }
    let undisturbed = Session::start(&reference, &case.nodes, &settings, None, &folder.join("undisturbed.txt"));
    let undisturbed = undisturbed.suffer(None);
    let code = undisturbed.status.code();
    assert!(code == Some(0) || code == Some(3), "undisturbed, {:?}: {}", undisturbed.status, undisturbed.said);
    check::conservation(&case, &reference);
    check::nothing_left(&case, &reference);

    let mut round = Round { case: &case, folder: &folder, place: &place, dice, code, tally: Tally::default() };
    round.until_done();
    check::same_bytes(&case, &reference, &place);
    check::conservation(&case, &place);
    check::nothing_left(&case, &place);
    wait_until_alone(&place);
    round.again();
    check::same_bytes(&case, &reference, &place);
    check::nothing_left(&case, &place);
    Tally { rounds: 1, ..round.tally }
}

struct Round<'a> {
    case: &'a Case,
    folder: &'a Path,
    place: &'a Path,
    dice: Dice,
    /// The exit code of the undisturbed run.
    code: Option<i32>,
    tally: Tally,
}

impl Round<'_> {
    fn until_done(&mut self) {
        let n_disturbed = self.dice.between(2, 7);
        for _ in 0..n_disturbed {
            let disturbance = Disturbance::draw(&mut self.dice);
            if self.session(Some(&disturbance)) {
                return;
            }
            if self.dice.chance(25) && disturbance::tear(self.place, &mut self.dice) {
                self.tally.tears += 1;
            }
        }
        assert!(self.session(None), "a session that nothing has happened to finishes the run");
    }

    /// Works on the run; whether it is done.
    fn session(&mut self, disturbance: Option<&Disturbance>) -> bool {
        let mut settings = Settings::draw(&mut self.dice);
        if let Some(Disturbance::Kill(who, _)) = disturbance
            && *who != disturbance::Who::Coordinator
        {
            settings.isolation = "process";
        }
        let cuts_before = progress::n_cuts(self.place);
        let fault = match disturbance {
            Some(Disturbance::Step { fault, .. }) => Some(fault.as_str()),
            _ => None,
        };
        let log = self.folder.join(format!("session-{}.txt", self.tally.sessions));
        let ended = Session::start(self.place, &self.case.nodes, &settings, fault, &log).suffer(disturbance);
        let cuts = progress::n_cuts(self.place);
        self.tally.sessions += 1;
        self.tally.resumes += u64::from(cuts_before > 0);
        self.tally.cuts += cuts.saturating_sub(cuts_before);
        self.tally.workers_killed += ended.n_workers_killed;
        if self.is_done(disturbance, &ended) {
            return true;
        }
        if ended.is_killed() {
            self.tally.kills += 1;
            self.tally.kills_after_commit += u64::from(cuts > 0);
        }
        self.tally.rows_redone += progress::rows_behind_the_cut(self.place, &self.case.outputs);
        false
    }

    /// Whether a session has finished the run. Fails if it has ended in a way that nothing explains.
    fn is_done(&mut self, disturbance: Option<&Disturbance>, ended: &Ended) -> bool {
        let code = ended.status.code();
        if code == self.code {
            return true;
        }
        let is_explained = match disturbance {
            None => false,
            Some(Disturbance::Kill(..)) => ended.is_killed(),
            Some(Disturbance::Drain(_) | Disturbance::Abort(_)) => {
                self.tally.drains += 1;
                // Before the program has looked at signals they do what they always do.
                code == Some(130) || code.is_none()
            }
            Some(Disturbance::Step { ends: Ends::ByDeath, .. }) => ended.is_killed(),
            Some(Disturbance::Step { ends: Ends::ByFault, .. }) => {
                self.tally.disk_faults += 1;
                code == Some(1)
            }
        };
        assert!(is_explained, "{:?} after {disturbance:?}: {}", ended.status, ended.said);
        false
    }

    /// A finished run that is started again does nothing.
    fn again(&mut self) {
        let marks = check::marks(self.case, self.place);
        let settings = Settings::draw(&mut self.dice);
        let ended = Session::start(self.place, &self.case.nodes, &settings, None, &self.folder.join("again.txt"));
        let ended = ended.suffer(None);
        assert_eq!(ended.status.code(), self.code, "a finished run repeats its exit code: {}", ended.said);
        assert_eq!(check::marks(self.case, self.place), marks, "a finished run was done again: {}", ended.said);
    }
}
