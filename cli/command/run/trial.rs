//! Tries a row in a process of its own, which may die of it.

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use engine::runtime::{Trial, TrialOutcome, TryRow};
use engine::worker::exit_text;

use crate::args::PipelineArgs;
use crate::command::try_row::{DONE, FETCHED, UNTRIED};
use crate::progress::human::whole_duration;

/// Bytes of what a process said last that are kept.
const LAST_WORDS: usize = 600;
/// How long the outputs of a process that has ended may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Trials by `flowgpu try-row` with the pipeline that is run.
pub(super) fn of(pipeline: &PipelineArgs) -> TryRow {
    let mut args = vec!["try-row".into(), pipeline.file.clone().into_os_string()];
    for (name, value) in &pipeline.vars.set {
        args.extend(["--set".into(), format!("{name}={value}").into()]);
    }
    TryRow::new(move |trial| {
        let mut command = Command::new(own_program());
        // A process group of its own: Ctrl-C is for the run, and must not look like a death by the row.
        command.arg0("flowgpu").args(&args).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match command.spawn() {
            Ok(child) => watch(child, trial).unwrap_or_else(|error| TrialOutcome::Untried(error.to_string())),
            Err(error) => TrialOutcome::Untried(format!("its process cannot be started: {error}")),
        }
    })
}

/// This program, even if its file was replaced since it started.
fn own_program() -> PathBuf {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { running } else { std::env::current_exe().unwrap_or_else(|_| "flowgpu".into()) }
}

/// What a process gives on one of its outputs until that ends.
fn collect(mut pipe: impl Read + Send + 'static) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = channel();
    let read = move || {
        let mut bytes = Vec::new();
        // What could be read counts.
        let _ = pipe.read_to_end(&mut bytes);
        // Whoever waited may have given up.
        let _ = sender.send(bytes);
    };
    thread::Builder::new().name("trial".to_owned()).spawn(read)?;
    Ok(receiver)
}

fn watch(mut child: Child, trial: &Trial) -> io::Result<TrialOutcome> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let said = collect(stdout.ok_or(io::ErrorKind::BrokenPipe)?)?;
    let complained = collect(stderr.ok_or(io::ErrorKind::BrokenPipe)?)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A process that does not read it ends without a word, and that is seen.
        let _ = stdin.write_all(&serde_json::to_vec(trial)?);
    }
    // Its outputs end when it does.
    let in_time = said.recv_timeout(trial.limit).ok();
    let is_hung = in_time.is_none();
    if is_hung {
        child.kill()?;
    }
    let status = child.wait()?;
    let said = in_time.or_else(|| said.recv_timeout(PATIENCE).ok()).unwrap_or_default();
    let last_words = complained.recv_timeout(PATIENCE).unwrap_or_default();
    let end = if is_hung { End::Hung(trial.limit) } else { End::By(status) };
    Ok(outcome(end, &String::from_utf8_lossy(&said), &last_words))
}

/// How a trial's process ended.
enum End {
    /// By itself.
    By(ExitStatus),
    /// It was killed after so long.
    Hung(Duration),
}

fn outcome(end: End, said: &str, last_words: &[u8]) -> TrialOutcome {
    let has_said = |word: &str| said.lines().any(|line| line == word);
    if let Some(why) = said.lines().find_map(|line| line.strip_prefix(UNTRIED)) {
        return TrialOutcome::Untried(why.to_owned());
    }
    let (how, is_death) = match &end {
        // Whatever it does after that, the row is through.
        End::Hung(_) if has_said(DONE) => return TrialOutcome::Survived,
        End::By(status) if status.success() && has_said(DONE) => return TrialOutcome::Survived,
        End::Hung(limit) => (format!("did not come back within {}", whole_duration(*limit)), false),
        End::By(status) => (exit_text(*status), status.signal().is_some()),
    };
    let last_words = tail(last_words);
    if is_death || has_said(FETCHED) {
        return TrialOutcome::Died(how, last_words);
    }
    // A file that cannot be read in time says nothing about the row, nor does a program that did not come so far.
    let words = last_words.map_or_else(String::new, |words| format!(": {words}"));
    TrialOutcome::Untried(format!("its process {how} before the item was read{words}"))
}

/// The end of what was said, in one line.
fn tail(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LAST_WORDS)..]).into_owned();
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    (!lines.is_empty()).then(|| lines.join(" / "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(end: End, said: &str, expected: TrialOutcome) {
        assert_eq!(outcome(end, said, b"oh\n\nno\n"), expected, "{said:?}");
    }

    fn died(how: &str) -> TrialOutcome {
        TrialOutcome::Died(how.to_owned(), Some("oh / no".to_owned()))
    }

    #[test]
    fn only_a_process_that_came_to_the_row_can_have_died_of_it() {
        let by = |status: i32| End::By(ExitStatus::from_raw(status));
        let limit = Duration::from_secs(30);
        check(by(0), "fetched\ndone\n", TrialOutcome::Survived);
        check(by(6), "fetched\n", died("died of signal 6 (abort)"));
        check(by(11), "", died("died of signal 11 (segmentation fault)"));
        check(by(6), "fetched\ndone\n", died("died of signal 6 (abort)"));
        check(by(0), "fetched\n", died("exited with code 0"));
        check(End::Hung(limit), "fetched\n", died("did not come back within 30 s"));
        check(End::Hung(limit), "fetched\ndone\n", TrialOutcome::Survived);
        let untried = |why: &str| TrialOutcome::Untried(why.to_owned());
        check(by(2 << 8), "", untried("its process exited with code 2 before the item was read: oh / no"));
        check(
            End::Hung(limit),
            "",
            untried("its process did not come back within 30 s before the item was read: oh / no"),
        );
        check(by(0), "fetched\nuntried: no way\n", untried("no way"));
    }

    #[test]
    fn what_was_said_last_is_kept_in_a_line() {
        assert_eq!(tail(b""), None);
        assert_eq!(tail(b" \n"), None);
        let long = [vec![0xff; 10_000], b"\nthe end\n".to_vec()].concat();
        let kept = tail(&long).expect("words");
        assert!(kept.ends_with(" / the end") && kept.len() <= 3 * LAST_WORDS, "{kept}");
    }
}
