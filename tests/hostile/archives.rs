//! Archives and tables that end early, lie, or would fill the memory.

use std::io::Write;
use std::os::unix::fs::symlink;

use crate::told;
use crate::workplace::Workplace;

/// Samples of `n` pictures.
fn tar(n: usize) -> Vec<u8> {
    let picture =
        std::fs::read(format!("{}/nodes/tests/jpeg/420-35x33.jpg", env!("CARGO_MANIFEST_DIR"))).expect("a file");
    let names: Vec<_> = (0..n).map(|number| format!("d/{number:02}.jpg")).collect();
    nodes::testing::tar_of(names.iter().map(|name| (name.as_str(), picture.as_slice())))
}

fn pipeline(source: &str) -> String {
    format!(
        "name: archives\nnodes:\n  rows: {{{source}}}\n  pixels: {{kind: decode.image}}\n  out: {{kind: sink.jsonl, with: {{path: \
         out.jsonl, columns: [id, width]}}}}\n"
    )
}

fn gzip(workplace: &Workplace, name: &str) -> Vec<u8> {
    workplace.command(&["gzip", "-kn"], &[name]).expect(0);
    workplace.read(&format!("{name}.gz"))
}

fn rejects(workplace: &Workplace) -> Vec<[String; 3]> {
    workplace.rows("archives.rejects.jsonl").iter().map(|row| told(row).map(str::to_owned)).collect()
}

#[test]
fn a_tar_cut_at_half_gives_all_whole_members_and_tells_of_the_tail() {
    let workplace = Workplace::new();
    workplace.write("p.yaml", pipeline("kind: source.webdataset, with: {path: x.tar}"));
    let whole = tar(20);
    workplace.write("x.tar", &whole);
    workplace.run(&["p.yaml"]).expect(0);
    let all = workplace.rows("out.jsonl");
    assert_eq!(all.len(), 20);
    // A header and a body of two blocks each, and the end.
    assert_eq!(whole.len(), 20 * 1536 + 1024);
    workplace.write("x.tar", &whole[..whole.len() / 2]);
    workplace.run(&["p.yaml", "--fresh"]).expect(3);
    assert_eq!(workplace.rows("out.jsonl"), all[..10]);
    let message = workplace.rows("archives.rejects.jsonl")[0]["message"].as_str().expect("a message").to_owned();
    assert_eq!(rejects(&workplace).len(), 1);
    assert!(message.contains("x.tar` ends early"), "{message}");
}

/// The sum and the length stand behind the packed bytes, and behind the end of the tar.
#[test]
fn a_damaged_end_of_gzip_is_a_reject_behind_all_rows() {
    let workplace = Workplace::new();
    workplace.write("x.tar", tar(5));
    workplace.write("x.csv", "file,n\nin.jpg,1\nin.jpg,2\n");
    workplace.write(
        "in.jpg",
        std::fs::read(format!("{}/nodes/tests/jpeg/420-35x33.jpg", env!("CARGO_MANIFEST_DIR"))).expect("a file"),
    );
    for (name, source, n_rows) in [
        ("x.tar", "kind: source.webdataset, with: {path: x.tar.gz}", 5),
        ("x.csv", "kind: source.csv, with: {path: x.csv.gz, column: file}", 2),
    ] {
        workplace.write("p.yaml", pipeline(source));
        let whole = gzip(&workplace, name);
        workplace.run(&["p.yaml", "--fresh"]).expect(0);
        let all = workplace.rows("out.jsonl");
        assert_eq!(all.len(), n_rows);
        let packed = format!("{name}.gz");
        for (damage, code) in [(-1, "corrupt"), (-5, "corrupt"), (0, "truncated"), (1, "corrupt")] {
            let mut damaged = whole.clone();
            match damage {
                0 => damaged.truncate(whole.len() - 3),
                1 => damaged.extend_from_slice(b"what is no gzip"),
                _ => damaged[whole.len().wrapping_add_signed(damage)] ^= 1,
            }
            workplace.write(&packed, &damaged);
            workplace.run(&["p.yaml", "--fresh"]).expect(3);
            assert_eq!(workplace.rows("out.jsonl"), all, "{packed}, {damage}");
            let rejects = rejects(&workplace);
            assert_eq!(rejects.len(), 1, "{rejects:?}");
            assert!(rejects[0][0].starts_with(&packed) && rejects[0][2] == code, "{rejects:?}");
        }
        workplace.write(&packed, [&whole[..], &[0; 2000]].concat());
        workplace.run(&["p.yaml", "--fresh"]).expect(0);
        std::fs::remove_file(workplace.path(&packed)).expect("a file");
    }
}

