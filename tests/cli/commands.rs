//! validate, plan, schema, completions, help.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::program::{Done, Folder, ROOT, SHIPPED, done, examples};

const GOOD: &str = "  rows: {kind: source.synthetic, with: {rows: {count: 10}}}\n  out: {kind: sink.jsonl, with: {path: out/rows.jsonl}}\n";
const BAD: &str = "  rows: {kind: source.synthetic, with: {rows: {count: 10}}}\n  out: {kind: sink.jsonl, from: rws, with: {pat: a}}\n";

fn shipped(args: &[&str]) -> Done {
    let folder = Folder::new();
    done(folder.command(SHIPPED, args).output().expect("the program starts"))
}

#[test]
fn good_files_are_called_fine() {
    for file in examples() {
        let done = shipped(&["validate", file.to_str().expect("UTF-8")]);
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.stdout.starts_with(&format!("{}: fine, ", file.display())), "{done:?}");
    }
    let folder = Folder::with_nodes(GOOD);
    let done = folder.run(&["validate", "p.yaml"]);
    assert_eq!((done.code, &*done.stdout, &*done.stderr), (0, "p.yaml: fine, 2 nodes, 1 source, 1 sink\n", ""));
}

#[test]
fn all_mistakes_of_all_files_are_told_at_once() {
    let folder = Folder::with_nodes(BAD);
    folder.write("good.yaml", &format!("name: good\nnodes:\n{GOOD}"));
    folder.write("other.yaml", "name: other\nnodes: 3\n");
    let done = folder.run(&["validate", "p.yaml", "good.yaml", "other.yaml", "none.yaml"]);
    assert_eq!(done.code, 2, "{done:?}");
    for part in ["p.yaml:4:", "`pat`", "good.yaml: fine", "other.yaml:2:8", "`none.yaml`"] {
        assert!(done.stdout.contains(part), "{part} in {}", done.stdout);
    }
    assert!(!done.stdout.contains('\x1b'), "no colours in a pipe");
}

