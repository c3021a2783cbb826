//! `flowgpu completions`: scripts that complete commands and options in a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::{Failure, exit};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  flowgpu completions bash > ~/.local/share/bash-completion/completions/flowgpu
  flowgpu completions zsh > \"${fpath[1]}/_flowgpu\"
  flowgpu completions fish > ~/.config/fish/completions/flowgpu.fish";

/// Prints the script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) -> Result<u8, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "flowgpu", &mut script);
        output::answer(&String::from_utf8_lossy(&script))?;
        Ok(exit::DONE)
    }
}
