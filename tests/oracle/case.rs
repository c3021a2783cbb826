//! What is run, and what must come of it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::dice::Dice;
use crate::inputs::InputFile;
use crate::pipeline::{Choice, Pipeline};
use crate::sketch::Sketch;

/// The reject file of every case.
pub const REJECTS: &str = "rejects.jsonl";

/// A pipeline, its input files and what must be in its outputs.
pub struct Case {
    /// The nodes, as they stand in the pipeline file.
    pub nodes: String,
    pub files: Vec<InputFile>,
    /// The outputs, those that read rejects included; not the reject file.
    pub outputs: Vec<Output>,
    pub truth: Truth,
}

/// One output.
#[derive(Clone, Debug)]
pub struct Output {
    /// The sink.
    pub node: String,
    pub path: String,
    pub form: Form,
}

/// How an output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Jsonl,
    Csv,
    /// An array, and its ids in a file beside it.
    Npy,
    /// Lines, compressed, in numbered parts.
    Packed,
    /// Numbered parts.
    Parquet,
    /// Numbered archives.
    Archives,
}

/// What must be in the outputs.
pub enum Truth {
    /// Every row of every output is foretold.
    Foretold(Pipeline),
    /// For each output that reads rows: where each row of the input has to be found again.
    Conserved(Vec<Conserved>),
}

/// What enters an output's path and must be found in it or among the rejects.
pub struct Conserved {
    pub output: Output,
    /// The uris, in order.
    pub inputs: Vec<String>,
    /// How often each is written.
    pub n_copies: usize,
    /// The nodes on the path: what one of these rejects is not written.
    pub path: BTreeSet<String>,
}

impl Output {
    /// The files that it consists of, in `folder`. Parts are numbered without a gap, and there is at least one.
    pub fn files(&self, folder: &Path) -> Vec<String> {
        let (stem, ending) = self.path.split_at(self.path.find('.').expect("an ending"));
        let part = |number: usize| format!("{stem}-{number:05}{ending}");
        match self.form {
            Form::Packed | Form::Parquet | Form::Archives => {
                let parts = (0..).map(part).take_while(|part| folder.join(part).exists());
                let parts: Vec<_> = parts.collect();
                if parts.is_empty() { vec![part(0)] } else { parts }
            }
            Form::Jsonl | Form::Csv => vec![self.path.clone()],
            Form::Npy => vec![self.path.clone(), format!("{}.ids.jsonl", self.path.trim_end_matches(".npy"))],
        }
    }
}

impl Case {
    /// Draws one: a graph of any form whose every row is foretold, or one of the forms that pipelines usually have, with
    /// all sinks and with files that cannot be read.
    pub fn draw(dice: &mut Dice) -> Case {
        if dice.chance(30) { Case::any_graph(dice) } else { Sketch::draw(dice) }
    }

    fn any_graph(dice: &mut Dice) -> Case {
        let mut choice = |what: u64| Choice {
            what: what as u8,
            first: dice.number() as u8,
            second: dice.number() as u8,
            size: dice.number() as u8,
        };
        // Enough rows to be interrupted in.
        let first = Choice { second: 2, size: 150, ..choice(4) };
        let mut choices = vec![first, choice(4)];
        let n_more = choice(0).first % 8 + 2;
        choices.extend((0..n_more).map(|turn| {
            let what = choice(0).size.wrapping_add(turn);
            choice(u64::from(what))
        }));
        let pipeline = Pipeline::build(&choices);
        let (_, nodes) = pipeline.yaml.split_once("nodes:\n").expect("a pipeline has nodes");
        let nodes = nodes.lines().map(slower).collect();
        let names = pipeline.sinks.iter().chain(&pipeline.reject_sinks).map(|(name, _)| name);
        let output = |name: &String| Output { node: name.clone(), path: format!("{name}.jsonl"), form: Form::Jsonl };
        Case { nodes, files: Vec::new(), outputs: names.map(output).collect(), truth: Truth::Foretold(pipeline) }
    }
}

/// A node of a random graph; slow sinks take longer than they do where nobody waits for a moment to strike.
fn slower(line: &str) -> String {
    match line.split_once("micros: ") {
        Some((before, after)) if line.contains("sink.test_slow") => format!("{before}micros: 1{after}\n"),
        _ => format!("{line}\n"),
    }
}
