//! The rules of a fleet, by value: events in, commands out.

use super::*;
use crate::data::{DType, HeapPool};
use crate::worker::JobId;

/// A fleet of workers that all hold models 0 and 1, with the depth 2.
struct Scene {
    dispatch: Dispatch,
    now: Instant,
    /// By worker: the numbers and jobs that it has, as it knows them.
    running: BTreeMap<usize, Vec<u64>>,
    finished: Vec<(u64, Result<(), JobError>)>,
    started: Vec<usize>,
    killed: Vec<usize>,
    failed: Vec<(usize, Fault)>,
}

impl Scene {
    fn new(n_workers: usize) -> Scene {
        let now = Instant::now();
        let dispatch = Dispatch::new(&vec![vec![0, 1]; n_workers], 2, Duration::from_secs(30), now);
        let (running, finished) = (BTreeMap::new(), Vec::new());
        let (started, killed, failed) = (Vec::new(), Vec::new(), Vec::new());
        let mut scene = Scene { dispatch, now, running, finished, started, killed, failed };
        scene.tick(0);
        (0..n_workers).for_each(|worker| scene.come_up(worker));
        scene
    }

    fn come_up(&mut self, worker: usize) {
        assert!(self.started.contains(&worker), "{worker} was started");
        self.started.retain(|other| *other != worker);
        self.dispatch.opened(worker, self.now);
        [0, 1].into_iter().for_each(|model| self.dispatch.ready(worker, model, 2, self.now));
        self.obey();
    }

    fn tick(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        self.dispatch.tick(self.now);
        self.obey();
    }

    fn submit(&mut self, model: usize, id: u64, conduct: Conduct) {
        let input = Tensor::from_slice(&HeapPool::new(), DType::U8, vec![1], &[0u8]);
        self.dispatch.submit(model, Job { id: JobId(id), inputs: vec![input], conduct }, self.now);
        self.obey();
    }

    fn answer(&mut self, worker: usize, result: Result<Vec<Tensor>, JobError>) {
        let number = self.running.get_mut(&worker).unwrap().remove(0);
        let outcome = Outcome { result, micros: 1000, spans: Vec::new(), cap: None };
        self.dispatch.finished(worker, number, outcome, self.now);
        self.obey();
    }

    fn die(&mut self, worker: usize) {
        self.running.remove(&worker);
        self.dispatch.died(worker, "worker", "died of signal 9", "last words", self.now);
        self.obey();
    }

    /// Dies and comes back.
    fn relapse(&mut self, worker: usize) {
        self.die(worker);
        self.tick(10_000);
        self.come_up(worker);
    }

    fn obey(&mut self) {
        for command in self.dispatch.take_commands() {
            match command {
                Command::Start { worker } => self.started.push(worker),
                Command::Run { worker, number, .. } => self.running.entry(worker).or_default().push(number),
                Command::Kill { worker } => self.killed.push(worker),
                Command::Finish { done, .. } => self.finished.push((done.id.0, done.outcome.map(drop))),
                Command::Fail { model, fault } => self.failed.push((model, fault)),
            }
        }
    }

    fn n_running(&self, worker: usize) -> usize {
        self.running.get(&worker).map_or(0, Vec::len)
    }
}

#[test]
fn workers_pull_and_a_slow_one_gets_less() {
    let mut scene = Scene::new(2);
    (0..10).for_each(|id| scene.submit(0, id, Conduct::Shared));
    assert_eq!((scene.n_running(0), scene.n_running(1)), (2, 2));
    // Worker 0 answers six times while worker 1 is at its first.
    (0..6).for_each(|_| scene.answer(0, Ok(Vec::new())));
    assert_eq!((scene.n_running(0), scene.n_running(1)), (2, 2));
    assert_eq!(scene.finished.len(), 6);
}

#[test]
fn a_death_makes_suspects_that_run_one_at_a_time_beside_nothing_else() {
    let mut scene = Scene::new(1);
    scene.submit(0, 0, Conduct::Shared);
    scene.submit(1, 1, Conduct::Shared);
    scene.submit(0, 2, Conduct::Shared);
    scene.submit(0, 3, Conduct::Shared);
    assert_eq!(scene.n_running(0), 3);
    scene.relapse(0);
    // 0, 1 and 2 are suspects; 3 was not sent, and waits until they are through.
    for _ in 0..3 {
        assert_eq!(scene.n_running(0), 1);
        scene.answer(0, Ok(Vec::new()));
    }
    assert_eq!(scene.finished.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 1, 2]);
    scene.answer(0, Ok(Vec::new()));
    assert_eq!(scene.finished.last(), Some(&(3, Ok(()))));
}

#[test]
fn only_a_death_alone_convicts_and_other_models_go_on() {
    let mut scene = Scene::new(1);
    scene.submit(0, 0, Conduct::Shared);
    scene.submit(1, 1, Conduct::Shared);
    scene.relapse(0);
    assert!(scene.finished.is_empty());
    scene.relapse(0);
    let crashed = Err(JobError::Crashed("died of signal 9".to_owned()));
    assert_eq!(scene.finished, [(0, crashed)]);
    scene.answer(0, Ok(Vec::new()));
    assert_eq!(scene.finished.last(), Some(&(1, Ok(()))));
}

