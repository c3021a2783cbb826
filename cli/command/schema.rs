//! `flowgpu schema`: what editors check pipeline files against.

use engine::config::json_schema;

use super::json;
use crate::failure::{Failure, exit};
use crate::{Context, output};

const AFTER_HELP: &str = "\
An editor with a YAML language server completes and checks a pipeline whose first line says where the schema is:
  flowgpu schema > flowgpu.schema.json
  # yaml-language-server: $schema=flowgpu.schema.json";

/// Prints the schema.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Schema {}

impl Schema {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        output::answer(&json(&json_schema(cx.registry)))?;
        Ok(exit::DONE)
    }
}
