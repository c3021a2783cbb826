//! From needs and a machine to the workers: which there are, where, with which models.
//!
//! Pure. The same needs, options and inventory always give the same placement.

use super::policy::{self, Allowed, Failed, Fixed, Need, PlaceError, Policy, Room, Wish};
use super::{DevicePlace, Inventory, Placement, WorkerMemory, WorkerPlace};
use crate::config::{Isolation, PlacementPolicy, WorkersPerDevice};

/// Threads of the CPU for the models of a worker on a GPU: they only start work on the device.
const GPU_WORKER_THREADS: usize = 1;
/// By itself the plan lets two workers share a GPU if one of them takes at most this part of the memory that is free.
///
/// The models of one worker overlap already, each on its own stream. What a second process adds is another source of work
/// for the moments in which the first only prepares its next one: with a model of many small kernels these are a good part
/// of the time. A model that fills much of a GPU's memory mostly fills its processors too; then a second copy only costs
/// memory, and processes that are both busy take turns on the GPU, so that a third one adds nothing but turns.
const SMALL_PART: u64 = 8;
/// As many as small models get by themselves.
const AUTO_WORKERS: u64 = 2;

/// What is asked of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceOptions {
    /// How models share several GPUs.
    pub placement: PlacementPolicy,
    /// Whether workers on the CPU are threads or processes.
    pub isolation: Isolation,
    /// How many workers share a device: a GPU, or the CPU if no model runs on a GPU.
    pub workers_per_device: WorkersPerDevice,
    /// Threads that models on the CPU compute with, all workers together.
    pub cpu_threads: usize,
}

/// Places every model.
///
/// Gives the placement and what is to be told of it, a sentence each.
///
/// # Errors
/// If a model cannot be placed as asked: no such device, no room, more workers than fit.
pub fn place(needs: &[Need], options: &PlaceOptions, have: &Inventory) -> Result<(Placement, Vec<String>), PlaceError> {
    let (allowed, note) = policy::allowed(needs, have)?;
    let of_gpus: Vec<Need> = pick(needs, &allowed, |allowed| *allowed != Allowed::Cpu).cloned().collect();
    let gpus = allowed.iter().filter_map(|allowed| match allowed {
        Allowed::Cpu => None,
        Allowed::Gpus(gpus) => Some(gpus.clone()),
    });
    let gpus: Vec<_> = gpus.collect();
    let mut notes: Vec<_> = note.into_iter().collect();
    let mut workers = on_gpus(&of_gpus, &gpus, options, have, &mut notes)?;
    let of_cpu: Vec<&Need> = pick(needs, &allowed, |allowed| *allowed == Allowed::Cpu).collect();
    let per_cpu = if workers.is_empty() { options.workers_per_device } else { WorkersPerDevice::Auto };
    workers.extend(policy::on_cpu(&of_cpu, options.isolation, per_cpu, options.cpu_threads)?);
    let only_gpus = of_cpu.is_empty() && !of_gpus.is_empty();
    let isolation = if only_gpus { Isolation::Process } else { options.isolation };
    Ok((Placement { isolation, workers }, notes))
}

fn pick<'a>(
    needs: &'a [Need],
    allowed: &'a [Allowed],
    is_picked: impl Fn(&Allowed) -> bool + 'a,
) -> impl Iterator<Item = &'a Need> {
    needs.iter().zip(allowed).filter(move |(_, allowed)| is_picked(allowed)).map(|(need, _)| need)
}

