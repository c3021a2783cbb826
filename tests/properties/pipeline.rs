//! Random pipelines, each with what it must give.

use std::collections::BTreeSet;
use std::fmt::Write;

use nodes::testing::chosen;

use crate::reference::{Pos, Rejects, Stream};

/// One random choice: what to add, and numbers to choose by.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub what: u8,
    pub first: u8,
    pub second: u8,
    pub size: u8,
}

/// A pipeline and what it must give.
pub struct Pipeline {
    pub yaml: String,
    pub sinks: Vec<(String, Vec<serde_json::Value>)>,
    /// By sink that reads a node's rejects: its rows, without the messages.
    pub reject_sinks: Vec<(String, Vec<serde_json::Value>)>,
    /// The reject file: uri, node, code.
    pub rejects: Vec<(String, String, String)>,
}

struct Builder {
    yaml: String,
    n_nodes: usize,
    n_sources: usize,
    streams: Vec<Stream>,
    read: BTreeSet<String>,
    rejects: Rejects,
    sinks: Vec<(String, Vec<serde_json::Value>)>,
    reject_sinks: Vec<(String, Vec<serde_json::Value>)>,
}

impl Pipeline {
    pub fn build(choices: &[Choice]) -> Pipeline {
        let mut builder = Builder {
            yaml: "name: random\nrun: {rejects: random.rejects.jsonl}\nnodes:\n".to_owned(),
            n_nodes: 0,
            n_sources: 0,
            streams: Vec::new(),
            read: BTreeSet::new(),
            rejects: Rejects::default(),
            sinks: Vec::new(),
            reject_sinks: Vec::new(),
        };
        builder.source(choices[0]);
        choices.iter().for_each(|&choice| builder.add(choice));
        builder.finish()
    }
}

impl Builder {
    fn add(&mut self, choice: Choice) {
        match choice.what % 10 {
            0 if self.n_sources < 3 => self.source(choice),
            1 | 2 => self.dropping(choice, "reject", "test"),
            3 => self.dropping(choice, "panic", "panic"),
            4 => self.map(
                choice,
                "transform.test_delay",
                &format!("{{micros: {}, seed: {}}}", u32::from(choice.size) * 8, choice.second),
                None,
            ),
            5 => {
                let column = format!("c{}", self.n_nodes);
                self.map(choice, "transform.test_pass", &format!("{{as: {column}}}"), Some(column));
            }
            6 => self.map(choice, "batch", &format!("{{size: {}}}", choice.size % 40 + 1), None),
            7 => self.union(choice),
            8 => self.join(choice),
            _ => self.sink(choice),
        }
    }

    fn pick(&self, number: u8) -> Stream {
        self.streams[usize::from(number) % self.streams.len()].clone()
    }

    fn node(&mut self, kind: &str, from: &str, with: &str, choice: Choice) -> String {
        let name = format!("n{}", self.n_nodes);
        self.n_nodes += 1;
        let from = if from.is_empty() { String::new() } else { format!(", from: {from}") };
        writeln!(self.yaml, "  {name}: {{kind: {kind}{from}, with: {with}, queue: {}}}", choice.second % 3 + 1)
            .expect("a string");
        name
    }

    fn source(&mut self, choice: Choice) {
        let count = u64::from(choice.size) * u64::from(choice.second % 4);
        let (kind, with) = match choice.first % 3 {
            0 => ("source.test_slow", format!("{{count: {count}, fetch_micros: {}}}", choice.second)),
            _ => ("source.synthetic", format!("{{rows: {{count: {count}}}}}")),
        };
        let node = self.node(kind, "", &with, choice);
        let source = self.n_sources;
        self.n_sources += 1;
        let rows = (0..count).map(|index| (source, index)).collect();
        self.streams.push(Stream {
            node,
            columns: Vec::new(),
            rows,
            sources: BTreeSet::from([source]),
            repeats: false,
        });
    }

    fn map(&mut self, choice: Choice, kind: &str, with: &str, column: Option<String>) {
        let mut stream = self.pick(choice.first);
        self.read.insert(stream.node.clone());
        stream.node = self.node(kind, &stream.node, with, choice);
        stream.columns.extend(column);
        self.streams.push(stream);
    }

