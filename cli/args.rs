//! What may be written on the command line, but for the options of the single commands.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use engine::config::{Devices, Isolation, PlacementPolicy, RunOptions, WorkersPerDevice};

use crate::command::Command;

const AFTER_HELP: &str = "\
Examples:
  flowgpu run pipelines/quickstart.yaml      classify the example photographs
  flowgpu validate pipelines/*.yaml          find every mistake, run nothing
  flowgpu graph pipelines/quickstart.yaml    see the nodes and the columns
  flowgpu nodes decode.image                 the manual of one kind of node
  flowgpu devices --model-memory 5GiB        the GPUs, and how many workers fit on each

Exit codes: 0 done, 1 fault (worth another try), 2 mistake in the command line or a pipeline, 3 done with \
rejects, 130 interrupted.";

/// Offline inference over millions of images, described in a YAML file.
#[derive(Debug, Parser)]
#[command(name = "flowgpu", bin_name = "flowgpu", version, after_help = AFTER_HELP, max_term_width = 110)]
#[command(disable_help_subcommand = false, infer_subcommands = false, propagate_version = false)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A pipeline file and the values put over its own.
#[derive(Debug, clap::Args)]
pub(crate) struct PipelineArgs {
    /// The pipeline file
    #[arg(value_name = "PIPELINE.yaml")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) vars: Vars,
}

/// Values for variables.
#[derive(Debug, clap::Args)]
pub(crate) struct Vars {
    /// Give the variable ${NAME} of the pipeline another value; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) set: Vec<(String, String)>,
}

/// Where models are to run, and in how many workers.
#[derive(Debug, clap::Args)]
pub(crate) struct PlacementArgs {
    /// Where models run: auto, cpu, cuda, or GPUs by number such as cuda:0,2
    #[arg(long, value_name = "DEVICE", help_heading = PlacementArgs::HEADING)]
    device: Option<Devices>,

    /// How models on the CPU run; on GPUs they always run in worker processes
    #[arg(long, value_parser = isolation(), help_heading = PlacementArgs::HEADING)]
    isolation: Option<Isolation>,

    /// How many workers share a device: a number, or auto for as many as pay
    #[arg(long, value_name = "N|auto", help_heading = PlacementArgs::HEADING)]
    workers_per_device: Option<WorkersPerDevice>,

    /// How models share several GPUs
    #[arg(long, value_parser = placement(), help_heading = PlacementArgs::HEADING)]
    placement: Option<PlacementPolicy>,
}

impl PlacementArgs {
    /// What these options stand under in the help.
    pub(crate) const HEADING: &str = "Where it is run";

    /// What was said here, over `options`.
    pub(crate) fn over(&self, options: RunOptions) -> RunOptions {
        options.overridden_by(RunOptions {
            device: self.device.clone(),
            isolation: self.isolation,
            workers_per_device: self.workers_per_device,
            placement: self.placement,
            ..RunOptions::default()
        })
    }
}

fn isolation() -> impl TypedValueParser<Value = Isolation> {
    one_of([
        ("thread", "on threads of this process", Isolation::Thread),
        ("process", "in worker processes: a model that crashes costs its row, not the run", Isolation::Process),
    ])
}

fn placement() -> impl TypedValueParser<Value = PlacementPolicy> {
    one_of([
        ("replicate", "every model on every GPU that holds them all", PlacementPolicy::Replicate),
        ("spread", "models dealt over the GPUs, for when one does not hold them all", PlacementPolicy::Spread),
    ])
}

/// Words, each with what it is good for and what it stands for.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let values = words.map(|(word, about, _)| PossibleValue::new(word).help(about));
    PossibleValuesParser::new(values).map(move |given: String| {
        let chosen = words.iter().find(|(word, ..)| *word == given);
        chosen.expect("the parser accepts only these").2
    })
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write `name=value`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_value_may_hold_an_equals_sign_and_be_empty() {
        assert_eq!(name_and_value("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(name_and_value("a="), Ok(("a".to_owned(), String::new())));
        assert!(name_and_value("=b").is_err());
        assert!(name_and_value("a").is_err());
    }
}
