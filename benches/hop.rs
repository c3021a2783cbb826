//! A message from one node to the next, through the queue that the engine puts between them:
//! `cargo bench --workspace --features testing --bench hop`.
//!
//! By one thread: what the queue itself costs. From one thread to another in a stream, as in a run: a message's share. There
//! and back between two threads that wait for each other: two hops and two wake-ups.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::data::{Batch, ColumnType, Field, Role, RowPos, Schema};
use engine::node::harness;
use engine::runtime::{HopReceiver, HopSender};

/// Rows of a message: the largest chunk of a source.
const N_ROWS: usize = 1024;

/// An edge as a plan makes it: four messages, and more bytes than these have.
fn hop() -> (HopSender, HopReceiver) {
    engine::runtime::hop(4, 32 << 20)
}

fn rows() -> Batch {
    let schema = Schema { fields: vec![Field::new("uri", ColumnType::Text, Role::Uri)], batch: None };
    harness::batch(&schema, 0, N_ROWS, |index, out| out.text(0, &format!("synthetic/{index}")))
}

fn upto() -> RowPos {
    RowPos::new(0, N_ROWS as u64)
}

fn in_a_stream(n_messages: u64) -> Duration {
    let (sender, receiver) = hop();
    let rows = rows();
    thread::scope(|scope| {
        let reading = scope.spawn(move || (0..n_messages).filter_map(|_| receiver.receive()).count());
        let start = Instant::now();
        for _ in 0..n_messages {
            assert!(sender.send(rows.clone(), upto()));
        }
        assert_eq!(reading.join().expect("no panic") as u64, n_messages);
        start.elapsed()
    })
}

fn there_and_back(n_rounds: u64) -> Duration {
    let ((there, arriving), (back, returning)) = (hop(), hop());
    let mut rows = rows();
    thread::scope(|scope| {
        scope.spawn(move || {
            while let Some(batch) = arriving.receive() {
                assert!(back.send(batch, upto()));
            }
        });
        let start = Instant::now();
        for _ in 0..n_rounds {
            assert!(there.send(rows, upto()));
            rows = returning.receive().expect("it comes back");
        }
        let took = start.elapsed();
        drop(there);
        took
    })
}

fn hops(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hop");
    group.throughput(Throughput::Elements(1));
    group.bench_function("by one thread", |bencher| {
        let ((sender, receiver), rows) = (hop(), rows());
        bencher.iter(|| {
            assert!(sender.send(rows.clone(), upto()));
            black_box(receiver.receive())
        });
    });
    group.bench_function("between threads, in a stream", |bencher| bencher.iter_custom(in_a_stream));
    group.bench_function("between threads, there and back", |bencher| bencher.iter_custom(there_and_back));
    group.finish();
}

criterion_group!(benches, hops);
criterion_main!(benches);
