//! Putting 32 pictures of 224×224 together into a batch, by the `batch` node itself:
//! `cargo bench --workspace --features testing --bench batch`.
//!
//! Pictures come one by one, as decoding gives them, or all in one chunk, of which each is memory of its own.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use engine::data::{Batch, ColumnType, DType, Dim, Field, Role, Schema};
use engine::node::harness::{self, Harness};
use nodes::batch::Pack;

const N_PICTURES: usize = 32;
const SHAPE: [usize; 3] = [224, 224, 3];
const N_BYTES: usize = SHAPE[0] * SHAPE[1] * SHAPE[2];

fn schema() -> Schema {
    let pixels = ColumnType::Tensor { dtype: DType::U8, shape: SHAPE.map(Dim::Fixed).to_vec() };
    let fields = vec![Field::new("uri", ColumnType::Text, Role::Uri), Field::new("pixels", pixels, Role::Result)];
    Schema { fields, batch: None }
}

fn pictures(first: u64, n_rows: usize) -> Batch {
    harness::batch(&schema(), first, n_rows, |index, out| {
        out.text(0, &format!("photos/{index}.jpg"));
        let mut buffer = out.alloc(DType::U8, &SHAPE);
        buffer.bytes_mut()[..N_BYTES].fill(index as u8);
        out.tensor(1, DType::U8, &SHAPE, buffer);
    })
}

fn assembly(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("batch of 32, 224x224");
    group.throughput(Throughput::Bytes((N_PICTURES * N_BYTES) as u64));
    let one_by_one: Vec<Batch> = (0..N_PICTURES as u64).map(|index| pictures(index, 1)).collect();
    for (name, chunks) in [("one by one", one_by_one), ("in one chunk", vec![pictures(0, N_PICTURES)])] {
        // The memory of a batch that was used goes to the next one, as in a run.
        let mut fold = Harness::new::<Pack>(&format!("size: {N_PICTURES}"), vec![schema()]).fold();
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || chunks.clone(),
                |chunks| {
                    let mut out = Vec::new();
                    chunks.into_iter().for_each(|chunk| fold.push(chunk, &mut out).expect("pictures of the shape"));
                    assert_eq!(out.len(), 1);
                    out
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, assembly);
criterion_main!(benches);
