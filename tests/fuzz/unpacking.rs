//! Drives sources whose items hold rows, as the runtime does, and holds them to what it relies on.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use engine::data::{Column, ColumnBuilder, HeapPool, Reject, RowMut};
use engine::node::harness::Harness;
use engine::node::{Item, NodeSpec, Reading, Unpack};

/// A folder in memory, where there is one, in which a file is written again and again.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        let in_memory = Path::new("/dev/shm");
        let folder = if in_memory.is_dir() { tempfile::tempdir_in(in_memory) } else { tempfile::tempdir() };
        Scratch(folder.expect("a temporary folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file that takes the place of an earlier one.
    pub fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        // Removed first: truncating the old file would pull it from under whoever has mapped it.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, content).expect("a file");
        path
    }
}

/// What came of one row, in few bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub uri: String,
    pub id: Option<String>,
    /// Bytes of values, and a hash of them.
    pub values: Result<(usize, u64), Reject>,
}

/// All rows of an item from `skip` on.
pub fn rows(unpack: &dyn Unpack, spec: &NodeSpec, item: &Item, skip: u32) -> Result<Vec<Told>, Reject> {
    let alloc = HeapPool::new();
    let mut opened = unpack.open(0, item, skip)?;
    let mut told = Vec::new();
    while let Some(entry) = opened.next_entry() {
        let mut builders: Vec<_> = spec.new_types().iter().map(ColumnBuilder::new).collect();
        let mut out = RowMut::new(&mut builders, &alloc);
        out.text(0, entry.id.as_ref().unwrap_or(&entry.uri));
        out.text(1, &entry.uri);
        let read = match &entry.content {
            Ok(_) => unpack.read(item, &entry, &mut out),
            Err(reject) => Err(reject.clone()),
        };
        assert!(read.is_err() || out.is_complete(1), "{} left an output out", entry.uri);
        let values = read.map(|()| digest(builders.into_iter().map(ColumnBuilder::finish)));
        told.push(Told { uri: entry.uri, id: entry.id, values });
    }
    assert!(opened.next_entry().is_none(), "it goes on behind its end");
    Ok(told)
}

fn digest(columns: impl Iterator<Item = Column>) -> (usize, u64) {
    let (mut n_bytes, mut hasher) = (0, DefaultHasher::new());
    // The first two are the id and the uri.
    for column in columns.skip(2) {
        match column {
            Column::Text(text) => text.get(0).hash(&mut hasher),
            Column::Bytes(bytes) => {
                n_bytes += bytes.values()[0].len();
                bytes.values()[0].hash(&mut hasher);
            }
            Column::Int(numbers) => numbers.values().hash(&mut hasher),
            Column::Float(numbers) => numbers.values()[0].to_bits().hash(&mut hasher),
            Column::Ragged(tensors) => tensors.values()[0].bytes().hash(&mut hasher),
            _ => panic!("a source has no such column"),
        }
    }
    (n_bytes, hasher.finish())
}

/// Reads one item, and once more from its middle on, as a run does that was stopped there: the rows must be the same.
pub fn rows_and_again(unpack: &dyn Unpack, spec: &NodeSpec, item: &Item) -> Result<Vec<Told>, Reject> {
    let all = whole_rows(unpack, spec, item)?;
    let middle = all.len() / 2;
    let again = rows(unpack, spec, item, middle as u32);
    let again = again.unwrap_or_else(|reject| panic!("it opened before: {}", reject.message));
    assert_eq!(again, all[middle..], "from row {middle} on");
    Ok(all)
}

/// All rows of an item, each of which can be told and written down.
pub fn whole_rows(unpack: &dyn Unpack, spec: &NodeSpec, item: &Item) -> Result<Vec<Told>, Reject> {
    let all = rows(unpack, spec, item, 0)?;
    for told in &all {
        assert!(told.uri.starts_with(&item.uri) || item.uri.contains("#group-"), "{told:?} of {}", item.uri);
        let is_plain = |text: &str| !text.contains(['\n', '\0']);
        assert!(is_plain(&told.uri), "{told:?}");
        if let Err(reject) = &told.values {
            assert!(reject.message.len() < 4096, "a message of {} bytes", reject.message.len());
        }
    }
    Ok(all)
}

/// A source with one file, which it reads anew each time.
pub struct OneFile {
    unpack: std::sync::Arc<dyn Unpack>,
    spec: NodeSpec,
    item: Item,
}

impl OneFile {
    /// # Panics
    /// If the options do not fit, or the file is not there yet.
    pub fn new(source: &Harness) -> Self {
        let spec = source.spec().unwrap_or_else(|error| panic!("{error}"));
        let items = source.items(10).unwrap_or_else(|fault| panic!("{fault}"));
        let [item] = &items[..] else { panic!("{} items", items.len()) };
        let stage = source.source().unwrap_or_else(|fault| panic!("{fault}"));
        let Reading::Unpacked(unpack) = stage.reading else { panic!("its items are rows") };
        OneFile { unpack, spec, item: item.clone() }
    }

    pub fn read(&self) -> Result<Vec<Told>, Reject> {
        rows_and_again(&*self.unpack, &self.spec, &self.item)
    }
}
