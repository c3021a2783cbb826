//! One process that works on a run, and what happens to it.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::disturbance::{Disturbance, Moment, Who};
use crate::progress;
use crate::settings::Settings;

/// Far more than any session takes: only one that hangs gets there.
const PATIENCE: Duration = Duration::from_secs(100);
/// How often is looked; nothing depends on it but how near to its moment something happens.
const LOOK: Duration = Duration::from_micros(700);

/// A session under way.
pub struct Session {
    child: Child,
    folder: PathBuf,
    log: PathBuf,
}

/// A session that is over.
pub struct Ended {
    pub status: ExitStatus,
    /// Workers that were killed.
    pub n_workers_killed: u64,
    /// What it said.
    pub said: String,
}

impl Session {
    /// Starts the program in `folder`; what it says goes to the file `log`.
    pub fn start(folder: &Path, nodes: &str, settings: &Settings, fault: Option<&str>, log: &Path) -> Session {
        fs::write(folder.join("p.yaml"), settings.file(nodes)).expect("a pipeline");
        let said = File::create(log).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgpu-test"));
        command.args(settings.args()).current_dir(folder).stdin(Stdio::null());
        command.stdout(said.try_clone().expect("a file")).stderr(said).env_remove("RUST_BACKTRACE");
        if let Some(fault) = fault {
            command.env("FLOWGPU_FAULT", fault);
        }
        let child = command.spawn().expect("the program starts");
        Session { child, folder: folder.to_owned(), log: log.to_owned() }
    }

    /// Lets it happen, and waits for the end.
    pub fn suffer(mut self, disturbance: Option<&Disturbance>) -> Ended {
        let mut n_workers_killed = 0;
        match disturbance {
            Some(Disturbance::Kill(who, moment)) if self.wait_for(*moment) => n_workers_killed = self.kill(*who),
            Some(Disturbance::Drain(moment)) if self.wait_for(*moment) => self.signal(Signal::TERM),
            Some(Disturbance::Abort(moment)) if self.wait_for(*moment) => {
                self.signal(Signal::INT);
                self.signal(Signal::INT);
            }
            _ => {}
        }
        let status = self.wait();
        let said = String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned();
        Ended { status, n_workers_killed, said }
    }

    /// Whether the moment has come; if not, the session was over before.
    fn wait_for(&mut self, moment: Moment) -> bool {
        let before = progress::n_cuts(&self.folder);
        let start = Instant::now();
        while progress::n_cuts(&self.folder) < before + moment.n_cuts {
            if self.is_over() {
                return false;
            }
            assert!(start.elapsed() < PATIENCE, "no progress for a long time: {}", self.said());
            sleep(LOOK);
        }
        sleep(Duration::from_micros(moment.micros));
        !self.is_over()
    }

    fn kill(&self, who: Who) -> u64 {
        let workers = children(self.child.id());
        let workers = match who {
            Who::Coordinator => &[],
            Who::OneWorker => &workers[..workers.len().min(1)],
            Who::AllWorkers | Who::Everybody => &workers[..],
        };
        for pid in workers {
            // One may be gone already.
            let _ = kill_process(*pid, Signal::KILL);
        }
        if matches!(who, Who::Coordinator | Who::Everybody) {
            self.signal(Signal::KILL);
        }
        workers.len() as u64
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("nobody has waited for it yet");
    }

    fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status;
            }
            if start.elapsed() > PATIENCE {
                let _ = self.child.kill();
                panic!("the session does not end: {}", self.said());
            }
            sleep(LOOK);
        }
    }

    fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("it can be waited for").is_some()
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Ended {
    pub fn is_killed(&self) -> bool {
        self.status.signal() == Some(Signal::KILL.as_raw())
    }
}

/// The processes that `pid` has started.
fn children(pid: u32) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<_> = lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    pids.iter().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// The processes whose working folder is `folder`.
pub fn processes_in(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at == folder)).collect()
}

/// Waits until no process has its working folder in `folder`.
pub fn wait_until_alone(folder: &Path) {
    let start = Instant::now();
    loop {
        let left = processes_in(folder);
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "the processes {left:?} are left");
        sleep(LOOK);
    }
}
