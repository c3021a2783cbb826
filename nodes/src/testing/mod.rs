//! Kinds that misbehave on purpose, and a stand-in for GPUs, for tests of the engine. Not in the shipped program.
//!
//! What they do depends only on their options and on a row's index, so a test can tell beforehand what must come out.

mod archives;
mod boxes;
mod conformance;
mod decode;
mod delay;
mod fault;
mod model;
mod model_faults;
mod panic;
mod pass;
mod reject;
mod rows;
mod sink;
mod source;
mod spin;
mod standin;
mod tensor;
mod wait;
mod weights;

use engine::node::Registry;

pub use archives::{parquet_of, tar_of};
pub use boxes::{box_uris, rows_in_box};
pub use rows::{chosen, hash};
pub use weights::{ReadTensor, read_weights};

/// The shipped kinds and those for tests, and a device that stands in for GPUs.
pub fn testing_registry() -> Registry {
    crate::registry()
        .with::<source::SlowSource>()
        .with::<boxes::Boxes>()
        .with::<decode::DecodeFault>()
        .with::<delay::Delay>()
        .with::<fault::FaultAfter>()
        .with::<panic::Panic>()
        .with::<pass::Pass>()
        .with::<reject::RejectSome>()
        .with::<spin::Spin>()
        .with::<tensor::MakeTensor>()
        .with::<model::TestModel>()
        .with::<conformance::Conformance>()
        .with::<sink::SlowSink>()
        .with_device(standin::StandIn)
}

/// The element `element` of the tensor that `transform.test_tensor` makes for a row: a whole number up to 250, so that
/// sums of them are exact.
pub fn element(index: u64, element: usize) -> u8 {
    ((index.wrapping_mul(31).wrapping_add(element as u64 * 7)) % 251) as u8
}

/// What `infer.test` gives for a row of `n_elements` elements of `transform.test_tensor`: its `n` numbers.
pub fn expected_logits(index: u64, n_elements: usize, n: usize) -> Vec<f32> {
    let sum: f32 = (0..n_elements).map(|at| f32::from(element(index, at))).sum();
    (1..=n).map(|factor| sum * factor as f32).collect()
}

/// The same where the rows of `transform.test_tensor` are numbered `f32`.
pub fn expected_numbered_logits(index: u64, n_elements: usize, n: usize) -> Vec<f32> {
    let sum: f32 = index as f32 + (1..n_elements).map(|at| f32::from(element(index, at))).sum::<f32>();
    (1..=n).map(|factor| sum * factor as f32).collect()
}

#[cfg(test)]
mod tests {
    use engine::data::{Column, ColumnType, Field, Role, Schema};
    use engine::node::harness::{Harness, batch};
    use engine::node::{FaultKind, Stage};

    use super::*;

    fn schema() -> Schema {
        Schema { fields: vec![Field::new("uri", ColumnType::Text, Role::Uri)], batch: None }
    }

    fn rows(n_rows: usize) -> engine::data::Batch {
        batch(&schema(), 0, n_rows, |index, out| out.text(0, &format!("synthetic/{index}")))
    }

    #[test]
    fn the_kinds_have_names_of_their_own_and_parse() {
        assert_eq!(testing_registry().iter().count(), crate::registry().iter().count() + 13);
    }

    #[test]
    fn rows_are_rejected_as_foretold() {
        let mapped =
            Harness::new::<reject::RejectSome>("{share: 0.25, seed: 3, rows: [7]}", vec![schema()]).map(&rows(1000));
        let expected: Vec<_> = (0..1000).filter(|&index| !chosen(0.25, 3, index) && index != 7).collect();
        assert_eq!(mapped.passed.iter().map(|&row_idx| row_idx as u64).collect::<Vec<_>>(), expected);
        assert!((150..350).contains(&mapped.rejects.len()));
    }

