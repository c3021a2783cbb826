//! Models compute on the pool that the caller installed. Alone in its file, because it looks at the process's threads.

mod embedders;

use candle_core::{DType, Device, Tensor};
use embedders::{every_arch, file};
use nodes::models::{ImageModel, InputSize};

#[test]
fn models_compute_on_the_pool_of_the_caller_only() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .thread_name(|thread_idx| format!("mine/{thread_idx}"))
        .build()
        .expect("a pool");
    // A thread has its name once it has run something.
    pool.broadcast(|_| ());
    let before = threads();
    for (name, arch) in every_arch() {
        let (height, width) = match arch.input_size() {
            InputSize::AtLeast(_) => (224, 224),
            InputSize::Exactly(height, width) => (height, width),
        };
        let images = Tensor::zeros((2, 3, height, width), DType::F32, &Device::Cpu).expect("images");
        let weights = file(&*arch, 0);
        pool.install(|| {
            let model = ImageModel::load(arch.clone(), &weights, DType::F32, &Device::Cpu).expect("weights that fit");
            model.forward(&images, arch.outputs()[0]).expect("outputs");
        });
        assert_eq!(threads(), before, "{name} started threads");
    }
    assert!(before.iter().any(|name| name == "mine/1"), "{before:?}");
}

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir("/proc/self/task")
        .expect("Linux")
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect();
    names.sort();
    names
}
