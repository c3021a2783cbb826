//! Models compute on the pool that the caller installed. Alone in its file, because it looks at the process's threads.

use candle_core::{DType, Device, Tensor};
use nodes::models::{ARCHS, ImageModel, InputSize, Outputs, RandomWeights};

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
    for &arch in ARCHS {
        let (height, width) = match arch.input_size() {
            InputSize::AtLeast(_) => (224, 224),
            InputSize::Exactly(height, width) => (height, width),
        };
        let images = Tensor::zeros((2, 3, height, width), DType::F32, &Device::Cpu).expect("images");
        let weights = RandomWeights::new(arch, 10, 0);
        pool.install(|| {
            let model = ImageModel::load(arch, &weights, DType::F32, &Device::Cpu).expect("weights that fit");
            model.forward(&images, Outputs::Logits).expect("logits");
        });
        assert_eq!(threads(), before, "{} started threads", arch.name());
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
