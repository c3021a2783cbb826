//! `flowgpu validate`: every mistake of every file at once, without running anything.

use std::path::PathBuf;

use engine::config::{Mistakes, RunOptions};
use engine::graph::Graph;
use engine::node::Role;
use serde_json::{Value as Json, json};

use super::Format;
use crate::args::Vars;
use crate::failure::{Failure, exit, look};
use crate::pipeline::Pipeline;
use crate::progress::{Terminal, human};
use crate::{Context, output};

const AFTER_HELP: &str = "\
Examples:
  flowgpu validate pipelines/*.yaml
  flowgpu validate classify.yaml --set photos=/data/photos
  flowgpu validate classify.yaml --format json     for editors and CI

The exit code is 2 if any file has a mistake.";

/// Finds mistakes.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Validate {
    /// The pipeline files
    #[arg(value_name = "PIPELINE.yaml", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    vars: Vars,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Validate {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let check = |file: &PathBuf| {
            let checked = Pipeline::load(file, &self.vars, RunOptions::default(), cx.registry);
            (file.display().to_string(), checked.map(|pipeline| pipeline.graph))
        };
        let checked: Vec<_> = self.files.iter().map(check).collect();
        let text = match self.format {
            Format::Text => text(&checked),
            Format::Json => super::json(&json(&checked)),
        };
        output::answer(&text)?;
        let fine = checked.iter().all(|(_, checked)| checked.is_ok());
        Ok(if fine { exit::DONE } else { exit::USAGE })
    }
}

type Checked = (String, Result<Graph, Mistakes>);

fn text(checked: &[Checked]) -> String {
    let look = look(&Terminal::stdout());
    let of = |(file, checked): &Checked| match checked {
        Ok(graph) => format!("{file}: {}\n", fine(graph)),
        Err(mistakes) => mistakes.render(look),
    };
    checked.iter().map(of).collect()
}

fn fine(graph: &Graph) -> String {
    let n_of = |role| graph.with_role(role).count() as u64;
    let (nodes, sources, sinks) = (graph.nodes.len() as u64, n_of(Role::Source), n_of(Role::Sink));
    let counted = [human::count(nodes, "node"), human::count(sources, "source"), human::count(sinks, "sink")];
    format!("fine, {}", counted.join(", "))
}

/// One list for all files, so that a program needs no loop of loops; files without mistakes are in `files` alone.
fn json(checked: &[Checked]) -> Json {
    let files: Vec<_> = checked.iter().map(|(file, checked)| json!({"file": file, "fine": checked.is_ok()})).collect();
    let mistakes: Vec<_> =
        checked.iter().filter_map(|(_, checked)| checked.as_ref().err()).flat_map(Mistakes::to_json).collect();
    json!({"files": files, "mistakes": mistakes})
}
