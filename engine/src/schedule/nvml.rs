//! The GPUs as the driver's management library (NVML) tells them.
//!
//! The library is loaded while the program runs, so that the program starts where there is no driver. No single call that
//! fails costs more than what it was about: a GPU whose memory cannot be asked is left out and named, one that does not
//! tell its users just has none. NVML knows nothing of `CUDA_VISIBLE_DEVICES`: see [`super::visible`]. Its numbers of a MIG
//! instance (which instance of the GPU it is) are not asked: the safe interface has no call for them, and UUIDs suffice.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;

use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::visible::{Found, Visible, visible};
use super::{Gpu, GpuUser};

/// The variable that names another library.
pub const NVML_VARIABLE: &str = "FLOWGPU_NVML";
/// The names that the driver's library has: the first is on every machine with a driver, the second comes with packages
/// for developers.
const LIBRARIES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// The GPUs that may be used, and what is to be told of them.
pub(super) fn gpus() -> (Vec<Gpu>, Option<String>) {
    let nvml = match load() {
        Ok(nvml) => nvml,
        Err(reason) => return (Vec::new(), Some(reason)),
    };
    let (gpus, mut notes) = match Listing::of(&nvml) {
        Ok(listing) => listing.gpus(),
        Err(error) => (Vec::new(), vec![format!("the NVIDIA driver does not tell its GPUs: {error}")]),
    };
    if gpus.is_empty() && notes.is_empty() {
        notes.push("there is an NVIDIA driver, and it knows no GPU".to_owned());
    }
    (gpus, (!notes.is_empty()).then(|| notes.join("; ")))
}

/// Loads the library, or says in one sentence why not.
fn load() -> Result<Nvml, String> {
    let named = env::var_os(NVML_VARIABLE).filter(|path| !path.is_empty());
    let paths = named.clone().map_or_else(|| LIBRARIES.map(OsString::from).to_vec(), |path| vec![path]);
    let mut reason = None;
    for path in &paths {
        match Nvml::builder().lib_path(path).init() {
            Ok(nvml) => return Ok(nvml),
            Err(NvmlError::LibloadingError(_)) => {}
            // It is there and refuses: that says more than that another name is not there.
            Err(error) => reason = reason.or(Some(format!("the NVIDIA driver does not answer: {error}"))),
        }
    }
    let looked: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    Err(reason.unwrap_or_else(|| match named {
        Some(_) => format!("{}, which `{NVML_VARIABLE}` names, cannot be loaded", looked.join(", ")),
        None => format!("there is no NVIDIA driver (looked for {})", looked.join(", ")),
    }))
}

/// What the library lists, before `CUDA_VISIBLE_DEVICES`.
struct Listing<'nvml> {
    driver: String,
    found: Vec<Found>,
    devices: Vec<Listed<'nvml>>,
    notes: Vec<String>,
}

struct Listed<'nvml> {
    device: Device<'nvml>,
    instances: Vec<Device<'nvml>>,
}

impl<'nvml> Listing<'nvml> {
    fn of(nvml: &'nvml Nvml) -> Result<Self, NvmlError> {
        let driver = nvml.sys_driver_version().unwrap_or_default();
        let mut listing = Listing { driver, found: Vec::new(), devices: Vec::new(), notes: Vec::new() };
        for number in 0..nvml.device_count()? {
            match nvml.device_by_index(number) {
                Ok(device) => listing.add(device),
                // CUDA does not count one that it cannot open either.
                Err(error) => listing.notes.push(format!("GPU {number} of the driver cannot be opened: {error}")),
            }
        }
        Ok(listing)
    }

    fn add(&mut self, device: Device<'nvml>) {
        let name = device.name().unwrap_or_else(|_| "unknown".to_owned());
        let is_mig = device.mig_mode().is_ok_and(|mode| mode.current == 1);
        // The count is of places, some of which may be empty.
        let places = if is_mig { 0..device.mig_device_count().unwrap_or(0) } else { 0..0 };
        let instances: Vec<_> = places
            .filter_map(|place| device.mig_device_by_index(place).ok())
            .filter_map(|instance| Some((instance.uuid().ok()?, instance)))
            .collect();
        let uuids = instances.iter().map(|(uuid, _)| uuid.clone()).collect();
        let uuid = device.uuid().unwrap_or_default();
        self.found.push(Found { uuid, name, instances: is_mig.then_some(uuids) });
        let instances = instances.into_iter().map(|(_, instance)| instance).collect();
        self.devices.push(Listed { device, instances });
    }