/// The workers on GPUs: what is fixed first, the rest by the policy, then as many workers as asked for.
fn on_gpus(
    needs: &[Need],
    gpus: &[Vec<usize>],
    options: &PlaceOptions,
    have: &Inventory,
    notes: &mut Vec<String>,
) -> Result<Vec<WorkerPlace>, PlaceError> {
    let asked = match options.workers_per_device {
        WorkersPerDevice::Auto => None,
        WorkersPerDevice::Count(count) => Some(count.get() as u64),
    };
    // Where every GPU gets the same, the number of workers does not decide which GPU gets what: a GPU that is too small
    // for so many is an error, and not left out.
    let workers = match options.placement {
        PlacementPolicy::Replicate => 1,
        PlacementPolicy::Spread => asked.unwrap_or(1),
    };
    let mut rooms = rooms(have, workers);
    if let Err(homeless) = deal(needs, gpus, options.placement, &mut rooms) {
        let fits =
            |needs: &[Need], placement, workers| deal(needs, gpus, placement, &mut self::rooms(have, workers)).is_ok();
        let is_homeless = |need: &Need| homeless.iter().any(|other| other.node == need.node);
        let with_gpus = || needs.iter().zip(gpus);
        let mut theirs: Vec<usize> =
            with_gpus().filter(|(need, _)| is_homeless(need)).flat_map(|(_, gpus)| gpus.iter().copied()).collect();
        theirs.sort_unstable();
        theirs.dedup();
        // What is fixed to a GPU comes before all others, so that they take nothing from it.
        let are_fixed = theirs.len() == 1;
        let takes_theirs = |gpus: &[usize]| !are_fixed && gpus.iter().any(|gpu| theirs.contains(gpu));
        let beside = with_gpus().filter(|(need, gpus)| !is_homeless(need) && takes_theirs(gpus));
        let beside = beside.map(|(need, _)| need).collect();
        let failed = Failed { homeless, beside, needs, gpus: theirs, placement: options.placement, workers };
        return Err(policy::too_much(&failed, have, &fits));
    }
    left_out(needs, gpus, &rooms, have, notes);
    let used: Vec<_> = rooms.iter().enumerate().filter(|(_, room)| !room.models.is_empty()).collect();
    let memory: Vec<_> = used.iter().map(|(_, room)| WorkerMemory::of(room.models.iter().copied())).collect();
    let most = used.iter().zip(&memory).map(|((_, room), memory)| room.free / memory.bytes()).min().unwrap_or(0);
    let mut places = Vec::new();
    for ((gpu, room), memory) in used.iter().zip(&memory) {
        let n_workers = asked.unwrap_or_else(|| auto_workers(memory, room.free));
        if memory.bytes().saturating_mul(n_workers) > room.free {
            return Err(policy::too_many_workers(n_workers, *gpu, memory, most, have));
        }
        let mut models: Vec<_> = room.models.iter().map(|need| need.node).collect();
        models.sort_unstable();
        let worker =
            WorkerPlace { device: DevicePlace::Gpu(*gpu), models, threads: GPU_WORKER_THREADS, memory: memory.bytes() };
        places.extend((0..n_workers).map(|_| worker.clone()));
    }
    Ok(places)
}

fn rooms<'a>(have: &Inventory, workers: u64) -> Vec<Room<'a>> {
    let room = |(at, gpu): (usize, &super::Gpu)| Room {
        name: have.device_name(DevicePlace::Gpu(at)),
        free: gpu.free,
        workers,
        models: Vec::new(),
    };
    have.gpus.iter().enumerate().map(room).collect()
}

fn deal<'a>(
    needs: &'a [Need],
    gpus: &[Vec<usize>],
    placement: PlacementPolicy,
    rooms: &mut [Room<'a>],
) -> Result<(), Vec<&'a Need>> {
    let wishes = needs.iter().zip(gpus).map(|(need, gpus)| (need, gpus.clone()));
    let (fixed, free): (Vec<Wish<'a>>, Vec<Wish<'a>>) = wishes.partition(|(_, gpus)| gpus.len() == 1);
    Fixed.deal(&fixed, rooms)?;
    policy::chosen(placement).deal(&free, rooms)
}

