//! The GPU of a worker process.

use std::env;
use std::error::Error;
use std::sync::Arc;

use candle_core::Device as CandleDevice;
use cudarc::driver::sys::{self, CUresult};
use cudarc::driver::{CudaContext, DriverError};
use engine::node::{Device, DeviceInfo, Fault, LoadModel, Model, ModelError, ModelNeed, OpenDevice};

use super::error::model_error;
use super::host_memory::LockedPages;
use super::model::{CudaModel, DeviceNetwork};
use super::streams::{ORDINAL, keep_freed_memory};

const KIND: &str = "cuda";
const VISIBLE_DEVICES: &str = "CUDA_VISIBLE_DEVICES";

/// Opens the one GPU that this process sees.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCuda;

impl OpenDevice for OpenCuda {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn open(&self) -> Result<Arc<dyn Device>, Fault> {
        Ok(Arc::new(CudaDevice::open()?))
    }
}

/// A GPU that this process has opened. Models on it share nothing but the GPU.
pub struct CudaDevice {
    info: DeviceInfo,
    context: Arc<CudaContext>,
    locked: Arc<LockedPages>,
}

impl CudaDevice {
    fn open() -> Result<Self, Fault> {
        check_driver()?;
        let n_visible = CudaContext::device_count().map_err(cannot_open)?;
        let n_visible = usize::try_from(n_visible).unwrap_or(0);
        if n_visible != 1 {
            let shown = env::var_os(VISIBLE_DEVICES).map_or_else(
                || format!("{VISIBLE_DEVICES} is not set"),
                |value| format!("{VISIBLE_DEVICES} is `{}`", value.display()),
            );
            return Err(Fault::permanent(format!(
                "a worker computes on one GPU, and this one sees {n_visible}: {shown}"
            ))
            .help(format!("set {VISIBLE_DEVICES} to the index or the UUID of one GPU")));
        }
        let context = CudaContext::new(ORDINAL).map_err(cannot_open)?;
        let is_slice = env::var(VISIBLE_DEVICES).is_ok_and(|token| token.starts_with("MIG-"));
        let uuid = context.uuid().map_err(cannot_open)?;
        let info = DeviceInfo {
            kind: KIND.to_owned(),
            name: context.name().map_err(cannot_open)?,
            uuid: Some(nvml_uuid(if is_slice { "MIG" } else { "GPU" }, uuid.bytes.map(|byte| byte as u8))),
            memory: Some(context.total_mem().map_err(cannot_open)? as u64),
            n_visible,
        };
        keep_freed_memory(&context).map_err(cannot_open)?;
        let locked = Arc::new(LockedPages::new(context.clone()));
        Ok(CudaDevice { info, context, locked })
    }

    /// A model on streams of its own. `build` loads its network onto the device that it is given.
    ///
    /// # Errors
    /// Those of `build`, or what the GPU says to it, want of memory above all.
    pub(crate) fn place(
        &self,
        build: impl FnOnce(&CandleDevice) -> Result<Box<dyn DeviceNetwork>, Fault>,
    ) -> Result<Box<dyn Model>, Fault> {
        let built = CudaModel::new(self.locked.clone(), |device| build(device).map_err(Unplaced::Fault));
        match built {
            Ok(model) => Ok(Box::new(model)),
            Err(Unplaced::Fault(fault)) => Err(fault),
            Err(Unplaced::Model(error)) => Err(fault_of(&error)),
        }
    }
}

enum Unplaced {
    Fault(Fault),
    Model(ModelError),
}

impl From<ModelError> for Unplaced {
    fn from(error: ModelError) -> Self {
        Unplaced::Model(error)
    }
}

