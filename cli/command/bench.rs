//! `flowgpu bench`: how fast a pipeline and its two halves are, its input repeated and its outputs thrown away.

mod json;
mod text;

use std::sync::Arc;
use std::time::Duration;

use engine::config::RunOptions;
use engine::node::Role;
use engine::schedule::{DevicePlace, Inventory, Plan};

use super::Format;
use crate::args::{PipelineArgs, PlacementArgs};
use crate::failure::{Failure, exit};
use crate::measure::{Measured, Meter, Rate, end_on_signals};
use crate::pipeline::Pipeline;
use crate::progress::{Cursor, Terminal};
use crate::{Context, output};

const AFTER_HELP: &str = "\
Examples:
  flowgpu bench classify.yaml
  flowgpu bench classify.yaml --seconds 20 --set photos=/data/photos
  flowgpu bench classify.yaml --device cuda:0 --format json

Three measurements: the input as far as the first batch (decode), batches of it from memory through the models (infer), \
and all of it. The input is repeated as long as needed, and nothing is written: no output, no reject file, no state. \
Starting up and loading models is in no figure.

Exit codes: 0 measured, whatever was rejected, 1 nothing to measure, or a fault, 2 mistake in the command line or the \
pipeline, 130 interrupted.";

/// Measures.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Bench {
    #[command(flatten)]
    pipeline: PipelineArgs,

    #[command(flatten)]
    placement: PlacementArgs,

    /// How long each of the three measurements is, in seconds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What was measured.
struct Figures {
    decode: Rate,
    infer: Measured,
    end_to_end: Rate,
    sharing: Sharing,
}

/// What decoding and models share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// The cores: each has what the other leaves.
    Cores,
    /// Nothing: all models run on GPUs.
    Nothing,
}

impl Bench {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let run = self.placement.over(RunOptions::default());
        let graph = Pipeline::load(&self.pipeline.file, &self.pipeline.vars, run, cx.registry)?.graph;
        let inventory = Inventory::read_for(&graph);
        // Whether it can be placed is told before anything runs.
        let plan = Plan::make(Arc::new(graph), &inventory)?;
        let graph = &plan.graph;
        end_on_signals(&graph.name)?;
        let meter = Meter { registry: cx.registry, inventory: &inventory, length: Duration::from_secs(self.seconds) };
        let tell = |what: &str| {
            if Terminal::stderr().cursor == Cursor::Moves {
                output::tell(&format!("{}: {what}\n", graph.name));
            }
        };
        tell("looking at the input");
        let input = meter.input(graph)?;
        let mut decode = None;
        if input.has_batches() {
            tell(&format!("decode, {} s", self.seconds));
            decode = Some(meter.decode(graph, &input)?);
        }
        if graph.with_role(Role::Infer).next().is_some() {
            tell(&format!("infer, {} s", self.seconds));
        }
        let infer = meter.infer(graph, &input)?;
        // Its memory is for the run that all is compared with.
        drop(input);
        tell(&format!("end to end, {} s", self.seconds));
        let end_to_end = meter.rate(graph.as_ref().clone())?;
        let is_on_gpu = |place: DevicePlace| place != DevicePlace::Cpu;
        let workers = &plan.placement.workers;
        let all_on_gpus = !workers.is_empty() && workers.iter().all(|worker| is_on_gpu(worker.device));
        let sharing = if all_on_gpus { Sharing::Nothing } else { Sharing::Cores };
        // Without batches decoding is all there is.
        let figures = Figures { decode: decode.unwrap_or(end_to_end), infer, end_to_end, sharing };
        let text = match self.format {
            Format::Text => text::text(&figures, &Terminal::stdout()),
            Format::Json => super::json(&json::json(&figures)),
        };
        if let (Format::Json, Err(why)) = (self.format, &figures.infer) {
            output::tell(&format!("{}: no rate of inference: {why}\n", graph.name));
        }
        output::answer(&text)?;
        Ok(exit::DONE)
    }
}

impl Figures {
    /// What the two halves allow together.
    fn limit(&self) -> f64 {
        let decode = self.decode.rows;
        match (&self.infer, self.sharing) {
            (Err(_), _) => decode,
            (Ok(infer), Sharing::Cores) => 1.0 / (1.0 / decode + 1.0 / infer.rows),
            (Ok(infer), Sharing::Nothing) => decode.min(infer.rows),
        }
    }

    /// How much of that the pipeline comes to.
    fn ratio(&self) -> f64 {
        self.end_to_end.rows / self.limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_what_the_halves_allow() {
        let rate = |rows: f64| Rate { rows, rejected: 0 };
        let figures = |infer: Measured, sharing| {
            let figures = Figures { decode: rate(300.0), infer, end_to_end: rate(75.0), sharing };
            (figures.limit(), figures.ratio())
        };
        assert_eq!(figures(Ok(rate(100.0)), Sharing::Cores), (75.0, 1.0));
        assert_eq!(figures(Ok(rate(100.0)), Sharing::Nothing), (100.0, 0.75));
        assert_eq!(figures(Err("no model".to_owned()), Sharing::Cores), (300.0, 0.25));
    }
}
