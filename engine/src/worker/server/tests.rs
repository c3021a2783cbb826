//! A worker on a thread, driven as the coordinator drives it: frames over a socket, batches in arenas.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Barrier;

use crossbeam_channel::Receiver;
use schemars::JsonSchema;
use serde::Deserialize;

use super::*;
use crate::data::{Buffer, DType, Schema};
use crate::node::{
    DeviceInfo, InferStage, LoadModel, ModelNeed, Node, NodeKind, NodeSpec, OpenDevice, Padding, SpecError,
};
use crate::worker::arena::Arena;

/// A device of the kind `test`, and what tests hold back or look at.
struct Bench {
    info: DeviceInfo,
    released: Receiver<()>,
    release: Sender<()>,
    both: Barrier,
    registered: Mutex<Vec<(usize, usize)>>,
}

#[derive(Clone)]
struct Shared(Arc<Bench>);

impl Shared {
    fn new(n_visible: usize) -> Self {
        let (release, released) = unbounded();
        let info = DeviceInfo { kind: "test".to_owned(), n_visible, ..DeviceInfo::default() };
        Shared(Arc::new(Bench { info, released, release, both: Barrier::new(2), registered: Mutex::default() }))
    }
}

impl Device for Shared {
    fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    fn load(&self, model: &dyn LoadModel, need: &ModelNeed) -> Result<Box<dyn Model>, Fault> {
        assert_eq!(need.weights, 7, "the node says what it needs");
        model.load_on(self)
    }

    fn register(&self, memory: &'static [u8]) {
        locked(&self.0.registered).push((memory.as_ptr() as usize, memory.len()));
    }
}

impl OpenDevice for Shared {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn open(&self) -> Result<Arc<dyn Device>, Fault> {
        match self.0.info.n_visible {
            0 => Err(Fault::permanent("no such device").help("buy one")),
            usize::MAX => panic!("the driver is broken"),
            _ => Ok(Arc::new(self.clone())),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Act {
    /// Gives each row's sum.
    Sum,
    /// The same, when it is released.
    Gate,
    /// Gives the address at which each row lies.
    Address,
    /// Loses the device.
    Lose,
    /// Says more than a frame holds.
    Babble,
    /// Loads when another does.
    Both,
    /// Panics at loading.
    Panic,
}

/// A model that does what it is told.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Acting {
    act: Act,
}

impl NodeKind for Acting {
    const NAME: &'static str = "infer.acting";
    const EXAMPLE: &'static str = "a: {kind: infer.acting, with: {act: sum}}";
}

impl Node for Acting {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let need = ModelNeed { weights: 7, ..ModelNeed::default() };
        Ok(NodeSpec::passing(cx.input(), &[]).with_need(need))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        assert_eq!((cx.name, cx.base), ("scores", std::path::Path::new("/base")));
        Ok(Stage::Infer(InferStage { model: Arc::new(self.clone()), inputs: vec![0], padding: Padding::None }))
    }
}

impl LoadModel for Acting {
    fn load(&self) -> Result<Box<dyn Model>, Fault> {
        Err(Fault::bug("it runs on the device"))
    }

    fn load_on(&self, device: &dyn std::any::Any) -> Result<Box<dyn Model>, Fault> {
        let bench = device.downcast_ref::<Shared>().expect("the device").clone();
        match self.act {
            Act::Panic => panic!("no weights"),
            Act::Both => drop(bench.0.both.wait()),
            _ => {}
        }
        Ok(Box::new(Actor { act: self.act, bench }))
    }
}

struct Actor {
    act: Act,
    bench: Shared,
}

impl Model for Actor {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let rows = (0..inputs[0].n_rows()).map(|row| inputs[0].row(row));
        let alloc = HeapPool::new();
        match self.act {
            Act::Lose => return Err(ModelError::DeviceLost("it fell off the bus".to_owned())),
            Act::Babble => return Err(ModelError::Failed("ä".repeat(1 << 20))),
            Act::Address => {
                let addresses: Vec<i64> = rows.map(|row| row.bytes.as_ptr() as i64).collect();
                return Ok(vec![Tensor::from_slice(&alloc, DType::I64, vec![addresses.len()], &addresses)]);
            }
            Act::Gate => self.bench.0.released.recv().map_err(|error| ModelError::Failed(error.to_string()))?,
            _ => {}
        }
        let sums: Vec<f32> = rows.map(|row| row.to_f32().iter().sum()).collect();
        let count = Tensor::from_slice(&alloc, DType::U8, vec![sums.len(), 1], &vec![1u8; sums.len()]);
        Ok(vec![count, Tensor::from_slice(&alloc, DType::F32, vec![sums.len()], &sums)])
    }
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoModel {}

impl NodeKind for NoModel {
    const NAME: &'static str = "transform.none";
    const EXAMPLE: &'static str = "n: {kind: transform.none}";
}

impl Node for NoModel {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        Ok(NodeSpec::passing(cx.input(), &[]))
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Pass)
    }
}

