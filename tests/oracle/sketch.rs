//! Pipelines of the forms that people write: one sink or two, unions, joins, several sources, rejects that are read.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::case::{Case, Conserved, Form, Output, Truth};
use crate::dice::Dice;
use crate::inputs::InputFile;

/// How long a run may take in one of its slow nodes, about, in microseconds.
const SLOW: u64 = 250_000;

/// A pipeline in the making.
pub struct Sketch<'a> {
    dice: &'a mut Dice,
    nodes: String,
    n_nodes: usize,
    n_sources: usize,
    files: Vec<InputFile>,
    outputs: Vec<Output>,
    conserved: Vec<Conserved>,
}

/// The rows that leave a node.
#[derive(Clone)]
struct Stream {
    node: String,
    /// The column of tensors.
    column: String,
    inputs: Vec<String>,
    n_copies: usize,
    path: BTreeSet<String>,
}

/// Where rows come from.
#[derive(Clone, Copy)]
enum From {
    Files,
    Images,
    Rows,
    Slow,
    Boxes,
    Tars,
    Tables,
    Rejects,
}

impl Sketch<'_> {
    /// Draws a pipeline.
    pub fn draw(dice: &mut Dice) -> Case {
        let mut sketch = Sketch {
            dice,
            nodes: String::new(),
            n_nodes: 0,
            n_sources: 0,
            files: Vec::new(),
            outputs: Vec::new(),
            conserved: Vec::new(),
        };
        match sketch.dice.between(0, 7) {
            0 => sketch.chain(),
            1 | 2 => sketch.two_sinks(),
            3 => sketch.union(),
            4 | 5 => sketch.join(),
            6 => sketch.two_sources(),
            _ => sketch.concatenated(),
        }
        let Sketch { nodes, files, outputs, conserved, .. } = sketch;
        Case { nodes, files, outputs, truth: Truth::Conserved(conserved) }
    }

    fn chain(&mut self) {
        let stream = self.trunk();
        let stream = self.model(&stream);
        self.sink(&stream);
    }

    fn two_sinks(&mut self) {
        let trunk = self.trunk();
        let first = self.delay(&trunk);
        self.sink(&first);
        let second = self.model(&trunk);
        let second = self.dropping(&second);
        self.sink(&second);
    }

    fn union(&mut self) {
        let trunk = self.trunk();
        let (first, second) = (self.delay(&trunk), self.delay(&trunk));
        let both = Stream { n_copies: 2, ..first.clone() };
        let both = self.reading(&both, &format!("[{}, {}]", first.node, second.node), "batch", "{size: 6}");
        let both = if self.dice.chance(50) { self.model(&both) } else { both };
        self.sink(&both);
        if self.dice.chance(30) {
            self.sink(&second);
        }
    }

    fn join(&mut self) {
        let trunk = self.trunk();
        let first = self.model(&trunk);
        let second = self.dropping(&trunk);
        let second = self.model(&second);
        let mut both = first.clone();
        both.path.extend(second.path.iter().cloned());
        let both = self.reading(&both, &format!("[{}, {}]", first.node, second.node), "transform.join", "{}");
        self.sink(&both);
        if self.dice.chance(50) {
            self.sink(&second);
        }
    }

    fn two_sources(&mut self) {
        for _ in 0..2 {
            let trunk = self.trunk();
            let stream = if self.dice.chance(50) { self.model(&trunk) } else { trunk };
            self.sink(&stream);
        }
    }

    fn concatenated(&mut self) {
        let (first, second) = (self.source(From::Files), self.source(From::Files));
        let mut both = first.clone();
        both.inputs.extend(second.inputs.iter().cloned());
        both.path.extend(second.path.iter().cloned());
        let both = self.reading(&both, &format!("[{}, {}]", first.node, second.node), "batch", "{size: 5}");
        let both = self.dropping(&both);
        let both = self.model(&both);
        self.sink(&both);
        if self.dice.chance(50) {
            self.sink(&second);
        }
    }

    /// A source, and what may be done to its rows one by one.
    fn trunk(&mut self) -> Stream {
        let from = self.dice.pick(&[
            From::Files,
            From::Files,
            From::Images,
            From::Rows,
            From::Slow,
            From::Boxes,
            From::Boxes,
            From::Tars,
            From::Tables,
            From::Rejects,
        ]);
        let mut stream = self.source(from);
        stream = self.delay(&stream);
        if self.dice.chance(70) {
            stream = self.dropping(&stream);
        }
        stream
    }

    fn source(&mut self, from: From) -> Stream {
        let count = self.dice.between(60, 260);
        let folder = format!("in/{}", self.n_sources);
        let (kind, with) = match from {
            From::Files => ("source.files", format!("{{path: \"{folder}/**/*.png\"}}")),
            From::Images => ("source.synthetic", format!("{{images: {{count: {count}, size: [16, 12]}}}}")),
            From::Rows => ("source.synthetic", format!("{{rows: {{count: {count}}}}}")),
            From::Tars => ("source.webdataset", format!("{{path: \"{folder}/*.tar\", parallel: 2}}")),
            From::Tables => ("source.jsonl", format!("{{path: \"{folder}/*.jsonl\", carry: [number]}}")),
            From::Rejects => ("source.rejects", format!("{{path: {folder}/rejects.jsonl}}")),
            From::Boxes => ("", String::new()),
            From::Slow => {
                let micros = self.dice.between(0, 1) * SLOW / count;
                ("source.test_slow", format!("{{count: {count}, micros: {micros}, fetch_micros: {}}}", SLOW / count))
            }
        };
        let (boxes, most, open) = (self.dice.between(1, 30), self.dice.between(1, 12), self.dice.between(1, 4));
        let (kind, with) = match from {
            From::Boxes => {
                let micros = self.dice.between(0, 1) * SLOW / (boxes * most);
                ("source.test_boxes", format!("{{boxes: {boxes}, most: {most}, open: {open}, micros: {micros}}}"))
            }
            _ => (kind, with),
        };
        self.n_sources += 1;
        let inputs = if let From::Files = from {
            let files = InputFile::draw(self.dice, &folder, count);
            let uris = files.iter().map(|file| file.path.clone()).collect();
            self.files.extend(files);
            uris
        } else if let From::Tars | From::Tables = from {
            let ending = if let From::Tars = from { "tar" } else { "jsonl" };
            let (files, uris) = InputFile::draw_holding(self.dice, &folder, count, ending);
            self.files.extend(files);
            uris
        } else if let From::Rejects = from {
            let (files, uris) = InputFile::draw_rejected(self.dice, &folder, count);
            self.files.extend(files);
            uris
        } else if let From::Boxes = from {
            nodes::testing::box_uris(boxes, most)
        } else {
            (0..count).map(|index| format!("synthetic/{index}")).collect()
        };
        let source = Stream { node: String::new(), column: "x".into(), inputs, n_copies: 1, path: BTreeSet::new() };
        let source = self.reading(&source, "", kind, &with);
        match from {
            From::Files | From::Images | From::Tars | From::Rejects => {
                self.after(&source, "decode.image", "{resize: [4, 3], as: x}")
            }
            From::Rows | From::Slow | From::Boxes | From::Tables => {
                self.after(&source, "transform.test_tensor", "{shape: [5], as: x}")
            }
        }
    }

    fn delay(&mut self, stream: &Stream) -> Stream {
        let micros = self.dice.between(0, 6 * SLOW / stream.inputs.len() as u64);
        let seed = self.dice.between(0, 9);
        self.after(stream, "transform.test_delay", &format!("{{micros: {micros}, seed: {seed}}}"))
    }

    /// A node that rejects rows, or panics on them; sometimes a sink reads these.
    fn dropping(&mut self, stream: &Stream) -> Stream {
        let (kind, share) = self.dice.pick(&[
            ("reject", "0.1"),
            ("reject", "0.5"),
            ("reject", "0.02"),
            ("panic", "0.1"),
            ("reject", "1.0"),
        ]);
        let with = format!("{{share: {share}, seed: {}}}", self.dice.between(0, 9));
        let stream = self.after(stream, &format!("transform.test_{kind}"), &with);
        if self.dice.chance(25) {
            self.output("sink.jsonl", &format!("{}.rejects", stream.node), "jsonl", "", Form::Jsonl);
        }
        stream
    }

    fn model(&mut self, stream: &Stream) -> Stream {
        let column = format!("m{}", self.n_nodes);
        let n_batches = stream.inputs.len() as u64 / 8 + 1;
        let micros = self.dice.between(0, SLOW / n_batches);
        let with = format!("{{column: {}, as: {column}, n: 3, batch: 8, micros: {micros}}}", stream.column);
        Stream { column, ..self.after(stream, "infer.test", &with) }
    }

    fn sink(&mut self, stream: &Stream) {
        let (kind, ending, more, form) = match self.dice.between(0, 15) {
            10..=11 => {
                let rows = self.dice.between(5, 90);
                ("sink.jsonl", "jsonl.zst", format!(", rotate: {{rows: {rows}}}"), Form::Packed)
            }
            12..=13 => {
                let rows = self.dice.between(5, 90);
                ("sink.parquet", "parquet", format!(", rotate: {{rows: {rows}}}, row_group_rows: 16"), Form::Parquet)
            }
            14..=15 => {
                let bytes = self.dice.between(20, 200);
                let columns = format!("{{json: uri, npy: {}}}", stream.column);
                let more = format!(", rotate: {{bytes: {bytes}KiB}}, columns: {columns}");
                ("sink.webdataset", "tar", more, Form::Archives)
            }
            0..=3 => ("sink.jsonl", "jsonl", String::new(), Form::Jsonl),
            4..=5 => ("sink.csv", "csv", String::new(), Form::Csv),
            // Beside an array there are ids, which are uris only where a source has no others.
            6..=7 if !stream.inputs.iter().any(|uri| uri.contains(".tar#")) => {
                ("sink.npy", "npy", format!(", column: {}", stream.column), Form::Npy)
            }
            _ => {
                let micros = self.dice.between(0, SLOW / stream.inputs.len() as u64);
                ("sink.test_slow", "jsonl", format!(", micros: {micros}"), Form::Jsonl)
            }
        };
        let output = self.output(kind, &stream.node, ending, &more, form);
        let Stream { inputs, n_copies, path, .. } = stream.clone();
        self.conserved.push(Conserved { output, inputs, n_copies, path });
    }

    fn output(&mut self, kind: &str, from: &str, ending: &str, more: &str, form: Form) -> Output {
        let path = format!("out/n{}.{ending}", self.n_nodes);
        let node = self.node(from, kind, &format!("{{path: {path}{more}}}"));
        let output = Output { node, path, form };
        self.outputs.push(output.clone());
        output
    }

    fn after(&mut self, stream: &Stream, kind: &str, with: &str) -> Stream {
        self.reading(stream, &stream.node, kind, with)
    }

    fn reading(&mut self, stream: &Stream, from: &str, kind: &str, with: &str) -> Stream {
        let node = self.node(from, kind, with);
        let mut stream = Stream { node: node.clone(), ..stream.clone() };
        stream.path.insert(node);
        stream
    }

    fn node(&mut self, from: &str, kind: &str, with: &str) -> String {
        let name = format!("n{}", self.n_nodes);
        self.n_nodes += 1;
        let from = if from.is_empty() { String::new() } else { format!(", from: {from}") };
        writeln!(self.nodes, "  {name}: {{kind: {kind}{from}, with: {with}, queue: 2}}").expect("a string");
        name
    }
}
