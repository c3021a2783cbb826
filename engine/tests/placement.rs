//! What is promised of every placement, on random models, machines and wishes.

use std::num::NonZeroUsize;

use engine::config::{Isolation, PlacementPolicy, WorkersPerDevice};
use engine::node::{Devices, ModelNeed};
use engine::schedule::{CONTEXT_BYTES, DevicePlace, Gpu, Inventory, Need, NotFound, PlaceOptions, Placement, place};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

const MIB: u64 = 1 << 20;

fn inventory(free: &[u64], has_worker: bool) -> Inventory {
    let gpu = |(at, &free): (usize, &u64)| Gpu {
        index: at as u32,
        token: at.to_string(),
        uuid: format!("GPU-{at}"),
        name: "A".to_owned(),
        total: free * MIB * 2,
        free: free * MIB,
        users: Vec::new(),
        driver: "580".to_owned(),
        mig: false,
    };
    let worker = "/bin/flowgpu-worker-cuda";
    Inventory {
        cores: 4,
        memory: 8 << 30,
        gpus: free.iter().enumerate().map(gpu).collect(),
        gpus_note: None,
        cuda_worker: if has_worker { Ok(worker.into()) } else { Err(NotFound { looked: vec![worker.into()] }) },
    }
}

fn devices() -> impl Strategy<Value = Devices> {
    prop_oneof![
        4 => Just(Devices::Auto),
        1 => Just(Devices::Cpu),
        2 => vec(0..5u32, 0..3).prop_map(|mut numbers| {
            numbers.dedup();
            Devices::Cuda(numbers)
        }),
    ]
}

fn needs() -> impl Strategy<Value = Vec<Need>> {
    // Now and then a model larger than anything, up to where sums would overflow.
    let size = prop_oneof![20 => (0..3000u64).prop_map(|mib| mib * MIB), 1 => Just(u64::MAX)];
    let need = (size, 0..40u64, 0..300u64, 1..80usize, devices());
    vec(need, 0..5).prop_map(|needs| {
        let need = |(node, (weights, per_row, workspace, rows, devices)): (usize, _)| Need {
            node: node * 2,
            name: format!("model-{node}"),
            model: ModelNeed {
                weights,
                activations_per_row: per_row * MIB,
                workspace: workspace * MIB,
                ..ModelNeed::default()
            },
            rows,
            devices,
        };
        needs.into_iter().enumerate().map(need).collect()
    })
}

fn options() -> impl Strategy<Value = PlaceOptions> {
    let workers = option::of(1..6usize).prop_map(|count| match count.and_then(NonZeroUsize::new) {
        None => WorkersPerDevice::Auto,
        Some(count) => WorkersPerDevice::Count(count),
    });
    let placement = prop_oneof![Just(PlacementPolicy::Replicate), Just(PlacementPolicy::Spread)];
    let isolation = prop_oneof![Just(Isolation::Thread), Just(Isolation::Process)];
    (placement, isolation, workers, 1..6usize).prop_map(|(placement, isolation, workers_per_device, cpu_threads)| {
        PlaceOptions { placement, isolation, workers_per_device, cpu_threads }
    })
}

/// Bytes on a GPU as the promise has it, added up by itself.
fn bytes(models: &[usize], needs: &[Need]) -> u128 {
    let of = |node: &usize| {
        let need = needs.iter().find(|need| need.node == *node).expect("a model that was asked for");
        let model = &need.model;
        u128::from(model.weights)
            + u128::from(model.activations_per_row) * need.rows as u128
            + u128::from(model.workspace)
    };
    u128::from(CONTEXT_BYTES) + models.iter().map(of).sum::<u128>()
}

