//! The thread that keeps a display up to date.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::pace::Pace;
use super::snapshot::Snapshot;

const TICK: Duration = Duration::from_millis(125);

/// Something that shows snapshots.
pub trait Display: Send {
    /// Shows one; `pace` is the rows done in a second lately.
    ///
    /// # Errors
    /// If it cannot be written. The display is not asked again.
    fn show(&mut self, snapshot: &Snapshot, pace: f64) -> io::Result<()>;

    /// Leaves the place as if nothing had been there.
    ///
    /// # Errors
    /// If it cannot be written.
    fn close(&mut self) -> io::Result<()>;
}

/// A display that is being kept up to date.
///
/// A display that fails (a terminal that is gone, a closed pipe) stops showing; the run is not told, for it goes on.
#[derive(Debug)]
pub struct Progress {
    stop: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts the thread. `snapshot` is called about eight times a second, and once more at the end.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start<F>(mut display: Box<dyn Display>, mut snapshot: F) -> io::Result<Self>
    where
        F: FnMut() -> Snapshot + Send + 'static,
    {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(move || {
            let mut pace = Pace::default();
            loop {
                let now = snapshot();
                let shown = display.show(&now, pace.note(&now));
                let over = !matches!(stopped.recv_timeout(TICK), Err(RecvTimeoutError::Timeout));
                if over || shown.is_err() {
                    break;
                }
            }
            let now = snapshot();
            // What is shown last is wiped or stays; either way nobody is left to hear of an error.
            let _ = display.show(&now, pace.note(&now)).and_then(|()| display.close());
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Shows the last state, closes the display and waits for its thread: what is written next stands alone.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // The thread may have ended by itself, then there is nobody to tell.
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Default, Clone)]
    struct Recorder(Arc<Mutex<Vec<String>>>);

    impl Display for Recorder {
        fn show(&mut self, snapshot: &Snapshot, _pace: f64) -> io::Result<()> {
            self.0.lock().expect("not poisoned").push(snapshot.done.to_string());
            if snapshot.done == 13 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
        }

        fn close(&mut self) -> io::Result<()> {
            self.0.lock().expect("not poisoned").push("closed".to_owned());
            Ok(())
        }
    }

    #[test]
    fn the_last_state_is_shown_before_the_display_closes() {
        let recorder = Recorder::default();
        let mut done = 0;
        let counting = move || {
            done += 1;
            Snapshot { done, ..Snapshot::default() }
        };
        Progress::start(Box::new(recorder.clone()), counting).expect("a thread").finish();
        let shown = recorder.0.lock().expect("not poisoned").clone();
        let numbers: Vec<String> = (1..shown.len()).map(|n| n.to_string()).collect();
        assert!(shown.len() >= 3, "{shown:?}");
        assert_eq!(shown[..shown.len() - 1], numbers);
        assert_eq!(shown[shown.len() - 1], "closed");
    }

    #[test]
    fn a_display_that_fails_ends_quietly() {
        let recorder = Recorder::default();
        let progress = Progress::start(Box::new(recorder.clone()), || Snapshot { done: 13, ..Snapshot::default() });
        progress.expect("a thread").finish();
        assert!(!recorder.0.lock().expect("not poisoned").contains(&"closed".to_owned()));
    }
}
