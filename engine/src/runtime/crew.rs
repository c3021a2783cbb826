//! From a plan's placement to the workers of a run: which are threads, which processes, and what those are started with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rayon::ThreadPool;

use super::running::Setup;
use crate::config::Isolation;
use crate::graph::{Graph, GraphNode};
use crate::node::{Fault, InferStage, Role};
use crate::schedule::{DevicePlace, Plan, WorkerPlace, cuda_worker};
use crate::worker::frame::Load;
use crate::worker::{Executor, Fleet, FleetSpec, Local, ModelSpec, WorkerSpec, WorkerState, WorkerStats};

/// How long a batch may take at least before its worker counts as hung, when the file does not say.
const JOB_TIMEOUT: Duration = Duration::from_secs(30);

/// What computes a model.
pub(super) struct Crewed {
    pub(super) executor: Box<dyn Executor>,
    /// The place in the placement of each worker that the executor names.
    pub(super) places: Vec<usize>,
}

/// The workers of a run.
pub(super) struct Crew {
    fleet: Option<Fleet>,
    /// The nodes whose models live in processes, in the order in which the fleet numbers them.
    remote: Vec<usize>,
    /// The places of the processes in the placement.
    processes: Vec<usize>,
    pub(super) stats: Vec<Arc<WorkerStats>>,
}

impl Crew {
    /// Starts the processes, if there are to be any.
    pub(super) fn start(plan: &Plan, setup: &Setup) -> Result<Crew, Fault> {
        let graph = &plan.graph;
        let stats: Vec<_> = plan
            .placement
            .workers
            .iter()
            .map(|worker| Arc::new(WorkerStats::new(plan.inventory.device_name(worker.device), worker.models.clone())))
            .collect();
        let is_remote = |node_idx: &usize| plan.placement.workers_of(*node_idx).any(|worker| is_process(plan, worker));
        let remote: Vec<usize> = graph.with_role(Role::Infer).filter(is_remote).collect();
        let (mut workers, mut processes) = (Vec::new(), Vec::new());
        for (place, worker) in plan.placement.workers.iter().enumerate() {
            if is_process(plan, worker) {
                workers.push(worker_spec(plan, worker, &remote, stats[place].clone(), setup)?);
                processes.push(place);
            } else {
                stats[place].pid.store(std::process::id(), std::sync::atomic::Ordering::Relaxed);
                stats[place].set_state(WorkerState::Serving);
            }
        }
        let models = remote.iter().map(|&node_idx| model_spec(graph, node_idx)).collect::<Result<Vec<_>, _>>()?;
        let patience = graph.run.job_timeout.map_or(JOB_TIMEOUT, |timeout| timeout.get());
        let reserve = reserve(plan);
        let spec = FleetSpec { build: setup.build.clone(), workers, models, patience, reserve };
        let fleet = if remote.is_empty() { None } else { Some(Fleet::start(spec)?) };
        Ok(Crew { fleet, remote, processes, stats })
    }

    /// The memory that a node's batches should lie in, if workers are to read them without a copy.
    pub(super) fn input_arena(&self, node: &GraphNode) -> Result<Option<crate::worker::Arena>, Fault> {
        match &self.fleet {
            Some(fleet) if node.kind.role() == Role::Batch => fleet.input_arena().map(Some),
            _ => Ok(None),
        }
    }

    /// What will compute a node's model, and the places in the placement of those that it names; called on the node's own thread, since it waits until the model is loaded.
    pub(super) fn executor(
        &self,
        plan: &Plan,
        node_idx: usize,
        infer: &InferStage,
        pool: &Arc<ThreadPool>,
    ) -> Result<Crewed, Fault> {
        if let (Some(fleet), Some(model)) = (&self.fleet, self.remote.iter().position(|&remote| remote == node_idx)) {
            return Ok(Crewed { executor: Box::new(fleet.executor(model)?), places: self.processes.clone() });
        }
        let places = plan.placement.workers.iter().enumerate().filter(|(_, worker)| worker.models.contains(&node_idx));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        let node = &plan.graph.nodes[node_idx];
        for stamp in node.spec.need.iter().flat_map(|need| &need.files) {
            stamp.check()?;
        }
        let name = format!("{}/model", node.name);
        let executor = Local::start(&name, &infer.model, places.len().max(1), pool)?;
        Ok(Crewed { executor: Box::new(executor), places })
    }
}

