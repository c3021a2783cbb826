//! A worker process and the coordinator's end of its link.

use std::io::{Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use engine::data::{Buffer, DType, Tensor};
use engine::worker::arena::Arena;
use engine::worker::frame::{
    Access, ArenaFrame, DoneFrame, FailReason, FromWorker, Hello, Load, Run, TensorAt, ToWorker,
};
use engine::worker::link::{FrameReader, write_frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The program with the kinds for tests.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_flowgpu-test");

/// Far longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(60);

/// A started worker. It is killed when this is dropped.
pub struct Peer {
    pub socket: UnixStream,
    frames: FrameReader,
    pub inputs: Arena,
    pub outputs: Arena,
    child: Child,
}

impl Peer {
    /// Starts `command` with the other end of the link as its standard input.
    pub fn start(command: &mut Command) -> Self {
        let (socket, far) = UnixStream::pair().expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let command = command.stdin(Stdio::from(OwnedFd::from(far))).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the worker starts");
        // So that nothing but the worker holds the other end.
        command.stdin(Stdio::null());
        let frames = FrameReader::new(socket.try_clone().expect("a descriptor"));
        let (inputs, outputs) =
            (Arena::create(1, 1 << 30).expect("an arena"), Arena::create(2, 1 << 30).expect("an arena"));
        Peer { socket, frames, inputs, outputs, child }
    }

    /// The program's own worker on the processor.
    pub fn worker() -> Self {
        Peer::start(Command::new(PROGRAM).args(["worker", "--device", "cpu"]))
    }

    /// Takes the greeting, and sends the arenas.
    pub fn greet(&mut self) -> Hello {
        let FromWorker::Hello(hello) = self.next() else { panic!("it says who it is") };
        for (arena, access) in [(&self.inputs, Access::Read), (&self.outputs, Access::Write)] {
            let frame = ArenaFrame { id: arena.id(), reserve: arena.reserve(), access };
            self.send_with(&ToWorker::Arena(frame), Some(arena.fd()));
        }
        hello
    }

    pub fn send(&self, frame: &ToWorker) {
        self.send_with(frame, None);
    }

    fn send_with(&self, frame: &ToWorker, fd: Option<BorrowedFd<'_>>) {
        write_frame(&self.socket, frame, fd).expect("the worker listens");
    }

    pub fn send_bytes(&self, bytes: &[u8]) {
        (&self.socket).write_all(bytes).expect("the worker listens");
    }

    pub fn next(&mut self) -> FromWorker {
        self.try_next().expect("the worker is there")
    }

    /// `None` once the worker is gone.
    pub fn try_next(&mut self) -> Option<FromWorker> {
        self.frames.read().expect("frames").map(|(frame, _)| frame)
    }

    /// Loads a model and takes the answer.
    pub fn load(&mut self, load: Load) -> FromWorker {
        self.send(&ToWorker::Load(load));
        self.next()
    }

    /// Rows of `n_each` numbers, in the arena.
    pub fn rows(&self, n_rows: usize, n_each: usize, values: impl FnMut(usize) -> f32) -> Tensor {
        let values: Vec<f32> = (0..n_rows * n_each).map(values).collect();
        let tensor = Tensor::from_slice(&self.inputs, DType::F32, vec![n_rows, n_each], &values);
        assert!(tensor.shared().is_some(), "it lies in the arena");
        tensor
    }

    /// A job, and the memory for its outputs.
    pub fn job(&self, job: u64, model: u32, input: &Tensor, room: usize) -> (Run, Buffer) {
        let slot = self.outputs.try_alloc(room).expect("memory").freeze();
        let inputs = vec![TensorAt::of(input).expect("a place")];
        let output = slot.shared().expect("a place");
        (Run { job, model, inputs, output, output_len: room as u64 }, slot)
    }

    /// Sends a job.
    pub fn run(&self, job: u64, model: u32, input: &Tensor, room: usize) -> Buffer {
        let (run, slot) = self.job(job, model, input, room);
        self.send(&ToWorker::Run(run));
        slot
    }

    pub fn done(&mut self) -> DoneFrame {
        match self.next() {
            FromWorker::Done(done) => done,
            other => panic!("{other:?}"),
        }
    }

    pub fn failed(&mut self) -> (u64, FailReason) {
        match self.next() {
            FromWorker::JobFailed(failed) => (failed.job, failed.reason),
            other => panic!("{other:?}"),
        }
    }

    /// The worker's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the worker has left by itself, with the link open: its exit code and what it said.
    pub fn left(mut self) -> (Option<i32>, String) {
        while self.try_next().is_some() {}
        self.ended()
    }

    /// The same, once the link is closed.
    pub fn closed(mut self) -> (Option<i32>, String) {
        self.socket.shutdown(std::net::Shutdown::Both).expect("the link is open");
        self.ended()
    }

    fn ended(&mut self) -> (Option<i32>, String) {
        let process = Pid::from_child(&self.child);
        let process = pidfd_open(process, PidfdFlags::empty()).expect("the process is there, or not yet waited for");
        let limit = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)).expect("poll");
        assert_eq!(ended, 1, "the worker has not left");
        let mut told = String::new();
        self.child.stdout.take().expect("a pipe").read_to_string(&mut told).expect("text");
        self.child.stderr.take().expect("a pipe").read_to_string(&mut told).expect("text");
        (self.child.wait().expect("it has ended").code(), told)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
