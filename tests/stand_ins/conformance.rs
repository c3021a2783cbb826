//! The suite that every executor passes, against each of them.

use std::path::Path;
use std::sync::Arc;

use engine::data::HeapPool;
use engine::node::{BuildCx, LoadModel, SpecCx, Stage};
use engine::worker::{Local, conformance};
use serde_json::Value;

/// The model of a node, as a run makes it.
fn model(kind: &str, with: Value) -> Arc<dyn LoadModel> {
    let registry = nodes::testing_registry();
    let node = registry.get(kind).expect("a kind").parse(serde_yaml::to_value(with).unwrap()).unwrap();
    let (name, inputs, base) = ("model", &[conformance::input()], Path::new("/"));
    let spec = node.spec(&SpecCx { name, inputs, input_names: &["tensors"], advice: None, base }).unwrap();
    let alloc = Arc::new(HeapPool::new());
    let cx = BuildCx::alone(name, inputs, &spec, base, alloc);
    match node.build(&cx).unwrap() {
        Stage::Infer(stage) => stage.model,
        stage => panic!("{stage:?} is no model"),
    }
}

#[test]
fn threads_of_this_process_conform() {
    let folder = tempfile::tempdir().unwrap();
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let start = |kind: &str, with, instances| {
        Ok(Box::new(Local::start("test", &model(kind, with), instances, &pool)?) as Box<dyn engine::worker::Executor>)
    };
    conformance::run(&start, folder.path());
}
