//! What `run:` may say, and the command line over it.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Devices, Duration, Limit, ShardChoice, Size, WorkersPerDevice};

/// How a pipeline is run. What is left out is for the engine to choose.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunOptions {
    /// Where models run: `auto`, `cpu`, `cuda`, or GPUs by number such as `cuda:0,2`.
    pub device: Option<Devices>,
    /// How many rejected rows are too many, as a count or as a fraction of all rows; then the run ends with a fault.
    pub max_rejects: Option<Limit>,
    /// The file for rejected rows, by default `<name>.rejects.jsonl` in the folder of the first file sink.
    pub rejects: Option<String>,
    /// Stop after so many rows of each source.
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// Into how many shards the run is divided: slices of each source's listing, each with outputs of its own, that
    /// `flowgpu merge` puts together. Every shard has to be told the same number.
    #[schemars(range(min = 1, max = 99_999))]
    pub shards: Option<u32>,
    /// Which of the shards are run here, from 0 on: one such as `3`, several such as `0-15` one after the other, or `auto`
    /// for the one that the environment names by the first of `FLOWGPU_SHARD`, `JOB_COMPLETION_INDEX` (Kubernetes),
    /// `SLURM_ARRAY_TASK_ID` and `SLURM_PROCID`.
    pub shard: Option<ShardChoice>,
    /// A file for the run's figures, as JSON.
    pub report: Option<String>,
    /// Serve the run's figures to Prometheus at this `host:port`.
    pub metrics_addr: Option<String>,
    /// Show no progress.
    pub quiet: Option<bool>,
    /// How many threads each pool has.
    pub threads: Option<Threads>,
    /// How much memory the rows between nodes may take, all queues together.
    pub queue_memory: Option<Size>,
    /// How models share several GPUs.
    pub placement: Option<PlacementPolicy>,
    /// Whether models on the CPU run in this process or in worker processes; GPUs always have workers.
    pub isolation: Option<Isolation>,
    /// How many worker processes share a device, `auto` or a number.
    pub workers_per_device: Option<WorkersPerDevice>,
    /// How long a batch may take at least before its worker counts as hung: then, or after twenty times what such batches
    /// usually take, the worker is replaced. Default: 30s.
    pub job_timeout: Option<Duration>,
    /// A file for a trace of the run in Chrome's form, which Perfetto shows too.
    pub trace: Option<String>,
    /// Whether progress is noted on disk, so that the same command goes on where it was stopped. Default: on, except where
    /// an output is standard output, a pipe or a device.
    pub journal: Option<Journaling>,
    /// The folder for the run's state, by default `.flowgpu/<name>` beside the pipeline file.
    pub state: Option<String>,
    /// How much work a crash may cost: progress is made durable that often at least. Default: 1s.
    pub commit_every: Option<Duration>,
    /// What becomes of rows that are done if their files have changed since, when a run goes on. Default: `keep`.
    pub on_change: Option<OnChange>,
    /// How long a run that is asked to stop may take to finish what is in flight. Default: 20s.
    pub grace: Option<Duration>,
    /// A file that asks the run to stop as soon as it exists, as a notice of the machine's end does.
    pub drain_file: Option<String>,
    /// How long a node may be without progress before it is named, with what it holds: a file, a worker, an output. It ends
    /// nothing: a share that hangs may come back, and then the run goes on. Default: 5m.
    pub stall: Option<Duration>,
}

/// Whether progress is noted on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Journaling {
    /// A stopped run goes on.
    #[default]
    On,
    /// Every run begins anew.
    Off,
}

/// What becomes of rows that are done if their files have changed since. Files that are not done yet are read as they
/// are; new ones come after the old ones; of those that are gone, rows that are done stay, the others are rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnChange {
    /// They stay as they were made, and the run says which they are.
    #[default]
    Keep,
    /// The run goes back to before the first of them, and on from there.
    Reprocess,
    /// The run does not go on; files that are gone keep it from that too.
    Fail,
}

/// How models share several GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlacementPolicy {
    /// Every model on every GPU that holds them all.
    #[default]
    Replicate,
    /// Models dealt over the GPUs, for when they do not all fit on one.
    Spread,
}

/// Where models run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// On threads of this process.
    #[default]
    Thread,
    /// In worker processes, whose death costs nothing but time.
    Process,
}

/// How many threads each pool has; by default what the processor has to give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Threads {
    /// Threads that read files.
    pub io: Option<NonZeroUsize>,
    /// Threads that decode and transform rows.
    pub rows: Option<NonZeroUsize>,
    /// Threads that models on the CPU compute with.
    pub model: Option<NonZeroUsize>,
}

impl RunOptions {
    /// These options with those that `given` has in their place.
    #[must_use]
    pub fn overridden_by(self, given: Self) -> Self {
        let threads = match (self.threads, given.threads) {
            (Some(own), Some(given)) => Some(Threads {
                io: given.io.or(own.io),
                rows: given.rows.or(own.rows),
                model: given.model.or(own.model),
            }),
            (own, given) => given.or(own),
        };
        Self {
            device: given.device.or(self.device),
            max_rejects: given.max_rejects.or(self.max_rejects),
            rejects: given.rejects.or(self.rejects),
            limit: given.limit.or(self.limit),
            shards: given.shards.or(self.shards),
            shard: given.shard.or(self.shard),
            report: given.report.or(self.report),
            metrics_addr: given.metrics_addr.or(self.metrics_addr),
            quiet: given.quiet.or(self.quiet),
            threads,
            queue_memory: given.queue_memory.or(self.queue_memory),
            placement: given.placement.or(self.placement),
            isolation: given.isolation.or(self.isolation),
            workers_per_device: given.workers_per_device.or(self.workers_per_device),
            job_timeout: given.job_timeout.or(self.job_timeout),
            trace: given.trace.or(self.trace),
            journal: given.journal.or(self.journal),
            state: given.state.or(self.state),
            commit_every: given.commit_every.or(self.commit_every),
            on_change: given.on_change.or(self.on_change),
            grace: given.grace.or(self.grace),
            drain_file: given.drain_file.or(self.drain_file),
            stall: given.stall.or(self.stall),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_wins_and_the_rest_stays() {
        let file: RunOptions =
            serde_yaml::from_str("{limit: 5, device: cpu, threads: {io: 2, rows: 3}}").expect("options");
        let given: RunOptions = serde_yaml::from_str("{limit: 7, threads: {rows: 4}}").expect("options");
        let both = file.overridden_by(given);
        assert_eq!(both.limit, Some(7));
        assert_eq!(both.device, Some(Devices::Cpu));
        let threads = both.threads.expect("threads");
        assert_eq!((threads.io, threads.rows), (NonZeroUsize::new(2), NonZeroUsize::new(4)));
    }
}
