//! `flowgpu status`: how far runs are, alive or dead, by what they have noted on disk.
//!
//! Nothing is written, and a run does not notice that it is looked at: its journal is read as it is, and whether somebody
//! works on it is asked of the lock.

mod json;
mod place;
mod reading;
mod shards;
mod standing;
mod text;

use std::path::{Path, PathBuf};

use engine::journal::Moment;
use engine::node::{Registry, Shard};

use self::place::Place;
use self::standing::Standing;
use super::Format;
use crate::args::Vars;
use crate::failure::{Failure, exit};
use crate::progress::Terminal;
use crate::{Context, output};

const AFTER_HELP: &str = "\
Examples:
  flowgpu status classify.yaml                 the run of a pipeline, its shards if it has any
  flowgpu status .flowgpu/classify             the same, by the folder of its state
  flowgpu status /data/jobs                    all runs whose state is in /data/jobs/.flowgpu
  flowgpu status classify.yaml --format json | jq -r '.runs[0].state'

What is shown is what is durable: a run may be up to `commit_every` further.

States: never_started, starting, running, interrupted (it was asked to stop), failed, killed (it ended without noting \
why: by a crash, a second signal, the end of its grace), done, unreadable. In JSON:
  {\"runs\": [{\"name\", \"state\", \"folder\", \"pid\", \"host\", \"since\", \"sessions\", \"rows\", \"total\", \"resumed_at\",
    \"rows_per_second\", \"eta_seconds\", \"committed_at\", \"ended_at\", \"message\", \"exit_code\", \"limited\", \"torn_bytes\",
    \"rejects\": {\"total\", \"by_code\": {CODE: ROWS}, \"path\"},
    \"outputs\": [{\"node\", \"path\", \"rows\", \"bytes\"}],
    \"shards\": {\"of\", \"states\": {STATE: SHARDS}, \"runs\": [as above, with \"shard\": INDEX]}}]}
Times are such as 2026-12-01T03:12:44.120Z; what is not known is null; `path` is known at the end, `shards` is there \
only where there are shards, and then the figures are those of all shards together.

Exit codes: 0 it could be told, whatever it is, 2 there is no such pipeline, no run in the folder, or its journal is of \
another version, 1 a journal cannot be read.";

/// Shows how far runs are.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Status {
    /// The pipeline file, the folder of a run's state, or a folder with .flowgpu in it
    #[arg(value_name = "PIPELINE.yaml|DIR", default_value = ".")]
    of: PathBuf,

    #[command(flatten)]
    vars: Vars,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The shards of a pipeline that have a state.
pub(super) fn shards(file: &Path, vars: &Vars, registry: &Registry) -> Result<Vec<Shard>, Failure> {
    let places = Place::all(file, vars, registry)?;
    Ok(places.into_iter().flat_map(|place| place.shards).collect())
}

impl Status {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let places = Place::all(&self.of, &self.vars, cx.registry)?;
        let standings: Vec<Standing> = places.iter().map(Standing::read).collect();
        let text = match self.format {
            Format::Text => text::text(&standings, Moment::now(), &Terminal::stdout()),
            Format::Json => super::json(&json::json(&standings)),
        };
        output::answer(&text)?;
        Ok(standings.iter().map(Standing::exit_code).max().unwrap_or(exit::DONE))
    }
}
