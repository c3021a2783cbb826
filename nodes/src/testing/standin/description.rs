//! The description of the GPUs that are stood in for, and which of them a process sees.

use std::path::Path;
use std::time::Duration;

use engine::node::Fault;
use serde::Deserialize;

/// A machine's GPUs.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Description {
    gpus: Vec<Gpu>,
}

/// A GPU, or one instance of a GPU in MIG mode.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Gpu {
    pub(super) uuid: String,
    pub(super) name: String,
    /// Bytes.
    pub(super) memory: u64,
    users: Vec<User>,
    mig: Vec<Instance>,
    /// What the times are divided by.
    speed: f64,
    upload_ms: f64,
    compute_ms: f64,
    download_ms: f64,
    upload_us_per_row: f64,
    compute_us_per_row: f64,
    download_us_per_row: f64,
    /// How long a model takes to be loaded.
    load_ms: f64,
    /// Bytes that a process takes by opening it.
    overhead: u64,
    /// Batches after which it is lost.
    pub(super) lost_after: Option<u64>,
    /// Whether every process loses it, or only the first that opens it.
    pub(super) lost_again: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct User {
    bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Instance {
    uuid: String,
    name: String,
    memory: u64,
}

impl Default for Gpu {
    fn default() -> Self {
        Gpu {
            uuid: String::new(),
            name: String::new(),
            memory: 0,
            users: Vec::new(),
            mig: Vec::new(),
            speed: 1.0,
            upload_ms: 0.0,
            compute_ms: 0.0,
            download_ms: 0.0,
            upload_us_per_row: 0.0,
            compute_us_per_row: 0.0,
            download_us_per_row: 0.0,
            load_ms: 0.0,
            overhead: 0,
            lost_after: None,
            lost_again: true,
        }
    }
}

/// Nanoseconds that a batch takes on each engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) upload: u64,
    pub(super) compute: u64,
    pub(super) download: u64,
}

impl Gpu {
    /// Bytes that a process has left once it has opened it.
    pub(super) fn budget(&self) -> u64 {
        let used: u64 = self.users.iter().map(|user| user.bytes).sum();
        self.memory.saturating_sub(used).saturating_sub(self.overhead)
    }

    /// What loading a model takes.
    pub(super) fn load_time(&self) -> Duration {
        Duration::from_secs_f64(self.load_ms.max(0.0) / 1e3)
    }

    /// What a batch takes.
    pub(super) fn times(&self, n_rows: usize) -> Times {
        let nanoseconds = |ms: f64, us_per_row: f64| {
            ((ms * 1e6 + us_per_row * 1e3 * n_rows as f64) / self.speed.max(f64::MIN_POSITIVE)) as u64
        };
        Times {
            upload: nanoseconds(self.upload_ms, self.upload_us_per_row),
            compute: nanoseconds(self.compute_ms, self.compute_us_per_row),
            download: nanoseconds(self.download_ms, self.download_us_per_row),
        }
    }

    /// The instance as a device of its own, as fast as the whole and with its own memory.
    fn instance(&self, instance: &Instance) -> Gpu {
        let Instance { uuid, name, memory } = instance.clone();
        Gpu { uuid, name, memory, users: Vec::new(), mig: Vec::new(), ..self.clone() }
    }

    /// The device that its number or UUID stands for: in MIG mode CUDA takes the first instance.
    fn device(&self) -> Gpu {
        self.mig.first().map_or_else(|| self.clone(), |instance| self.instance(instance))
    }
}

