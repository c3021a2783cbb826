//! What a job costs by a worker process, over the same job by a thread of this process and over a bare exchange of a few
//! bytes with another process: `cargo bench --features testing --bench worker`.
//!
//! The three take turns, so that a busy machine spoils them alike; the medians are told, in microseconds. The model does
//! nothing with its 4.8 MB but look at the first byte of each row: what is left is the way there and back.
//!
//! With `--turns` each line that comes in is answered by a shorter round, in seconds, and an empty line, as by `layers`:
//! `benches/compare_commits.py` measures several programs in turns by it.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::data::{DType, HeapPool, Tensor};
use engine::node::{BuildCx, SpecCx, Stage};
use engine::worker::{Conduct, Executor, Fleet, Job, JobId, Local, conformance};
use serde_json::json;

/// 32 pictures of 224×224: 4.8 MB.
const SHAPE: [usize; 4] = [32, 224, 224, 3];
const ROUNDS: usize = 2000;
/// Rounds of a turn.
const TURN: usize = 500;
/// Bytes of a frame, about.
const FRAME: usize = 200;

#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn main() {
    if std::env::args().any(|arg| arg == "pong") {
        return pong();
    }
    let mut bench = Bench::start();
    if std::env::args().any(|arg| arg == "--turns") {
        for _ in std::io::stdin().lines() {
            for (name, seconds) in ["bare exchange", "thread", "worker"].into_iter().zip(bench.medians(TURN)) {
                println!("{name}\t{seconds}");
            }
            println!();
        }
        return;
    }
    let [ping, thread, process] = bench.medians(ROUNDS).map(|seconds| seconds * 1e6);
    println!("bare exchange {ping:.1} us, thread {thread:.1} us, worker {process:.1} us");
    println!(
        "worker over thread {:.1} us, of which above a bare exchange {:.1} us",
        process - thread,
        process - thread - ping
    );
}

/// What takes turns.
struct Bench {
    ping: Ping,
    thread: Local,
    process: Owned,
    input: Tensor,
}

impl Bench {
    fn start() -> Self {
        let process = by_process();
        let pixels = vec![7u8; SHAPE.iter().product()];
        let input = Tensor::from_slice(process.executor.alloc(), DType::U8, SHAPE.to_vec(), &pixels);
        Bench { ping: Ping::start(), thread: by_thread(), process, input }
    }

    /// Seconds of a bare exchange, of a job by a thread and of one by a worker.
    fn medians(&mut self, n_rounds: usize) -> [f64; 3] {
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..n_rounds {
            times[0].push(self.ping.exchange());
            times[1].push(compute(&mut self.thread, &self.input));
            times[2].push(compute(&mut self.process.executor, &self.input));
        }
        times.map(median)
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn compute(executor: &mut dyn Executor, input: &Tensor) -> Duration {
    let start = Instant::now();
    let job = Job { id: JobId(0), inputs: vec![input.clone()], conduct: Conduct::Shared };
    executor.submit(job).expect("it is open");
    let done = executor.completions().recv().expect("a result");
    let took = start.elapsed();
    assert_eq!(done.outcome.expect("a result")[0].bytes(), [7u8; SHAPE[0]]);
    took
}

fn by_thread() -> Local {
    let registry = nodes::testing_registry();
    let with = serde_yaml::from_str("model: first").expect("YAML");
    let node = registry.get(conformance::KIND).expect("a kind").parse(with).expect("options");
    let (name, inputs, base) = ("model", &[conformance::input()], Path::new("/"));
    let spec = node.spec(&SpecCx { name, inputs, input_names: &["tensors"], advice: None, base }).expect("a spec");
    let alloc = Arc::new(HeapPool::new());
    let cx = BuildCx::alone(name, inputs, &spec, base, alloc);
    let Ok(Stage::Infer(stage)) = node.build(&cx) else { panic!("no model") };
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool"));
    Local::start("model", &stage.model, 1, &pool).expect("it loads")
}

struct Owned {
    executor: engine::worker::Remote,
    _fleet: Fleet,
}

fn by_process() -> Owned {
    let program = Path::new(env!("CARGO_BIN_EXE_flowgpu-test"));
    let with = json!({"model": "first"});
    let fleet = conformance::fleet(program, env!("FLOWGPU_BUILD"), conformance::KIND, with, 1).expect("it starts");
    Owned { executor: fleet.executor(0).expect("it loads"), _fleet: fleet }
}

/// Another process that sends back what it gets, until the socket is closed.
struct Ping {
    socket: UnixStream,
    child: Child,
}

impl Ping {
    fn start() -> Self {
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg("pong").stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        Ping { socket: ours, child: command.spawn().expect("it starts") }
    }

    fn exchange(&mut self) -> Duration {
        let mut frame = [0u8; FRAME];
        let start = Instant::now();
        self.socket.write_all(&frame).and_then(|()| self.socket.read_exact(&mut frame)).expect("an answer");
        start.elapsed()
    }
}

impl Drop for Ping {
    fn drop(&mut self) {
        // It ends with the socket; nothing depends on how.
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = self.child.wait();
    }
}

fn pong() {
    let stdin = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned().expect("a socket");
    let mut socket = UnixStream::from(stdin);
    let mut frame = [0u8; FRAME];
    while socket.read_exact(&mut frame).and_then(|()| socket.write_all(&frame)).is_ok() {}
}
