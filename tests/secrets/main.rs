//! Nothing secret is written anywhere: pipelines with passwords, signatures and tokens in every place that takes one are
//! checked, drawn, planned, run and made to fail with everything logged, and then all that was written is searched.

mod environment;
mod lists;
mod scene;
#[path = "../store_server/server.rs"]
mod server;
mod urls;
#[path = "../examples/workplace.rs"]
#[allow(dead_code, reason = "each test that shares this file uses a part of it")]
mod workplace;
