//! nodes: the manual of every kind.

use serde_json::Value as Json;

use crate::program::{Done, Folder, SHIPPED, done};

fn nodes(args: &[&str]) -> Done {
    let args: Vec<_> = ["nodes"].iter().chain(args).copied().collect();
    done(Folder::new().command(SHIPPED, &args).output().expect("the program starts"))
}

#[test]
fn every_kind_is_listed_and_has_a_manual_with_all_its_options() {
    let list = nodes(&[]).stdout;
    let kinds: Json = serde_json::from_str(&nodes(&["--format", "json"]).stdout).expect("JSON");
    assert!(kinds.as_array().expect("a list").len() >= 11);
    for kind in kinds.as_array().expect("a list") {
        let name = kind["name"].as_str().expect("a name");
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(name));
        assert!(line.is_some_and(|line| line.split_whitespace().count() > 3), "{name} in {list}");
        let manual = nodes(&[name]);
        assert_eq!(manual.code, 0);
        for heading in [name, "Input", "Output", "Options", "Example"] {
            assert!(manual.stdout.lines().any(|line| line == heading), "{heading} of {name}");
        }
        for (option, schema) in kind["schema"]["properties"].as_object().into_iter().flatten() {
            let line = manual
                .stdout
                .lines()
                .find(|line| line.strip_prefix("  ").is_some_and(|line| line.starts_with(&format!("{option}  ("))));
            let line = line.unwrap_or_else(|| panic!("{option} of {name} in {}", manual.stdout));
            if let Some(default) = schema["default"].as_str() {
                assert!(line.ends_with(&format!("default `{default}`)")), "{line}");
            }
        }
        assert!(
            manual.stdout.contains(kind["example"].as_str().expect("an example").lines().next().expect("a line")),
            "{name}"
        );
        assert!(
            manual.stdout.lines().all(|line| line.chars().count() <= 100 || line.contains(": {")),
            "{}",
            manual.stdout
        );
    }
}

#[test]
fn the_manual_of_decode_image_says_what_one_can_write() {
    let manual = nodes(&["decode.image"]).stdout;
    for line in [
        "  interpolation  (`nearest` or `bilinear` or `bicubic` or `lanczos` or `box` or `hamming`)",
        "  resize  (whole number or [whole number, whole number] or {shorter?, longer?})",
        "  max_pixels  (whole number; default 178956970)",
        "  as  (text; default `image`)",
    ] {
        assert!(manual.lines().any(|other| other == line), "{line} in {manual}");
    }
    assert!(nodes(&["source.files"]).stdout.contains("; required)"));
}

#[test]
fn an_unknown_kind_gets_the_nearest_one() {
    let done = nodes(&["decode.imag"]);
    assert_eq!((done.code, &*done.stdout), (2, ""));
    assert_eq!(done.stderr, "error: there is no kind `decode.imag`\n  help: did you mean `decode.image`?\n");
    let done = nodes(&["source.bucket"]);
    assert!(done.stderr.contains("source.files, source.synthetic"), "{done:?}");
}
