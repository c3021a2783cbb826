//! What the machine has to give this process.

use std::fs;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::{DevicePlace, Gpu, NotFound, cuda_worker, nvml, plan};
use crate::graph::Graph;
use crate::node::{Devices, Role};

/// Cores and memory as this process may use them: affinity and the limits of its control group count, not what is
/// built into the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inventory {
    /// Cores that may be used at once.
    pub cores: usize,
    /// Bytes of memory that may be used.
    pub memory: u64,
    /// GPUs that may be used, in the order of their numbers.
    pub gpus: Vec<Gpu>,
    /// Why there are none, or what was found wrong while looking for them.
    pub gpus_note: Option<String>,
    /// The program that opens GPUs.
    #[serde(serialize_with = "worker")]
    pub cuda_worker: Result<PathBuf, NotFound>,
}

impl Inventory {
    /// Reads all of it from the system.
    pub fn read() -> Self {
        let (gpus, gpus_note) = nvml::gpus();
        Inventory { gpus, gpus_note, ..Inventory::without_gpus() }
    }

    /// Reads cores and memory only: GPUs stay unasked, and none is known.
    pub fn without_gpus() -> Self {
        // std asks for the affinity mask and the quota of the control group (`cpu.max`, or v1's `cpu.cfs_quota_us`).
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Inventory {
            cores,
            memory: memory().unwrap_or(4 << 30),
            gpus: Vec::new(),
            gpus_note: None,
            cuda_worker: cuda_worker(),
        }
    }

    /// Reads what a graph's models may use: where all run on the CPU, or there are none, GPUs stay unasked, because
    /// loading the driver's library takes some 30 ms.
    pub fn read_for(graph: &Graph) -> Self {
        let on_cpu = |node_idx: usize| plan::devices(graph, node_idx) == Devices::Cpu;
        if graph.with_role(Role::Infer).all(on_cpu) { Self::without_gpus() } else { Self::read() }
    }

    /// A device's name in pipelines and messages: `cpu`, `cuda:1`.
    pub fn device_name(&self, device: DevicePlace) -> String {
        match device {
            DevicePlace::Cpu => "cpu".to_owned(),
            DevicePlace::Gpu(at) => format!("cuda:{}", self.gpus[at].index),
        }
    }
}

fn worker<S: Serializer>(worker: &Result<PathBuf, NotFound>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Found<'a> {
        path: &'a PathBuf,
    }
    match worker {
        Ok(path) => Found { path }.serialize(serializer),
        Err(missing) => missing.serialize(serializer),
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
pub(super) mod tests {
    use super::*;

    /// A machine with a worker for GPUs and idle ones with so many MiB.
    pub(in super::super) fn gpus(free: &[u64]) -> Inventory {
        let gpu = |(at, free): (usize, &u64)| Gpu {
            index: at as u32,
            token: at.to_string(),
            uuid: format!("GPU-{at}"),
            name: "A".to_owned(),
            total: free << 20,
            free: free << 20,
            users: Vec::new(),
            driver: "580.1".to_owned(),
            mig: false,
        };
        Inventory {
            cores: 4,
            memory: 8 << 30,
            gpus: free.iter().enumerate().map(gpu).collect(),
            gpus_note: None,
            cuda_worker: Ok("/bin/flowgpu-worker-cuda".into()),
        }
    }

    /// The same without the worker.
    pub(in super::super) fn without_worker(free: &[u64]) -> Inventory {
        let looked = vec!["/bin/flowgpu-worker-cuda".into()];
        Inventory { cuda_worker: Err(NotFound { looked }), ..gpus(free) }
    }

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(mem_total("MemTotal:       24576000 kB\nMemFree: 1 kB\n"), Some(24_576_000 * 1024));
        assert_eq!(mem_total("nothing"), None);
    }

    #[test]
    fn the_worker_is_a_path_or_where_it_was_looked_for() {
        let json = |have: &Inventory| serde_json::to_value(have).unwrap()["cuda_worker"].clone();
        assert_eq!(json(&gpus(&[])), serde_json::json!({"path": "/bin/flowgpu-worker-cuda"}));
        assert_eq!(json(&without_worker(&[])), serde_json::json!({"looked": ["/bin/flowgpu-worker-cuda"]}));
    }
}