impl Description {
    pub(super) fn read(path: &Path) -> Result<Self, Fault> {
        let bytes = std::fs::read(path).map_err(|error| Fault::io("read", path, &error))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Fault::permanent(format!("`{}` describes no GPUs: {error}", path.display())))
    }

    /// The devices that a process sees with this value of `CUDA_VISIBLE_DEVICES`, by CUDA's rules: those before the
    /// first token that names none, and none at all if one is named twice.
    pub(super) fn visible(&self, tokens: Option<&str>) -> Vec<Gpu> {
        let Some(tokens) = tokens else { return self.gpus.iter().map(Gpu::device).collect() };
        let visible: Vec<Gpu> = tokens.split(',').map_while(|token| self.find(token.trim())).collect();
        let twice = (1..visible.len()).any(|at| visible[..at].iter().any(|gpu| gpu.uuid == visible[at].uuid));
        if twice { Vec::new() } else { visible }
    }

    /// The device of a number, of a UUID, or of the beginning of one UUID.
    fn find(&self, token: &str) -> Option<Gpu> {
        if token.starts_with("MIG-") {
            let instances = self.gpus.iter().flat_map(|gpu| gpu.mig.iter().map(|instance| gpu.instance(instance)));
            return only(instances.filter(|instance| instance.uuid.starts_with(token)));
        }
        if token.starts_with("GPU-") {
            return only(self.gpus.iter().filter(|gpu| gpu.uuid.starts_with(token))).map(Gpu::device);
        }
        let number: usize = token.parse().ok()?;
        self.gpus.get(number).map(Gpu::device)
    }
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = r#"{"driver": "580.159", "gpus": [
        {"uuid": "GPU-11111111-aaaa", "name": "A", "memory": 1000, "users": [{"pid": 4121, "bytes": 300}],
         "overhead": 50, "utilization": 3, "speed": 0.5, "upload_ms": 10, "compute_us_per_row": 2.5},
        {"uuid": "GPU-11112222-bbbb", "name": "B", "memory": 2000,
         "mig": [{"uuid": "MIG-cccc", "name": "B half", "memory": 900}, {"uuid": "MIG-dddd", "name": "B other", "memory": 800}],
         "download_ms": 4, "load_ms": 1500}
    ]}"#;

    fn machine() -> Description {
        serde_json::from_str(MACHINE).unwrap()
    }

    fn seen(tokens: Option<&str>) -> Vec<String> {
        machine().visible(tokens).into_iter().map(|gpu| gpu.uuid).collect()
    }

    #[test]
    fn tokens_name_devices_as_in_cuda() {
        let (a, first, second) = ("GPU-11111111-aaaa", "MIG-cccc", "MIG-dddd");
        assert_eq!(seen(None), [a, first]);
        assert_eq!(seen(Some("0")), [a]);
        assert_eq!(seen(Some("1,0")), [first, a]);
        assert_eq!(seen(Some("GPU-11111111-aaaa")), [a]);
        assert_eq!(seen(Some("GPU-11111")), [a]);
        assert_eq!(seen(Some("GPU-11112")), [first]);
        assert_eq!(seen(Some("MIG-dd")), [second]);
        assert_eq!(seen(Some("MIG-dddd, 0")), [second, a]);
    }

    #[test]
    fn what_names_no_device_hides_all_that_follow() {
        for none in ["", "-1", "2", "GPU-1111", "GPU-9", "MIG-", "aaaa", "0,0", "0,GPU-11111", "1,MIG-cccc"] {
            assert_eq!(seen(Some(none)), [""; 0], "{none}");
        }
        assert_eq!(seen(Some("0,-1,1")), ["GPU-11111111-aaaa"]);
        assert_eq!(seen(Some("0,7,1")), ["GPU-11111111-aaaa"]);
    }

    #[test]
    fn times_are_by_batch_and_row_and_divided_by_the_speed() {
        let [a, b] = &machine().visible(None)[..] else { panic!() };
        assert_eq!(a.times(64), Times { upload: 20_000_000, compute: 320_000, download: 0 });
        assert_eq!(b.times(64), Times { upload: 0, compute: 0, download: 4_000_000 });
        assert_eq!((a.load_time(), b.load_time()), (Duration::ZERO, Duration::from_millis(1500)));
    }

    #[test]
    fn the_budget_is_what_users_and_the_context_leave() {
        let [a, b] = &machine().visible(None)[..] else { panic!() };
        assert_eq!((a.budget(), b.budget()), (650, 900));
    }
}
