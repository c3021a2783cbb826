//! `flowgpu tune`: the settings with which a pipeline is fastest on this machine, found by trying them.

mod json;
mod knobs;
mod search;
mod text;
mod write;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use engine::config::{Document, RunOptions, as_yaml};
use engine::graph::Graph;
use engine::schedule::{Inventory, Plan};

use self::knobs::{Knobs, Point};
use self::search::Search;
use super::Format;
use crate::args::{PipelineArgs, PlacementArgs};
use crate::failure::{Failure, exit};
use crate::measure::{Meter, end_on_signals};
use crate::pipeline::Pipeline;
use crate::progress::human::rate;
use crate::progress::{Cursor, Terminal};
use crate::{Context, output};

const AFTER_HELP: &str = "\
Examples:
  flowgpu tune classify.yaml
  flowgpu tune classify.yaml --set photos=/data/photos --seconds 10
  flowgpu tune classify.yaml --write classify-here.yaml

Batch sizes, `run.threads.rows`, `run.threads.model` and `run.workers_per_device` are changed one at a time and measured as \
`flowgpu bench` does, each between two measurements of the best so far, until nothing gains more than 2 %. None of them \
changes results. Nothing is written but the file that `--write` names.

Exit codes: 0 measured, 1 nothing to measure, or a fault, 2 mistake in the command line or the pipeline, or a file that \
cannot be edited, 130 interrupted.";

/// Measures settings.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Tune {
    #[command(flatten)]
    pipeline: PipelineArgs,

    #[command(flatten)]
    placement: PlacementArgs,

    /// How long each measurement is, in seconds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,

    /// Write a copy of the pipeline with the best settings to this file, in the same folder
    #[arg(long, value_name = "FILE.yaml")]
    write: Option<PathBuf>,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Tune {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let run = self.placement.over(RunOptions::default());
        let Pipeline { document, graph } = Pipeline::load(&self.pipeline.file, &self.pipeline.vars, run, cx.registry)?;
        if let Some(file) = &self.write {
            write::check(file, document.file())?;
        }
        let inventory = Inventory::read_for(&graph);
        let plan = Plan::make(Arc::new(graph), &inventory)?;
        end_on_signals(&document.name)?;
        let meter = Meter { registry: cx.registry, inventory: &inventory, length: Duration::from_secs(self.seconds) };
        // Whether there is anything to measure.
        drop(meter.input(&plan.graph)?);
        let knobs = Knobs::of(&plan);
        let measure = |point: &Point| self.measure(&meter, &document, &knobs, point);
        let found = Search { knobs: &knobs, measure }.run()?;
        let edits = knobs.edits(&found.best);
        let yaml = as_yaml(&edits);
        let text = match self.format {
            Format::Text => text::text(&knobs, &found, &yaml, document.file(), &Terminal::stdout()),
            Format::Json => super::json(&json::json(&knobs, &found, &yaml)),
        };
        output::answer(&text)?;
        if let Some(file) = &self.write {
            write::write(file, &document, &edits)?;
        }
        Ok(exit::DONE)
    }

    /// The rate with other settings; `None` where there is no place for so many workers.
    fn measure(
        &self,
        meter: &Meter<'_>,
        document: &Document,
        knobs: &Knobs,
        point: &Point,
    ) -> Result<Option<f64>, Failure> {
        let mut document = document.clone();
        knobs.apply(point, &mut document);
        let Ok(graph) = Graph::compile(&document, meter.registry) else { return Ok(None) };
        let graph = Arc::new(graph);
        if Plan::make(graph.clone(), meter.inventory).is_err() {
            return Ok(None);
        }
        let graph = Arc::unwrap_or_clone(graph);
        let rows = meter.rate(graph)?.rows;
        if Terminal::stderr().cursor == Cursor::Moves {
            let settings = knobs.words(point);
            let settings = if settings.is_empty() { "as it is".to_owned() } else { settings.join(", ") };
            output::tell(&format!("{}: {settings}: {}\n", document.name.value, rate(rows)));
        }
        Ok(Some(rows))
    }
}
