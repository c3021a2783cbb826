//! The options of `run` about what is kept on disk, and about how a run stops.

use std::env;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use engine::config::{Duration, Journaling, OnChange, RunOptions};

use crate::args::one_of;

const HEADING: &str = "How it stops and goes on";

/// How a run stops, and what of it is there afterwards.
#[derive(Debug, clap::Args)]
pub(super) struct LastingArgs {
    /// Whether progress is noted on disk, so that the same command goes on where it was stopped
    #[arg(long, value_parser = journal(), help_heading = HEADING)]
    journal: Option<Journaling>,

    /// The folder for the run's state, by default .flowgpu/NAME beside the pipeline file
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    state: Option<String>,

    /// How much work a crash may cost: progress is made durable that often, such as 1s
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    commit_every: Option<Duration>,

    /// What becomes of rows that are done if their files have changed since
    #[arg(long, value_parser = on_change(), help_heading = HEADING)]
    on_change: Option<OnChange>,

    /// How long a run that is asked to stop may take to finish what is in flight, such as 20s
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    grace: Option<Duration>,

    /// Stop as soon as this file exists, as if by a signal
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    drain_file: Option<String>,

    /// How long a node may be without progress before it is named, such as 5m
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    stall: Option<Duration>,
}

impl LastingArgs {
    /// What was said here, over `options`. Paths are made absolute: those in the file start from another folder.
    pub(super) fn over(&self, options: RunOptions) -> RunOptions {
        options.overridden_by(RunOptions {
            journal: self.journal,
            state: self.state.as_deref().map(from_the_root),
            commit_every: self.commit_every,
            on_change: self.on_change,
            grace: self.grace,
            drain_file: self.drain_file.as_deref().map(from_the_root),
            stall: self.stall,
            ..RunOptions::default()
        })
    }
}

fn from_the_root(path: &str) -> String {
    // A folder that is not UTF-8 cannot be written in a pipeline: then the path stays as it is.
    let absolute = env::current_dir().ok().map(|here| here.join(path));
    absolute.and_then(|path: PathBuf| path.into_os_string().into_string().ok()).unwrap_or_else(|| path.to_owned())
}

fn journal() -> impl TypedValueParser<Value = Journaling> {
    one_of([("on", "a stopped run goes on", Journaling::On), ("off", "every run begins anew", Journaling::Off)])
}

fn on_change() -> impl TypedValueParser<Value = OnChange> {
    one_of([
        ("keep", "they stay as they were made", OnChange::Keep),
        ("reprocess", "the run goes back to before the first of them", OnChange::Reprocess),
        ("fail", "the run does not go on", OnChange::Fail),
    ])
}
