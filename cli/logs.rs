//! The log: what `FLOWGPU_LOG` asks for, by default warnings, on the standard error stream above the progress display.

use std::env;

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;
use crate::progress::{AboveBars, Colour, Terminal};

const VARIABLE: &str = "FLOWGPU_LOG";

/// Starts logging.
pub(crate) fn start(above: &AboveBars) -> Result<(), Failure> {
    let filter = match env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => EnvFilter::try_new(&text).map_err(|error| Failure::Usage {
            message: format!("the variable `{VARIABLE}` is no log filter: {error}"),
            help: Some(
                "write a level such as `debug`, or levels of modules such as `engine::runtime=trace,warn`".to_owned(),
            ),
        })?,
        _ => EnvFilter::new("warn"),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(above.clone())
        .with_ansi(Terminal::stderr().colour == Colour::On);
    // There is another one only if a test has set it.
    let _ = log.try_init();
    Ok(())
}
