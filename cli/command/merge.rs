//! `flowgpu merge`: one output of those of the shards.

use std::path::Path;

use engine::config::RunOptions;
use engine::graph::Graph;
use engine::journal::{Joined, Merge as Outcome, Merged, Missing, merge, n_shards};
use engine::node::{Fault, is_url};

use crate::args::PipelineArgs;
use crate::failure::{Failure, exit};
use crate::pipeline::{Pipeline, from_here};
use crate::progress::human;
use crate::shards::ShardsArg;
use crate::{Context, output};

const AFTER_HELP: &str = "\
Examples:
  flowgpu merge classify.yaml
  flowgpu merge classify.yaml --shards 16     where there are several divisions

All shards have to be done. Files of lines become the file that one run would have written, byte for byte; for other
formats a list of the parts is written, such as `embeddings.manifest.json`. The parts stay.

Exit codes: 0 merged, 1 shards are missing, or another fault, 2 mistake in the command line or the pipeline, \
3 merged, with rejects.";

/// Shards that are told one by one; of more it is said how many.
const MAX_TOLD: usize = 20;

/// Merges.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Merge {
    #[command(flatten)]
    pipeline: PipelineArgs,

    #[command(flatten)]
    shards: ShardsArg,

    /// Say nothing if all is well
    #[arg(short, long)]
    quiet: bool,
}

impl Merge {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let options = RunOptions { shards: self.shards.shards, ..RunOptions::default() };
        let graph = Pipeline::load(&self.pipeline.file, &self.pipeline.vars, options, cx.registry)?.graph;
        let of = graph.run.shards.map_or_else(|| n_shards(&graph), Ok)?;
        match merge(&graph, of)? {
            Outcome::Missing(missing) => Err(self.incomplete(&graph, of, &missing).into()),
            Outcome::Done(merged) => {
                if !self.quiet {
                    output::tell(&text(&graph, of, &merged));
                }
                Ok(if merged.rejects.is_some() { exit::REJECTS } else { exit::DONE })
            }
        }
    }

    /// Which shards are missing, why, and what to run.
    fn incomplete(&self, graph: &Graph, of: u32, missing: &[Missing]) -> Fault {
        let message = format!("{} of the {of} shards of `{}` cannot be merged yet", missing.len(), graph.name);
        let mut fault = Fault::transient(message);
        for Missing { shard, why } in missing.iter().take(MAX_TOLD) {
            fault = fault.detail(format!("shard {} {why}", shard.index));
        }
        if missing.len() > MAX_TOLD {
            fault = fault.detail(format!("and {} more", missing.len() - MAX_TOLD));
        }
        let indices: Vec<_> = missing.iter().map(|missing| missing.shard.index).collect();
        let file = self.pipeline.file.display();
        let commands = ranges(&indices).into_iter().map(|range| format!("`--shard {range}`"));
        let sets = if self.pipeline.vars.set.is_empty() { "" } else { " and the same `--set`" };
        let commands = commands.collect::<Vec<_>>().join(", then ");
        fault.help(format!("run `flowgpu run {file} --shards {of}`{sets} with {commands}, and merge again"))
    }
}

/// `3`, `7-9`: so as one gives them to `--shard`.
fn ranges(indices: &[u32]) -> Vec<String> {
    let runs = indices.chunk_by(|one, next| one + 1 == *next);
    let word = |run: &[u32]| match run {
        [first, .., last] => format!("{first}-{last}"),
        run => run.iter().map(u32::to_string).collect(),
    };
    runs.map(word).collect()
}

fn text(graph: &Graph, of: u32, merged: &Merged) -> String {
    let shards = human::count(of.into(), "shard");
    let mut text = match merged.was_done {
        true => format!("{}: {shards} merged already, at {}, and nothing has changed since\n", graph.name, merged.at),
        false => format!("{}: {shards} merged\n", graph.name),
    };
    let line = |path: &str, what: String| match is_url(Path::new(path)) {
        true => format!("  {path}: {what}\n"),
        false => format!("  {}: {what}\n", from_here(&graph.base.join(path)).display()),
    };
    for Joined { sealed, lists, .. } in &merged.outputs {
        let rows = human::count(sealed.rows, "row");
        text.push_str(&line(
            &sealed.path,
            match lists {
                Some(n_parts) => format!("a list of {}, {rows}", human::count(*n_parts as u64, "part")),
                None => format!("{rows}, {}", human::bytes(sealed.bytes)),
            },
        ));
    }
    if let Some(rejects) = &merged.rejects {
        text.push_str(&line(&rejects.path, human::count(rejects.rows, "reject")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_that_follow_each_other_are_one_range() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), ["0-2", "5", "7-8"]);
        assert_eq!(ranges(&[]), [] as [&str; 0]);
    }
}