/// GPUs that would have been welcome and get nothing.
fn left_out(needs: &[Need], gpus: &[Vec<usize>], rooms: &[Room<'_>], have: &Inventory, notes: &mut Vec<String>) {
    for (gpu, room) in rooms.iter().enumerate().filter(|(_, room)| room.models.is_empty()) {
        let wanted: Vec<&Need> =
            needs.iter().zip(gpus).filter(|(_, gpus)| gpus.contains(&gpu)).map(|(need, _)| need).collect();
        if wanted.is_empty() {
            continue;
        }
        let memory = super::Bytes(WorkerMemory::of(wanted).bytes());
        let free = super::Bytes(room.free);
        let of = super::Bytes(have.gpus[gpu].total);
        notes.push(format!("{} gets no model: a worker takes {memory}, and {free} of {of} is free", room.name));
    }
}

/// How many workers a GPU gets when the pipeline leaves it open: see [`SMALL_PART`]. Models of unknown size get one.
fn auto_workers(memory: &WorkerMemory, free: u64) -> u64 {
    let known = memory.models.iter().all(|model| !model.is_unknown());
    if known && memory.bytes() <= free / SMALL_PART { AUTO_WORKERS } else { 1 }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::super::inventory::tests::gpus;
    use super::super::policy::tests::need;
    use super::*;

    const OPTIONS: PlaceOptions = PlaceOptions {
        placement: PlacementPolicy::Replicate,
        isolation: Isolation::Thread,
        workers_per_device: WorkersPerDevice::Auto,
        cpu_threads: 4,
    };
    const SPREAD: PlaceOptions = PlaceOptions { placement: PlacementPolicy::Spread, ..OPTIONS };

    fn workers(count: usize) -> PlaceOptions {
        PlaceOptions { workers_per_device: WorkersPerDevice::Count(NonZeroUsize::new(count).unwrap()), ..OPTIONS }
    }

    /// Models of so many MiB of weights, with what their nodes say of the device.
    fn models(models: &[(&str, u64, &str)]) -> Vec<Need> {
        let model = |(node, &(name, weights, devices)): (usize, &(&str, u64, &str))| Need {
            node,
            devices: devices.parse().unwrap(),
            ..need(name, weights, 0, 0)
        };
        models.iter().enumerate().map(model).collect()
    }

    /// Every worker as `device: models, memory in MiB`.
    fn placed(needs: &[Need], options: &PlaceOptions, free: &[u64]) -> Vec<String> {
        let have = gpus(free);
        let (placement, _) = place(needs, options, &have).unwrap_or_else(|error| panic!("{error}"));
        let show = |worker: &WorkerPlace| {
            let names: Vec<_> = worker.models.iter().map(|&node| needs[node].name.as_str()).collect();
            format!("{}: {}, {}", have.device_name(worker.device), names.join("+"), worker.memory >> 20)
        };
        placement.workers.iter().map(show).collect()
    }

    fn refused(needs: &[Need], options: &PlaceOptions, free: &[u64]) -> PlaceError {
        place(needs, options, &gpus(free)).expect_err("it does not fit")
    }

    #[test]
    fn by_default_each_gpu_gets_all_models() {
        let needs = models(&[("a", 1000, "auto"), ("b", 500, "cuda")]);
        assert_eq!(placed(&needs, &OPTIONS, &[4000, 4000]), ["cuda:0: a+b, 1950", "cuda:1: a+b, 1950"]);
    }

    #[test]
    fn a_gpu_that_is_too_full_is_left_out_and_told() {
        let needs = models(&[("a", 1000, "auto")]);
        let (placement, notes) = place(&needs, &OPTIONS, &gpus(&[900, 2000])).unwrap();
        assert_eq!(placement.workers.len(), 1);
        assert_eq!(notes, ["cuda:0 gets no model: a worker takes 1.4 GiB, and 900 MiB of 900 MiB is free"]);
    }

    #[test]
    fn small_models_get_two_workers_where_memory_allows() {
        let needs = models(&[("a", 50, "auto")]);
        assert_eq!(placed(&needs, &OPTIONS, &[4000, 3999]), ["cuda:0: a, 500", "cuda:0: a, 500", "cuda:1: a, 500"]);
        let unknown = models(&[("a", 0, "auto")]);
        assert_eq!(placed(&unknown, &OPTIONS, &[40_000]), ["cuda:0: a, 450"]);
    }

    #[test]
    fn workers_are_as_many_as_asked_for_or_the_plan_is_refused() {
        let needs = models(&[("a", 550, "auto")]);
        assert_eq!(placed(&needs, &workers(3), &[3000]).len(), 3);
        let error = refused(&needs, &workers(3), &[9000, 2999]);
        assert_eq!(
            error.message,
            "3 workers do not fit on cuda:1: 3 x 1000 MiB = 2.9 GiB\n\
             a  weights 550 MiB + activations 32 x 0 B + workspace 0 B + context 450 MiB = 1000 MiB a worker\n\
             cuda:1 has 2.9 GiB free of 2.9 GiB"
        );
        assert_eq!(error.help, "`workers_per_device: 2` fits on every GPU that is used; or leave cuda:1 out");
    }

    #[test]
    fn a_model_that_fits_nowhere_gets_the_whole_sum_and_what_would_fit() {
        let needs = [need("scores", 18, 27, 256)];
        let error = refused(&needs, &OPTIONS, &[1000, 1100]);
        assert_eq!(
            error.message,
            "`scores` does not fit on any GPU\n\
             scores  weights 18 MiB + activations 32 x 27 MiB + workspace 256 MiB + context 450 MiB = 1.6 GiB a worker\n\
             cuda:0 has 1000 MiB free of 1000 MiB\n\
             cuda:1 has 1.1 GiB free of 1.1 GiB"
        );
        // 1100 - 18 - 256 - 450 = 376 = 13.9 x 27; half the weights and activations still are too much.
        assert_eq!(error.help, "batches of 13 rows fit; `device: cpu` needs no GPU");
        let error = refused(&needs, &OPTIONS, &[1200]);
        assert!(error.message.starts_with("`scores` does not fit on cuda:0\n"), "{error}");
        assert!(error.help.contains("`dtype: f16`"), "{}", error.help);
    }

    #[test]
    fn what_does_not_fit_together_may_be_spread() {
        let needs = models(&[("a", 2000, "auto"), ("b", 1000, "auto"), ("c", 1500, "auto")]);
        let error = refused(&needs, &OPTIONS, &[4000, 3000]);
        assert!(error.message.starts_with("`a`, `b` and `c` do not fit together on one GPU\n"), "{error}");
        assert!(error.message.contains("context 450 MiB + these = 4.8 GiB a worker"), "{error}");
        assert!(error.help.contains("`placement: spread`"), "{}", error.help);
        assert_eq!(placed(&needs, &SPREAD, &[4000, 3000]), ["cuda:0: a+b, 3450", "cuda:1: c, 1950"]);
    }

    #[test]
    fn what_others_take_is_in_the_sum() {
        let needs = models(&[("a", 3000, "auto"), ("b", 3000, "auto"), ("c", 3000, "auto")]);
        let error = refused(&needs, &SPREAD, &[4000, 4096]);
        assert_eq!(
            error.message,
            "`c` does not fit on any GPU beside `a` and `b`\n\
             a  weights 2.9 GiB + activations 32 x 0 B + workspace 0 B = 2.9 GiB\n\
             b  weights 2.9 GiB + activations 32 x 0 B + workspace 0 B = 2.9 GiB\n\
             c  weights 2.9 GiB + activations 32 x 0 B + workspace 0 B = 2.9 GiB\n\
             context 450 MiB for each worker\n\
             cuda:0 has 3.9 GiB free of 3.9 GiB\n\
             cuda:1 has 4 GiB free of 4 GiB"
        );
        let fixed = models(&[("a", 3000, "cuda:0"), ("b", 3000, "auto")]);
        let title = |needs: &[Need], options: &PlaceOptions, free: &[u64]| {
            refused(needs, options, free).message.lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(title(&fixed, &OPTIONS, &[4000, 3000]), "`b` does not fit on any GPU beside `a`");
        assert_eq!(title(&fixed, &OPTIONS, &[3000, 4000]), "`a` does not fit on cuda:0");
        assert_eq!(title(&needs, &SPREAD, &[3000, 3000]), "`a`, `b` and `c` do not fit on any GPU");
        assert_eq!(title(&needs, &SPREAD, &[4000]), "`a`, `b` and `c` do not fit together on cuda:0");
    }

    #[test]
    fn nodes_may_be_fixed_to_gpus_of_their_own() {
        let needs = models(&[("a", 1000, "cuda:1"), ("b", 1000, "cuda"), ("c", 100, "cuda:0")]);
        assert_eq!(placed(&needs, &OPTIONS, &[1600, 2500]), ["cuda:0: b+c, 1550", "cuda:1: a+b, 2450"]);
        // b is left out where it does not fit beside what is fixed.
        assert_eq!(placed(&needs, &OPTIONS, &[1600, 1500]), ["cuda:0: b+c, 1550", "cuda:1: a, 1450"]);
        let error = refused(&needs, &OPTIONS, &[1600, 1400]);
        assert!(error.message.starts_with("`a` does not fit on cuda:1\n"), "{error}");
    }

    #[test]
    fn a_list_of_gpus_bounds_where_models_are_spread() {
        let needs = models(&[("a", 1000, "cuda:1,2"), ("b", 500, "cuda:1,2")]);
        assert_eq!(placed(&needs, &SPREAD, &[9000, 2000, 2000]), ["cuda:1: a, 1450", "cuda:2: b, 950"]);
    }

    #[test]
    fn some_models_may_run_on_the_cpu_while_others_run_on_gpus() {
        let needs = models(&[("a", 1000, "cpu"), ("b", 500, "auto")]);
        let options = PlaceOptions { isolation: Isolation::Thread, ..workers(2) };
        let (placement, notes) = place(&needs, &options, &gpus(&[4000])).unwrap();
        assert_eq!(placed(&needs, &options, &[4000]), ["cuda:0: b, 950", "cuda:0: b, 950", "cpu: a, 0"]);
        assert_eq!(placement.workers[2].threads, 4);
        let isolation: Vec<_> = placement.workers.iter().map(|worker| placement.isolation_of(worker)).collect();
        assert_eq!(isolation, [Isolation::Process, Isolation::Process, Isolation::Thread]);
        assert_eq!(notes, [""; 0]);
    }

    #[test]
    fn workers_on_gpus_are_processes() {
        let (placement, _) = place(&models(&[("a", 1, "auto")]), &OPTIONS, &gpus(&[4000])).unwrap();
        assert_eq!(placement.isolation, Isolation::Process);
    }

    #[test]
    fn without_models_there_are_no_workers() {
        assert_eq!(placed(&[], &OPTIONS, &[4000]), [""; 0]);
    }
}
