//! Worker processes as `docs/worker-protocol.md` describes them: the program's own, and one in Python, which shows that
//! the description suffices.

mod peer;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use engine::data::{ColumnType, DType, Dim, Field, Role, Schema, SharedAt};
use engine::node::{FaultKind, SpanStage};
use engine::worker::frame::{Cap, FailReason, FromWorker, Load, PROTOCOL, Ready, Run, TensorAt, ToWorker};
use engine::worker::link::write_frame;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use peer::{PROGRAM, Peer};

/// A model of the kind `infer.test` over rows of `n_each` numbers: 1, 2, … `n` times their sum.
fn sums(model: u32, n_each: usize, with: Value) -> Load {
    let ty = ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(n_each)] };
    Load {
        model,
        node: "sums".to_owned(),
        kind: "infer.test".to_owned(),
        with,
        base: PathBuf::from("/"),
        input: Schema { fields: vec![Field::new("tensor", ty, Role::Result)], batch: Some(64) },
        files: Vec::new(),
        caps: Vec::new(),
    }
}

/// Whole numbers, so that sums are exact.
fn element(at: usize) -> f32 {
    (at % 251) as f32
}

fn expected_sums(n_rows: usize, n_each: usize, n: usize) -> Vec<f32> {
    let row = |row: usize| -> f32 { (row * n_each..(row + 1) * n_each).map(element).sum() };
    (0..n_rows).flat_map(|at| (1..=n).map(move |factor| row(at) * factor as f32)).collect()
}

/// The program's worker with `infer.test` loaded as model 0.
fn serving(n_each: usize, with: Value) -> Peer {
    let mut peer = Peer::worker();
    peer.greet();
    assert_eq!(peer.load(sums(0, n_each, with)), FromWorker::Ready(Ready { model: 0, depth: 2 }));
    peer
}

fn check_sums(peer: &mut Peer, job: u64, n_rows: usize, n_each: usize, n: usize) {
    let input = peer.rows(n_rows, n_each, element);
    let slot = peer.run(job, 0, &input, 4 * n * n_rows + 64);
    let done = peer.done();
    assert_eq!((done.job, done.outputs.len()), (job, 1));
    let output = done.outputs[0].within(&slot).expect("it lies in its memory");
    assert_eq!(output.shape(), [n_rows, n]);
    assert_eq!(*output.view().to_f32(), expected_sums(n_rows, n_each, n));
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    kill_process(pid, signal).expect("the process is there");
}

#[test]
fn a_worker_in_python_speaks_the_protocol() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocol/worker.py");
    let mut peer = Peer::start(Command::new("python3").arg(script));
    let hello = peer.greet();
    assert_eq!((hello.protocol, hello.pid, hello.device.n_visible), (PROTOCOL, peer.pid(), 1));
    for (model, op) in [(0, "sum"), (1, "echo")] {
        let ready = peer.load(Load { with: json!({"op": op}), ..sums(model, 8, Value::Null) });
        assert_eq!(ready, FromWorker::Ready(Ready { model, depth: 2 }));
    }
    let FromWorker::LoadFailed(failed) = peer.load(Load { with: json!({"op": "dance"}), ..sums(2, 8, Value::Null) })
    else {
        panic!("there is no such model")
    };
    assert_eq!((failed.model, failed.refusal.kind), (2, FaultKind::Permanent));
    assert_eq!(failed.refusal.help.as_deref(), Some("write `sum` or `echo`"));
    // Growing batches, so that the arenas grow under the worker; all are kept to the end.
    let mut kept = Vec::new();
    for job in 0..40 {
        let n_rows = (job as usize) * 1000 + 1;
        let input = peer.rows(n_rows, 8, element);
        let slot = peer.run(job * 2, 0, &input, 4 * n_rows);
        let echoed = peer.run(job * 2 + 1, 1, &input, 32 * n_rows);
        let done = peer.done();
        let output = done.outputs[0].within(&slot).expect("it lies in its memory");
        assert_eq!((done.job, &*output.view().to_f32()), (job * 2, &*expected_sums(n_rows, 8, 1)));
        assert_eq!(done.spans[0].stage, SpanStage::Compute);
        let output = peer.done().outputs[0].within(&echoed).expect("it lies in its memory");
        assert_eq!((output.shape(), output.bytes()), (input.shape(), input.bytes()));
        kept.push((input, slot, echoed));
    }
    peer.run(100, 0, &kept[1].0, 7);
    assert_eq!(peer.failed(), (100, FailReason::OutputTooLarge(4 * 1001)));
    peer.run(101, 5, &kept[1].0, 8);
    assert!(matches!(peer.failed(), (101, FailReason::Malformed(_))));
    peer.send(&ToWorker::Stop);
    assert_eq!(peer.left(), (Some(0), String::new()));
}