#[test]
fn others_go_on_while_one_computes_suspects() {
    let mut scene = Scene::new(2);
    (0..4).for_each(|id| scene.submit(0, id, Conduct::Shared));
    scene.die(0);
    // Worker 1 is not the quarantine, although it could run at once.
    scene.answer(1, Ok(Vec::new()));
    (4..8).for_each(|id| scene.submit(0, id, Conduct::Shared));
    assert_eq!(scene.n_running(1), 2);
    scene.tick(0);
    scene.come_up(0);
    assert_eq!(scene.n_running(0), 1);
}

#[test]
fn a_worker_that_keeps_dying_is_given_up_and_its_jobs_go_to_others() {
    let mut scene = Scene::new(2);
    for round in 0..MAX_DEATHS {
        scene.submit(0, round as u64, Conduct::Shared);
        // Suspects go to the worker that died, so it is killed before it can say that it is there.
        scene.die(0);
        // Longer than any pause before a restart, and not so long that the other worker's jobs count as hung.
        scene.tick(5_000);
        scene.started.clear();
    }
    assert_eq!(scene.dispatch.phase(0), Phase::Lost);
    assert!(scene.failed.is_empty());
    while scene.n_running(1) > 0 {
        scene.answer(1, Ok(Vec::new()));
    }
    assert_eq!(scene.finished.len(), MAX_DEATHS);
    assert!(scene.finished.iter().all(|(_, result)| result.is_ok()));
}

#[test]
fn when_the_last_worker_is_given_up_the_models_fail_with_its_last_words() {
    let mut scene = Scene::new(1);
    for _ in 0..MAX_DEATHS {
        scene.die(0);
        scene.tick(60_000);
    }
    assert_eq!(scene.failed.len(), 2);
    let fault = &scene.failed[0].1;
    assert_eq!(fault.message, "worker died of signal 9, 5 times in a row without a batch in between");
    assert_eq!(fault.details, ["its last words:\nlast words"]);
}

#[test]
fn a_hung_worker_is_killed_and_its_job_is_a_suspect() {
    let mut scene = Scene::new(1);
    scene.submit(0, 0, Conduct::Shared);
    scene.tick(29_000);
    assert!(scene.killed.is_empty());
    scene.tick(2_000);
    assert_eq!(scene.killed, [0]);
    scene.relapse(0);
    assert_eq!(scene.n_running(0), 1);
}

#[test]
fn a_worker_that_never_has_its_models_is_killed() {
    let mut scene = Scene::new(2);
    scene.die(0);
    scene.tick(0);
    scene.dispatch.opened(0, scene.now);
    scene.dispatch.ready(0, 0, 2, scene.now);
    scene.tick(29 * 60_000);
    assert!(scene.killed.is_empty());
    scene.tick(2 * 60_000);
    assert_eq!(scene.killed, [0]);
}

#[test]
fn patience_grows_with_what_batches_usually_take() {
    let mut scene = Scene::new(1);
    scene.submit(0, 0, Conduct::Shared);
    let number = scene.running.get_mut(&0).unwrap().remove(0);
    let outcome = Outcome { result: Ok(Vec::new()), micros: 10_000_000, spans: Vec::new(), cap: None };
    scene.dispatch.finished(0, number, outcome, scene.now);
    scene.submit(0, 1, Conduct::Shared);
    scene.tick(199_000);
    assert!(scene.killed.is_empty());
    scene.tick(2_000);
    assert_eq!(scene.killed, [0]);
}

#[test]
fn a_lost_device_costs_no_job() {
    let mut scene = Scene::new(2);
    scene.submit(0, 0, Conduct::Shared);
    scene.answer(0, Err(JobError::Model(ModelError::DeviceLost("gone".to_owned()))));
    assert_eq!((scene.killed.as_slice(), scene.n_running(0), scene.n_running(1)), (&[0][..], 0, 1));
    scene.answer(1, Ok(Vec::new()));
    assert_eq!(scene.finished, [(0, Ok(()))]);
}

#[test]
fn a_worker_that_stays_out_of_memory_is_replaced_once() {
    let mut scene = Scene::new(1);
    let out_of_memory = || Err(JobError::Model(ModelError::OutOfMemory("1 row".to_owned())));
    scene.submit(0, 0, Conduct::Shared);
    scene.answer(0, out_of_memory());
    assert_eq!((scene.killed.as_slice(), scene.finished.len()), (&[0][..], 0));
    scene.relapse(0);
    scene.answer(0, out_of_memory());
    assert_eq!(scene.finished, [(0, out_of_memory().map(|_: Vec<Tensor>| ()))]);
}

#[test]
fn cancelled_jobs_come_out_once_and_those_in_flight_when_they_are_done() {
    let mut scene = Scene::new(1);
    (0..5).for_each(|id| scene.submit(0, id, Conduct::Shared));
    scene.dispatch.cancel(0);
    scene.obey();
    assert_eq!(scene.finished.len(), 3);
    (0..2).for_each(|_| scene.answer(0, Ok(Vec::new())));
    assert_eq!(scene.finished.len(), 5);
}
