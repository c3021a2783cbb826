//! What `infer.test` does on chosen rows: die, hang, dawdle, panic.
//!
//! A model sees tensors and no positions, so the rows are found by what `transform.test_tensor: {numbered: true}` writes
//! into them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::data::{DType, Tensor, TensorRef};
use rustix::process::{Signal, getpid, kill_process};
use schemars::JsonSchema;
use serde::Deserialize;

/// How a model ends its process.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Crash {
    /// The rows, by their index in the source.
    rows: Vec<u64>,
    /// How.
    #[serde(default)]
    how: How,
    /// Only if this file does not exist, which is made then: so it happens once. From the pipeline's folder.
    once: Option<PathBuf>,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum How {
    /// By the signal that `abort` sends.
    #[default]
    Abort,
    /// By the signal that follows a wrong address.
    Segfault,
    /// With exit code 0, as if all were well.
    Exit,
    /// By a stack that is too deep.
    Overflow,
}

impl How {
    /// Ends this process. What it says on stderr is for whoever captures that.
    pub(super) fn end(self, kind: &str, why: &str) -> ! {
        // Nobody may be listening any more, and then nothing is lost.
        let _ = writeln!(std::io::stderr(), "{kind} ends its process on purpose: {why}");
        match self {
            How::Abort => std::process::abort(),
            How::Exit => std::process::exit(0),
            How::Overflow => {
                std::hint::black_box(deep(1));
                // No stack is without an end.
                std::process::abort()
            }
            // Rust's own handler looks for overflowing stacks and swallows the first such signal.
            How::Segfault => loop {
                let _ = kill_process(getpid(), Signal::SEGV);
                std::thread::yield_now();
            },
        }
    }
}

/// Calls itself for ever, with something left to do each time.
#[expect(unconditional_recursion, reason = "that is what it is for")]
fn deep(depth: u64) -> u64 {
    let here = std::hint::black_box([depth; 64]);
    deep(here[7] + 1) + here[9]
}

/// Rows on which something happens.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OnRows {
    /// The rows, by their index in the source.
    rows: Vec<u64>,
    /// Only if this file does not exist, which is made then: so it happens once. From the pipeline's folder.
    once: Option<PathBuf>,
}

/// Rows that take long.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Slow {
    /// The rows, by their index in the source.
    rows: Vec<u64>,
    /// How long each of them takes, in microseconds.
    micros: u64,
}

/// All that can happen on chosen rows.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelFaults {
    pub(super) crash: Option<Crash>,
    pub(super) hang: Option<OnRows>,
    pub(super) slow: Option<Slow>,
    pub(super) panic: Option<OnRows>,
    pub(super) base: PathBuf,
}

impl ModelFaults {
    /// Does what is due on these rows, and comes back if that was harmless.
    pub(super) fn strike(&self, input: &Tensor) {
        if let Some(crash) = &self.crash
            && let Some(row) = self.due(&crash.rows, crash.once.as_deref(), input)
        {
            crash.how.end("infer.test", &format!("row {row}"));
        }
        if let Some(hang) = &self.hang
            && self.due(&hang.rows, hang.once.as_deref(), input).is_some()
        {
            loop {
                std::thread::sleep(Duration::from_secs(3600));
            }
        }
        if let Some(panic) = &self.panic
            && let Some(row) = self.due(&panic.rows, panic.once.as_deref(), input)
        {
            panic!("the model panics on purpose on row {row}");
        }
        if let Some(slow) = &self.slow {
            let n_slow = numbers(input).filter(|number| slow.rows.contains(number)).count();
            std::thread::sleep(Duration::from_micros(slow.micros.saturating_mul(n_slow as u64)));
        }
    }

    /// The first of `rows` in the batch, unless it was there before.
    fn due(&self, rows: &[u64], once: Option<&Path>, input: &Tensor) -> Option<u64> {
        let row = numbers(input).find(|number| rows.contains(number))?;
        let first = |path| OpenOptions::new().write(true).create_new(true).open(self.base.join(path)).is_ok();
        once.is_none_or(first).then_some(row)
    }
}

fn numbers(input: &Tensor) -> impl Iterator<Item = u64> + '_ {
    (0..input.n_rows()).filter_map(|row_idx| number(input.row(row_idx)))
}

/// The number that a row of `transform.test_tensor` bears.
fn number(row: TensorRef<'_>) -> Option<u64> {
    match row.dtype {
        DType::U8 => Some(u64::from(u32::from_le_bytes(*row.bytes.first_chunk()?))),
        DType::F32 => Some(f32::from_ne_bytes(*row.bytes.first_chunk()?) as u64),
        DType::F16 | DType::BF16 | DType::I64 => None,
    }
}
