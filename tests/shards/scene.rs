//! A folder with pictures, some of them broken, and a pipeline that reads them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};

use engine::durable::Lines;
use engine::journal::History;

use crate::program::{Folder, TESTING, wait_for};

/// Every such picture is broken.
const BROKEN_EVERY: usize = 7;

/// The sinks of two formats of lines behind one source.
pub const LINES: &str = r#"
  photos: {kind: source.files, with: {path: "photos/*.png"}}
  pixels: {kind: decode.image, with: {}}
  slow:   {kind: transform.test_delay, with: {micros: "${micros}"}}
  rows:   {kind: sink.jsonl, with: {path: out/rows.jsonl, columns: [uri, width, height]}}
  table:  {kind: sink.csv, from: slow, with: {path: out/table.csv, columns: [width, uri, height]}}
"#;

/// Two sources one after the other.
pub const UNION: &str = r#"
  photos: {kind: source.files, with: {path: "photos/*.png"}}
  scans:  {kind: source.files, with: {path: "scans/*.png"}}
  pixels: {kind: decode.image, from: [photos, scans], with: {}}
  slow:   {kind: transform.test_delay, with: {micros: "${micros}"}}
  rows:   {kind: sink.jsonl, with: {path: out/rows.jsonl, columns: [uri, width, height]}}
  table:  {kind: sink.csv, from: slow, with: {path: out/table.csv, columns: [width, uri, height]}}
"#;

/// Two branches of one source, put together row by row.
pub const JOIN: &str = r#"
  photos: {kind: source.files, with: {path: "photos/*.png"}}
  pixels: {kind: decode.image, with: {}}
  slow:   {kind: transform.test_delay, with: {micros: "${micros}"}}
  wide:   {kind: transform.select, with: {keep: [width]}}
  late:   {kind: transform.test_delay, from: pixels, with: {micros: 200, seed: 7}}
  high:   {kind: transform.select, with: {keep: [height], rename: {height: tall}}}
  both:   {kind: transform.join, from: [wide, high]}
  rows:   {kind: sink.jsonl, with: {path: out/rows.jsonl}}
"#;

pub struct Scene(Folder);

impl Deref for Scene {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

/// How a program ended.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub told: String,
}

impl Scene {
    /// A folder with `n_photos` pictures in `photos`, half as many in `scans`, and the pipeline `p.yaml` of these nodes.
    pub fn new(n_photos: usize, nodes: &str) -> Self {
        let scene = Scene(Folder::new());
        scene.photos("photos", 0..n_photos);
        if nodes.contains("scans/") {
            scene.photos("scans", 0..n_photos / 2);
        }
        // One row at a time, so that a slow run is slow, and a cut after each few of them.
        let head = "name: p\nvars: {micros: 0}\nrun: {commit_every: 10ms, threads: {rows: 1}}\nnodes:";
        scene.write("p.yaml", &format!("{head}{nodes}"));
        scene
    }

    /// Pictures of different sizes, some of them cut short.
    pub fn photos(&self, folder: &str, numbers: std::ops::Range<usize>) {
        fs::create_dir_all(self.path(folder)).expect("a folder");
        for number in numbers {
            self.photo(&format!("{folder}/p{number:04}.png"), number);
        }
    }

    pub fn photo(&self, name: &str, number: usize) {
        let picture =
            image::RgbImage::from_pixel(1 + number as u32 % 37, 1 + number as u32 % 23, image::Rgb([9, 9, 9]));
        let mut file = Cursor::new(Vec::new());
        picture.write_to(&mut file, image::ImageFormat::Png).expect("a picture");
        let mut file = file.into_inner();
        if number % BROKEN_EVERY == BROKEN_EVERY - 1 {
            file.truncate(file.len() / 2);
        }
        fs::write(self.path(name), file).expect("a file");
    }

    /// What lies in `out`, and the bytes of it; nothing if there is no such folder.
    pub fn outputs(&self) -> BTreeMap<String, Vec<u8>> {
        let Ok(entries) = fs::read_dir(self.path("out")) else { return BTreeMap::new() };
        let entries = entries.map(|entry| entry.expect("an entry").path());
        let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
        entries.map(|path| (name(&path), fs::read(&path).expect("a file"))).collect()
    }

    /// What the undivided pipeline gives, without a trace of it.
    pub fn undivided(&self) -> BTreeMap<String, Vec<u8>> {
        self.run(&[]).expect(3);
        let outputs = self.outputs();
        fs::remove_dir_all(self.path("out")).expect("the outputs");
        fs::remove_dir_all(self.path(".flowgpu")).expect("the state");
        outputs
    }

    /// The outputs that are not a shard's own.
    pub fn merged(&self) -> BTreeMap<String, Vec<u8>> {
        let mut outputs = self.outputs();
        outputs.retain(|name, _| !name.contains("-of-"));
        outputs
    }

    /// `flowgpu run p.yaml` and these arguments.
    pub fn run(&self, args: &[&str]) -> Done {
        done(self.command(TESTING, &[&["run", "p.yaml"], args].concat()).output().expect("it starts"))
    }

    /// One shard.
    pub fn shard(&self, index: u32, of: u32, args: &[&str]) -> Done {
        self.run(&[&["--shards", &of.to_string(), "--shard", &index.to_string()], args].concat())
    }

    /// One shard, under way.
    pub fn start(&self, index: u32, of: u32, args: &[&str]) -> Child {
        let (index, of) = (index.to_string(), of.to_string());
        let args = [&["run", "p.yaml", "--shards", &of, "--shard", &index], args].concat();
        let mut command = self.command(TESTING, &args);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    pub fn merge(&self, args: &[&str]) -> Done {
        done(self.command(TESTING, &[&["merge", "p.yaml"], args].concat()).output().expect("it starts"))
    }

    /// What the journal of a shard says by now.
    pub fn history(&self, index: u32, of: u32) -> Option<History> {
        self.history_at(&format!(".flowgpu/p/{index:05}-of-{of:05}"))
    }

    /// What the journal in a folder of state says by now.
    pub fn history_at(&self, folder: &str) -> Option<History> {
        let path = self.path(folder).join("journal");
        History::of(&Lines::read(&path).expect("a journal")).expect("records")
    }

    /// Waits until some rows of a shard, but not all, are durable.
    pub fn wait_for_cut(&self, index: u32, of: u32) {
        self.wait_for_cut_at(&format!(".flowgpu/p/{index:05}-of-{of:05}"));
    }

    /// The same of the run whose state is in a folder.
    pub fn wait_for_cut_at(&self, folder: &str) {
        wait_for("a first cut", || {
            let history = self.history_at(folder)?;
            history.last_cut().filter(|cut| cut.rows() > 0).map(|_| ())
        });
    }
}

impl Done {
    /// Fails unless the exit code was `code`; then what was told.
    #[track_caller]
    pub fn expect(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{}", self.told);
        &self.told
    }
}

pub fn done(output: Output) -> Done {
    let told = [output.stdout, output.stderr].concat();
    Done { code: output.status.code(), told: String::from_utf8_lossy(&told).into_owned() }
}
