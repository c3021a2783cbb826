//! Stores against real servers: moto's S3 and Python's own web server, and local paths through the same calls.

mod faults;
mod listing;
mod local;
mod reading;
mod scene;
#[path = "../../../tests/store_server/server.rs"]
mod server;
mod streams;
mod uploads;
mod web;