#[test]
fn the_programs_worker_says_what_it_is_and_computes_by_value() {
    let mut peer = Peer::worker();
    let hello = peer.greet();
    assert_eq!((hello.protocol, hello.pid), (PROTOCOL, peer.pid()));
    assert_eq!(hello.build, env!("FLOWGPU_BUILD"));
    assert_eq!((hello.device.kind.as_str(), hello.device.n_visible), ("cpu", 1));
    peer.load(sums(0, 12, json!({})));
    for (job, n_rows) in [(1, 1), (2, 64), (3, 7), (4, 0), (5, 3000)] {
        check_sums(&mut peer, job, n_rows, 12, 4);
    }
    peer.send(&ToWorker::Stop);
    assert_eq!(peer.left(), (Some(0), String::new()));
}

#[test]
fn a_batch_beyond_the_devices_memory_comes_back_whole_and_its_cap_is_told() {
    let mut peer = serving(12, json!({"max_rows": 16}));
    let input = peer.rows(64, 12, element);
    let slot = peer.run(1, 0, &input, 4096);
    let done = peer.done();
    assert_eq!(done.cap, Some(Cap { shape: vec![vec![12]], rows: 16 }));
    let output = done.outputs[0].within(&slot).expect("it lies in its memory");
    assert_eq!(*output.view().to_f32(), expected_sums(64, 12, 4));
    // It is of no use to a model that has no memory for a row.
    peer.load(sums(1, 12, json!({"max_rows": 0})));
    peer.run(2, 1, &input, 4096);
    assert_eq!(peer.failed(), (2, FailReason::OutOfMemory("1 rows".to_owned())));
}

#[test]
fn failures_of_a_model_cost_their_job() {
    let mut peer = serving(12, json!({}));
    let input = peer.rows(4, 12, element);
    let cases = [
        ("panic", FailReason::Panicked("the model panics on purpose".to_owned())),
        ("forward", FailReason::Failed("it fails on purpose".to_owned())),
        ("out_of_memory", FailReason::OutOfMemory("on purpose".to_owned())),
    ];
    for (model, (fail, reason)) in (1..).zip(cases) {
        peer.load(sums(model, 12, json!({"fail": fail})));
        peer.run(9, model, &input, 4096);
        assert_eq!(peer.failed(), (9, reason));
    }
    let FromWorker::LoadFailed(failed) = peer.load(sums(4, 12, json!({"fail": "load"}))) else { panic!("it fails") };
    assert_eq!(failed.refusal.message, "the model fails to load on purpose");
    check_sums(&mut peer, 10, 4, 12, 4);
}

#[test]
fn hostile_frames_are_refused_and_what_is_no_frame_ends_the_worker() {
    let mut peer = serving(12, json!({}));
    let input = peer.rows(4, 12, element);
    let (good, _slot) = peer.job(1, 0, &input, 4096);
    let place = good.inputs[0].clone();
    let at = |offset: u64| Run {
        inputs: vec![TensorAt { at: SharedAt { offset, ..place.at }, ..place.clone() }],
        ..good.clone()
    };
    let shaped = |shape: Vec<usize>| Run { inputs: vec![TensorAt { shape, ..place.clone() }], ..good.clone() };
    let hostile = [
        at(peer.inputs.bytes_reserved_from_system() - 4),
        at(peer.inputs.reserve()),
        at(u64::MAX - 3),
        shaped(vec![1 << 62, 12]),
        shaped(vec![usize::MAX, usize::MAX]),
        shaped(vec![0, usize::MAX, 2]),
        Run { output_len: u64::MAX, ..good.clone() },
        Run { output: SharedAt { arena: 77, offset: 0 }, ..good.clone() },
        Run { model: 77, ..good.clone() },
    ];
    for run in hostile {
        peer.send(&ToWorker::Run(run.clone()));
        assert!(matches!(peer.failed(), (1, FailReason::Malformed(_))), "{run:?}");
    }
    check_sums(&mut peer, 2, 4, 12, 4);
    let cases: [(&[u8], &str); 4] = [
        (&[255, 255, 255, 255], "a frame of 4294967295 bytes"),
        (&[1, 0, 0, 0, 0xc1], "cannot be understood"),
        (&[5, 0, 0, 0, 0xa4, b'w', b'h', b'a', b't'], "unknown variant `what`"),
        (&[100, 0, 0, 0, 0x81], "ended within a frame"),
    ];
    for (bytes, message) in cases {
        let mut peer = Peer::worker();
        peer.greet();
        peer.send_bytes(bytes);
        let (code, told) = peer.closed();
        assert!(code == Some(1) && told.contains(message), "{code:?}: {told}");
    }
}

#[test]
fn the_worker_leaves_when_the_link_is_closed() {
    let mut peer = serving(12, json!({}));
    check_sums(&mut peer, 1, 4, 12, 4);
    assert_eq!(peer.closed(), (Some(0), String::new()));
    // In the middle of a batch that would take an hour.
    let peer = serving(12, json!({"micros": 3_600_000_000u64}));
    peer.run(1, 0, &peer.rows(1, 12, element), 4096);
    assert_eq!(peer.closed(), (Some(0), String::new()));
}

