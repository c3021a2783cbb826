//! What may be written on the command line, but for the options of the single commands.

use std::path::PathBuf;

use clap::Parser;
use engine::config::Isolation;

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

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write `name=value`".to_owned()),
    }
}

/// Where models on the CPU run, as `run.isolation` has it.
pub(crate) fn isolation(text: &str) -> Result<Isolation, String> {
    match text {
        "thread" => Ok(Isolation::Thread),
        "process" => Ok(Isolation::Process),
        _ => Err("write `thread` or `process`".to_owned()),
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