/// The coordinator's end.
struct Driver {
    socket: UnixStream,
    frames: FrameReader,
    bench: Shared,
    inputs: Arena,
    outputs: Arena,
    worker: JoinHandle<Result<(), ServeError>>,
}

impl Driver {
    fn start(bench: Shared, kind: &'static str) -> Self {
        let (socket, far) = UnixStream::pair().unwrap();
        let registry = Registry::new().with::<Acting>().with::<NoModel>().with_device(bench.clone());
        let worker = thread::spawn(move || serve(far, &registry, kind, "1.0+abc"));
        let frames = FrameReader::new(socket.try_clone().unwrap());
        let (inputs, outputs) = (Arena::create(1, 16 << 20).unwrap(), Arena::create(2, 16 << 20).unwrap());
        Driver { socket, frames, bench, inputs, outputs, worker }
    }

    /// A worker that has its arenas.
    fn ready() -> Self {
        let mut driver = Driver::start(Shared::new(1), "test");
        assert!(matches!(driver.next(), FromWorker::Hello(_)));
        for (arena, access) in [(&driver.inputs, Access::Read), (&driver.outputs, Access::Write)] {
            let frame = ArenaFrame { id: arena.id(), reserve: arena.reserve(), access };
            driver.send(&ToWorker::Arena(frame), Some(arena.fd()));
        }
        driver
    }

    /// A worker that has loaded models, numbered from 0.
    fn with_models(acts: &[&str]) -> Self {
        let mut driver = Driver::ready();
        for (model, act) in (0..).zip(acts) {
            driver.load(model, act);
            assert_eq!(driver.next(), FromWorker::Ready(Ready { model, depth: 2 }));
        }
        driver
    }

    fn send(&self, frame: &ToWorker, fd: Option<BorrowedFd<'_>>) {
        write_frame(&self.socket, frame, fd).unwrap();
    }

    fn next(&mut self) -> FromWorker {
        self.frames.read().unwrap().expect("the worker is there").0
    }

    fn load(&self, model: u32, act: &str) {
        self.send(&ToWorker::Load(load(model, "infer.acting", serde_json::json!({"act": act}))), None);
    }

    fn input(&self, rows: &[[f32; 2]]) -> Tensor {
        Tensor::from_slice(&self.inputs, DType::F32, vec![rows.len(), 2], rows.as_flattened())
    }

    /// Sends a job with room for `room` bytes of output.
    fn run(&self, job: u64, model: u32, input: &Tensor, room: usize) -> Buffer {
        let slot = self.outputs.try_alloc(room).unwrap().freeze();
        let inputs = vec![TensorAt::of(input).unwrap()];
        let output = slot.shared().unwrap();
        self.send(&ToWorker::Run(Run { job, model, inputs, output, output_len: room as u64 }), None);
        slot
    }

    fn done(&mut self) -> DoneFrame {
        match self.next() {
            FromWorker::Done(done) => done,
            other => panic!("{other:?}"),
        }
    }

    fn failed(&mut self) -> (u64, FailReason) {
        match self.next() {
            FromWorker::JobFailed(failed) => (failed.job, failed.reason),
            other => panic!("{other:?}"),
        }
    }

