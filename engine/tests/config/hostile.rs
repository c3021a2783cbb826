//! Files made to do harm, and files of any bytes.

use std::fmt::Write;
use std::path::Path;

use engine::config::{Document, Look};
use proptest::prelude::*;

use super::kinds::Kinds;
use super::{env, parse};

fn refused(text: &str, expected: &str) {
    let mistakes = parse(text).expect_err(expected).to_string();
    assert!(mistakes.contains(expected), "{mistakes}");
}

#[test]
fn aliases_cannot_stand_for_more_than_a_pipeline() {
    let mut text = String::from("name: a\nx-0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(text, "x-{level}: &a{level} [{items}]").expect("a line");
    }
    refused(&text, "values, aliases counted in full");
}

#[test]
fn variables_cannot_grow_without_end() {
    let mut text = String::from("name: a\nvars:\n  v0: xxxxxxxxxx\n");
    for level in 1..60 {
        writeln!(text, "  v{level}: ${{v{0}}}${{v{0}}}", level - 1).expect("a line");
    }
    text.push_str("nodes: {b: {kind: source.files, with: {path: \"${v59}\"}}}\n");
    refused(&text, "the variables come to more than 16 MiB");
}

#[test]
fn nesting_has_an_end() {
    refused(&format!("a: {}", "[".repeat(100_000)), "levels of nesting");
    refused(&format!("a: {}{}", "[".repeat(70), "]".repeat(70)), "levels of nesting");
    refused(&format!("a: {}", "{b: ".repeat(100_000)), "levels of nesting");
    refused(&format!("a:\n{}x", "- ".repeat(100_000)), "levels of nesting");
}

#[test]
fn an_alias_to_itself_is_refused() {
    refused("name: &a [*a]\n", "would never end");
    refused("x: &x {y: *x}\n", "would never end");
}

#[test]
fn a_huge_file_is_refused() {
    refused(&"# x\n".repeat(2 << 20), "more than 4 MiB");
}

/// Something not far from a pipeline file.
fn nearly_yaml() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "name: a\n",
        "nodes:\n",
        "  b: ",
        "{kind: batch",
        ", with: {size: 3",
        "}",
        "}\n",
        "[",
        "]",
        ", ",
        ": ",
        "\n",
        "\n    ",
        "\n\t",
        "&a ",
        "*a",
        "<<: ",
        "${v}",
        "${env:N}",
        "$$",
        "${",
        "'",
        "\"",
        "\\",
        "|\n",
        ">-\n",
        "- ",
        "? ",
        "!!int ",
        "!x ",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "# c\n",
        "é",
        "\u{2028}",
        "\u{feff}",
        "\u{0}",
        "\r",
        "vars: ",
        "run: ",
        "from: ",
        "x-y: ",
        "0x1F",
        "1e400",
        "~",
        "kind: infer\n",
        "model: ",
        "{arch: ",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|words| words.concat())
}

fn survives(text: &str) {
    let overrides = [("v".to_owned(), "[1".to_owned())];
    if let Err(mistakes) = Document::parse(text, Path::new("p.yaml"), &overrides, &env, &Kinds::new()) {
        assert!(!mistakes.is_empty());
        for look in [Look::PLAIN, Look::COLOUR] {
            assert!(mistakes.render(look).contains("p.yaml: "));
        }
        mistakes.to_json();
        for mistake in mistakes.iter() {
            if let Some(span) = mistake.span {
                let text = mistakes.source().text();
                assert!(text.get(span.range()).is_some(), "{span:?} of {} {mistake:?}", text.len());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in any::<String>()) {
        survives(&text);
    }

    #[test]
    fn nothing_near_a_pipeline_panics(text in nearly_yaml()) {
        survives(&text);
        survives(&format!("name: a\nvars: {{v: 1}}\nnodes: {{b: {{kind: batch, with: {{size: {text}}}}}}}\n"));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("p.yaml");
        std::fs::write(&file, &bytes).expect("written");
        if let Err(mistakes) = Document::read(&file, &[], &env, &Kinds::new()) {
            mistakes.render(Look::PLAIN);
        }
    }
}

#[test]
fn a_long_text_cannot_be_multiplied_by_aliases() {
    let aliases = "*a, ".repeat(1_000);
    refused(&format!("x-a: &a {}\nx-b: [{aliases}]\n", "x".repeat(1 << 20)), "MiB of values");
}

#[test]
fn names_as_long_as_a_file_are_refused_quickly() {
    let long = "x".repeat(1 << 19);
    refused(&format!("name: {long}\nnodes: {{b: {{kind: {long}, from: a.{long}}}}}\n"), "mistakes");
}

#[test]
fn a_file_full_of_mistakes_is_told_in_part() {
    let mut text = String::from("name: a\nnodes: {b: {kind: batch, with: {size: 1");
    for key in 0..200_000 {
        write!(text, ", s{key}: 1").expect("a key");
    }
    text.push_str("}}}\n");
    let mistakes = parse(&text).expect_err("mistakes");
    assert_eq!(mistakes.len(), 200_000);
    assert_eq!(mistakes.render(Look::PLAIN).matches("error: ").count(), 500);
    refused(&text, "200000 mistakes, of which these are the first 500");
}
