//! The device and the models on it.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::data::Tensor;
use engine::node::{
    Computed, Device, DeviceInfo, Fault, LoadModel, Model, ModelError, ModelNeed, Pending, Span, monotonic_ns,
};

use super::budget::{Budget, Hold, Lease, Scratch};
use super::description::Gpu;
use super::timeline::{Stream, Timeline};

/// Batches that a model may have under way: one on each engine.
const SLOTS: usize = 3;

/// A stand-in GPU as one process has opened it. All its models share its engines and its memory.
pub(super) struct StandInDevice {
    info: DeviceInfo,
    inner: Arc<Inner>,
}

struct Inner {
    gpu: Gpu,
    timeline: Mutex<Timeline>,
    budget: Budget,
    /// Batches after which it is lost to this process.
    lost_after: Option<u64>,
    n_batches: AtomicU64,
}

impl StandInDevice {
    /// Opens `gpu`, of the description at `path`.
    pub(super) fn open(gpu: &Gpu, n_visible: usize, path: &Path) -> Result<Self, Fault> {
        let info = DeviceInfo {
            kind: "cuda".to_owned(),
            name: gpu.name.clone(),
            uuid: Some(gpu.uuid.clone()),
            memory: Some(gpu.memory),
            n_visible,
        };
        let is_hit = gpu.lost_again || is_first(gpu, path)?;
        let inner = Inner {
            gpu: gpu.clone(),
            timeline: Mutex::default(),
            budget: Budget::new(gpu.budget()),
            lost_after: gpu.lost_after.filter(|_| is_hit),
            n_batches: AtomicU64::new(0),
        };
        Ok(StandInDevice { info, inner: Arc::new(inner) })
    }
}

/// Whether no process has opened this device before, which is then marked beside the description.
fn is_first(gpu: &Gpu, path: &Path) -> Result<bool, Fault> {
    let mut mark = path.as_os_str().to_owned();
    mark.push(format!(".{}.opened", gpu.uuid));
    let mark = PathBuf::from(mark);
    match OpenOptions::new().write(true).create_new(true).open(&mark) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Fault::io("create", &mark, &error)),
    }
}

impl Inner {
    fn check(&self, n_batches: u64) -> Result<(), ModelError> {
        match self.lost_after {
            Some(after) if n_batches >= after => {
                Err(ModelError::DeviceLost(format!("`{}` fell off the bus after {after} batches", self.gpu.uuid)))
            }
            _ => Ok(()),
        }
    }

    fn book(&self, stream: &mut Stream, now_ns: u64, n_rows: usize) -> [Span; 3] {
        let mut timeline = self.timeline.lock().unwrap_or_else(PoisonError::into_inner);
        timeline.book(stream, now_ns, self.gpu.times(n_rows))
    }
}

impl Device for StandInDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn load(&self, model: &dyn LoadModel, need: &ModelNeed) -> Result<Box<dyn Model>, Fault> {
        let to_fault = |error: ModelError| Fault::transient(error.to_string());
        self.inner.check(self.inner.n_batches.load(Ordering::Relaxed)).map_err(to_fault)?;
        std::thread::sleep(self.inner.gpu.load_time());
        let weights = self.inner.budget.take(need.weights.saturating_add(need.workspace)).map_err(to_fault)?;
        Ok(Box::new(StandInModel {
            model: model.load()?,
            device: self.inner.clone(),
            stream: Stream::default(),
            scratch: Scratch::new(self.inner.budget.clone()),
            activations_per_row: need.activations_per_row,
            _weights: weights,
        }))
    }
}

struct StandInModel {
    model: Box<dyn Model>,
    device: Arc<Inner>,
    stream: Stream,
    scratch: Scratch,
    activations_per_row: u64,
    _weights: Lease,
}

impl Model for StandInModel {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(self.start(inputs)?.wait()?.outputs)
    }

    fn start(&mut self, inputs: &[Tensor]) -> Result<Box<dyn Pending>, ModelError> {
        // The time of the arithmetic below is within the time that is booked, unless it is longer than that.
        let now_ns = monotonic_ns();
        let n_rows = inputs.first().map_or(0, Tensor::n_rows);
        let hold = self.scratch.hold(self.activations_per_row.saturating_mul(n_rows as u64))?;
        self.device.check(self.device.n_batches.fetch_add(1, Ordering::Relaxed))?;
        let outputs = self.model.forward(inputs)?;
        let spans = self.device.book(&mut self.stream, now_ns, n_rows);
        Ok(Box::new(UnderWay {
            computed: Computed { outputs, spans: spans.to_vec() },
            end_ns: spans[2].end_ns,
            _hold: hold,
        }))
    }

    fn slots(&self) -> usize {
        SLOTS
    }
}

struct UnderWay {
    computed: Computed,
    end_ns: u64,
    _hold: Hold,
}

impl Pending for UnderWay {
    fn wait(self: Box<Self>) -> Result<Computed, ModelError> {
        while let Some(rest) = self.end_ns.checked_sub(monotonic_ns()).filter(|&rest| rest > 0) {
            std::thread::sleep(Duration::from_nanos(rest));
        }
        Ok(self.computed)
    }
}
