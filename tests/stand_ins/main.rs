//! Models and devices that stand in for real ones: that the executors conform, and that what misbehaves on purpose does so.

mod conformance;
mod faults;
