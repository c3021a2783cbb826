//! What the tests have in common.

use std::path::Path;
use std::process::{Command, Stdio};

use nodes::store::{Environment, Location, StoreOptions, Stores};

use crate::server::Server;

/// The bucket of all tests, each of which has a server of its own.
pub const BUCKET: &str = "photos";

/// Keys that the server does not look at closely.
pub const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "S3CRETKEY")];

/// Stores at `server`, with other options from YAML.
pub fn stores_with(server: &Server, options: &str) -> Stores {
    let options: StoreOptions = serde_yaml::from_str(options).expect("options");
    Stores::with_environment(StoreOptions { endpoint: Some(server.url()), ..options }, Environment::of(KEYS))
}

pub fn stores(server: &Server) -> Stores {
    stores_with(server, "{}")
}

/// An object in the bucket.
pub fn object(key: &str) -> Location {
    Location::parse(&format!("s3://{BUCKET}/{key}"), Path::new("/")).expect("a location")
}

/// Bytes of which no two stretches are alike.
pub fn noise(n_bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(n_bytes + 8);
    while bytes.len() < n_bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(n_bytes);
    bytes
}

/// This test program again, to run one ignored test of it with variables.
pub fn child(test: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args([test, "--exact", "--ignored", "--nocapture"]).envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A variable that a parent has set.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("run by another test, with `{name}` set"))
}

/// Asks again and again until it is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "waited in vain until {what}");
        std::thread::yield_now();
    }
}