/// What keeps a model from being loaded, as a fault: memory may be free at the next try.
pub(crate) fn load_fault(error: &(dyn Error + 'static)) -> Fault {
    fault_of(&model_error(error))
}

fn fault_of(error: &ModelError) -> Fault {
    match error {
        ModelError::OutOfMemory(_) => Fault::transient(format!("the GPU has no room for the model: {error}"))
            .help("see what else uses the GPU by `flowgpu devices`, or use smaller batches or `dtype: f16`"),
        ModelError::DeviceLost(_) => Fault::transient(error.to_string()),
        ModelError::Failed(_) => Fault::permanent(error.to_string()),
    }
}

impl Device for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn load(&self, model: &dyn LoadModel, need: &ModelNeed) -> Result<Box<dyn Model>, Fault> {
        let (free, _) = self.context.mem_get_info().map_err(|error| load_fault(&error))?;
        let wanted = need.weights.saturating_add(need.workspace);
        // Only what can never do is refused here: another's memory may be given back before the first batch.
        if wanted > free as u64 {
            let [wanted, free] = [wanted, free as u64].map(|bytes| bytes.div_ceil(1 << 20));
            let message = format!("the model takes {wanted} MiB on the GPU, of which {free} MiB are free");
            return Err(Fault::transient(message).help("see what else uses the GPU by `flowgpu devices`"));
        }
        model.load_on(self)
    }

    fn register(&self, memory: &'static [u8]) {
        if let Err(error) = self.locked.add(memory) {
            // Inputs are then copied once more, into memory that is locked.
            tracing::warn!(bytes = memory.len(), %error, "cannot lock the pages of shared memory");
        }
    }
}

/// Refuses a driver older than the CUDA that this program was built with, before it fails in a less plain way.
fn check_driver() -> Result<(), Fault> {
    let mut version = 0;
    // SAFETY: the driver writes one number through the pointer, and needs no initialisation for this call.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(cannot_open)?;
    let needed = i32::try_from(sys::CUDA_VERSION).unwrap_or(i32::MAX);
    // Within one major version a driver runs what a newer CUDA was compiled to, but for its PTX: that needs no less.
    if version < needed {
        let [have, need] = [version, needed].map(|version| format!("{}.{}", version / 1000, version % 1000 / 10));
        return Err(Fault::permanent(format!("the NVIDIA driver knows CUDA {have}, and this program needs {need}"))
            .help("install a newer driver: 580 or later for CUDA 13.0"));
    }
    Ok(())
}

fn cannot_open(error: DriverError) -> Fault {
    let fault = Fault::permanent(format!("cannot open the GPU: {error}"));
    match error.0 {
        CUresult::CUDA_ERROR_NO_DEVICE => {
            fault.help(format!("the driver shows this process no GPU: see {VISIBLE_DEVICES} and `nvidia-smi`"))
        }
        CUresult::CUDA_ERROR_STUB_LIBRARY => {
            fault.help("this is the libcuda for linking: take the stub's folder out of LD_LIBRARY_PATH")
        }
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            fault.help("the driver's library and its kernel module differ: reboot, or load the module anew")
        }
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            Fault { kind: engine::node::FaultKind::Transient, ..fault }.help("others have taken all of its memory")
        }
        _ => fault,
    }
}

/// A UUID as NVML writes it: `GPU-` or `MIG-` and groups of hexadecimal digits.
fn nvml_uuid(prefix: &str, bytes: [u8; 16]) -> String {
    let mut text = prefix.to_owned();
    for (byte_idx, byte) in bytes.into_iter().enumerate() {
        if matches!(byte_idx, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_nvml_does() {
        let bytes = std::array::from_fn(|byte_idx| 0xf0 - 15 * byte_idx as u8);
        assert_eq!(nvml_uuid("GPU", bytes), "GPU-f0e1d2c3-b4a5-9687-7869-5a4b3c2d1e0f");
    }

    #[test]
    fn without_a_gpu_opening_is_a_fault_that_says_why() {
        // On a machine with one GPU this opens it.
        match OpenCuda.open() {
            Ok(device) => assert_eq!(device.info().n_visible, 1),
            Err(fault) => assert!(fault.message.contains("GPU") || fault.message.contains("driver"), "{fault}"),
        }
    }
}
