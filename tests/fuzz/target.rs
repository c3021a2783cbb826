//! What is fed.

use std::path::{Path, PathBuf};

use crate::mutate::Random;

/// Takes one input. It panics where something does not hold.
pub type Check = Box<dyn FnMut(&[u8])>;

/// Something that reads bytes.
pub struct Target {
    /// Its name, which is that of its folder in the corpus.
    pub name: &'static str,
    /// Changed inputs in each run of the tests: about a second's worth.
    pub n_cases: u64,
    /// Bytes of memory that one case may hold at once beyond what was held before it.
    pub max_memory: usize,
    /// Folders of the repository with inputs beside those in the corpus.
    pub seeds: &'static [&'static str],
    /// Inputs that are made rather than kept, such as frames and journals, whose form may change.
    pub made: fn() -> Vec<Vec<u8>>,
    /// The last step of a change: checksums made right again, so that more than checksums is reached.
    pub dress: fn(&mut Random, Vec<u8>) -> Vec<u8>,
    /// Makes what takes the inputs.
    pub prepare: fn() -> Check,
}

impl Target {
    /// Inputs larger than this are not made, and files larger than this are no seeds.
    pub const MAX_BYTES: usize = 48 << 10;

    /// Where the inputs are that are kept.
    pub fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(self.name)
    }

    /// All inputs that there are before any is changed, each with a name.
    pub fn inputs(&self) -> Vec<(String, Vec<u8>)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folders = self.seeds.iter().map(|folder| root.join(folder)).chain([self.folder()]);
        let mut files: Vec<_> = folders.flat_map(|folder| files_in(&folder)).collect();
        files.sort();
        let read = |path: PathBuf| {
            let bytes = std::fs::read(&path).expect("a file of the repository");
            (bytes.len() <= Target::MAX_BYTES).then(|| (path.display().to_string(), bytes))
        };
        let made = (self.made)().into_iter().enumerate().map(|(number, bytes)| (format!("made {number}"), bytes));
        files.into_iter().filter_map(read).chain(made).collect()
    }
}

/// For targets all of whose inputs are files.
pub fn nothing_made() -> Vec<Vec<u8>> {
    Vec::new()
}

/// For targets without checksums.
pub fn as_it_is(_: &mut Random, input: Vec<u8>) -> Vec<u8> {
    input
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.is_file()).collect()
}