    fn dropping(&mut self, choice: Choice, what: &str, code: &'static str) {
        let mut stream = self.pick(choice.first);
        self.read.insert(stream.node.clone());
        let (share, seed) = (f64::from(choice.size % 4) / 4.0, u64::from(choice.second));
        let kind = format!("transform.test_{what}");
        stream.node = self.node(&kind, &stream.node, &format!("{{share: {share}, seed: {seed}}}"), choice);
        let node_idx = self.n_nodes - 1;
        let is_dropped = |&(_, index): &Pos| chosen(share, seed, index);
        let (dropped, kept): (Vec<_>, Vec<_>) = stream.rows.iter().copied().partition(is_dropped);
        dropped.iter().for_each(|&pos| self.rejects.add(pos, node_idx, &stream.node, code));
        stream.rows = kept;
        if choice.second.is_multiple_of(4) {
            let name = self.node(
                "sink.jsonl",
                &format!("{}.rejects", stream.node),
                &format!("{{path: n{}.jsonl}}", self.n_nodes),
                choice,
            );
            let line = |&(_, index): &Pos| {
                let uri = format!("synthetic/{index}");
                serde_json::json!({"id": uri, "uri": uri, "node": stream.node, "code": code})
            };
            self.reject_sinks.push((name, dropped.iter().map(line).collect()));
        }
        self.streams.push(stream);
    }

    fn union(&mut self, choice: Choice) {
        let first = self.pick(choice.first);
        let others: Vec<_> = self
            .streams
            .iter()
            .filter(|other| other.columns == first.columns && other.node != first.node)
            .cloned()
            .collect();
        if others.is_empty() {
            return;
        }
        let second = others[usize::from(choice.second) % others.len()].clone();
        // Sources concatenate in the order of `from`; here that is always the order of the file.
        let (first, second) =
            if first.sources.first() <= second.sources.first() { (first, second) } else { (second, first) };
        if first.sources.union(&second.sources).count() > 1
            && !(first.sources.last() <= second.sources.first() || first.sources == second.sources)
        {
            return;
        }
        [&first, &second].iter().for_each(|stream| {
            self.read.insert(stream.node.clone());
        });
        let from = format!("[{}, {}]", first.node, second.node);
        let node = self.node("transform.test_delay", &from, "{micros: 5}", choice);
        let mut rows: Vec<_> =
            first.rows.iter().map(|&pos| (pos, 0)).chain(second.rows.iter().map(|&pos| (pos, 1))).collect();
        rows.sort_unstable();
        let repeats = first.repeats || second.repeats || first.sources.intersection(&second.sources).next().is_some();
        let sources = first.sources.union(&second.sources).copied().collect();
        self.streams.push(Stream {
            node,
            columns: first.columns,
            rows: rows.into_iter().map(|(pos, _)| pos).collect(),
            sources,
            repeats,
        });
    }

    fn join(&mut self, choice: Choice) {
        let first = self.pick(choice.first);
        let fits = |other: &&Stream| {
            other.node != first.node && other.sources == first.sources && !other.repeats && !first.repeats
        };
        let others: Vec<_> = self.streams.iter().filter(fits).cloned().collect();
        if others.is_empty() {
            return;
        }
        let second = others[usize::from(choice.second) % others.len()].clone();
        // Columns of a union belong to the union: two branches then have a column of one name and two origins.
        if first.columns.iter().any(|column| second.columns.contains(column))
            && (first.sources.len() > 1 || self.has_union())
        {
            return;
        }
        if self.has_union() && first.sources.len() > 1 {
            return;
        }
        [&first, &second].iter().for_each(|stream| {
            self.read.insert(stream.node.clone());
        });
        let node = self.node("transform.join", &format!("[{}, {}]", first.node, second.node), "{}", choice);
        let kept: BTreeSet<_> = second.rows.iter().copied().collect();
        let rows = first.rows.iter().copied().filter(|pos| kept.contains(pos)).collect();
        let mut columns = first.columns.clone();
        columns.extend(second.columns.iter().filter(|column| !first.columns.contains(column)).cloned());
        self.streams.push(Stream { node, columns, rows, sources: first.sources, repeats: false });
    }

    fn has_union(&self) -> bool {
        self.streams.iter().any(|stream| stream.repeats || stream.sources.len() > 1)
    }

    fn sink(&mut self, choice: Choice) {
        let stream = self.pick(choice.first);
        self.write(&stream, choice);
    }

    fn write(&mut self, stream: &Stream, choice: Choice) {
        self.read.insert(stream.node.clone());
        let with = format!("{{path: n{}.jsonl, micros: {}}}", self.n_nodes, choice.second % 50);
        let name = self.node("sink.test_slow", &stream.node, &with, choice);
        self.sinks.push((name, stream.lines()));
    }

    fn finish(mut self) -> Pipeline {
        let choice = Choice { what: 0, first: 0, second: 0, size: 0 };
        let unread: Vec<_> = self.streams.iter().filter(|stream| !self.read.contains(&stream.node)).cloned().collect();
        unread.iter().for_each(|stream| self.write(stream, choice));
        Pipeline { yaml: self.yaml, sinks: self.sinks, reject_sinks: self.reject_sinks, rejects: self.rejects.rows() }
    }
}
