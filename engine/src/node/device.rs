//! The device that a worker process computes on.

use std::sync::Arc;

use super::{Fault, LoadModel, Model, ModelNeed};

/// What a device says of itself once it is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DeviceInfo {
    /// The kind that opened it: `cpu` or `cuda`.
    pub kind: String,
    /// Its name, such as `NVIDIA A10`.
    pub name: String,
    /// Its UUID in NVML's form (`GPU-…`, `MIG-…`), if it has one.
    pub uuid: Option<String>,
    /// Bytes of memory that it has.
    pub memory: Option<u64>,
    /// How many devices of the kind the process sees: 1, or the isolation has failed.
    pub n_visible: usize,
}

/// A device that this process has opened.
pub trait Device: Send + Sync {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// Loads a model on it; `need` is what was planned for that.
    ///
    /// # Errors
    /// As [`LoadModel::load`].
    fn load(&self, model: &dyn LoadModel, need: &ModelNeed) -> Result<Box<dyn Model>, Fault>;

    /// Tells of memory that inputs will lie in as long as the process lives, so that the device may page-lock it.
    fn register(&self, _memory: &'static [u8]) {}
}

/// Opens the one device of a worker process.
pub trait OpenDevice: Send + Sync {
    /// The kind of device: `cpu` or `cuda`.
    fn kind(&self) -> &'static str;

    /// Opens it.
    ///
    /// # Errors
    /// If there is none, or it cannot be used.
    fn open(&self) -> Result<Arc<dyn Device>, Fault>;
}

/// Opens the CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCpu;

impl OpenDevice for OpenCpu {
    fn kind(&self) -> &'static str {
        "cpu"
    }

    fn open(&self) -> Result<Arc<dyn Device>, Fault> {
        let info = DeviceInfo { kind: "cpu".to_owned(), name: "CPU".to_owned(), n_visible: 1, ..DeviceInfo::default() };
        Ok(Arc::new(Cpu { info }))
    }
}

struct Cpu {
    info: DeviceInfo,
}

impl Device for Cpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn load(&self, model: &dyn LoadModel, _need: &ModelNeed) -> Result<Box<dyn Model>, Fault> {
        model.load()
    }
}