    fn load_failed(&mut self) -> (u32, Refusal) {
        match self.next() {
            FromWorker::LoadFailed(failed) => (failed.model, failed.refusal),
            other => panic!("{other:?}"),
        }
    }

    /// Closes the link, and says how the worker left.
    fn end(self) -> Result<(), ServeError> {
        drop((self.socket, self.frames));
        self.worker.join().unwrap()
    }
}

fn load(model: u32, kind: &str, with: serde_json::Value) -> Load {
    Load {
        model,
        node: "scores".to_owned(),
        kind: kind.to_owned(),
        with,
        base: PathBuf::from("/base"),
        input: Schema::default(),
        files: Vec::new(),
        caps: Vec::new(),
    }
}

#[test]
fn a_worker_says_who_it_is_or_why_it_cannot_be() {
    let mut driver = Driver::start(Shared::new(1), "test");
    let device = driver.bench.0.info.clone();
    let hello = Hello { protocol: PROTOCOL, build: "1.0+abc".to_owned(), pid: process::id(), device };
    assert_eq!(driver.next(), FromWorker::Hello(hello));
    driver.end().unwrap();
    let cases = [
        (1, "cuda", "this program cannot compute on `cuda`: it knows `cpu`, `test`"),
        (0, "test", "no such device"),
        (3, "test", "the worker process sees 3 devices of the kind `test`, and must see one"),
        (usize::MAX, "test", "cannot open `test`: the driver is broken"),
    ];
    for (n_visible, kind, message) in cases {
        let mut driver = Driver::start(Shared::new(n_visible), kind);
        let FromWorker::Refused(refusal) = driver.next() else { panic!("it refuses") };
        assert_eq!((refusal.message.as_str(), refusal.kind), (message, crate::node::FaultKind::Permanent));
        assert!(driver.frames.read::<FromWorker>().unwrap().is_none(), "and leaves");
        assert!(matches!(driver.end(), Err(ServeError::Refused(_))));
    }
}