    fn gpus(mut self) -> (Vec<Gpu>, Vec<String>) {
        let variable = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let (var, order) = (variable("CUDA_VISIBLE_DEVICES"), variable("CUDA_DEVICE_ORDER"));
        let (devices, notes) = visible(var.as_deref(), order.as_deref(), &self.found);
        self.notes.extend(notes);
        let mut gpus = Vec::new();
        for (index, device) in devices.into_iter().enumerate() {
            match self.gpu(index, &device) {
                Ok(gpu) => gpus.push(gpu),
                Err(error) => self.notes.push(format!("cuda:{index} is left out: its memory cannot be asked: {error}")),
            }
        }
        (gpus, self.notes)
    }

    fn gpu(&self, index: usize, visible: &Visible) -> Result<Gpu, NvmlError> {
        let (found, listed) = (&self.found[visible.gpu], &self.devices[visible.gpu]);
        let (device, uuid, name) = match visible.instance {
            None => (&listed.device, found.uuid.clone(), found.name.clone()),
            Some(at) => {
                let instance = &listed.instances[at];
                let name = instance.name().unwrap_or_else(|_| format!("{} MIG", found.name));
                (instance, found.instances.as_ref().map_or_else(String::new, |uuids| uuids[at].clone()), name)
            }
        };
        let memory = device.memory_info()?;
        Ok(Gpu {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            token: visible.token.clone(),
            uuid,
            name,
            total: memory.total,
            free: memory.free.min(memory.total),
            users: users(device),
            driver: self.driver.clone(),
            mig: visible.instance.is_some(),
        })
    }
}

/// Who else uses it, the largest first. A process may stand in both lists, with the same memory.
fn users(device: &Device<'_>) -> Vec<GpuUser> {
    let compute = device.running_compute_processes().unwrap_or_default();
    let graphics = device.running_graphics_processes().unwrap_or_default();
    let mut users = merged(compute.into_iter().chain(graphics));
    users.retain(|user| !is_ours(user.pid));
    users
}

fn merged(processes: impl Iterator<Item = ProcessInfo>) -> Vec<GpuUser> {
    let mut by_pid = BTreeMap::<u32, Option<u64>>::new();
    for process in processes {
        let bytes = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        let known = by_pid.entry(process.pid).or_default();
        *known = (*known).max(bytes);
    }
    let mut users: Vec<_> = by_pid.into_iter().map(|(pid, bytes)| GpuUser { pid, bytes }).collect();
    users.sort_by_key(|user| (std::cmp::Reverse(user.bytes), user.pid));
    users
}

/// Whether a process is this one or a child of it.
fn is_ours(pid: u32) -> bool {
    let me = std::process::id();
    pid == me || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| parent(&stat) == Some(me))
}

/// The parent's number in `/proc/PID/stat`: the second word behind the name, which may hold spaces and brackets.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// What a GPU is doing at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuSample {
    /// Per cent of the last moments in which it computed, where NVML tells it: not for MIG instances.
    pub utilization: Option<u8>,
    /// Bytes of its memory that are taken, by anybody.
    pub used: u64,
    /// Bytes of memory built in.
    pub total: u64,
}

/// Asks GPUs what they are doing, again and again, while a run goes on.
pub struct GpuGauge(Nvml);

impl GpuGauge {
    /// Loads the library; `None` where that fails.
    pub fn open() -> Option<Self> {
        load().ok().map(GpuGauge)
    }

    /// What a GPU is doing now; `None` if it does not say.
    pub fn sample(&self, gpu: &Gpu) -> Option<GpuSample> {
        let device = self.0.device_by_uuid(gpu.uuid.as_str()).ok()?;
        let memory = device.memory_info().ok()?;
        let utilization = device.utilization_rates().ok().and_then(|rates| u8::try_from(rates.gpu.min(100)).ok());
        Some(GpuSample { utilization, used: memory.total.saturating_sub(memory.free), total: memory.total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_in_both_lists_is_one_user_and_the_largest_comes_first() {
        let process = |pid, used_gpu_memory| ProcessInfo {
            pid,
            used_gpu_memory,
            gpu_instance_id: None,
            compute_instance_id: None,
        };
        let used = UsedGpuMemory::Used;
        let processes =
            [process(7, used(10)), process(8, used(30)), process(9, UsedGpuMemory::Unavailable), process(7, used(20))];
        let users: Vec<_> = merged(processes.into_iter()).iter().map(|user| (user.pid, user.bytes)).collect();
        assert_eq!(users, [(8, Some(30)), (7, Some(20)), (9, None)]);
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("12 (a) b) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (a S"), None);
        assert!(is_ours(std::process::id()));
    }
}
