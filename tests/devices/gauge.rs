//! What a run shows of its GPUs while it goes on.

use std::process::Command;

use engine::schedule::{GpuGauge, Inventory};
use serde_json::json;

use crate::machine::{GIB, Machine, gpu, with};

/// Asks the gauge as the environment has it. The variables that choose the library must be there before a process starts,
/// so the test below starts this one in a process of its own.
#[test]
#[ignore = "started by the test below"]
fn asks_the_gauge() {
    let inventory = Inventory::read();
    let gauge = GpuGauge::open().expect("the library is there");
    let samples = inventory.gpus.iter().map(|gpu| format!("{} {:?}\n", gpu.index, gauge.sample(gpu)));
    std::fs::write("samples", samples.collect::<String>()).expect("a file");
}

#[test]
fn a_gauge_tells_memory_and_where_it_can_utilization() {
    let busy = with(with(gpu(0), "utilization", json!(61)), "users", json!([{"pid": 4121, "bytes": GIB}]));
    let cut = with(gpu(1), "mig", json!([{"uuid": "MIG-a", "name": "A MIG", "memory": 5 * GIB}]));
    let machine = Machine::new(&[busy, cut]);
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    machine.prepare(command.args(["--exact", "gauge::asks_the_gauge", "--ignored"]));
    assert!(command.output().expect("it starts").status.success());
    let samples = std::fs::read_to_string(machine.path("samples")).expect("what was written");
    let sample = |utilization: &str, used: u64, total: u64| {
        format!("Some(GpuSample {{ utilization: {utilization}, used: {}, total: {} }})", used * GIB, total * GIB)
    };
    assert_eq!(samples, format!("0 {}\n1 {}\n", sample("Some(61)", 1, 24), sample("None", 0, 5)));
}
