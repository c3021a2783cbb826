//! Models on a GPU that is made of threads: the whole of `nodes::cuda` and the layers' kernels against a stand-in for the
//! driver (`driver.c`), which is as asynchronous as a GPU and as strict as a driver.
//!
//! `scripts/cuda-build.sh --test` runs it, because the stand-in must be found in the place of CUDA's libraries before
//! the program starts. It shows that batches are right whatever the streams' order, that errors are told apart and that
//! nothing is left; not that a real GPU is content, nor how fast it is.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use engine::data::{BufferMut, ColumnType, DType, Dim, Field, HeapPool, Memory, Role, Schema, Tensor};
use engine::node::harness::Harness;
use engine::node::{Computed, Device, Fault, LoadModel, Model, ModelError, ModelNeed, OpenDevice, Pending, Stage};
use nodes::cuda::OpenCuda;
use nodes::infer::Infer;

const SIDE: usize = 65;

fn loader(arch: &str) -> Arc<dyn LoadModel> {
    let ty = ColumnType::Tensor { dtype: DType::U8, shape: vec![Dim::Fixed(SIDE), Dim::Fixed(SIDE), Dim::Fixed(3)] };
    let input = Schema { fields: vec![Field::new("image", ty, Role::Result)], batch: Some(4) };
    let with = format!("{{model: {{arch: {arch}, weights: random}}}}");
    match Harness::new::<Infer>(&with, vec![input]).build() {
        Ok(Stage::Infer(stage)) => stage.model,
        _ => panic!("`infer` is built as a model"),
    }
}

/// Pixels without a pattern.
fn pixels(n_rows: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..n_rows * SIDE * SIDE * 3).map(|_| next()).collect()
}

fn batch(n_rows: usize, seed: u32) -> Tensor {
    Tensor::from_slice(&HeapPool::new(), DType::U8, vec![n_rows, SIDE, SIDE, 3], &pixels(n_rows, seed))
}

fn assert_same(found: &Tensor, wanted: &Tensor, what: &str) {
    assert_eq!(found.shape(), wanted.shape(), "{what}");
    let (found, wanted) = (found.view().to_f32(), wanted.view().to_f32());
    let scale = wanted.iter().fold(0f32, |scale, value| scale.max(value.abs()));
    for (found, wanted) in found.iter().zip(wanted.iter()) {
        // A NaN is what the stand-in fills memory with that nobody has written.
        assert!((found - wanted).abs() <= 1e-5 * scale, "{what}: {found} is not {wanted}");
    }
}

fn open() -> Arc<dyn Device> {
    OpenCuda.open().unwrap_or_else(|fault| panic!("{fault}: run this by scripts/cuda-build.sh --test"))
}

fn load(device: &dyn Device, arch: &str) -> (Box<dyn Model>, Box<dyn Model>) {
    let loader = loader(arch);
    let on_gpu = device.load(&*loader, &ModelNeed::default()).expect("loaded onto the GPU");
    (on_gpu, loader.load().expect("loaded on the CPU"))
}

#[test]
fn every_network_computes_on_the_gpu_what_it_computes_on_the_cpu() {
    let device = open();
    assert_eq!(device.info().uuid.as_deref(), Some("GPU-00112233-4455-6677-8899-aabbccddeeff"));
    for arch in ["resnet18", "resnet50", "mobilenet_v2", "efficientnet_lite0"] {
        let (mut on_gpu, mut on_cpu) = load(&*device, arch);
        for n_rows in [3, 1, 2, 0] {
            let input = [batch(n_rows, 7)];
            let [found, wanted] = [&mut on_gpu, &mut on_cpu].map(|model| model.forward(&input).expect("computed"));
            assert_same(&found[0], &wanted[0], &format!("{arch}, {n_rows} rows"));
        }
    }
}

/// Starts 24 batches as fast as the model takes them, waited for by another thread; one more is given up.
fn pipeline(mut model: Box<dyn Model>, input: impl Fn(u32) -> Tensor) -> Vec<Computed> {
    // One batch with the thread that waits, the others in the channel or in the hand of this one.
    let (sender, receiver) = sync_channel::<Box<dyn Pending>>(model.slots() - 2);
    let waiting =
        thread::spawn(move || receiver.into_iter().map(|pending| pending.wait().expect("computed")).collect());
    for seed in 0..24 {
        sender.send(model.start(&[input(seed)]).expect("started")).expect("awaited");
        if seed == 12 {
            drop(model.start(&[input(99)]).expect("started"));
        }
    }
    drop(sender);
    waiting.join().expect("all batches")
}

#[test]
fn batches_of_two_models_side_by_side_come_out_right_and_in_order() {
    let device = open();
    let running = ["resnet18", "mobilenet_v2"].map(|arch| {
        let (on_gpu, mut on_cpu) = load(&*device, arch);
        thread::spawn(move || {
            for (seed, computed) in pipeline(on_gpu, |seed| batch(2, seed)).into_iter().enumerate() {
                let wanted = on_cpu.forward(&[batch(2, seed as u32)]).expect("computed");
                assert_same(&computed.outputs[0], &wanted[0], &format!("{arch}, batch {seed}"));
                let stages: Vec<_> = computed.spans.iter().map(|span| format!("{:?}", span.stage)).collect();
                assert_eq!(stages, ["Upload", "Compute", "Download"]);
                assert!(computed.spans.iter().all(|span| span.start_ns <= span.end_ns));
            }
        })
    });
    for running in running {
        running.join().expect("both models");
    }
}

