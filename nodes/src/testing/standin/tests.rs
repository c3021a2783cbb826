use std::fs;
use std::path::PathBuf;

use engine::data::{DType, HeapPool, Tensor};
use engine::node::{FaultKind, LoadModel, Model, ModelError, ModelNeed, SpanStage, monotonic_ns};
use tempfile::TempDir;

use super::*;

/// A model that gives what it gets.
#[derive(Debug)]
struct Echo;

impl LoadModel for Echo {
    fn load(&self) -> Result<Box<dyn Model>, Fault> {
        Ok(Box::new(Echo))
    }
}

impl Model for Echo {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(inputs.to_vec())
    }
}

/// A machine with one GPU that has these properties too.
fn machine(properties: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpus.json");
    let gpu = format!(r#"{{"uuid": "GPU-1", "name": "Stand-in A", "memory": 1000{properties}}}"#);
    fs::write(&path, format!(r#"{{"gpus": [{gpu}]}}"#)).unwrap();
    (folder, path)
}

fn rows(n_rows: usize) -> Tensor {
    let values: Vec<f32> = (0..n_rows).map(|row_idx| row_idx as f32).collect();
    Tensor::from_slice(&HeapPool::new(), DType::F32, vec![n_rows, 1], &values)
}

fn need(weights: u64, activations_per_row: u64) -> ModelNeed {
    ModelNeed { weights, activations_per_row, workspace: 100, ..ModelNeed::default() }
}

fn start(model: &mut dyn Model, n_rows: usize) -> Result<Box<dyn engine::node::Pending>, ModelError> {
    model.start(&[rows(n_rows)])
}

#[test]
fn it_says_what_it_is_and_how_many_are_seen() {
    let (_folder, path) = machine("");
    let device = open(&path, Some("0")).unwrap();
    let info = device.info();
    assert_eq!((info.kind.as_str(), info.name.as_str(), info.uuid.as_deref()), ("cuda", "Stand-in A", Some("GPU-1")));
    assert_eq!((info.memory, info.n_visible), (Some(1000), 1));
    let both = r#"{"gpus": [{"uuid": "GPU-1"}, {"uuid": "GPU-2"}]}"#;
    fs::write(&path, both).unwrap();
    assert_eq!(open(&path, Some("1,0")).unwrap().info().n_visible, 2);
    assert_eq!(open(&path, None).unwrap().info().n_visible, 2);
}

#[test]
fn without_a_device_or_a_description_there_is_a_fault() {
    let (_folder, path) = machine("");
    for none in ["", "-1", "7"] {
        let fault = open(&path, Some(none)).err().unwrap();
        assert!(fault.message.starts_with("no device") && fault.message.contains(none), "{fault}");
    }
    fs::write(&path, "gpus").unwrap();
    assert!(open(&path, Some("0")).err().unwrap().message.contains("gpus.json"));
    fs::remove_file(&path).unwrap();
    assert!(open(&path, Some("0")).err().unwrap().message.contains("no such file"));
}

#[test]
fn results_are_real_and_come_when_the_download_has_ended() {
    let (_folder, path) = machine(r#", "upload_ms": 1, "compute_us_per_row": 500, "download_ms": 1"#);
    let mut model = open(&path, None).unwrap().load(&Echo, &need(0, 0)).unwrap();
    assert_eq!(model.slots(), 3);
    let begin = monotonic_ns();
    let pending = start(&mut *model, 4).unwrap();
    let computed = pending.wait().unwrap();
    assert!(monotonic_ns() >= begin + 4_000_000);
    assert_eq!(computed.outputs[0].bytes(), rows(4).bytes());
    let lengths: Vec<_> = computed.spans.iter().map(|span| (span.stage, span.end_ns - span.start_ns)).collect();
    let (upload, compute, download) = (SpanStage::Upload, SpanStage::Compute, SpanStage::Download);
    assert_eq!(lengths, [(upload, 1_000_000), (compute, 2_000_000), (download, 1_000_000)]);
    assert!(computed.spans[0].start_ns >= begin);
}

#[test]
fn batches_of_two_models_share_the_upload_engine_and_compute_at_once() {
    let (_folder, path) = machine(r#", "upload_ms": 1, "compute_ms": 100"#);
    let device = open(&path, None).unwrap();
    let mut one = device.load(&Echo, &need(0, 0)).unwrap();
    let mut two = device.load(&Echo, &need(0, 0)).unwrap();
    let (first, second) = (start(&mut *one, 1).unwrap(), start(&mut *two, 1).unwrap());
    let (first, second) = (first.wait().unwrap().spans, second.wait().unwrap().spans);
    assert!(second[0].start_ns >= first[0].end_ns, "one upload after the other");
    assert_eq!(second[1].start_ns, second[0].end_ns, "and no waiting for the other's computation");
}

#[test]
fn memory_runs_out_for_weights_and_for_batches() {
    let (_folder, path) = machine(r#", "users": [{"pid": 1, "bytes": 200}], "overhead": 100"#);
    let device = open(&path, None).unwrap();
    let fault = device.load(&Echo, &need(601, 0)).err().unwrap();
    assert_eq!(fault.kind, FaultKind::Transient);
    assert!(fault.message.contains("out of memory: 701 bytes wanted, 700 of 700 are free"), "{fault}");
    let mut model = device.load(&Echo, &need(300, 10)).unwrap();
    let refused = start(&mut *model, 31).err().unwrap();
    assert!(matches!(refused, ModelError::OutOfMemory(_)), "{refused}");
    // Batches of one stream use the same memory in turn.
    let under_way: Vec<_> = (0..3).map(|_| start(&mut *model, 30).unwrap()).collect();
    assert!(device.load(&Echo, &need(0, 0)).is_err(), "all is taken");
    for pending in under_way {
        pending.wait().unwrap();
    }
    assert!(device.load(&Echo, &need(0, 0)).is_ok(), "batches give back what they took");
    drop(model);
    assert!(device.load(&Echo, &need(600, 0)).is_ok(), "models too");
}

#[test]
fn a_lost_device_stays_lost() {
    let (_folder, path) = machine(r#", "lost_after": 2"#);
    for _ in 0..2 {
        let device = open(&path, None).unwrap();
        let mut model = device.load(&Echo, &need(0, 0)).unwrap();
        assert!(model.forward(&[rows(1)]).is_ok() && model.forward(&[rows(1)]).is_ok());
        for _ in 0..2 {
            assert!(matches!(model.forward(&[rows(1)]), Err(ModelError::DeviceLost(_))));
        }
        assert!(device.load(&Echo, &need(0, 0)).err().unwrap().message.contains("the device is lost"));
    }
}

#[test]
fn a_device_that_is_lost_once_works_when_it_is_opened_again() {
    let (_folder, path) = machine(r#", "lost_after": 0, "lost_again": false"#);
    let is_lost = |device: &StandInDevice| device.load(&Echo, &need(0, 0)).is_err();
    assert!(is_lost(&open(&path, None).unwrap()));
    assert!(!is_lost(&open(&path, None).unwrap()));
    assert!(!is_lost(&open(&path, None).unwrap()));
}
