//! What is said when models do not fit: the whole sum, what is free, and what would fit.

use super::super::{Bytes, CONTEXT_BYTES, DevicePlace, Inventory, ModelMemory, WorkerMemory};
use super::{Need, PlaceError};
use crate::config::PlacementPolicy;
use crate::graph::render::figures::grouped;

/// Tries other needs under a policy with so many workers on each GPU, and says whether they would fit.
pub(in super::super) type Try<'a> = dyn Fn(&[Need], PlacementPolicy, u64) -> bool + 'a;

/// A deal that failed.
pub(in super::super) struct Failed<'a> {
    /// The models that found no place.
    pub homeless: Vec<&'a Need>,
    /// Models that take room on the GPUs that the homeless may be dealt to.
    pub beside: Vec<&'a Need>,
    /// All models that were to be dealt.
    pub needs: &'a [Need],
    /// The GPUs that the homeless may be dealt to.
    pub gpus: Vec<usize>,
    /// How they were dealt.
    pub placement: PlacementPolicy,
    /// How many workers each GPU was to have.
    pub workers: u64,
}

/// Models that do not fit.
pub(in super::super) fn too_much(failed: &Failed<'_>, have: &Inventory, fits: &Try<'_>) -> PlaceError {
    let mut lines = vec![failed.title(have)];
    if failed.are_apart() {
        let mut models: Vec<_> =
            failed.homeless.iter().chain(&failed.beside).map(|need| ModelMemory::of(need)).collect();
        models.sort_by_key(|model| model.node);
        lines.extend(models.iter().map(|model| format!("{}  {model} = {}", model.name, Bytes(model.bytes()))));
        lines.push(format!("context {} for each worker", Bytes(CONTEXT_BYTES)));
    } else {
        lines.extend(WorkerMemory::of(failed.homeless.iter().copied()).lines());
    }
    if failed.workers > 1 {
        lines.push(format!("{} workers on each GPU were asked for", failed.workers));
    }
    lines.extend(failed.gpus.iter().map(|&gpu| free(have, gpu)));
    PlaceError { message: lines.join("\n"), help: ways_out(failed, fits) }
}

impl Failed<'_> {
    /// Whether the models need not share a worker, so that their sum says nothing.
    fn are_apart(&self) -> bool {
        let are_dealt = self.placement == PlacementPolicy::Spread && self.gpus.len() > 1 && self.homeless.len() > 1;
        are_dealt || !self.beside.is_empty()
    }

    fn title(&self, have: &Inventory) -> String {
        let names: Vec<_> = self.homeless.iter().map(|need| format!("`{}`", need.name)).collect();
        let do_not_fit = if names.len() == 1 { "does not fit" } else { "do not fit" };
        let together = names.len() > 1 && !self.are_apart();
        let place = match &self.gpus[..] {
            [gpu] => have.device_name(DevicePlace::Gpu(*gpu)),
            _ if together => "one GPU".to_owned(),
            _ => "any GPU".to_owned(),
        };
        let together = if together { " together" } else { "" };
        let others: Vec<_> = self.beside.iter().map(|need| format!("`{}`", need.name)).collect();
        let beside = if others.is_empty() { String::new() } else { format!(" beside {}", and(&others)) };
        format!("{} {do_not_fit}{together} on {place}{beside}", and(&names))
    }
}

/// What would fit, the smallest change first.
fn ways_out(failed: &Failed<'_>, fits: &Try<'_>) -> String {
    let (placement, workers) = (failed.placement, failed.workers);
    let mut ways = Vec::new();
    if workers > 1 && fits(failed.needs, placement, 1) {
        ways.push("`workers_per_device: 1` fits".to_owned());
    }
    if let Some(rows) = largest_batch(failed.needs, |needs| fits(needs, placement, workers)) {
        ways.push(format!(
            "batches of {} fit",
            if rows == 1 { "1 row".to_owned() } else { format!("{} rows", grouped(rows as u64)) }
        ));
    }
    if fits(&halved(failed.needs), placement, workers) {
        ways.push("`dtype: f16` takes half where it is f32 now, and fits".to_owned());
    }
    if placement == PlacementPolicy::Replicate && fits(failed.needs, PlacementPolicy::Spread, workers) {
        ways.push("`placement: spread` deals the models over the GPUs, and fits".to_owned());
    }
    ways.push("`device: cpu` needs no GPU".to_owned());
    ways.join("; ")
}

/// The most rows with which batches fit, if fewer than planned do.
fn largest_batch(needs: &[Need], fits: impl Fn(&[Need]) -> bool) -> Option<usize> {
    let capped = |rows: usize| -> Vec<Need> {
        needs.iter().map(|need| Need { rows: need.rows.min(rows), ..need.clone() }).collect()
    };
    let (mut fitting, mut failing) = (0, needs.iter().map(|need| need.rows).max()?);
    while failing - fitting > 1 {
        let rows = fitting + (failing - fitting) / 2;
        if fits(&capped(rows)) { fitting = rows } else { failing = rows }
    }
    (fitting > 0).then_some(fitting)
}

/// The same models in half the precision.
fn halved(needs: &[Need]) -> Vec<Need> {
    let halve = |need: &Need| {
        let mut need = need.clone();
        need.model.weights /= 2;
        need.model.activations_per_row /= 2;
        need
    };
    needs.iter().map(halve).collect()
}

/// More workers than a GPU has memory for.
pub(in super::super) fn too_many_workers(
    asked: u64,
    gpu: usize,
    memory: &WorkerMemory,
    most: u64,
    have: &Inventory,
) -> PlaceError {
    let device = have.device_name(DevicePlace::Gpu(gpu));
    let (each, sum) = (memory.bytes(), memory.bytes().saturating_mul(asked));
    let mut lines = vec![format!("{asked} workers do not fit on {device}: {asked} x {} = {}", Bytes(each), Bytes(sum))];
    lines.extend(memory.lines());
    lines.push(free(have, gpu));
    let help = match most {
        0 => "leave the GPU out with `device: cuda:…`".to_owned(),
        most => format!("`workers_per_device: {most}` fits on every GPU that is used; or leave {device} out"),
    };
    PlaceError { message: lines.join("\n"), help }
}

/// `cuda:1 has 9.1 GiB free of 24 GiB; pid 4121 uses 14 GiB`.
fn free(have: &Inventory, gpu: usize) -> String {
    let gpu_has = &have.gpus[gpu];
    let device = have.device_name(DevicePlace::Gpu(gpu));
    let users: Vec<_> = gpu_has.users.iter().map(ToString::to_string).collect();
    let users = if users.is_empty() { String::new() } else { format!("; {}", users.join(", ")) };
    format!("{device} has {} free of {}{users}", Bytes(gpu_has.free), Bytes(gpu_has.total))
}

fn and(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.join(", "),
    }
}