#[test]
fn a_batch_is_computed_where_it_lies_and_its_outputs_are_where_the_job_says() {
    let mut driver = Driver::with_models(&["sum", "address"]);
    let input = driver.input(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    let slot = driver.run(7, 0, &input, 1000);
    let done = driver.done();
    assert_eq!((done.job, done.cap.clone(), done.outputs.len()), (7, None, 2));
    let outputs: Vec<_> = done.outputs.iter().map(|output| output.within(&slot).unwrap()).collect();
    assert_eq!(
        (outputs[0].dtype(), outputs[0].shape(), outputs[0].bytes()),
        (DType::U8, &[3, 1][..], &[1u8, 1, 1][..])
    );
    assert_eq!((outputs[1].shape(), &*outputs[1].view().to_f32()), (&[3][..], &[3.0, 7.0, 11.0][..]));
    assert!(done.outputs.iter().all(|output| output.at.offset % OUTPUT_ALIGN == 0));
    let slot = driver.run(8, 1, &input.rows(1, 2), 1000);
    let addresses = driver.done().outputs[0].within(&slot).unwrap();
    let addresses: &[i64] = bytemuck::cast_slice(addresses.bytes());
    assert_eq!(addresses[1] - addresses[0], 8);
    let registered = locked(&driver.bench.0.registered).clone();
    let is_registered = |address: usize| registered.iter().any(|(start, len)| (*start..start + len).contains(&address));
    assert!(addresses.iter().all(|address| is_registered(*address as usize)), "{addresses:?} in {registered:?}");
    driver.end().unwrap();
}

#[test]
fn outputs_without_room_are_not_written_and_the_room_they_need_is_told() {
    let mut driver = Driver::with_models(&["sum"]);
    let input = driver.input(&[[1.0, 2.0]; 3]);
    // One byte a row, then, aligned, a number a row.
    let needed = OUTPUT_ALIGN as usize + 12;
    driver.run(1, 0, &input, needed - 1);
    assert_eq!(driver.failed(), (1, FailReason::OutputTooLarge(needed as u64)));
    let slot = driver.run(2, 0, &input, needed);
    assert_eq!(*driver.done().outputs[1].within(&slot).unwrap().view().to_f32(), [3.0; 3]);
}

#[test]
fn a_job_that_names_what_is_not_there_is_refused_and_the_next_is_computed() {
    let mut driver = Driver::with_models(&["sum"]);
    let input = driver.input(&[[1.0, 2.0]; 3]);
    let (place, slot) = (TensorAt::of(&input).unwrap(), driver.outputs.try_alloc(4096).unwrap().freeze());
    let output = slot.shared().unwrap();
    let good = Run { job: 1, model: 0, inputs: vec![place.clone()], output, output_len: 4096 };
    let with_input = |place: TensorAt| Run { inputs: vec![place], ..good.clone() };
    let end = driver.inputs.bytes_reserved_from_system();
    let hostile = [
        Run { model: 1, ..good.clone() },
        with_input(TensorAt { at: SharedAt { arena: 9, offset: 0 }, ..place.clone() }),
        with_input(TensorAt { at: SharedAt { arena: 2, offset: 0 }, ..place.clone() }),
        with_input(TensorAt { at: SharedAt { arena: 1, offset: end }, ..place.clone() }),
        with_input(TensorAt { shape: vec![usize::MAX, 2], ..place.clone() }),
        with_input(TensorAt { shape: vec![0, usize::MAX, usize::MAX], ..place.clone() }),
        with_input(TensorAt { shape: vec![], ..place.clone() }),
        Run { output: SharedAt { arena: 1, offset: 0 }, ..good.clone() },
        Run { output_len: u64::MAX, ..good.clone() },
    ];
    for run in hostile {
        driver.send(&ToWorker::Run(run.clone()), None);
        assert!(matches!(driver.failed(), (1, FailReason::Malformed(_))), "{run:?}");
    }
    driver.send(&ToWorker::Run(good), None);
    assert_eq!(*driver.done().outputs[1].within(&slot).unwrap().view().to_f32(), [3.0; 3]);
    driver.end().unwrap();
}

#[test]
fn a_model_that_cannot_be_loaded_says_why_and_the_others_are_served() {
    let mut driver = Driver::ready();
    let folder = tempfile::tempdir().unwrap();
    let weights = folder.path().join("weights");
    std::fs::write(&weights, "one").unwrap();
    let stamp = FileStamp::of(&weights).unwrap();
    std::fs::write(&weights, "three").unwrap();
    let good = serde_json::json!({"act": "sum"});
    let cases = [
        (load(0, "infer.none", good.clone()), "this program has no kind `infer.none`".to_owned()),
        (load(1, "infer.acting", serde_json::json!({"act": "dance"})), "dance".to_owned()),
        (load(2, "infer.acting", serde_json::json!([1])), "infer".to_owned()),
        (load(3, "transform.none", serde_json::json!({})), "`transform.none` is no kind that runs a model".to_owned()),
        (
            load(4, "infer.acting", serde_json::json!({"act": "panic"})),
            "`scores` panicked while it was loaded: no weights".to_owned(),
        ),
        (Load { files: vec![stamp], ..load(5, "infer.acting", good) }, format!("`{}` has changed", weights.display())),
    ];
    for (load, message) in cases {
        let model = load.model;
        driver.send(&ToWorker::Load(load), None);
        let (failed, refusal) = driver.load_failed();
        assert_eq!(failed, model);
        assert!(refusal.message.contains(&message) || model == 2, "{model}: {}", refusal.message);
    }
    driver.load(6, "sum");
    assert!(matches!(driver.next(), FromWorker::Ready(Ready { model: 6, .. })));
    driver.load(6, "sum");
    assert_eq!(driver.load_failed().1.message, "there is a model 6 already");
    let input = driver.input(&[[1.0, 2.0]]);
    let slot = driver.run(1, 6, &input, 100);
    assert_eq!(*driver.done().outputs[1].within(&slot).unwrap().view().to_f32(), [3.0]);
}

#[test]
fn models_are_loaded_side_by_side_and_one_that_hangs_does_not_hold_the_other() {
    let mut driver = Driver::ready();
    driver.load(0, "both");
    driver.load(1, "both");
    let mut ready = [driver.next(), driver.next()].map(|frame| match frame {
        FromWorker::Ready(ready) => ready.model,
        other => panic!("{other:?}"),
    });
    ready.sort();
    assert_eq!(ready, [0, 1]);
    driver.load(2, "gate");
    assert!(matches!(driver.next(), FromWorker::Ready(_)));
    let input = driver.input(&[[1.0, 2.0]]);
    let _slot = driver.run(1, 2, &input, 100);
    for job in 2..20 {
        driver.run(job, (job % 2) as u32, &input, 100);
        assert_eq!(driver.done().job, job);
    }
    driver.bench.0.release.send(()).unwrap();
    assert_eq!(driver.done().job, 1);
}

#[test]
fn a_lost_device_is_told_and_the_worker_leaves() {
    let mut driver = Driver::with_models(&["lose"]);
    let input = driver.input(&[[1.0, 2.0]]);
    driver.run(1, 0, &input, 100);
    assert_eq!(driver.failed(), (1, FailReason::DeviceLost("it fell off the bus".to_owned())));
    // While the link is open.
    assert!(matches!(driver.worker.join().unwrap(), Err(ServeError::DeviceLost(_))));
}

#[test]
fn stop_lets_what_was_taken_finish() {
    let mut driver = Driver::with_models(&["gate", "sum"]);
    let input = driver.input(&[[1.0, 2.0]]);
    let _slots: Vec<_> = (0..5).map(|job| driver.run(job, 0, &input, 100)).collect();
    driver.send(&ToWorker::Stop, None);
    (0..5).for_each(|_| driver.bench.0.release.send(()).unwrap());
    (0..5).for_each(|job| assert_eq!(driver.done().job, job));
    assert!(driver.frames.read::<FromWorker>().unwrap().is_none());
    driver.end().unwrap();
}

#[test]
fn a_worker_leaves_at_once_when_the_coordinator_is_gone() {
    let driver = Driver::with_models(&["gate"]);
    let input = driver.input(&[[1.0, 2.0]]);
    driver.run(1, 0, &input, 100);
    let bench = driver.bench.clone();
    // The job is still held back.
    driver.end().unwrap();
    bench.0.release.send(()).unwrap();
}

#[test]
fn long_messages_are_cut() {
    let mut driver = Driver::with_models(&["babble"]);
    let input = driver.input(&[[1.0, 2.0]]);
    driver.run(1, 0, &input, 100);
    let (_, FailReason::Failed(message)) = driver.failed() else { panic!("it fails") };
    assert!(message.ends_with("ä…") && message.len() < 2 * MESSAGE);
}

#[test]
fn memory_that_cannot_be_mapped_and_frames_that_are_none_end_the_worker() {
    let ends = |send: &dyn Fn(&Driver)| {
        let driver = Driver::ready();
        send(&driver);
        driver.end().unwrap_err().to_string()
    };
    let frame = ArenaFrame { id: 5, reserve: 1 << 20, access: Access::Read };
    let arena =
        |driver: &Driver, frame: ArenaFrame, fd: Option<BorrowedFd<'_>>| driver.send(&ToWorker::Arena(frame), fd);
    assert_eq!(ends(&|driver| arena(driver, frame, None)), "cannot map memory: arena 5 came without its descriptor");
    assert!(ends(&|driver| arena(driver, frame, Some(driver.socket.as_fd()))).contains("no file in memory"));
    let again = ArenaFrame { id: 1, ..frame };
    assert!(ends(&|driver| arena(driver, again, Some(driver.inputs.fd()))).contains("mapped already"));
    let bytes = |bytes: &'static [u8]| ends(&|driver| io::Write::write_all(&mut &driver.socket, bytes).unwrap());
    assert!(bytes(&[255; 4]).contains("a frame of 4294967295 bytes"));
    assert!(bytes(&[1, 0, 0, 0, 0xc1]).contains("cannot be understood"));
    assert!(bytes(&[9, 0]).contains("within a frame"));
}
