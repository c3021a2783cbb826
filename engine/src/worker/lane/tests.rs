//! Lanes over a device that has room for so many rows and no more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::*;
use crate::data::DType;
use crate::worker::{Conduct, JobId};

/// Long enough that only a lane that has lost something reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A device's memory, by rows.
#[derive(Default)]
struct Memory {
    room: AtomicUsize,
    used: AtomicUsize,
    /// The largest batch that was computed.
    largest: AtomicUsize,
    /// Calls that found no room.
    refused: AtomicUsize,
}

impl Memory {
    fn with_room(room: usize) -> Arc<Self> {
        Arc::new(Memory { room: room.into(), ..Memory::default() })
    }
}

/// When a device notices that it has no room.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Notices {
    AtStart,
    AtWait,
}

/// Doubles numbers on a device.
struct Doubling {
    memory: Arc<Memory>,
    slots: usize,
    notices: Notices,
}

struct UnderWay {
    memory: Arc<Memory>,
    inputs: Tensor,
    fits: bool,
}

impl Model for Doubling {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(self.start(inputs)?.wait()?.outputs)
    }

    fn start(&mut self, inputs: &[Tensor]) -> Result<Box<dyn Pending>, ModelError> {
        let n_rows = inputs[0].n_rows();
        let used = self.memory.used.fetch_add(n_rows, Ordering::SeqCst) + n_rows;
        let under_way = UnderWay {
            memory: self.memory.clone(),
            inputs: inputs[0].clone(),
            fits: used <= self.memory.room.load(Ordering::SeqCst),
        };
        match self.notices {
            Notices::AtStart if !under_way.fits => under_way.refuse().map(|_| unreachable!()),
            _ => Ok(Box::new(under_way)),
        }
    }

    fn slots(&self) -> usize {
        self.slots
    }
}

impl UnderWay {
    fn refuse(&self) -> Result<Computed, ModelError> {
        self.memory.refused.fetch_add(1, Ordering::SeqCst);
        Err(ModelError::OutOfMemory(format!("{} rows", self.inputs.n_rows())))
    }
}

impl Pending for UnderWay {
    fn wait(self: Box<Self>) -> Result<Computed, ModelError> {
        if !self.fits {
            return self.refuse();
        }
        self.memory.largest.fetch_max(self.inputs.n_rows(), Ordering::SeqCst);
        let doubled: Vec<_> = self.inputs.view().to_f32().iter().map(|value| value * 2.0).collect();
        let output = Tensor::from_slice(&HeapPool::new(), DType::F32, self.inputs.shape().to_vec(), &doubled);
        Ok(Computed { outputs: vec![output], spans: Vec::new() })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.inputs.n_rows(), Ordering::SeqCst);
    }
}

