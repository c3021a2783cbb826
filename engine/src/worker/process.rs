//! A worker as a process: how it is started, what it said last, how it ends.
//!
//! A worker is a program of its own, never a fork of this one: a forked process inherits an opened CUDA that does not
//! work. It is started on a thread that lives as long as the run, because the system kills it when that thread ends.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::node::Fault;

/// Lines of a worker's output that are kept for when it dies.
const KEPT_LINES: usize = 20;
/// Bytes of a line; a longer one counts as several.
const LONGEST_LINE: u64 = 4096;
/// A dead worker's last lines are waited for no longer, in case a process that it left holds its output open.
const LAST_WORDS_PATIENCE: Duration = Duration::from_millis(500);
/// A worker that does not read its socket for so long counts as dead: jobs are small, and few are under way.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

/// What a worker process is started with.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    /// The program.
    pub(super) program: PathBuf,
    /// The kind of device that it opens.
    pub(super) device: &'static str,
    /// What its environment has beyond this process's.
    pub(super) environment: Vec<(&'static str, String)>,
}

/// A worker process that runs.
pub(super) struct Process {
    child: Child,
    /// The group that it leads, until it was waited for: then the number may be another's.
    group: Option<Pid>,
    output: Arc<Mutex<VecDeque<String>>>,
    output_ended: Receiver<()>,
}

impl Process {
    /// Starts a worker, and gives this side's end of its socket. `name` is for the log.
    pub(super) fn start(recipe: &Recipe, name: &str) -> Result<(Process, UnixStream), Fault> {
        let failed = |error: std::io::Error| {
            let fault = Fault::transient(format!("cannot start `{}`: {error}", recipe.program.display()));
            match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => fault,
                _ => fault.help("the system may be out of processes, open files or memory (`ulimit -a`)"),
            }
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_write_timeout(Some(WRITE_PATIENCE)).map_err(failed)?;
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let child = Command::new(&recipe.program)
            .arg0("flowgpu")
            .args(["worker", "--device", recipe.device])
            .envs(recipe.environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::from(writer.try_clone().map_err(failed)?))
            .stderr(Stdio::from(writer))
            .spawn()
            .map_err(failed)?;
        let group = Some(Pid::from_child(&child));
        let output = Arc::new(Mutex::new(VecDeque::new()));
        let (ended_sender, output_ended) = bounded(1);
        let process = Process { child, group, output: output.clone(), output_ended };
        let worker = name.to_owned();
        let listen = move || {
            keep_lines(reader, &output, &worker);
            // Nobody may be waiting for it.
            let _ = ended_sender.send(());
        };
        std::thread::Builder::new().name(format!("{name}/output")).spawn(listen).map_err(failed)?;
        Ok((process, ours))
    }

    /// Its number.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it and all that it has started. A process that is stopped is killed too.
    pub(super) fn kill(&self) {
        if let Some(group) = self.group {
            // It may be gone already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Kills what is left of it, waits for its end, and says how it ended and what it said last.
    pub(super) fn reap(mut self) -> (String, String) {
        // Whoever has closed the socket has nothing more to do; one that was about to leave by itself gets the time to.
        let status = self.wait_briefly().or_else(|| {
            self.kill();
            self.child.wait().ok()
        });
        // What it has started goes with it; a process that is left keeps the group's number from being another's.
        self.kill();
        self.group = None;
        let how = status.map_or("ended".to_owned(), exit_text);
        // Either way what is there is taken.
        let _ = self.output_ended.recv_timeout(LAST_WORDS_PATIENCE);
        let lines = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let last_words = lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        drop(lines);
        (how, last_words)
    }

    fn wait_briefly(&mut self) -> Option<ExitStatus> {
        for pause in [0, 1, 2, 5, 10, 20, 50, 100] {
            std::thread::sleep(Duration::from_millis(pause));
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.group.is_some() {
            self.kill();
            // It was killed, so this ends; a zombie would stay otherwise.
            let _ = self.child.wait();
        }
    }
}

fn keep_lines(reader: PipeReader, output: &Mutex<VecDeque<String>>, worker: &str) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while matches!(reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line), Ok(n_read) if n_read > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        tracing::debug!(worker, text, "a worker says");
        let mut lines = output.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }
}

/// How a process ended, as the rest of a sentence: `died of signal 9 (kill)`.
pub fn exit_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("died of signal {signal}{}", signal_name(signal)),
        (None, None) => "ended".to_owned(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        8 => " (arithmetic error)",
        9 => " (kill)",
        11 => " (segmentation fault)",
        _ => "",
    }
}
