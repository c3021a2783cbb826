//! How a pipeline is run: what may be another way in each session without changing a byte of the outputs.

use crate::case::REJECTS;
use crate::dice::Dice;

/// The settings of one session.
pub struct Settings {
    commit_millis: u64,
    io_threads: u64,
    row_threads: u64,
    pub isolation: &'static str,
    n_workers: u64,
    batch: u64,
    queue: u64,
    on_change: &'static str,
    journal: &'static str,
}

impl Settings {
    /// Draws some.
    pub fn draw(dice: &mut Dice) -> Self {
        Settings {
            commit_millis: dice.between(10, 50),
            io_threads: dice.between(1, 3),
            row_threads: dice.between(1, 3),
            isolation: dice.pick(&["thread", "thread", "process"]),
            n_workers: dice.between(1, 2),
            batch: dice.between(1, 12),
            queue: dice.between(1, 3),
            // Nothing changes, so none of these has anything to do.
            on_change: dice.pick(&["keep", "reprocess", "fail"]),
            journal: "on",
        }
    }

    /// The same without a journal.
    pub fn without_journal(self) -> Self {
        Settings { journal: "off", ..self }
    }

    /// The pipeline file with these nodes.
    pub fn file(&self, nodes: &str) -> String {
        let Settings { commit_millis, io_threads, row_threads, on_change, journal, .. } = self;
        let nodes = replaced(&replaced(&replaced(nodes, "queue", self.queue), "size", self.batch), "batch", self.batch);
        format!(
            "name: oracle\nrun: {{rejects: {REJECTS}, commit_every: {commit_millis}ms, journal: \"{journal}\", \
             on_change: {on_change}, threads: {{io: {io_threads}, rows: {row_threads}}}}}\nnodes:\n{nodes}"
        )
    }

    /// The command line.
    pub fn args(&self) -> Vec<String> {
        let n_workers = self.n_workers.to_string();
        ["run", "p.yaml", "--isolation", self.isolation, "--workers-per-device", &n_workers].map(str::to_owned).into()
    }
}

/// A text with another number behind each `key: `.
fn replaced(text: &str, key: &str, number: u64) -> String {
    let key = format!("{key}: ");
    let mut parts = text.split(&key);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let is_number = rest.len() < part.len();
        all.push_str(&key);
        if is_number {
            all.push_str(&number.to_string());
        }
        all.push_str(if is_number { rest } else { part });
    }
    all
}
