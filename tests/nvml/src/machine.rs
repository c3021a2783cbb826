//! What the library knows between `nvmlInit` and `nvmlShutdown`, and the handles that it gives out.

use std::sync::{Mutex, PoisonError};

use crate::description::{Description, Gpu};

/// The variable that names the description.
const VARIABLE: &str = "FLOWGPU_STANDIN";

/// A C library has no other place for what it knows: its calls carry nothing but handles.
static MACHINE: Mutex<Option<Description>> = Mutex::new(None);

/// Error codes of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Code {
    Success = 0,
    Uninitialized = 1,
    InvalidArgument = 2,
    NotSupported = 3,
    NotFound = 6,
    InsufficientSize = 7,
    DriverNotLoaded = 9,
    GpuIsLost = 15,
}

/// Reads the description. Without one there is no driver.
pub(crate) fn init() -> Code {
    let text = std::env::var_os(VARIABLE).and_then(|path| std::fs::read_to_string(path).ok());
    let Some(description) = text.and_then(|text| serde_json::from_str(&text).ok()) else {
        return Code::DriverNotLoaded;
    };
    *MACHINE.lock().unwrap_or_else(PoisonError::into_inner) = Some(description);
    Code::Success
}

/// Forgets it.
pub(crate) fn shutdown() -> Code {
    match MACHINE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(_) => Code::Success,
        None => Code::Uninitialized,
    }
}

/// Asks the machine.
pub(crate) fn machine<T>(ask: impl FnOnce(&Description) -> Result<T, Code>) -> Result<T, Code> {
    let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    ask(machine.as_ref().ok_or(Code::Uninitialized)?)
}

/// A GPU or an instance, as the number in a handle. It is never a null pointer, nor one that can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(pub(crate) usize);

const PLACES: usize = 256;

impl Handle {
    /// The handle of a GPU.
    pub(crate) fn of_gpu(gpu: usize) -> Self {
        Handle((gpu + 1) * PLACES)
    }

    /// The handle of an instance of this GPU.
    pub(crate) fn instance(self, at: usize) -> Self {
        Handle(self.0 + 1 + at)
    }

    /// The handle of the GPU that it belongs to.
    pub(crate) fn parent(self) -> Self {
        Handle(self.0 / PLACES * PLACES)
    }

    /// Whether it is an instance.
    pub(crate) fn is_instance(self) -> bool {
        self != self.parent()
    }

    /// What it stands for.
    pub(crate) fn find(self, machine: &Description) -> Result<&Gpu, Code> {
        let gpu = (self.0 / PLACES).checked_sub(1).and_then(|at| machine.gpus.get(at)).ok_or(Code::InvalidArgument)?;
        match (self.0 % PLACES).checked_sub(1) {
            None => Ok(gpu),
            Some(at) => gpu.mig.as_ref().and_then(|instances| instances.get(at)).ok_or(Code::InvalidArgument),
        }
    }
}

/// The handle of the GPU or instance with this UUID.
pub(crate) fn by_uuid(machine: &Description, uuid: &str) -> Result<Handle, Code> {
    for (at, gpu) in machine.gpus.iter().enumerate() {
        let handle = Handle::of_gpu(at);
        if gpu.uuid == uuid {
            return Ok(handle);
        }
        if let Some(instance) = gpu.mig.iter().flatten().position(|instance| instance.uuid == uuid) {
            return Ok(handle.instance(instance));
        }
    }
    Err(Code::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_lead_back_to_what_they_stand_for() {
        let text = r#"{"driver": "1", "gpus": [{"uuid": "GPU-1", "name": "A", "memory": 1},
            {"uuid": "GPU-2", "name": "A", "memory": 1, "mig": [{"uuid": "MIG-3", "name": "B", "memory": 1}]}]}"#;
        let machine: Description = serde_json::from_str(text).expect("a description");
        for uuid in ["GPU-1", "GPU-2", "MIG-3"] {
            let handle = by_uuid(&machine, uuid).expect("it is there");
            assert_eq!(handle.find(&machine).expect("it is there").uuid, uuid);
            assert_eq!(handle.is_instance(), uuid == "MIG-3");
        }
        assert_eq!(by_uuid(&machine, "GPU-3"), Err(Code::NotFound));
        for wrong in [Handle(0), Handle(1), Handle::of_gpu(2), Handle::of_gpu(0).instance(0)] {
            assert_eq!(wrong.find(&machine).err(), Some(Code::InvalidArgument));
        }
    }
}
