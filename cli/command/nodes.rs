//! `flowgpu nodes`: the manual of the kinds, from the docs of their own types.

use engine::config::nearest;
use engine::node::{Kind, Role};
use serde_json::{Value as Json, json};

use super::Format;
use crate::failure::{Failure, exit};
use crate::manual::{self, Manual};
use crate::progress::Terminal;
use crate::{Context, output};

const ROLES: [Role; 6] = [Role::Source, Role::Decode, Role::Batch, Role::Infer, Role::Transform, Role::Sink];

const AFTER_HELP: &str = "\
Examples:
  flowgpu nodes
  flowgpu nodes decode.image";

/// Shows the manual.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Nodes {
    /// A kind, such as `decode.image`; without it, all are listed
    kind: Option<String>,

    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Nodes {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let kinds: Vec<&Kind> = match &self.kind {
            Some(name) => vec![find(cx, name)?],
            None => ROLES
                .iter()
                .flat_map(|role| cx.registry.iter().filter(move |kind| kind.role() == *role))
                .map(|kind| &**kind)
                .collect(),
        };
        let text = match (self.format, &kinds[..]) {
            (Format::Json, [kind]) if self.kind.is_some() => super::json(&json(kind)),
            (Format::Json, kinds) => super::json(&kinds.iter().map(|kind| json(kind)).collect()),
            (Format::Text, [kind]) if self.kind.is_some() => manual::text(&Manual::of(kind), &Terminal::stdout()),
            (Format::Text, kinds) => manual::list(kinds, &Terminal::stdout()),
        };
        output::answer(&text)?;
        Ok(exit::DONE)
    }
}

fn find<'a>(cx: &'a Context<'_>, name: &str) -> Result<&'a Kind, Failure> {
    if let Some(kind) = cx.registry.get(name) {
        return Ok(kind);
    }
    let names = || cx.registry.iter().map(|kind| kind.name());
    let same_role: Vec<_> =
        names().filter(|other| other.split('.').any(|part| name.split('.').any(|own| own == part))).collect();
    let help = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if !same_role.is_empty() => format!("there are {}", engine::config::list(same_role)),
        None => "`flowgpu nodes` lists all kinds".to_owned(),
    };
    Err(Failure::Usage { message: format!("there is no kind `{name}`"), help: Some(help) })
}

fn json(kind: &Kind) -> Json {
    json!({"name": kind.name(), "role": kind.role(), "schema": kind.schema(), "example": kind.example()})
}
