//! `flowgpu rejects`: what was rejected and why, summed up.
//!
//! Reject files are read line by line: what is kept is a number and a few examples for each code and node, however many
//! lines there are.

mod input;
mod json;
mod summary;
mod text;

use std::path::PathBuf;

use self::input::Input;
use self::summary::Summary;
use super::Format;
use crate::args::Vars;
use crate::failure::{Failure, exit};
use crate::progress::Terminal;
use crate::{Context, output};

const AFTER_HELP: &str = "\
Examples:
  flowgpu rejects out/classify.rejects.jsonl     by code and node, most frequent first, with examples
  flowgpu rejects classify.yaml                  the same, of a pipeline's last run, also one that is not done
  flowgpu rejects out/*.rejects.jsonl.gz         several files together, such as those of shards
  zcat old.gz | flowgpu rejects -
  flowgpu rejects classify.yaml --format json | jq '.codes[] | [.code, .rows]'

Files may be packed by gzip or zstd, and be URLs. A damaged line is named and does not end it. In JSON:
  {\"files\": [PATH], \"total\": ROWS,
   \"codes\": [{\"code\", \"rows\", \"share\", \"nodes\": [{\"node\", \"rows\", \"share\", \"examples\": [{\"uri\", \"message\"}]}]}],
   \"damaged\": {\"total\": LINES, \"first\": [{\"file\", \"line\", \"what\"}]},
   \"again\": NODE}
`share` is of all rejects, from 0 to 1; `again` is the node that runs the most frequent code's rows again, null without \
rejects.

Exit codes: 0 summed up, whatever there is, 1 a file could not be read to its end, 2 a file is not there.";

/// Sums up what was rejected, by code and node, with examples.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Rejects {
    /// Reject files, pipeline files, or - for standard input
    #[arg(value_name = "REJECTS.jsonl|PIPELINE.yaml|-", required = true)]
    of: Vec<PathBuf>,

    #[command(flatten)]
    vars: Vars,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Rejects {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let mut inputs = Vec::new();
        for of in &self.of {
            inputs.extend(Input::all(of, &self.vars, cx.registry)?);
        }
        let mut summary = Summary::default();
        for input in &inputs {
            summary.read(input)?;
        }
        let text = match self.format {
            Format::Text => text::text(&summary, &Terminal::stdout()),
            Format::Json => super::json(&json::json(&summary)),
        };
        output::answer(&text)?;
        Ok(if summary.is_whole { exit::DONE } else { exit::FAULT })
    }
}