    #[test]
    fn the_model_computes_what_is_foretold() {
        let made = Harness::new::<tensor::MakeTensor>("{shape: [3, 2], non_finite: [4]}", vec![schema()]);
        let input = Schema { batch: Some(5), ..made.spec().unwrap().schema() };
        let columns = [rows(5).columns(), &made.map(&rows(5)).columns[..]].concat();
        let packed = Harness::new::<crate::batch::Pack>("size: 5", vec![input.clone()]);
        let mut batches = Vec::new();
        packed.fold().push(rows(5).with_columns(columns), &mut batches).unwrap();
        let infer = Harness::new::<model::TestModel>("n: 3", vec![input]);
        let Stage::Infer(stage) = infer.build().unwrap() else { panic!() };
        let Column::Dense(tensor) = &batches[0].columns()[stage.inputs[0]] else { panic!() };
        let outputs = stage.model.load().unwrap().forward(std::slice::from_ref(tensor)).unwrap();
        for index in 0..4 {
            assert_eq!(*outputs[0].row(index).to_f32(), expected_logits(index as u64, 6, 3));
        }
        assert!(!outputs[0].row(4).is_finite());
    }

    #[test]
    fn the_model_says_what_it_is_told_to_need() {
        let tensor = ColumnType::Tensor { dtype: engine::data::DType::F32, shape: vec![engine::data::Dim::Fixed(4)] };
        let input = Schema { fields: vec![Field::new("tensor", tensor, Role::Result)], batch: Some(5) };
        let with = "{device: cuda, need: {weights: 1000, activations_per_row: 10, workspace: 1}}";
        let need = Harness::new::<model::TestModel>(with, vec![input.clone()]).spec().unwrap().need.unwrap();
        assert_eq!(need.bytes(16), 1161);
        assert_eq!(need.devices, Some(engine::config::Devices::Cuda(Vec::new())));
        let need = Harness::new::<model::TestModel>("{}", vec![input]).spec().unwrap().need.unwrap();
        assert_eq!(need, engine::node::ModelNeed::default());
    }

    #[test]
    fn rows_bear_their_index_where_they_are_numbered() {
        for (dtype, n_elements) in [("f32", 1), ("u8", 4)] {
            let with = |n: usize| format!("{{dtype: {dtype}, shape: [{n}], numbered: true}}");
            let numbered = Harness::new::<tensor::MakeTensor>(&with(n_elements), vec![schema()]);
            let [Column::Ragged(tensors)] = &numbered.map(&rows(600)).columns[..] else { panic!() };
            let numbers = tensors.values().iter().map(|tensor| {
                let bytes = *tensor.bytes().first_chunk().unwrap();
                if dtype == "u8" { u64::from(u32::from_le_bytes(bytes)) } else { f32::from_ne_bytes(bytes) as u64 }
            });
            assert!(numbers.eq(0..600), "{dtype}");
            assert!(Harness::new::<tensor::MakeTensor>(&with(n_elements - 1), vec![schema()]).spec().is_err());
        }
    }

    #[test]
    fn a_fault_comes_with_the_row_that_is_named() {
        let mut fold = Harness::new::<fault::FaultAfter>("{after: 10, how: permanent}", vec![schema()]).fold();
        let mut out = Vec::new();
        fold.push(rows(10), &mut out).unwrap();
        assert_eq!(out.len(), 1);
        assert_eq!(fold.push(rows(1), &mut out).unwrap_err().kind, FaultKind::Permanent);
    }

    #[test]
    fn the_slow_sink_writes_as_the_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let node = Harness::new::<sink::SlowSink>("{path: o, fault_after: 3}", vec![schema()]).in_folder(folder.path());
        let mut sink = node.sink().unwrap();
        sink.write(&rows(3)).unwrap();
        assert!(sink.write(&rows(1)).is_err());
        engine::durable::publish(folder.path(), &sink.seal().unwrap()).unwrap();
        let text = std::fs::read_to_string(folder.path().join("o")).unwrap();
        assert_eq!(text.lines().next(), Some(r#"{"uri":"synthetic/0"}"#));
    }
}
