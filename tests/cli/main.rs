//! The program as its users meet it: the real binaries, their exit codes, what they print and where.

mod commands;
mod exits;
mod graphs;
mod interrupts;
mod manuals;
mod metrics;
mod outputs;
mod program;
mod status;
mod stopping;
mod workers;
