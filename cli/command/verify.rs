//! `flowgpu verify`: what a pipeline makes of the user's own files, against Pillow on the user's own machine.
//!
//! The rows are made by the pipeline's own nodes, one at a time; nothing is written, and no sink is opened.

mod bound;
mod checking;
mod figures;
mod json;
mod logits;
mod reference;
mod text;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use engine::config::RunOptions;
use engine::node::Role;

use self::checking::Checking;
use self::figures::Report;
use self::reference::Reference;
use super::Format;
use crate::args::PipelineArgs;
use crate::failure::{Failure, exit};
use crate::pipeline::Pipeline;
use crate::progress::Terminal;
use crate::{Context, output};

const AFTER_HELP: &str = "\
Examples:
  flowgpu verify classify.yaml                          64 files, spread over the listing
  flowgpu verify classify.yaml --limit 1000 --set photos=/data/photos
  flowgpu verify classify.yaml --python venv/bin/python --format json

Every `decode.image` node is compared: its pixels, after resize and crop or letterbox, with those that Pillow makes of \
the same files. Python is asked once, is given the names of the files, and writes nothing; no network is used and \
nothing is installed. Where torch and torchvision are there too, the logits of `infer` nodes with torchvision's \
networks are compared.

Exit codes: 0 all within the bound, 1 a difference beyond it, 2 usage, or no Python with Pillow.";

/// Compares with Pillow.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Verify {
    #[command(flatten)]
    pipeline: PipelineArgs,

    /// Compare this many files, evenly spread over what is listed first
    #[arg(long, value_name = "N", default_value = "64")]
    limit: NonZeroUsize,

    /// The Python to ask
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: PathBuf,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Verify {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let file = &self.pipeline.file;
        let loaded = Pipeline::load(file, &self.pipeline.vars, RunOptions::default(), cx.registry)?;
        let graph = &loaded.graph;
        let decoders: Vec<_> = graph.with_role(Role::Decode).collect();
        if decoders.is_empty() {
            return Err(Failure::usage(format!("`{}` decodes nothing that could be compared", file.display())));
        }
        let mut reference = Reference::start(&self.python)?;
        let mut checking = Checking { graph, reference: &mut reference, limit: self.limit.get() };
        let nodes = decoders.iter().map(|&node_idx| checking.decoder(node_idx)).collect::<Result<Vec<_>, _>>()?;
        let models: Vec<_> = graph.with_role(Role::Infer).collect();
        let models = models.iter().map(|&node_idx| checking.model(node_idx)).collect::<Result<Vec<_>, _>>()?;
        let report = Report { file: file.display().to_string(), about: reference.about.clone(), nodes, models };
        let text = match self.format {
            Format::Text => text::text(&report, &Terminal::stdout()),
            Format::Json => super::json(&json::json(&report)),
        };
        output::answer(&text)?;
        Ok(if report.is_fine() { exit::DONE } else { exit::FAULT })
    }
}
