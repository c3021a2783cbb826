//! The plan for programs.

use engine::schedule::{DevicePlace, HostMemory, Plan, SLOTS_PER_MODEL, STREAMS_PER_MODEL, WorkerPlace};
use serde_json::{Value as Json, json};

use super::{models, outputs};

pub(super) fn json(plan: &Plan) -> Json {
    let graph = &plan.graph;
    let nodes = graph.nodes.iter().zip(&plan.rooms).map(|(node, room)| {
        json!({
            "name": node.name,
            "kind": node.kind.name(),
            "detail": graph.redact(&node.spec.detail),
            "batch": node.output.batch,
            "room": room,
        })
    });
    let workers = plan.placement.workers.iter().map(|place| worker(plan, place));
    json!({
        "name": graph.name,
        "host": plan.inventory,
        "threads": plan.pools,
        "queue_memory": plan.queue_memory,
        "host_memory": HostMemory::of(plan).map(|memory| json!({"bytes": memory.bytes(), "items": memory})),
        "placement": {"isolation": plan.placement.isolation, "workers": workers.collect::<Vec<_>>()},
        "streams": {"per_model": STREAMS_PER_MODEL, "slots_per_model": SLOTS_PER_MODEL},
        "notes": plan.notes,
        "nodes": nodes.collect::<Vec<_>>(),
        "writes": outputs(plan),
    })
}

fn worker(plan: &Plan, place: &WorkerPlace) -> Json {
    let mut shown = json!({
        "device": plan.inventory.device_name(place.device),
        "models": models(plan, place),
        "threads": place.threads,
        "memory": place.memory,
        "isolation": plan.placement.isolation_of(place),
    });
    if let DevicePlace::Gpu(at) = place.device {
        let gpu = &plan.inventory.gpus[at];
        shown["uuid"] = json!(gpu.uuid);
        shown["token"] = json!(gpu.token);
        shown["memory_items"] = json!(plan.memory_of(place));
    }
    shown
}
