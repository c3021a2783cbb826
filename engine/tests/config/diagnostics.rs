//! Wrong files and what is said of them: each `wrong/NAME.yaml` has the whole rendering in `wrong/NAME.txt`.
//!
//! A first line `# --set a=b c=d` in a file stands for the command line. `UPDATE_GOLDEN=1` writes the renderings anew,
//! to be read before they are committed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use engine::config::{Document, Look, Mistakes};
use serde_json::json;

use super::kinds::Kinds;
use super::{env, parse};

fn wrong_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/wrong");
    let entries = fs::read_dir(folder).expect("the folder of wrong files").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension() == Some(OsStr::new("yaml"))).collect();
    files.sort();
    files
}

fn mistakes_of(file: &Path) -> Mistakes {
    let bytes = fs::read(file).expect("a wrong file");
    let text = String::from_utf8_lossy(&bytes);
    let set = text.lines().next().and_then(|line| line.strip_prefix("# --set ")).unwrap_or("");
    let overrides: Vec<(String, String)> =
        set.split_whitespace().filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect();
    let name = Path::new(file.file_name().expect("a name"));
    match std::str::from_utf8(&bytes) {
        Ok(text) => Document::parse(text, name, &overrides, &env, &Kinds::new()).expect_err(&name.to_string_lossy()),
        Err(_) => Document::read(file, &overrides, &env, &Kinds::new()).expect_err(&name.to_string_lossy()),
    }
}

#[test]
fn each_wrong_file_is_told_as_written_down() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut differing = Vec::new();
    for file in wrong_files() {
        let folder = format!("{}/", file.parent().expect("a folder").display());
        let actual = mistakes_of(&file).render(Look::PLAIN).replace(&folder, "");
        let golden = file.with_extension("txt");
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

#[test]
fn there_are_enough_wrong_files_and_each_says_where() {
    let files = wrong_files();
    assert!(files.len() >= 40, "{}", files.len());
    for file in files {
        let mistakes = mistakes_of(&file);
        let rendered = mistakes.render(Look::PLAIN);
        for (mistake, line) in mistakes.iter().zip(mistakes.lines().lines()) {
            let Some(span) = mistake.span else { continue };
            let at = mistakes.source().location(span.start);
            let place = format!("{}:{}:{}", mistakes.source().file().display(), at.line, at.column);
            assert!(rendered.contains(&format!("{place}\n")), "{place} in {rendered}");
            assert!(line.starts_with(&format!("{place}: error: ")), "{line}");
        }
    }
}

#[test]
fn the_same_as_json_for_editors() {
    let mistakes = parse("name: a\nnodes:\n  é: {kind: batch, with: {size: big}}\n").expect_err("two mistakes");
    assert_eq!(
        mistakes.to_json()[1],
        json!({
            "file": "dir/p.yaml", "line": 3, "column": 33, "end_line": 3, "end_column": 36,
            "message": "`size` wants a positive integer, and this is the text `big`",
            "label": "", "notes": ["`size`: Rows in a batch"],
        })
    );
}

#[test]
fn colour_only_where_asked_for_and_ascii_where_needed() {
    let mistakes = parse("name: a\nnodez: {}\n").expect_err("mistakes");
    assert!(mistakes.render(Look::COLOUR).contains("\u{1b}["));
    let plain = mistakes.render(Look::PLAIN);
    assert!(!plain.contains('\u{1b}') && plain.contains("┌─"), "{plain}");
    let ascii = mistakes.render(Look { colour: false, ascii: true });
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn control_characters_never_reach_the_terminal() {
    let mistakes = parse("name: a\nnodes: {\"b\\e[2J\": {kind: \"x\u{7f}\u{9b}2J\"}}\n").expect_err("mistakes");
    let rendered = mistakes.render(Look::PLAIN);
    assert!(rendered.chars().all(|c| c == '\n' || !c.is_control()), "{rendered:?}");
}

#[test]
fn a_very_long_line_is_shown_in_part() {
    let text = format!("name: a\nnodes: {{b: {{kind: batch, with: {{{}sise: 1}}}}}}\n", "size: 1, ".repeat(500));
    let rendered = parse(&text).expect_err("mistakes").render(Look::PLAIN);
    let longest = rendered.lines().map(str::len).max().expect("lines");
    assert!(longest < 400, "{longest}");
    assert!(rendered.contains("did you mean `size`?"), "{rendered}");
}

/// Checks that the one mistake in a file stands exactly between « and ».
fn check(marked: &str, message: &str) {
    let start = marked.find('«').expect("the beginning");
    let end = marked.find('»').expect("the end") - '«'.len_utf8();
    let mistakes = parse(&marked.replace(['«', '»'], "")).expect_err(message);
    let spans: Vec<_> = mistakes.iter().map(|mistake| mistake.span.map(|span| (span.start, span.end))).collect();
    assert_eq!(spans, [Some((start, end))], "{mistakes}");
    assert!(mistakes.lines().contains(message), "{mistakes}");
}

#[test]
fn places_are_exact_to_the_byte() {
    let node = |text: &str| format!("name: a\nnodes:\n  ok: {{kind: decode.image}}\n  {text}\n");
    let batch = |text: &str| node(&format!("b: {{kind: batch, with: {{size: 1, {text}}}}}"));
    check(&batch("«sise»: 2"), "unknown option `sise`");
    check(&node("b:\n    kind: batch\n    with:\n      size: «'5 é'»  # '"), "the text `5 é`");
    check(&batch("max_wait: «\"5\\\"\"» "), "wants a duration");
    check(&node("b:\n    kind: batch\n    with:\n      size: «'it''s'» # it's"), "the text `it's`");
    check(&batch("max_wait: «soon» "), "wants a duration");
    check(&batch("max_wait: !!str «soon»"), "wants a duration");
    check(&batch("max_wait: &w «soon»"), "wants a duration");
    check(&batch("max_wait: «[5, {a: b}]»"), "and this is a list");
    check(&batch("max_wait: «{a: [é]}»"), "and this is a map");
    check(&batch("max_wait: 🦀 é «${v}» 🦀").replace("max_wait: ", "max_wait: '").replace("🦀}", "🦀'}"), "`v`");
    check(&batch("«max_wait: 5s»").replace("max_wait: ", "max_wait:"), "unknown option `max_wait:5s`");
    check(&node("b:\n    kind: batch\n    with:\n      size:\n        «- 1\n        - 2»\n  # end"), "this is a list");
    check(&node("b:\n    kind: batch\n    with:\n      size: |\n        «a\n        b»\n\n  # end"), "the text `a…`");
    check(&node("b:\n    kind: batch\n    with:\n      size: «a\n        b»"), "the text `a b`");
    check(&node("b:\n    kind: batch\n    with: {«size»: }"), "and this is empty");
    check(&node("b:\r\n    kind: batch\r\n    with:\r\n      size: «é»\r"), "the text `é`");
    check(&node("b: {kind: «batsh», with: {}}"), "unknown kind");
    check(&node("b: {kind: decode.image, from: [ok, «ok.rejcts»]}"), "no output `rejcts`");
    check(&node("«ok»: {kind: decode.image}"), "written twice");
    check("name: a\nrun: {threads: {io: «0»}}\nnodes: {b: {kind: decode.image}}\n", "positive integer");
    check("# é\n«name»: a\n", "missing key `nodes`");
}
