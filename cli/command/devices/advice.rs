//! How many workers GPUs hold, and the command that uses them.

use engine::schedule::{CONTEXT_BYTES, Gpu, Inventory};

/// What to do with the GPUs of a machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Advice {
    /// Bytes that the models of a worker take, if that was said.
    pub(super) model_memory: Option<u64>,
    /// By GPU: how many workers with such models fit; `None` if it was not said.
    pub(super) workers: Vec<Option<u64>>,
    /// The command that uses them, if it would work.
    pub(super) command: Option<String>,
}

impl Advice {
    pub(super) fn of(inventory: &Inventory, model_memory: Option<u64>) -> Self {
        let fitting = |gpu: &Gpu| model_memory.map(|bytes| gpu.free / bytes.saturating_add(CONTEXT_BYTES));
        let workers: Vec<_> = inventory.gpus.iter().map(fitting).collect();
        let can_run = !inventory.gpus.is_empty() && inventory.cuda_worker.is_ok();
        let command = if can_run { command(inventory, &workers) } else { None };
        Advice { model_memory, workers, command }
    }

    /// How many workers fit, all GPUs together, if models' memory was said.
    pub(super) fn n_workers(&self) -> Option<u64> {
        self.workers.iter().copied().sum()
    }
}

/// As many workers on each GPU as the smallest one holds that holds any; the others are left out.
fn command(inventory: &Inventory, workers: &[Option<u64>]) -> Option<String> {
    let gpus = inventory.gpus.iter().zip(workers);
    let holding: Vec<_> = gpus.filter(|(_, workers)| workers.is_none_or(|workers| workers > 0)).collect();
    let fewest = holding.iter().map(|(_, workers)| **workers).min()?;
    let device = if holding.len() == inventory.gpus.len() {
        "cuda".to_owned()
    } else {
        let numbers: Vec<_> = holding.iter().map(|(gpu, _)| gpu.index.to_string()).collect();
        format!("cuda:{}", numbers.join(","))
    };
    let per_device = fewest.map(|workers| format!(" --workers-per-device {workers}")).unwrap_or_default();
    Some(format!("flowgpu run PIPELINE.yaml --device {device}{per_device}"))
}

/// Bytes for models in the first worker on a GPU.
pub(super) fn available(gpu: &Gpu) -> u64 {
    gpu.free.saturating_sub(CONTEXT_BYTES)
}

/// Bytes of all GPUs together.
pub(super) fn sum(inventory: &Inventory, bytes: impl Fn(&Gpu) -> u64) -> u64 {
    inventory.gpus.iter().map(bytes).fold(0, u64::saturating_add)
}

#[cfg(test)]
pub(super) mod tests {
    use engine::schedule::{GpuUser, NotFound};

    use super::*;

    const GIB: u64 = 1 << 30;

    /// GPUs of 24 GiB with so many GiB free; what is not free is used by process 4121.
    pub(in super::super) fn machine(free: &[u64]) -> Inventory {
        let gpu = |(at, &free): (usize, &u64)| Gpu {
            index: u32::try_from(at).expect("few"),
            token: at.to_string(),
            uuid: format!("GPU-{}-2222-3333-4444-555555555555", at.to_string().repeat(8)),
            name: "NVIDIA A10".to_owned(),
            total: 24 * GIB,
            free: free * GIB,
            users: if free < 24 { vec![GpuUser { pid: 4121, bytes: Some((24 - free) * GIB) }] } else { Vec::new() },
            driver: "580.159".to_owned(),
            mig: false,
        };
        Inventory {
            cores: 16,
            memory: 64 * GIB,
            gpus: free.iter().enumerate().map(gpu).collect(),
            gpus_note: None,
            cuda_worker: Ok("/opt/flowgpu/flowgpu-worker-cuda".into()),
        }
    }

    fn check(free: &[u64], model_gib: Option<u64>, workers: &[u64], command: Option<&str>) {
        let advice = Advice::of(&machine(free), model_gib.map(|gib| gib * GIB));
        let expected: Vec<_> = workers.iter().map(|&workers| model_gib.map(|_| workers)).collect();
        assert_eq!(advice.workers, expected);
        assert_eq!(advice.command.as_deref(), command);
    }

    #[test]
    fn a_gpu_of_24_gib_holds_four_models_of_5() {
        let command = "flowgpu run PIPELINE.yaml --device cuda --workers-per-device 4";
        check(&[24, 24], Some(5), &[4, 4], Some(command));
    }

    #[test]
    fn the_fullest_gpu_that_holds_any_decides_and_others_are_left_out() {
        let command = "flowgpu run PIPELINE.yaml --device cuda:0,2 --workers-per-device 1";
        check(&[24, 5, 10], Some(5), &[4, 0, 1], Some(command));
        check(&[5, 5], Some(5), &[0, 0], None);
    }

    #[test]
    fn without_a_size_there_is_no_number_of_workers() {
        check(&[24, 5], None, &[0, 0], Some("flowgpu run PIPELINE.yaml --device cuda"));
        assert_eq!(Advice::of(&machine(&[24]), None).n_workers(), None);
        assert_eq!(Advice::of(&machine(&[24, 10]), Some(5 * GIB)).n_workers(), Some(5));
    }

    #[test]
    fn a_command_that_would_fail_is_not_advised() {
        check(&[], Some(5), &[], None);
        let looked = vec!["/bin/flowgpu-worker-cuda".into()];
        let machine = Inventory { cuda_worker: Err(NotFound { looked }), ..machine(&[24]) };
        assert_eq!(Advice::of(&machine, None).command, None);
    }
}
