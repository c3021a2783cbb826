//! What the machine has to give this process.

use std::fs;

use super::{DevicePlace, Gpu};

/// Cores and memory as this process may use them: affinity and the limits of its control group count, not what is
/// built into the machine.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Inventory {
    /// Cores that may be used at once.
    pub cores: usize,
    /// Bytes of memory that may be used.
    pub memory: u64,
    /// GPUs that may be used, in the order of their numbers.
    pub gpus: Vec<Gpu>,
    /// Why there are none, or what was found wrong while looking for them.
    pub gpus_note: Option<String>,
}

impl Inventory {
    /// Reads them from the system.
    pub fn read() -> Self {
        // std asks for the affinity mask and the quota of the control group (`cpu.max`, or v1's `cpu.cfs_quota_us`).
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Inventory { cores, memory: memory().unwrap_or(4 << 30), gpus: Vec::new(), gpus_note: None }
    }
}

impl Inventory {
    /// A device's name in pipelines and messages: `cpu`, `cuda:1`.
    pub fn device_name(&self, device: DevicePlace) -> String {
        match device {
            DevicePlace::Cpu => "cpu".to_owned(),
            DevicePlace::Gpu(at) => format!("cuda:{}", self.gpus[at].index),
        }
    }
}

fn memory() -> Option<u64> {
    let built_in = mem_total(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let limit = control_group_file("memory.max").and_then(|text| text.trim().parse().ok());
    Some(limit.map_or(built_in, |limit: u64| limit.min(built_in)))
}

fn mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// A file of this process's control group (version 2).
fn control_group_file(name: &str) -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    fs::read_to_string(format!("/sys/fs/cgroup{path}/{name}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(mem_total("MemTotal:       24576000 kB\nMemFree: 1 kB\n"), Some(24_576_000 * 1024));
        assert_eq!(mem_total("nothing"), None);
    }
}