fn pool() -> Arc<ThreadPool> {
    Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

fn lane(model: impl Model + 'static) -> Lane {
    Lane::new(Box::new(model), Vec::new(), &Gate::default(), Some(&pool()))
}

/// A job of `n_rows` rows of two numbers, which say which job and row they are.
fn job(id: u64, n_rows: usize) -> Job {
    let values: Vec<f32> = (0..n_rows).flat_map(|row| [id as f32, row as f32]).collect();
    let input = Tensor::from_slice(&HeapPool::new(), DType::F32, vec![n_rows, 2], &values);
    Job { id: JobId(id), inputs: vec![input], conduct: Conduct::Shared }
}

/// What `lane` makes of jobs, in the order in which it tells them.
fn serve(lane: Lane, jobs: impl IntoIterator<Item = Job>) -> Vec<Done> {
    let (mut jobs, mut done) = (jobs.into_iter(), Vec::new());
    lane.serve(|| jobs.next(), |result| done.push(result));
    done
}

fn check(done: &Done, id: u64, n_rows: usize) {
    let output = &done.outcome.as_ref().unwrap_or_else(|error| panic!("job {id}: {error}"))[0];
    assert_eq!((done.id, output.shape()), (JobId(id), &[n_rows, 2][..]));
    let expected: Vec<f32> = (0..n_rows).flat_map(|row| [2.0 * id as f32, 2.0 * row as f32]).collect();
    assert_eq!(*output.view().to_f32(), expected, "job {id}");
}

/// All ways in which a device can be short of memory.
fn each_way(mut check: impl FnMut(usize, Notices)) {
    for slots in [1, 2, 3] {
        for notices in [Notices::AtStart, Notices::AtWait] {
            check(slots, notices);
        }
    }
}

#[test]
fn a_batch_that_does_not_fit_is_computed_in_pieces_that_do() {
    each_way(|slots, notices| {
        let memory = Memory::with_room(16);
        let done = serve(lane(Doubling { memory: memory.clone(), slots, notices }), (0..20).map(|id| job(id, 64)));
        assert_eq!(done.len(), 20, "{slots} {notices:?}");
        for (done, id) in done.iter().zip(0..) {
            check(done, id, 64);
            assert_eq!(done.cap, Some(Cap { shape: vec![vec![2]], rows: 16 }), "{slots} {notices:?}");
        }
        assert_eq!(memory.largest.load(Ordering::SeqCst), 16);
        assert_eq!(memory.used.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_cap_is_for_its_shape_and_for_larger_batches_only() {
    let memory = Memory::with_room(5);
    let mut wide = job(1, 3);
    wide.inputs = vec![Tensor::from_slice(&HeapPool::new(), DType::F32, vec![3, 1], &[1f32, 2., 3.])];
    let done =
        serve(lane(Doubling { memory, slots: 1, notices: Notices::AtStart }), [job(0, 7), wide, job(2, 4), job(3, 0)]);
    check(&done[0], 0, 7);
    // 7 does not fit; 4 and 3 do.
    assert_eq!(done[0].cap, Some(Cap { shape: vec![vec![2]], rows: 4 }));
    assert!(done[1..].iter().all(|done| done.cap.is_none() && done.outcome.is_ok()));
    check(&done[3], 3, 0);
}

#[test]
fn what_is_known_from_before_is_heeded_from_the_start() {
    let memory = Memory::with_room(16);
    let model = Doubling { memory: memory.clone(), slots: 1, notices: Notices::AtStart };
    let caps = vec![Cap { shape: vec![vec![2]], rows: 16 }];
    let done = serve(Lane::new(Box::new(model), caps, &Gate::default(), Some(&pool())), [job(0, 64)]);
    check(&done[0], 0, 64);
    assert_eq!(memory.refused.load(Ordering::SeqCst), 0);
}

#[test]
fn a_single_row_that_does_not_fit_fails_and_the_next_job_is_tried() {
    each_way(|slots, notices| {
        let memory = Memory::with_room(0);
        let model = Doubling { memory: memory.clone(), slots, notices };
        let mut id = 0;
        let mut done = Vec::new();
        let next = || {
            id += 1;
            (id < 4).then(|| job(id, if id == 3 { 0 } else { 8 }))
        };
        lane(model).serve(next, |result| done.push(result));
        for done in &done[..2] {
            assert_eq!(done.outcome.as_ref().err(), Some(&ModelError::OutOfMemory("1 rows".to_owned()).into()));
        }
        check(&done[2], 3, 0);
    });
}

#[test]
fn batches_that_fit_one_at_a_time_are_not_cut() {
    for notices in [Notices::AtStart, Notices::AtWait] {
        let memory = Memory::with_room(64);
        let done = serve(lane(Doubling { memory: memory.clone(), slots: 3, notices }), (0..50).map(|id| job(id, 64)));
        for (done, id) in done.iter().zip(0..) {
            check(done, id, 64);
            assert_eq!(done.cap, None);
        }
        // One by one from then on: each slot was given up once, with what had been started by then.
        assert!(memory.refused.load(Ordering::SeqCst) <= 6, "{:?}", memory.refused);
    }
}

#[test]
fn a_neighbour_on_the_same_device_is_not_held_against_a_batch() {
    each_way(|slots, notices| {
        let (memory, gate, pool) = (Memory::with_room(64), Gate::default(), pool());
        let done: Vec<_> = thread::scope(|scope| {
            let lanes = (0..3).map(|_| {
                let model = Doubling { memory: memory.clone(), slots, notices };
                let lane = Lane::new(Box::new(model), Vec::new(), &gate, (slots == 1).then_some(&pool));
                scope.spawn(move || serve(lane, (0..100).map(|id| job(id, 40))))
            });
            let lanes: Vec<_> = lanes.collect();
            lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
        });
        assert_eq!(done.len(), 300);
        for (done, at) in done.iter().zip(0..) {
            check(done, at % 100, 40);
            assert_eq!(done.cap, None, "{slots} {notices:?}");
        }
    });
}

#[test]
fn memory_that_is_free_again_is_used_again() {
    let memory = Memory::with_room(16);
    let model = Doubling { memory: memory.clone(), slots: 1, notices: Notices::AtStart };
    let mut id = 0;
    let mut done = Vec::new();
    let next = || {
        id += 1;
        if id == 10 {
            memory.room.store(1000, Ordering::SeqCst);
        }
        (id < 200).then(|| job(id, 64))
    };
    lane(model).serve(next, |result| done.push(result));
    assert!(done[..50].iter().all(|done| done.cap.as_ref().map(|cap| cap.rows) == Some(16)));
    assert_eq!(done.last().unwrap().cap, None);
    done.iter().zip(1..).for_each(|(done, id)| check(done, id, 64));
}

/// Says how many batches are under way, and lets none end before `slots` of them are.
struct Counting {
    slots: usize,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    under_way: usize,
    most: usize,
}

struct Counted(Arc<(Mutex<State>, Condvar)>, usize);

impl Model for Counting {
    fn forward(&mut self, _inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        unreachable!("it is started")
    }

    fn start(&mut self, _inputs: &[Tensor]) -> Result<Box<dyn Pending>, ModelError> {
        let mut state = self.state.0.lock().unwrap();
        state.under_way += 1;
        state.most = state.most.max(state.under_way);
        self.state.1.notify_all();
        Ok(Box::new(Counted(self.state.clone(), self.slots)))
    }

    fn slots(&self) -> usize {
        self.slots
    }
}

impl Pending for Counted {
    fn wait(self: Box<Self>) -> Result<Computed, ModelError> {
        let state = self.0.0.lock().unwrap();
        let missing = |state: &mut State| state.most < self.1;
        let (mut state, late) = self.0.1.wait_timeout_while(state, PATIENCE, missing).unwrap();
        assert!(!late.timed_out(), "only {} under way", state.most);
        state.under_way -= 1;
        Ok(Computed { outputs: Vec::new(), spans: Vec::new() })
    }
}

#[test]
fn as_many_batches_are_under_way_as_the_model_has_slots_and_no_more() {
    for slots in [1, 2, 4] {
        let state = Arc::default();
        let lane = lane(Counting { slots, state: Arc::clone(&state) });
        assert_eq!(lane.depth(), slots + 1);
        let done = serve(lane, (0..100).map(|id| job(id, 1)));
        assert_eq!(done.iter().map(|done| done.id.0).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        assert_eq!(state.0.lock().unwrap().most, slots);
    }
}

/// Fails in one way a job: the job's number says how.
struct Failing {
    slots: usize,
}

struct Panics;

impl Model for Failing {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        match inputs[0].view().to_f32()[0] {
            1.0 => panic!("at start"),
            3.0 => Err(ModelError::DeviceLost("it fell off".to_owned())),
            4.0 => Ok(vec![inputs[0].rows(0, 1)]),
            _ => Ok(inputs.to_vec()),
        }
    }

    fn start(&mut self, inputs: &[Tensor]) -> Result<Box<dyn Pending>, ModelError> {
        if inputs[0].view().to_f32()[0] == 2.0 {
            return Ok(Box::new(Panics));
        }
        let outputs = self.forward(inputs)?;
        Ok(Box::new(Computed { outputs, spans: Vec::new() }))
    }

    fn slots(&self) -> usize {
        self.slots
    }
}

impl Pending for Panics {
    fn wait(self: Box<Self>) -> Result<Computed, ModelError> {
        panic!("at wait")
    }
}

#[test]
fn each_failure_costs_its_own_job() {
    for slots in [1, 2] {
        let mut jobs: Vec<_> = (0..6).map(|id| job(id, 2)).collect();
        jobs[5].inputs.push(job(9, 3).inputs.remove(0));
        let done = serve(lane(Failing { slots }), jobs);
        let errors: Vec<_> = done.iter().map(|done| done.outcome.as_ref().err().map(ToString::to_string)).collect();
        let expected = [
            None,
            Some("the model panicked: at start"),
            Some("the model panicked: at wait"),
            Some("the device is lost: it fell off"),
            Some("the model gave 1 rows for 2"),
            Some("inputs of 2 and of 3 rows"),
        ];
        assert_eq!(errors, expected.map(|error| error.map(str::to_owned)));
    }
}