fn check(needs: &[Need], options: &PlaceOptions, have: &Inventory, placement: &Placement) {
    for (at, gpu) in have.gpus.iter().enumerate() {
        let here = placement.workers.iter().filter(|worker| worker.device == DevicePlace::Gpu(at));
        let planned: u128 = here.clone().map(|worker| bytes(&worker.models, needs)).sum();
        assert!(planned <= u128::from(gpu.free), "{planned} bytes on {} free ones", gpu.free);
        assert!(here.clone().all(|worker| u128::from(worker.memory) == bytes(&worker.models, needs)));
        if let WorkersPerDevice::Count(count) = options.workers_per_device {
            assert!(here.clone().count() == 0 || here.clone().count() == count.get());
        }
    }
    for need in needs {
        let devices: Vec<_> = placement.workers_of(need.node).map(|worker| worker.device).collect();
        assert!(!devices.is_empty(), "`{}` has no worker", need.name);
        let is_allowed = |device: &DevicePlace| match (&need.devices, device) {
            (Devices::Cpu, device) => *device == DevicePlace::Cpu,
            (Devices::Cuda(numbers), DevicePlace::Gpu(at)) => {
                numbers.is_empty() || numbers.contains(&have.gpus[*at].index)
            }
            (Devices::Cuda(_), DevicePlace::Cpu) => false,
            // The CPU only where no GPU can be used.
            (Devices::Auto, DevicePlace::Cpu) => have.gpus.is_empty() || have.cuda_worker.is_err(),
            (Devices::Auto, DevicePlace::Gpu(_)) => true,
        };
        assert!(devices.iter().all(is_allowed), "`{}` asks for {} and is on {devices:?}", need.name, need.devices);
    }
    assert!(placement.workers.iter().all(|worker| !worker.models.is_empty() && worker.threads > 0));
    let on_cpu = placement.workers.iter().filter(|worker| worker.device == DevicePlace::Cpu);
    if on_cpu.clone().count() > 0 {
        assert_eq!(on_cpu.map(|worker| worker.threads).sum::<usize>(), options.cpu_threads);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_placement_never_overcommits_and_holds_every_model_where_it_may_be(
        needs in needs(),
        options in options(),
        free in vec(0..8000u64, 0..5),
        has_worker in prop::bool::weighted(0.9),
    ) {
        let have = inventory(&free, has_worker);
        let placed = place(&needs, &options, &have);
        prop_assert_eq!(&placed, &place(&needs, &options, &have), "the same twice");
        match placed {
            Ok((placement, _)) => check(&needs, &options, &have, &placement),
            Err(error) => prop_assert!(!error.message.is_empty() && !error.help.is_empty()),
        }
    }

    /// An error is not a way out of what is easy.
    #[test]
    fn what_fits_everywhere_is_placed_everywhere(mut needs in needs(), n_gpus in 1..5usize) {
        for need in &mut needs {
            need.model.weights %= 1000 * MIB;
            need.devices = Devices::Auto;
        }
        let options = PlaceOptions {
            placement: PlacementPolicy::Replicate,
            isolation: Isolation::Thread,
            workers_per_device: WorkersPerDevice::Auto,
            cpu_threads: 1,
        };
        let (placement, notes) = place(&needs, &options, &inventory(&vec![100_000; n_gpus], true)).expect("it fits");
        for need in &needs {
            let mut on: Vec<_> = placement.workers_of(need.node).map(|worker| worker.device).collect();
            on.dedup();
            prop_assert_eq!(on, (0..n_gpus).map(DevicePlace::Gpu).collect::<Vec<_>>());
        }
        prop_assert!(notes.is_empty());
    }
}

/// The random cases above would prove little if nearly all of them were refused.
#[test]
fn random_cases_are_placed_often_and_refused_often() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (needs(), options(), vec(0..8000u64, 0..5));
    let (mut n_placed, mut n_on_gpus, mut n_refused) = (0, 0, 0);
    for _ in 0..1000 {
        let (needs, options, free) = strategy.new_tree(&mut runner).expect("a case").current();
        match place(&needs, &options, &inventory(&free, true)) {
            Ok((placement, _)) => {
                n_placed += 1;
                n_on_gpus += usize::from(placement.workers.iter().any(|worker| worker.device != DevicePlace::Cpu));
            }
            Err(_) => n_refused += 1,
        }
    }
    assert!(
        n_placed > 200 && n_on_gpus > 100 && n_refused > 200,
        "{n_placed} placed, {n_on_gpus}, {n_refused} refused"
    );
}
