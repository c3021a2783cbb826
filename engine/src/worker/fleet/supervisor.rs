//! The threads around a fleet: one that starts processes and buries them, one a process that reads what it says.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::super::dispatch::Phase;
use super::super::frame::{FromWorker, ToWorker};
use super::super::link::FrameReader;
use super::super::process::{Process, Recipe};
use super::super::stats::WorkerState;
use super::{Live, Shared, State};
use crate::node::Fault;

/// Workers that were asked to stop get so long before they are killed.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// The supervisor's life: as long as the run, since the system ends workers with the thread that started them.
pub(super) fn supervise(shared: &Arc<Shared>) {
    let mut stopping_since = None;
    loop {
        let mut state = shared.lock();
        let now = Instant::now();
        if state.closing {
            state.due.clear();
            let since = *stopping_since.get_or_insert_with(|| {
                state.processes.iter_mut().flatten().for_each(|live| live.write(&ToWorker::Stop, None));
                now
            });
            if now.saturating_duration_since(since) > STOP_PATIENCE {
                state.processes.iter().flatten().for_each(|live| live.process.kill());
            }
            if state.processes.iter().all(Option::is_none) {
                shared.spec.workers.iter().for_each(|worker| {
                    if worker.stats.state() != WorkerState::Lost {
                        worker.stats.set_state(WorkerState::Stopped);
                    }
                });
                return;
            }
        } else {
            state.dispatch.tick(now);
            shared.apply(&mut state);
        }
        let (ended, due) = (std::mem::take(&mut state.ended), std::mem::take(&mut state.due));
        if ended.is_empty() && due.is_empty() {
            let wait = state.dispatch.next_tick(now).max(Duration::from_millis(1));
            drop(shared.called.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner));
            continue;
        }
        drop(state);
        ended.into_iter().for_each(|worker| bury(shared, worker));
        due.into_iter().for_each(|worker| start(shared, worker));
    }
}

fn start(shared: &Arc<Shared>, worker: usize) {
    let spec = &shared.spec.workers[worker];
    let name = format!("worker {worker}");
    let recipe = Recipe { program: spec.program.clone(), device: spec.device, environment: spec.environment.clone() };
    let started = Process::start(&recipe, &name).and_then(|(process, socket)| {
        let failed = |error: std::io::Error| Fault::transient(format!("cannot start a thread: {error}"));
        let reader = FrameReader::new(socket.try_clone().map_err(failed)?);
        if spec.stats.pid.swap(process.pid(), Ordering::Relaxed) != 0 {
            spec.stats.restarts.fetch_add(1, Ordering::Relaxed);
        }
        // Registered before it is read, so that its first word finds it.
        shared.lock().processes[worker] = Some(Live { process, socket, mapped: BTreeSet::new() });
        let listening = shared.clone();
        let listen = move || listen(&listening, worker, reader);
        std::thread::Builder::new().name(format!("{name}/listen")).spawn(listen).map_err(failed)
    });
    if let Err(fault) = started {
        shared.lock().processes[worker] = None;
        shared.refuse(worker, &fault);
    }
}

/// Reads what a worker says until it says no more.
fn listen(shared: &Shared, worker: usize, mut reader: FrameReader) {
    loop {
        match reader.read::<FromWorker>() {
            Ok(Some((frame, _))) => shared.heard(worker, frame),
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(worker, %error, "a worker's frame cannot be read");
                break;
            }
        }
    }
    shared.lock().ended.push(worker);
    shared.called.notify_all();
}

/// Waits for a process that has closed its socket, and draws the conclusions.
fn bury(shared: &Shared, worker: usize) {
    let Some(live) = shared.lock().processes[worker].take() else { return };
    let pid = live.process.pid();
    let (how, last_words) = live.process.reap();
    tracing::debug!(worker, pid, how, "a worker has ended");
    shared.change(|state, now| {
        // What it wrote to is nobody's now.
        if !state.closing {
            let who = format!("worker {worker} ({}, pid {pid})", shared.spec.workers[worker].stats.device);
            let was_lost = state.dispatch.phase(worker) == Phase::Lost;
            let cause = state.dispatch.died(worker, &who, &how, &last_words, now);
            // Of one that was given up before it died the reason for that is known, and says more.
            if !was_lost {
                shared.spec.workers[worker].stats.set_trouble(cause);
            }
        }
        let State { dispatch, sent, .. } = state;
        sent.retain(|number, _| dispatch.has(*number));
    });
}
