//! `flowgpu graph`: a pipeline as a picture, in every form that the engine renders.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use engine::config::{RunOptions, nearest};
use engine::graph::render::{Live, Page, Picture, RENDERINGS, Rendering};
use serde::Deserialize;

use crate::args::PipelineArgs;
use crate::failure::{Failure, exit, reason};
use crate::pipeline::Pipeline;
use crate::progress::Terminal;
use crate::{Context, output};

const AFTER_HELP: &str = "\
Examples:
  flowgpu graph classify.yaml
  flowgpu graph classify.yaml -o classify.svg
  flowgpu run classify.yaml --report run.json && flowgpu graph classify.yaml --report run.json -o run.html";

/// Draws.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Graph {
    #[command(flatten)]
    pipeline: PipelineArgs,

    /// The form; without it, the one that the output's name ends in, or text
    #[arg(long, value_parser = format_parser())]
    format: Option<String>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Put the figures of a run on the nodes: a file that `run --report` wrote
    #[arg(long, value_name = "REPORT.json")]
    report: Option<PathBuf>,
}

/// The words that may stand after `--format`, each with what it is good for.
fn format_parser() -> PossibleValuesParser {
    PossibleValuesParser::new(
        RENDERINGS.iter().map(|rendering| clap::builder::PossibleValue::new(rendering.name).help(rendering.about)),
    )
}

impl Graph {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let rendering = self.rendering()?;
        let loaded = Pipeline::load(&self.pipeline.file, &self.pipeline.vars, RunOptions::default(), cx.registry)?;
        let mut picture = loaded.graph.picture();
        if let Some(report) = &self.report {
            add_figures(&mut picture, report)?;
        }
        match &self.output {
            Some(path) => {
                let text = (rendering.render)(&picture, Page::default());
                fs::write(path, text).map_err(|error| {
                    Failure::fault(format!("cannot write `{}`: {}", path.display(), reason(&error)))
                })?;
            }
            None => {
                let terminal = Terminal::stdout();
                let page = Page { charset: terminal.charset, width: terminal.width() };
                output::answer(&(rendering.render)(&picture, page))?;
            }
        }
        Ok(exit::DONE)
    }

    fn rendering(&self) -> Result<&'static Rendering, Failure> {
        let named = |name: &str| RENDERINGS.iter().find(|rendering| rendering.name == name);
        if let Some(format) = &self.format {
            return Ok(named(format).expect("the parser accepts only these"));
        }
        let ending = self.output.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
        match ending {
            None | Some("txt") => Ok(&RENDERINGS[0]),
            Some("mmd" | "md") => Ok(named("mermaid").unwrap_or(&RENDERINGS[0])),
            Some("gv") => Ok(named("dot").unwrap_or(&RENDERINGS[0])),
            Some(ending) => named(ending).ok_or_else(|| Failure::Usage {
                message: format!("no form of a graph goes by the ending `.{ending}`"),
                help: Some(format!("say which is meant with `--format`: {}", names())),
            }),
        }
    }
}

fn names() -> String {
    let names: Vec<_> = RENDERINGS.iter().map(|rendering| rendering.name).collect();
    names.join(", ")
}

/// What a picture needs of a report; it may have been written by another version, so the rest is not looked at.
#[derive(Deserialize)]
struct Figures {
    name: String,
    nodes: Vec<NodeFigures>,
    bottleneck: Option<Bottleneck>,
}

#[derive(Deserialize)]
struct NodeFigures {
    name: String,
    rows_per_second: f64,
    busy: f64,
    starved: f64,
    blocked: f64,
    rejects: u64,
}

#[derive(Deserialize)]
struct Bottleneck {
    node: String,
}

fn add_figures(picture: &mut Picture, report: &Path) -> Result<(), Failure> {
    let shown = report.display();
    let text = fs::read_to_string(report)
        .map_err(|error| Failure::usage(format!("cannot read the report `{shown}`: {}", reason(&error))))?;
    let figures: Figures = serde_json::from_str(&text).map_err(|error| Failure::Usage {
        message: format!("`{shown}` is no report of a run: {error}"),
        help: Some("a report is what `flowgpu run … --report FILE` writes".to_owned()),
    })?;
    let limiting = figures.bottleneck.map(|bottleneck| bottleneck.node);
    let mut by_name: HashMap<_, _> = figures.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    for node in &mut picture.nodes {
        node.live = by_name.remove(node.name.as_str()).map(|figures| Live {
            rows_per_s: figures.rows_per_second,
            busy: figures.busy,
            starved: figures.starved,
            blocked: figures.blocked,
            rejects: figures.rejects,
            limits_run: limiting.as_ref() == Some(&node.name),
        });
    }
    if picture.is_live() {
        return Ok(());
    }
    let help = match nearest(&figures.name, [picture.title.as_str()]) {
        Some(_) => "its nodes have other names".to_owned(),
        None => format!("it is of the pipeline `{}`", figures.name),
    };
    Err(Failure::Usage { message: format!("`{shown}` has no figures of this pipeline's nodes"), help: Some(help) })
}