/// 4 GiB of zeros each, in a few MiB or less.
#[test]
fn packed_archives_and_tables_that_would_fill_the_memory_do_not() {
    let workplace = Workplace::new();
    let start = &tar(1)[..1536];
    let member = |size: &str| {
        let mut header = start[..512].to_vec();
        header[124..135].copy_from_slice(size.as_bytes());
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header
    };
    let pack = |name: &str, beginning: &[u8], n_mebibytes: usize| {
        let mut file =
            zstd::Encoder::new(std::fs::File::create(workplace.path(name)).expect("a file"), 1).expect("zstd");
        file.write_all(beginning).expect("a file");
        let zeros = vec![0; 1 << 20];
        (0..n_mebibytes).for_each(|_| file.write_all(&zeros).expect("a file"));
        file.finish().expect("a file");
    };
    // 1.5 GiB of one member.
    pack("big.tar.zst", &member("14000000000"), 1536);
    pack("line.csv.zst", b"file\n", 1024);
    pack("line.jsonl.zst", b"{}\n", 1024);
    for (source, code) in [
        ("kind: source.webdataset, with: {path: big.tar.zst}", "too_large"),
        ("kind: source.csv, with: {path: line.csv.zst, column: file, carry: none}", "too_large"),
        ("kind: source.jsonl, with: {path: line.jsonl.zst, column: file, carry: none}", "too_large"),
    ] {
        workplace.write("p.yaml", pipeline(source));
        let limited = ["env", "MALLOC_ARENA_MAX=2", "sh", "-c", "ulimit -v 900000 && exec \"$@\"", "sh"];
        let program: Vec<_> = limited.into_iter().chain([env!("CARGO_BIN_EXE_flowgpu"), "run"]).collect();
        workplace.command(&program, &["p.yaml", "--fresh"]).expect(3);
        let rejects = rejects(&workplace);
        assert!(rejects.iter().any(|reject| reject[2] == code), "{source}: {rejects:?}");
    }
}

#[test]
fn names_in_an_archive_lead_nowhere() {
    let workplace = Workplace::new();
    let picture =
        std::fs::read(format!("{}/nodes/tests/jpeg/420-35x33.jpg", env!("CARGO_MANIFEST_DIR"))).expect("a file");
    let names = ["../../escaped.jpg", "/escaped.jpg", "a/../../b.jpg", "..jpg", "a\nb.jpg", "c\u{1b}[31m.jpg"];
    workplace.write("in/x.tar", nodes::testing::tar_of(names.map(|name| (name, picture.as_slice()))));
    workplace.write(
        "in/p.yaml",
        "name: archives\nnodes:\n  rows: {kind: source.webdataset, with: {path: x.tar}}\n  pixels: {kind: decode.image}\n  \
         ids: {kind: sink.jsonl, from: rows, with: {path: out/ids.jsonl}}\n  \
         tar: {kind: sink.webdataset, from: rows, with: {path: out/y.tar}}\n  \
         out: {kind: sink.jsonl, from: pixels, with: {path: out/rows.jsonl, columns: [id, width]}}\n",
    );
    let said = workplace.run(&["in/p.yaml"]).said();
    assert!(!said.contains('\u{1b}'), "{said}");
    assert_eq!(workplace.names(""), ["in", "models"], "{said}");
    assert_eq!(workplace.names("in"), [".flowgpu", "out", "p.yaml", "x.tar"], "{said}");
    let listed = workplace.command(&["tar", "-tf"], &["in/out/y-00000.tar"]).expect(0);
    assert!(!listed.is_empty());
    for name in listed.lines() {
        assert!(!name.starts_with('/') && name.split('/').all(|part| part != ".."), "{listed}");
    }
}

#[test]
fn loops_of_links_end() {
    let workplace = Workplace::new();
    let picture =
        std::fs::read(format!("{}/nodes/tests/jpeg/420-35x33.jpg", env!("CARGO_MANIFEST_DIR"))).expect("a file");
    workplace.write("in/a/b/1.jpg", picture);
    symlink("../..", workplace.path("in/a/b/up")).expect("a link");
    symlink("self.jpg", workplace.path("in/self.jpg")).expect("a link");
    symlink("there.jpg", workplace.path("in/here.jpg")).expect("a link");
    symlink("here.jpg", workplace.path("in/there.jpg")).expect("a link");
    workplace.write("p.yaml", pipeline("kind: source.files, with: {path: 'in/**/*.jpg'}"));
    workplace.run(&["p.yaml"]).expect(3);
    let rows = workplace.rows("out.jsonl");
    assert_eq!(rows.len(), 1, "{rows:?}");
    let rejects = rejects(&workplace);
    let names: Vec<_> = rejects.iter().map(|reject| reject[0].as_str()).collect();
    assert_eq!(names, ["in/here.jpg", "in/self.jpg", "in/there.jpg"], "{rejects:?}");
}
