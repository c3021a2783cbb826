//! A device that stands in for a GPU: engines that take their time, memory that runs out, and a way to get lost.
//!
//! It opens what `CUDA_VISIBLE_DEVICES` names among the GPUs of the description that `FLOWGPU_STANDIN` names, and times
//! batches as that says. What models compute on it is real, on the CPU; what it takes longer than that is slept, so
//! that many of these devices fit on few cores. It knows nothing of NVML, whose stand-in reads the same description.

mod budget;
mod description;
mod device;
mod timeline;

use std::env;
use std::path::Path;
use std::sync::Arc;

use engine::node::{Device, Fault, OpenDevice};

use description::Description;
use device::StandInDevice;

/// Opens a stand-in device under the kind `cuda`.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandIn;

impl OpenDevice for StandIn {
    fn kind(&self) -> &'static str {
        "cuda"
    }

    fn open(&self) -> Result<Arc<dyn Device>, Fault> {
        let Some(path) = env::var_os("FLOWGPU_STANDIN") else {
            let message = "no device: this program has stand-ins for GPUs only, and `FLOWGPU_STANDIN` describes none";
            return Err(Fault::permanent(message));
        };
        let visible = env::var("CUDA_VISIBLE_DEVICES").ok();
        Ok(Arc::new(open(Path::new(&path), visible.as_deref())?))
    }
}

/// Opens the first of the devices that `visible` names, as CUDA would; that there should be no other is for the worker
/// to say.
fn open(path: &Path, visible: Option<&str>) -> Result<StandInDevice, Fault> {
    let visible_gpus = Description::read(path)?.visible(visible);
    let Some(gpu) = visible_gpus.first() else {
        let message = format!("no device: `CUDA_VISIBLE_DEVICES={}` names none", visible.unwrap_or_default());
        return Err(Fault::permanent(message));
    };
    StandInDevice::open(gpu, visible_gpus.len(), path)
}

#[cfg(test)]
mod tests;
