//! The files that are read, found by what was written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::config::{RunOptions, nearest};
use engine::durable::partial_path;
use engine::graph::Graph;
use engine::journal::reject_part;
use engine::node::{Registry, Role};
use nodes::source::rejects::RejectLines;
use nodes::store::{Location, StoreOptions, Stores};

use crate::args::Vars;
use crate::command::status;
use crate::failure::{Failure, reason};
use crate::pipeline::{Pipeline, from_here};

/// A reject file, or standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// A path or a URL.
    File(PathBuf),
    /// The same, found by its pipeline, and its name from that file's folder.
    OfPipeline {
        /// The path from here.
        path: PathBuf,
        /// The path from the pipeline file's folder.
        named: String,
    },
    /// A file of a run that is not done: it has no name of its own yet.
    Unfinished(PathBuf),
    /// A file that a run without rejects does not leave.
    Absent(PathBuf),
    /// Standard input.
    Standard,
}

impl Input {
    /// What `of` stands for.
    pub(super) fn all(of: &Path, vars: &Vars, registry: &Registry) -> Result<Vec<Input>, Failure> {
        if of.as_os_str() == "-" {
            return Ok(vec![Input::Standard]);
        }
        if of.to_str().is_some_and(Location::is_url) {
            return Ok(vec![Input::File(of.to_owned())]);
        }
        let metadata = fs::metadata(of).map_err(|error| missing(of, &error))?;
        if metadata.is_dir() {
            let help = Some("name a reject file, or the pipeline file".to_owned());
            return Err(Failure::Usage { message: format!("`{}` is a folder", of.display()), help });
        }
        if of.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            return Input::of_pipeline(of, vars, registry);
        }
        Ok(vec![Input::File(of.to_owned())])
    }

    /// The reject files of a pipeline's run, or of its shards.
    fn of_pipeline(file: &Path, vars: &Vars, registry: &Registry) -> Result<Vec<Input>, Failure> {
        let graph = Pipeline::load(file, vars, RunOptions::default(), registry)?.graph;
        let whole = graph.reject_path();
        let mut inputs = found(&whole, &graph);
        if inputs.is_empty() {
            let name = whole.file_name().unwrap_or_default().to_string_lossy();
            for shard in status::shards(file, vars, registry)? {
                inputs.extend(found(&whole.with_file_name(shard.name(&name)), &graph));
            }
        }
        if inputs.is_empty() {
            inputs.push(Input::Absent(from_here(&whole)));
        }
        Ok(inputs)
    }

    /// As people write it.
    pub(super) fn shown(&self) -> String {
        match self {
            Input::File(path) | Input::OfPipeline { path, .. } | Input::Unfinished(path) | Input::Absent(path) => {
                let text = path.display().to_string();
                if Location::is_url(&text) { nodes::store::redacted(&text) } else { text }
            }
            Input::Standard => "standard input".to_owned(),
        }
    }

    /// Begins to read it; nothing is there of a file that is absent.
    pub(super) fn open(&self) -> Result<Option<RejectLines>, Failure> {
        let path = match self {
            Input::File(path) | Input::OfPipeline { path, .. } | Input::Unfinished(path) => path,
            Input::Absent(_) => return Ok(None),
            Input::Standard => {
                let lines = RejectLines::new(io::stdin());
                let lines =
                    lines.map_err(|error| Failure::fault(format!("cannot read standard input: {}", reason(&error))))?;
                return Ok(Some(lines));
            }
        };
        let stores = Stores::new(StoreOptions::default());
        let text = path.to_str().filter(|text| Location::is_url(text));
        let location = match text {
            Some(url) => Location::parse(url, Path::new("")).map_err(|error| Failure::usage(error.to_string()))?,
            None => {
                let path = std::path::absolute(path);
                Location::local(path.map_err(|error| Failure::usage(reason(&error)))?)
            }
        };
        let lines = RejectLines::open(&stores, &location).map_err(|error| match text {
            Some(_) => Failure::usage(error.to_string()),
            None => Failure::from(engine::node::Fault::from(error)),
        })?;
        Ok(Some(lines))
    }
}

/// The reject file at `path`; of a run that is not done, those of its sources.
fn found(path: &Path, graph: &Graph) -> Vec<Input> {
    let n_sources = graph.with_role(Role::Source).count().max(1);
    let parts = (0..n_sources).map(|source| partial_path(&reject_part(path, source)));
    let parts: Vec<_> = parts.filter(|part| part.is_file()).map(|part| Input::Unfinished(from_here(&part))).collect();
    if parts.is_empty() && path.is_file() {
        let named = path.strip_prefix(&graph.base).unwrap_or(path).display().to_string();
        return vec![Input::OfPipeline { path: from_here(path), named }];
    }
    parts
}

fn missing(of: &Path, error: &io::Error) -> Failure {
    if error.kind() != io::ErrorKind::NotFound {
        return Failure::usage(format!("cannot read `{}`: {}", of.display(), reason(error)));
    }
    let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let written = of.file_name().unwrap_or_default().to_string_lossy();
    let rejects: Vec<_> = names.iter().map(String::as_str).filter(|name| name.contains(".rejects.jsonl")).collect();
    let near = nearest(&written, names.iter().map(String::as_str)).or(match rejects[..] {
        [only] => Some(only),
        _ => None,
    });
    let help = match near {
        Some(near) => {
            let near = folder.map_or_else(|| PathBuf::from(near), |folder| folder.join(near));
            format!("did you mean `{}`?", near.display())
        }
        None => "a run that rejects nothing leaves no such file".to_owned(),
    };
    Failure::Usage { message: format!("`{}` does not exist", of.display()), help: Some(help) }
}
