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
    for gpu in &inventory.gpus {
        println!("{} {:?}", gpu.index, gauge.sample(gpu));
    }
}

#[test]
fn a_gauge_tells_memory_and_where_it_can_utilization() {
    let busy = with(with(gpu(0), "utilization", json!(61)), "users", json!([{"pid": 4121, "bytes": GIB}]));
    let cut = with(gpu(1), "mig", json!([{"uuid": "MIG-a", "name": "A MIG", "memory": 5 * GIB}]));
    let machine = Machine::new(&[busy, cut]);
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    machine.prepare(command.args(["--exact", "gauge::asks_the_gauge", "--ignored", "--nocapture"]));
    let output = command.output().expect("it starts");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let sample = |utilization: &str, used: u64, total: u64| {
        format!("Some(GpuSample {{ utilization: {utilization}, used: {}, total: {} }})", used * GIB, total * GIB)
    };
    for line in [format!("0 {}\n", sample("Some(61)", 1, 24)), format!("1 {}\n", sample("None", 0, 5))] {
        assert!(stdout.contains(&line), "{line} in {stdout}");
    }
}
