//! The file that describes GPUs. What is meant for others (speeds, faults) is passed over.

use serde::Deserialize;

/// A machine.
#[derive(Clone, Debug, Deserialize)]
pub struct Description {
    /// The driver's version.
    pub driver: String,
    /// The GPUs, in the order of their bus.
    pub gpus: Vec<Gpu>,
}

/// A GPU, or an instance of one.
#[derive(Clone, Debug, Deserialize)]
pub struct Gpu {
    /// Its UUID.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// Bytes built in.
    pub memory: u64,
    /// Who uses it.
    #[serde(default)]
    pub users: Vec<User>,
    /// Per cent of the time in which it computes.
    #[serde(default)]
    pub utilization: u32,
    /// Its instances; present: it is in MIG mode.
    pub mig: Option<Vec<Gpu>>,
    /// Calls that fail for it, by their symbols, as they do for a GPU that has fallen off its bus.
    #[serde(default)]
    pub failing: Vec<String>,
}

/// A process that uses a GPU.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct User {
    /// Its number.
    pub pid: u32,
    /// Bytes that it has taken; absent: the driver does not know.
    pub bytes: Option<u64>,
    /// Whether it draws instead of computing.
    #[serde(default)]
    pub graphics: bool,
}

impl Gpu {
    /// Bytes that nobody uses.
    pub fn free(&self) -> u64 {
        let used = self.users.iter().filter_map(|user| user.bytes).fold(0, u64::saturating_add);
        self.memory.saturating_sub(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_for_others_is_passed_over() {
        let text = r#"{"driver": "580", "gpus": [{"uuid": "GPU-1", "name": "A", "memory": 100, "speed": 0.5,
            "users": [{"pid": 7, "bytes": 30}, {"pid": 8}], "mig": [{"uuid": "MIG-1", "name": "B", "memory": 10}]}]}"#;
        let description: Description = serde_json::from_str(text).expect("a description");
        let gpu = &description.gpus[0];
        assert_eq!((gpu.free(), gpu.utilization), (70, 0));
        assert_eq!(gpu.mig.as_ref().expect("instances")[0].uuid, "MIG-1");
    }
}
