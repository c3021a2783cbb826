//! Worker processes, by the real program: what they compute, what their deaths cost, where they run, what they leave.
//!
//! GPUs are stand-ins: a library that answers for NVML, and a device that has engines, memory and a name, and computes
//! on the CPU. Nothing here measures time; where order in time matters it is read from the trace, in which the stand-in
//! notes what it has booked.

mod conformance;
mod deaths;
mod gpus;
mod identity;
mod limits;
mod memory;
// Shared with the tests of the command line, which use more of it.
#[allow(dead_code)]
#[path = "../cli/program.rs"]
mod program;
mod refusals;
mod scene;
