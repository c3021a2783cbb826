//! What was done to runs, and what came of it.

use std::fmt;

/// Counts over rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub rounds: u64,
    pub sessions: u64,
    /// Deaths of the coordinator.
    pub kills: u64,
    /// Those of them that happened when at least one cut was in the journal.
    pub kills_after_commit: u64,
    /// Deaths of workers.
    pub workers_killed: u64,
    /// Sessions that stopped because they were asked to.
    pub drains: u64,
    /// Sessions that ended by an error of the disk.
    pub disk_faults: u64,
    /// Damaged journals.
    pub tears: u64,
    /// Sessions that found a cut to go on from.
    pub resumes: u64,
    pub cuts: u64,
    /// Rows that were in an output behind the last cut when its session ended.
    pub rows_redone: u64,
}

impl Tally {
    /// Adds what another has counted.
    pub fn add(&mut self, other: Tally) {
        self.rounds += other.rounds;
        self.sessions += other.sessions;
        self.kills += other.kills;
        self.kills_after_commit += other.kills_after_commit;
        self.workers_killed += other.workers_killed;
        self.drains += other.drains;
        self.disk_faults += other.disk_faults;
        self.tears += other.tears;
        self.resumes += other.resumes;
        self.cuts += other.cuts;
        self.rows_redone += other.rows_redone;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { rounds, sessions, kills, kills_after_commit, workers_killed, .. } = self;
        let Tally { drains, disk_faults, tears, resumes, cuts, rows_redone, .. } = self;
        write!(
            f,
            "{rounds} rounds of {sessions} sessions: {kills} kills, {kills_after_commit} of them after the first commit; \
             {workers_killed} workers killed, {drains} drained, {disk_faults} ended by the disk, {tears} journals torn; \
             {resumes} resumes, {cuts} cuts, {rows_redone} rows redone"
        )
    }
}
