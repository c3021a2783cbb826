//! Points at which a test makes the disk fail, or the process die. Not in the shipped program.
//!
//! `FLOWGPU_FAULT=rename:before:2:kill` kills the process just before its second renaming. The steps are those of
//! [`Step`](super::disk::Step) in lower case; the actions are `kill`, and the errors `enospc`, `eio`, `erofs`, `edquot`.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

use super::disk::{Step, When};

struct Fault {
    step: String,
    when: String,
    left: AtomicU64,
    action: String,
}

/// What the environment asks for, read once.
static FAULT: OnceLock<Option<Fault>> = OnceLock::new();

/// Does what the environment asks for at this point. Errors stay from then on, as a full disk does.
pub(super) fn point(step: Step, when: When) -> io::Result<()> {
    let Some(fault) = FAULT.get_or_init(read) else { return Ok(()) };
    let is_here =
        format!("{step:?}").eq_ignore_ascii_case(&fault.step) && format!("{when:?}").eq_ignore_ascii_case(&fault.when);
    if !is_here {
        return Ok(());
    }
    let left = fault.left.load(Ordering::Relaxed);
    if left > 1 {
        fault.left.store(left - 1, Ordering::Relaxed);
        return Ok(());
    }
    let errno = match fault.action.as_str() {
        "enospc" => rustix::io::Errno::NOSPC,
        "edquot" => rustix::io::Errno::DQUOT,
        "erofs" => rustix::io::Errno::ROFS,
        "eio" => rustix::io::Errno::IO,
        _ => {
            // A process that cannot kill itself is as good as one that was not told to.
            let _ = kill_process(getpid(), Signal::KILL);
            loop {
                std::thread::park();
            }
        }
    };
    Err(errno.into())
}

fn read() -> Option<Fault> {
    let text = std::env::var("FLOWGPU_FAULT").ok()?;
    let mut parts = text.split(':');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let (step, when, left, action) = (next(), next(), next(), next());
    Some(Fault { step, when, left: AtomicU64::new(left.parse().unwrap_or(1)), action })
}