/// Workers that are threads have ended with their nodes; processes end with the fleet, which knows what became of them.
impl Drop for Crew {
    fn drop(&mut self) {
        for worker in self.stats.iter().filter(|worker| worker.state() == WorkerState::Serving) {
            worker.set_state(WorkerState::Stopped);
        }
    }
}

/// Address space for each arena: several times what rows may take, since slots of several sizes leave gaps; where address
/// space is limited, a part of it, because a run has an arena or two for each worker and model.
fn reserve(plan: &Plan) -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    (plan.queue_memory * 4).max(8 << 30).min(limit.map_or(u64::MAX, |limit| limit / 32))
}

fn is_process(plan: &Plan, worker: &WorkerPlace) -> bool {
    plan.placement.isolation_of(worker) == Isolation::Process
}

fn worker_spec(
    plan: &Plan,
    worker: &WorkerPlace,
    remote: &[usize],
    stats: Arc<WorkerStats>,
    setup: &Setup,
) -> Result<WorkerSpec, Fault> {
    let threads = worker.threads.max(1).to_string();
    let mut environment = vec![("RAYON_NUM_THREADS", threads.clone()), ("CANDLE_NUM_THREADS", threads)];
    let (program, device, uuid) = match worker.device {
        DevicePlace::Cpu => {
            // Nothing in such a worker has business with a GPU.
            environment.push(("CUDA_VISIBLE_DEVICES", String::new()));
            let program = setup.program.clone().map_or_else(own_program, Ok)?;
            (program, "cpu", None)
        }
        DevicePlace::Gpu(at) => {
            let gpu = &plan.inventory.gpus[at];
            environment.push(("CUDA_VISIBLE_DEVICES", gpu.token.clone()));
            if std::env::var_os("CUDA_DEVICE_ORDER").is_none() {
                environment.push(("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()));
            }
            let program = cuda_worker().map_err(|error| Fault::permanent(error.to_string()))?;
            (program, "cuda", Some(gpu.uuid.clone()))
        }
    };
    let number = |node_idx: &usize| remote.iter().position(|other| other == node_idx);
    let models = worker.models.iter().filter_map(number).collect();
    Ok(WorkerSpec { program, device, uuid, environment, models, stats })
}

/// This program, even if its file was replaced since it started.
fn own_program() -> Result<PathBuf, Fault> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        return Ok(running);
    }
    std::env::current_exe().map_err(|error| Fault::transient(format!("cannot find this program's own file: {error}")))
}

fn model_spec(graph: &Graph, node_idx: usize) -> Result<ModelSpec, Fault> {
    let node = &graph.nodes[node_idx];
    let with = serde_json::to_value(&node.with).map_err(|error| {
        Fault::permanent(format!("its options cannot be handed to a worker: {error}")).in_node(&node.name)
    })?;
    let files = node.spec.need.as_ref().map(|need| need.files.clone()).unwrap_or_default();
    let paths = files.iter().map(|stamp| stamp.path.as_path()).chain([graph.base.as_path()]);
    if let Some(path) = paths.into_iter().find(|path| path.to_str().is_none()) {
        let message = format!("`{}` is not UTF-8, and workers are told of paths as text", path.display());
        let help = "rename it, or let models run on threads: `isolation: thread`";
        return Err(Fault::permanent(message).help(help).in_node(&node.name));
    }
    let load = Load {
        model: 0,
        node: node.name.clone(),
        kind: node.kind.name().to_owned(),
        with,
        base: graph.base.clone(),
        input: node.schemas[0].clone(),
        files,
        caps: Vec::new(),
    };
    let row_bytes = node.spec.new_types().iter().map(crate::data::ColumnType::row_bytes).collect();
    Ok(ModelSpec { node_idx, load, row_bytes })
}
