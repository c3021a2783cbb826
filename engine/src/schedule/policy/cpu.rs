//! Models on the CPU: one worker, or several that share the cores.

use super::super::{DevicePlace, WorkerPlace};
use super::{Need, PlaceError};
use crate::config::{Isolation, WorkersPerDevice};

/// The CPU's workers, each with all models that run there. Their threads add up to `threads`.
pub(in super::super) fn on_cpu(
    needs: &[&Need],
    isolation: Isolation,
    workers: WorkersPerDevice,
    threads: usize,
) -> Result<Vec<WorkerPlace>, PlaceError> {
    if needs.is_empty() {
        return Ok(Vec::new());
    }
    let n_workers = match workers {
        // One that uses all cores: a second one would compete for the same ones.
        WorkersPerDevice::Auto => 1,
        WorkersPerDevice::Count(count) => count.get(),
    };
    if n_workers > threads {
        let what = match isolation {
            Isolation::Thread => "instances of each model",
            Isolation::Process => "workers on the CPU",
        };
        return Err(PlaceError {
            message: format!("{n_workers} {what} were asked for, and there are {threads} threads for them to share"),
            help: format!("ask for at most {threads} with `workers_per_device`, or leave it out"),
        });
    }
    let models: Vec<_> = needs.iter().map(|need| need.node).collect();
    let worker = |at: usize| WorkerPlace {
        device: DevicePlace::Cpu,
        models: models.clone(),
        threads: threads / n_workers + usize::from(at < threads % n_workers),
        memory: 0,
    };
    Ok((0..n_workers).map(worker).collect())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::super::tests::need;
    use super::*;

    fn threads(workers: Option<usize>, threads: usize) -> Result<Vec<usize>, PlaceError> {
        let workers = workers.and_then(NonZeroUsize::new).map_or(WorkersPerDevice::Auto, WorkersPerDevice::Count);
        let workers = on_cpu(&[&need("a", 1, 1, 1)], Isolation::Process, workers, threads)?;
        Ok(workers.iter().map(|worker| worker.threads).collect())
    }

    #[test]
    fn the_threads_of_all_workers_add_up() {
        assert_eq!(threads(None, 7), Ok(vec![7]));
        assert_eq!(threads(Some(2), 2), Ok(vec![1, 1]));
        assert_eq!(threads(Some(3), 8), Ok(vec![3, 3, 2]));
    }

    #[test]
    fn more_workers_than_threads_are_refused() {
        let error = threads(Some(3), 2).unwrap_err();
        assert!(error.message.contains("3 workers") && error.help.contains("at most 2"), "{error:?}");
    }

    #[test]
    fn no_model_needs_no_worker() {
        assert_eq!(on_cpu(&[], Isolation::Thread, WorkersPerDevice::Auto, 2), Ok(Vec::new()));
    }
}