#[test]
fn colours_follow_the_environment() {
    let folder = Folder::with_nodes(BAD);
    let coloured = |variables: &[(&str, &str)]| {
        let mut command = folder.command(SHIPPED, &["validate", "p.yaml"]);
        done(command.envs(variables.iter().copied()).output().expect("the program starts")).stdout.contains('\x1b')
    };
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn a_locale_without_unicode_gets_ascii() {
    let folder = Folder::with_nodes(BAD);
    for args in [&["validate", "p.yaml"][..], &["nodes", "infer"], &["nodes"]] {
        let output = folder.command(SHIPPED, args).env("LANG", "C").output().expect("the program starts");
        assert!(output.stdout.is_ascii() && !output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn mistakes_are_data_for_editors() {
    let folder = Folder::with_nodes(BAD);
    folder.write("good.yaml", &format!("name: good\nnodes:\n{GOOD}"));
    let done = folder.run(&["validate", "p.yaml", "good.yaml", "--format", "json"]);
    assert_eq!(done.code, 2);
    let json: Json = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(
        json["files"],
        serde_json::json!([{"file": "p.yaml", "fine": false}, {"file": "good.yaml", "fine": true}])
    );
    let mistake =
        json["mistakes"].as_array().expect("a list").iter().find(|mistake| mistake["label"] == "did you mean `path`?");
    let mistake = mistake.unwrap_or_else(|| panic!("{json}"));
    assert_eq!(mistake["file"], "p.yaml");
    // `pat` in line 4 of BAD.
    let column = BAD.lines().nth(1).expect("a line").find("pat:").expect("the option") + 1;
    assert_eq!((&mistake["line"], &mistake["column"]), (&4.into(), &column.into()));
    assert_eq!(mistake["end_column"], column + 3);
}

#[test]
fn variables_reach_every_command() {
    let folder = Folder::new();
    let text = format!("name: p\nvars: {{n: 10}}\nnodes:\n{}", GOOD.replace("count: 10", "count: \"${n}\""));
    folder.write("p.yaml", &text);
    for command in ["validate", "graph", "plan", "run"] {
        assert_eq!(folder.run(&[command, "p.yaml", "--set", "n=7"]).code, 0, "{command}");
        assert_eq!(folder.run(&[command, "p.yaml", "--set", "n=seven"]).code, 2, "{command}");
        assert_eq!(folder.run(&[command, "p.yaml", "--set", "m=7"]).code, 2, "{command}");
        assert_eq!(folder.run(&[command, "p.yaml", "--set", "n"]).code, 2, "{command}");
    }
    assert_eq!(folder.rows("out/rows.jsonl").len(), 7);
}

#[test]
fn a_plan_tells_host_placement_and_outputs() {
    let file = Path::new(ROOT).join("pipelines/quickstart.yaml");
    let file = file.to_str().expect("UTF-8");
    let text = shipped(&["plan", file]);
    assert_eq!(text.code, 0, "{text:?}");
    for part in [
        "host ",
        "threads ",
        "queues ",
        "memory     about ",
        "scores → cpu, 1 instance, ",
        "256 bicubic, crop 224 (from model)",
        "out/labels.jsonl",
    ] {
        assert!(text.stdout.contains(part), "{part} in {}", text.stdout);
    }
    let json: Json = serde_json::from_str(&shipped(&["plan", file, "--format", "json"]).stdout).expect("JSON");
    let cores = std::thread::available_parallelism().expect("cores").get();
    let worker = serde_json::json!({
        "device": "cpu", "models": ["scores"], "threads": cores, "memory": 0, "isolation": "thread",
    });
    assert_eq!(json["placement"], serde_json::json!({"isolation": "thread", "workers": [worker]}));
    let memory = &json["host_memory"];
    let items = &memory["items"];
    let [program, scores, rows] =
        [&items["program"], &items["models"][0]["bytes"], &items["rows"]].map(|bytes| bytes.as_u64().expect("bytes"));
    assert_eq!(memory["bytes"], program + scores + rows);
    // The weights once, and for each thread what it computes with; pictures that wait, of 150,528 bytes.
    let weights = 4 * 4_652_008;
    assert!(scores > weights && (scores - weights) % cores as u64 == 0, "{items}");
    assert!(rows > 150_528 && rows < 256 << 20, "{items}");
    assert_eq!(json["host"]["cores"], cores);
    assert_eq!(json["threads"]["rows"], cores);
    let names: Vec<_> =
        json["nodes"].as_array().expect("a list").iter().map(|node| node["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["photos", "pixels", "scores.batch", "scores", "labels", "out"]);
    assert!(json["writes"][0].as_str().expect("a path").ends_with("pipelines/out/labels.jsonl"));
}

#[test]
fn a_plan_reads_no_data_and_writes_nothing() {
    let folder = Folder::with_nodes(
        "  files: {kind: source.files, with: {path: 'none/*.jpg'}}\n  out: {kind: sink.jsonl, with: {path: out/rows.jsonl}}\n",
    );
    assert_eq!(folder.run(&["plan", "p.yaml"]).code, 0);
    assert_eq!(folder.names(""), ["p.yaml"]);
}

#[test]
fn the_schema_is_valid_and_accepts_every_example() {
    let schema: Json = serde_json::from_str(&shipped(&["schema"]).stdout).expect("JSON");
    jsonschema::draft202012::meta::validate(&schema).unwrap_or_else(|error| panic!("{error}"));
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors = |text: &str| {
        let file: Json = serde_yaml::from_str(text).expect("YAML");
        validator.iter_errors(&file).map(|error| error.to_string()).collect::<Vec<_>>()
    };
    for file in examples() {
        let text = fs::read_to_string(&file).expect("the file");
        assert_eq!(errors(&text), [""; 0], "{}", file.display());
        assert_ne!(errors(&text.replace("kind: sink.", "kind: sunk.")), [""; 0], "{}", file.display());
    }
    assert_ne!(errors(&format!("name: p\nnodes:\n{BAD}")), [""; 0]);
}

#[test]
fn every_shell_gets_completions_of_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = shipped(&["completions", shell]);
        assert_eq!(done.code, 0, "{shell}");
        for word in ["validate", "--metrics-addr", "max-rejects"] {
            let word = if shell == "fish" { word.trim_start_matches("--") } else { word };
            assert!(done.stdout.contains(word), "{word} for {shell}");
        }
    }
    assert_eq!(shipped(&["completions", "cmd"]).code, 2);
}

#[test]
fn help_has_examples_and_goes_to_standard_output() {
    for args in [&["--help"][..], &["run", "--help"], &["help", "graph"], &["plan", "-h"]] {
        let done = shipped(args);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{args:?}");
        assert!(done.stdout.contains("Examples:\n  flowgpu "), "{args:?}: {}", done.stdout);
    }
    assert_eq!(shipped(&["--version"]).stdout, format!("flowgpu {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_answer_that_nobody_reads_is_no_error() {
    for args in [&["schema"][..], &["nodes"], &["completions", "zsh"]] {
        let folder = Folder::new();
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let mut command = folder.command(SHIPPED, args);
        command.stdout(writer).stderr(std::process::Stdio::piped());
        drop(reader);
        let done = done(command.spawn().expect("the program starts").wait_with_output().expect("it ends"));
        assert_eq!((done.code, &*done.stderr), (0, ""), "{args:?}");
    }
}