/// Shared memory as a worker has it: mapped as long as the process lives.
struct Arena(&'static [u8]);

impl Memory for Arena {
    fn bytes(&self) -> &[u8] {
        self.0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        unreachable!("it is only read")
    }
}

#[test]
#[ignore = "run in a process of its own, which tells how copies went"]
fn child_uploads_from_an_arena() {
    let device = open();
    let arena: &'static [u8] = pixels(2, 5).leak();
    device.register(arena);
    let input = || Tensor::new(DType::U8, vec![2, SIDE, SIDE, 3], BufferMut::new(Box::new(Arena(arena))).freeze());
    let (on_gpu, mut on_cpu) = load(&*device, "resnet18");
    let wanted = on_cpu.forward(&[input()]).expect("computed");
    for computed in pipeline(on_gpu, |_| input()) {
        assert_same(&computed.outputs[0], &wanted[0], "from an arena");
    }
}

#[test]
#[ignore = "run in a process of its own, with little memory"]
fn child_finds_the_batch_that_fits() {
    let device = open();
    let (mut on_gpu, mut on_cpu) = load(&*device, "resnet18");
    let mut n_rows = 64;
    loop {
        let input = [batch(n_rows, 3)];
        match on_gpu.forward(&input) {
            Ok(found) => {
                assert!(n_rows < 64, "all of it fitted");
                let wanted = on_cpu.forward(&input).expect("computed");
                return assert_same(&found[0], &wanted[0], "after all");
            }
            Err(ModelError::OutOfMemory(_)) if n_rows > 1 => n_rows /= 2,
            Err(error) => panic!("{n_rows} rows: {error:?}"),
        }
    }
}

#[test]
#[ignore = "run in a process of its own, with less memory than the weights take"]
fn child_cannot_load() {
    let fault = open().load(&*loader("resnet18"), &ModelNeed::default()).err().expect("it does not fit");
    assert!(fault.message.contains("no room for the model"), "{fault}");
    assert_eq!(fault.kind, Fault::transient("").kind);
}

#[test]
#[ignore = "run in a process of its own, which loses its device"]
fn child_loses_the_device() {
    let (mut on_gpu, _) = load(&*open(), "resnet18");
    let mut outcomes = (0..4).map(|seed| on_gpu.forward(&[batch(1, seed)]));
    assert!(outcomes.next().is_some_and(|outcome| outcome.is_ok()));
    assert!(outcomes.any(|outcome| matches!(outcome, Err(ModelError::DeviceLost(_)))));
    // And so it stays.
    assert!(matches!(on_gpu.forward(&[batch(1, 9)]), Err(ModelError::DeviceLost(_))));
}

#[test]
#[ignore = "run in a process of its own, which is shown other devices"]
fn child_cannot_open() {
    panic!("{}", OpenCuda.open().err().expect("no device that will do"));
}

/// Runs a test of this program in another process, with these settings of the stand-in.
fn child(test: &str, settings: &[(&str, &str)]) -> Output {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--ignored", "--nocapture"]).envs(settings.iter().copied());
    command.output().expect("a process")
}

fn check_child(test: &str, settings: &[(&str, &str)]) -> String {
    let output = child(test, settings);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{test} with {settings:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
    said
}

/// A count from the stand-in's last line.
fn counted(said: &str, what: &str) -> usize {
    let mut words = said.split_whitespace().skip_while(|word| *word != what);
    words.nth(1).and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no `{what}` in {said}"))
}

#[test]
fn batches_in_locked_memory_are_uploaded_from_where_they_lie() {
    let directly = check_child("child_uploads_from_an_arena", &[]);
    let read_only = check_child("child_uploads_from_an_arena", &[("STANDIN_LOCK", "read-only")]);
    let not_locked = check_child("child_uploads_from_an_arena", &[("STANDIN_LOCK", "never")]);
    // 24 batches, the one that was given up and the first one's rehearsal. What cannot be locked goes by memory that is.
    for (said, from_arena) in [(&directly, 26), (&read_only, 26), (&not_locked, 0)] {
        assert_eq!(counted(said, "uploads_from_registered"), from_arena, "{said}");
        assert_eq!(counted(said, "uploads_from_own"), 26 - from_arena, "{said}");
        assert_eq!(counted(said, "waiting_downloads"), 0, "{said}");
        assert_eq!(counted(said, "used"), 0, "memory is left: {said}");
    }
}

#[test]
fn a_batch_that_does_not_fit_is_told_and_smaller_ones_then_do() {
    let said = check_child("child_finds_the_batch_that_fits", &[("STANDIN_MEMORY", "90000000")]);
    assert!(counted(&said, "peak") <= 90_000_000);
    assert_eq!(counted(&said, "used"), 0, "memory is left: {said}");
    check_child("child_cannot_load", &[("STANDIN_MEMORY", "20000000")]);
}

#[test]
fn a_lost_device_is_told_apart_from_a_failed_batch() {
    check_child("child_loses_the_device", &[("STANDIN_LOSE_AFTER", "150")]);
}

#[test]
fn what_cannot_be_opened_says_why() {
    let check = |settings: &[(&str, &str)], wanted: &str| {
        let output = child("child_cannot_open", settings);
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(wanted), "{settings:?}: {said}");
    };
    check(&[("STANDIN_DEVICES", "0")], "this one sees 0");
    check(&[("STANDIN_DEVICES", "2"), ("CUDA_VISIBLE_DEVICES", "0,1")], "sees 2: CUDA_VISIBLE_DEVICES is `0,1`");
    check(&[("STANDIN_CUDA", "12040")], "knows CUDA 12.4, and this program needs 13.0");
}
