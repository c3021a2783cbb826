//! What the GPUs of a run are doing, as the display shows it.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::schedule::{DevicePlace, GpuGauge, GpuSample, Plan};

/// GPUs are not asked more often: their own figures are over about as long.
const EVERY: Duration = Duration::from_secs(1);

/// Asks the GPUs that models were placed on.
pub(super) struct Gauges {
    gauge: Option<GpuGauge>,
    /// When the GPUs are asked next.
    due: Duration,
    /// What they said, by their place in the inventory.
    said: BTreeMap<usize, String>,
}

impl Gauges {
    /// Asks no one if there is no GPU in the plan.
    pub(super) fn of(plan: &Plan) -> Self {
        let gauge = gpus(plan).next().and_then(|_| GpuGauge::open());
        Gauges { gauge, due: Duration::ZERO, said: BTreeMap::new() }
    }

    /// Asks again, if it is time.
    pub(super) fn refresh(&mut self, plan: &Plan, elapsed: Duration) {
        let Some(gauge) = self.gauge.as_ref().filter(|_| elapsed >= self.due) else { return };
        self.due = elapsed + EVERY;
        let says = |gpu| Some((gpu, note(&gauge.sample(&plan.inventory.gpus[gpu])?)));
        self.said = gpus(plan).filter_map(says).collect();
    }

    /// What a device said last: `GPU 61 %  3.1 / 24 GiB`.
    pub(super) fn note(&self, device: DevicePlace) -> Option<String> {
        match device {
            DevicePlace::Cpu => None,
            DevicePlace::Gpu(gpu) => self.said.get(&gpu).cloned(),
        }
    }
}

fn gpus(plan: &Plan) -> impl Iterator<Item = usize> {
    plan.placement.workers.iter().filter_map(|worker| match worker.device {
        DevicePlace::Cpu => None,
        DevicePlace::Gpu(gpu) => Some(gpu),
    })
}

fn note(sample: &GpuSample) -> String {
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let (used, total) = (gib(sample.used), gib(sample.total));
    let used = if used < 9.95 { format!("{used:.1}") } else { format!("{used:.0}") };
    let memory = if total < 9.95 { format!("{used} / {total:.1} GiB") } else { format!("{used} / {total:.0} GiB") };
    match sample.utilization {
        Some(percent) => format!("GPU {percent:>3} %  {memory}"),
        None => memory,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_says_what_it_does_and_holds() {
        let sample = |utilization, used_mib: u64, total_mib: u64| {
            note(&GpuSample { utilization, used: used_mib << 20, total: total_mib << 20 })
        };
        assert_eq!(sample(Some(61), 3_175, 24_576), "GPU  61 %  3.1 / 24 GiB");
        assert_eq!(sample(Some(100), 140_000, 144_000), "GPU 100 %  137 / 141 GiB");
        assert_eq!(sample(None, 100, 9_728), "0.1 / 9.5 GiB");
    }
}
