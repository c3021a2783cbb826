//! What a run's journal takes: a cut that is appended and made durable, and a long journal that is read to go on with:
//! `cargo bench --workspace --features testing --bench journal`.
//!
//! The files lie below `target`, so the first is as fast as the disk there syncs.

use std::fs;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use engine::config::Document;
use engine::graph::Graph;
use engine::journal::{Cut, Journal, Moment, Opened, RejectCut, SinkCut, SourceCut, Start, StateFolder};
use engine::node::SinkPos;
use tempfile::TempDir;

const N_CUTS: usize = 10_000;

/// A pipeline with so many sinks, in a folder of its own.
struct Run {
    _folder: TempDir,
    graph: Graph,
}

impl Run {
    fn new(n_sinks: usize) -> Self {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let sinks = (0..n_sinks).map(|sink| {
            format!("  out-{sink}: {{kind: sink.jsonl, from: rows, with: {{path: out-{sink}.jsonl, columns: [id]}}}}\n")
        });
        let text = format!(
            "name: cuts\nnodes:\n  rows: {{kind: source.synthetic, with: {{rows: {{count: 1000000}}}}}}\n{}",
            sinks.collect::<String>()
        );
        let file = folder.path().join("cuts.yaml");
        fs::write(&file, text).expect("a file");
        let registry = nodes::registry();
        let document = Document::read(&file, &[], &|_| None, &registry).expect("a pipeline");
        Run { _folder: folder, graph: Graph::compile(&document, &registry).expect("a graph") }
    }

    fn open(&self, start: Start) -> Box<Journal> {
        match Journal::open(&self.graph, None, start, "bench").expect("a journal") {
            Opened::Ready(journal) => journal,
            Opened::Finished(_) => panic!("the run is not done"),
        }
    }

    /// A journal that a process has begun.
    fn begin(&self) -> Box<Journal> {
        let mut journal = self.open(Start::Fresh);
        journal.session(None, Vec::new()).expect("a line");
        journal
    }

    /// The cut behind so many rows.
    fn cut(&self, n_rows: u64) -> Cut {
        let sink =
            SinkCut { pos: SinkPos { rows: n_rows, bytes: n_rows * 25, ..SinkPos::default() }, ..SinkCut::default() };
        let sinks = self.graph.sinks().map(|node_idx| (self.graph.nodes[node_idx].name.clone(), sink.clone()));
        let source = SourceCut { done: n_rows, total: Some(1_000_000), ..SourceCut::default() };
        let rejects = RejectCut { bytes: vec![0], ..RejectCut::default() };
        Cut { at: Moment::now(), sources: vec![source], sinks: sinks.collect(), rejects }
    }

    /// Repeats the last line of the journal until it has so many cuts.
    fn fill(&self, n_cuts: usize) {
        let path = StateFolder::of(&self.graph, None).journal();
        let text = fs::read_to_string(&path).expect("a journal");
        let last = text.lines().last().expect("a cut");
        fs::write(&path, format!("{text}{}", format!("{last}\n").repeat(n_cuts - 1))).expect("a journal");
    }
}

fn cuts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("journal, a cut");
    for n_sinks in [1, 8] {
        let run = Run::new(n_sinks);
        let mut journal = run.begin();
        let mut n_rows = 0;
        group.bench_function(BenchmarkId::new("sinks", n_sinks), |bencher| {
            bencher.iter(|| {
                n_rows += 1000;
                journal.cut(run.cut(n_rows)).expect("a line");
            });
        });
    }
    group.finish();
}

fn resuming(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("journal, resuming from 10000 cuts");
    for n_sinks in [1, 8] {
        let run = Run::new(n_sinks);
        run.begin().cut(run.cut(1000)).expect("a line");
        run.fill(N_CUTS);
        group.bench_function(BenchmarkId::new("sinks", n_sinks), |bencher| {
            bencher.iter(|| {
                let journal = run.open(Start::Resume);
                assert_eq!(journal.history().map(|history| history.cuts.len()), Some(N_CUTS));
                journal
            });
        });
    }
    group.finish();
}

criterion_group!(benches, cuts, resuming);
criterion_main!(benches);