#[test]
fn the_worker_dies_with_its_parent_though_the_link_is_open() {
    // A shell between this process and the worker. It gives jobs in the background no input but what it is told to.
    let script = "exec 3<&0; \"$0\" worker --device cpu <&3 3<&- & wait";
    let mut peer = Peer::start(Command::new("sh").args(["-c", script, PROGRAM]));
    let hello = peer.greet();
    assert_ne!(hello.pid, peer.pid(), "the shell is the parent");
    peer.load(sums(0, 12, json!({"micros": 3_600_000_000u64})));
    peer.run(1, 0, &peer.rows(1, 12, element), 4096);
    signal(peer.pid(), Signal::KILL);
    // The worker holds the other end of the link, so that ends when it does.
    assert_eq!(peer.try_next(), None);
}

#[test]
fn signals_from_a_terminal_are_for_the_parent() {
    let mut peer = serving(12, json!({}));
    for (sent, job) in [(Signal::INT, 1), (Signal::TERM, 2), (Signal::HUP, 3)] {
        signal(peer.pid(), sent);
        check_sums(&mut peer, job, 4, 12, 4);
    }
}

#[test]
fn no_further_process_inherits_the_link_and_the_pool_has_the_threads_that_the_parent_says() {
    let mut command = Command::new(PROGRAM);
    let mut peer = Peer::start(command.args(["worker", "--device", "cpu"]).env("RAYON_NUM_THREADS", "3"));
    peer.greet();
    peer.load(sums(0, 12, json!({})));
    let process = PathBuf::from(format!("/proc/{}", peer.pid()));
    for descriptor in fs::read_dir(process.join("fd")).expect("descriptors") {
        let descriptor = descriptor.expect("a descriptor");
        let target = fs::read_link(descriptor.path()).expect("a target");
        if target.to_string_lossy().starts_with("socket:") {
            let info = fs::read_to_string(process.join("fdinfo").join(descriptor.file_name())).expect("its flags");
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("its flags").trim();
            let flags = u32::from_str_radix(flags, 8).expect("an octal number");
            assert_ne!(flags & 0o2_000_000, 0, "{descriptor:?} is not closed on exec");
        }
    }
    let names = || -> Vec<String> {
        let name = |thread: std::io::Result<fs::DirEntry>| {
            fs::read_to_string(thread.expect("a thread").path().join("comm")).expect("a name").trim().to_owned()
        };
        fs::read_dir(process.join("task")).expect("threads").map(name).collect()
    };
    // The one that reads, the pool's, the model's. A thread takes its name when it first runs.
    let is_named = |names: &[String]| names.iter().filter(|name| name.starts_with("model/")).count() == 3;
    let start = Instant::now();
    while !is_named(&names()) && start.elapsed() < Duration::from_secs(60) {
        thread::yield_now();
    }
    let names = names();
    assert!(is_named(&names) && names.len() == 5, "{names:?}");
    assert!(names.iter().any(|name| name == "sums"), "a model's thread has its node's name: {names:?}");
}

#[test]
fn a_device_that_is_not_known_is_refused() {
    let mut peer = Peer::start(Command::new(PROGRAM).args(["worker", "--device", "abacus"]));
    let FromWorker::Refused(refusal) = peer.next() else { panic!("there is no such device") };
    assert!(refusal.message.starts_with("this program cannot compute on `abacus`: it knows `cpu`"), "{refusal:?}");
    assert_eq!(peer.left(), (Some(1), String::new()));
}

#[test]
fn started_by_hand_it_says_who_starts_it() {
    let mut child = Command::new(PROGRAM);
    let child = child.arg("worker").stdin(Stdio::null()).output().expect("it starts");
    assert_eq!(child.status.code(), Some(2));
    let told = String::from_utf8(child.stderr).expect("text");
    assert_eq!(told, "error: `flowgpu worker` is started by `flowgpu run`, not by hand\n");
    let help = Command::new(PROGRAM).arg("--help").output().expect("it starts");
    assert!(!String::from_utf8(help.stdout).expect("text").contains("\n  worker"), "it is not for people");
}

#[test]
fn a_job_costs_the_socket_less_than_four_kibibytes() {
    let peer = Peer::worker();
    let input = peer.rows(64, 75_000, element);
    let (run, _slot) = peer.job(u64::MAX, u32::MAX, &input, 1 << 20);
    let (near, mut far) = std::os::unix::net::UnixStream::pair().expect("a socket");
    write_frame(&near, &ToWorker::Run(run), None).expect("room");
    drop(near);
    let mut bytes = Vec::new();
    far.read_to_end(&mut bytes).expect("a frame");
    assert!(bytes.len() < 512, "{} bytes", bytes.len());
}
