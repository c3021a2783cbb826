//! Feeds inputs to a target, one target at a time.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::memory;
use crate::mutate::{Random, changed};
use crate::sums::crc32;
use crate::target::{Check, Target};
use crate::watch::Watch;

/// Memory is counted for the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The seed of the runs that are the tests.
const SEED: u64 = 20_261_202;

/// Replays what is kept, then a number of changes of it.
pub fn replay_and_change(target: &'static Target) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut feed = Feed::new(target, &Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz"));
    feed.replay();
    let mut random = Random::new(SEED);
    (0..target.n_cases).for_each(|_| feed.change(&mut random));
    feed.done();
}

/// The same for a time, from another seed. What fails is kept in the corpus.
pub fn by_hand(target: &'static Target, seconds: u64, seed: u64) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut feed = Feed::new(target, &target.folder());
    feed.replay();
    let mut random = Random::new(seed);
    let (began, mut told) = (Instant::now(), 0);
    let mut n_cases = 0u64;
    while began.elapsed() < Duration::from_secs(seconds) {
        feed.change(&mut random);
        n_cases += 1;
        let tens = began.elapsed().as_secs() / 10;
        if tens > told {
            told = tens;
            feed.tell(n_cases, began.elapsed());
        }
    }
    feed.tell(n_cases, began.elapsed());
    feed.done();
}

struct Feed {
    target: &'static Target,
    inputs: Vec<(String, Vec<u8>)>,
    check: Check,
    watch: Watch,
    /// Where inputs go that fail.
    failures: PathBuf,
    /// What is being fed: it stays behind where the process does not get to say anything. The file stays open, since closing
    /// one that was emptied makes some file systems wait for the disk.
    under_way: (PathBuf, File),
    most: (usize, Duration),
}

impl Feed {
    fn new(target: &'static Target, failures: &Path) -> Self {
        let inputs = target.inputs();
        assert!(!inputs.is_empty(), "there is nothing to begin with in {}", target.folder().display());
        let under_way = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}.case", target.name));
        let file = File::create(&under_way).expect("the folder for temporary files can be written");
        let under_way = (under_way, file);
        // A backtrace would take more memory than what is measured.
        std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
        let (check, watch) = ((target.prepare)(), Watch::new(target));
        let failures = failures.to_owned();
        Feed { target, inputs, check, watch, failures, under_way, most: (0, Duration::ZERO) }
    }

    fn replay(&mut self) {
        for (name, input) in self.inputs.clone() {
            if let Err(why) = self.feed(&input) {
                panic!("{name}: {why}");
            }
        }
    }

    fn change(&mut self, random: &mut Random) {
        let input = changed(&self.inputs, random, Target::MAX_BYTES);
        let input = (self.target.dress)(random, input);
        if let Err(why) = self.feed(&input) {
            let path = write(&self.failures, &input, "found");
            panic!("`{}` fails with {}: {why}", self.target.name, path.display());
        }
    }

    fn feed(&mut self, input: &[u8]) -> Result<(), String> {
        let written = self.under_way.1.write_all_at(input, 0);
        written.and_then(|()| self.under_way.1.set_len(input.len() as u64)).expect("the file can be written");
        self.watch.begins(input);
        let began = Instant::now();
        let mut ended = Ok(());
        let peak = memory::peak_of(|| ended = catch_unwind(AssertUnwindSafe(|| (self.check)(input))));
        let took = began.elapsed();
        self.watch.ends();
        self.most = (self.most.0.max(peak), self.most.1.max(took));
        if let Err(panic) = ended {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panics");
            return Err(text.to_owned());
        }
        if peak > self.target.max_memory {
            return Err(format!("it takes {peak} bytes of memory, more than {}", self.target.max_memory));
        }
        Ok(())
    }

    fn tell(&self, n_cases: u64, elapsed: Duration) {
        let rate = n_cases as f64 / elapsed.as_secs_f64();
        let (peak, took) = self.most;
        eprintln!(
            "{}: {n_cases} cases, {rate:.0}/s, the most {:.1} MiB and {} ms",
            self.target.name,
            peak as f64 / f64::from(1 << 20),
            took.as_millis()
        );
    }

    fn done(self) {
        fs::remove_file(&self.under_way.0).expect("it was written");
    }
}

/// Keeps an input in the corpus: the path that it has there.
pub fn keep(target: &Target, input: &[u8], what: &str) -> PathBuf {
    write(&target.folder(), input, what)
}

fn write(folder: &Path, input: &[u8], what: &str) -> PathBuf {
    let path = folder.join(format!("{what}-{:08x}", crc32(input)));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, input));
    written.expect("the folder can be written");
    path
}
