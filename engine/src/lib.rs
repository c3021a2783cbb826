//! The flowgpu engine: graphs, threads, processes and devices.
//!
//! A pipeline goes through five life stages, each a type: [`config::Document`] (what was written), [`graph::Graph`]
//! (resolved and typed), [`schedule::Plan`] (placed and sized), [`runtime::Running`] and [`runtime::Report`].
//!
//! The engine knows no image, model or file format: those live in the `nodes` crate and come in through the traits of
//! [`node`]. Inside the engine each module imports only those listed before it:
//! `data`, `node`, `durable`, `config`, `graph`, `schedule`, `worker`, `journal`, `runtime`.

pub mod config;
pub mod data;
pub mod durable;
pub mod graph;
pub mod journal;
pub mod node;
pub mod runtime;
pub mod schedule;
pub mod worker;
