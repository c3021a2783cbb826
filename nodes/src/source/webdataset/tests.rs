//! Tars made byte by byte: what a tool writes, and what no tool does.

use std::fs;
use std::io::Write;
use std::path::Path;

use engine::data::{Column, code};
use engine::node::harness::{Harness, Mapped};

use super::*;

/// A header with a right sum.
fn header(name: &[u8], size: &[u8], kind: u8, magic: &[u8]) -> [u8; 512] {
    let mut block = [0; 512];
    block[..name.len()].copy_from_slice(name);
    block[100..107].copy_from_slice(b"0000644");
    block[124..124 + size.len()].copy_from_slice(size);
    block[156] = kind;
    block[257..257 + magic.len()].copy_from_slice(magic);
    with_sum(block)
}

fn with_sum(mut block: [u8; 512]) -> [u8; 512] {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn member_of(name: &str, kind: u8, body: &[u8]) -> Vec<u8> {
    let size = format!("{:011o}", body.len());
    let mut tar = header(name.as_bytes(), size.as_bytes(), kind, b"ustar\x0000").to_vec();
    tar.extend_from_slice(body);
    tar.resize(tar.len().next_multiple_of(512), 0);
    tar
}

fn member(name: &str, body: &[u8]) -> Vec<u8> {
    member_of(name, b'0', body)
}

fn pax(kind: u8, records: &[(&str, &str)]) -> Vec<u8> {
    let mut body = String::new();
    for (name, value) in records {
        let rest = format!(" {name}={value}\n");
        let n_bytes = (1..).find(|n: &usize| n.to_string().len() + rest.len() == *n).unwrap();
        body += &format!("{n_bytes}{rest}");
    }
    member_of("PaxHeaders/x", kind, body.as_bytes())
}

const END: [u8; 1024] = [0; 1024];

fn tar(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), END.to_vec()].concat()
}

/// Rows as `(id, bytes)` and rejects as `(row, code, message)`, with further options.
struct Read {
    rows: Vec<(String, Vec<u8>)>,
    rejects: Vec<(usize, &'static str, String)>,
    mapped: Mapped,
}

fn read_from(content: &[u8], with: &str, skip: u32) -> Read {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.tar"), content).unwrap();
    let source = Harness::new::<Webdataset>(&format!("{{path: x.tar{with}}}"), vec![]).in_folder(folder.path());
    let items = source.items(10).unwrap();
    assert_eq!(items.len(), 1);
    let mapped = source.unpack(0, &items[0], skip);
    let [Column::Text(ids), Column::Text(uris), Column::Bytes(bytes), ..] = &mapped.columns[..] else { panic!() };
    let rows = (0..mapped.passed.len()).map(|row_idx| {
        assert_eq!(uris.get(row_idx), format!("x.tar#{}", ids.get(row_idx)));
        (ids.get(row_idx).to_owned(), bytes.values()[row_idx].to_vec())
    });
    let rows = rows.collect();
    let rejects = mapped.rejects.iter().map(|(row, reject)| (*row, reject.code, reject.message.clone())).collect();
    Read { rows, rejects, mapped }
}

fn read(content: &[u8]) -> Read {
    read_from(content, "", 0)
}

fn keys(read: &Read) -> Vec<&str> {
    read.rows.iter().map(|(key, _)| key.as_str()).collect()
}

#[test]
fn members_that_follow_one_another_under_one_key_are_a_sample() {
    let read = read_from(
        &tar(&[
            member_of("d/", b'5', b""),
            member("d/1.txt", b"one"),
            member("d/1.JPG", b"first"),
            member("d/1.seg.png", b"mask"),
            member("__meta__", b"{}"),
            member("noext", b""),
            member("d/1.cls", b" 7\n"),
            member("d/2.png", b"png"),
            member("d/2.jpeg", b"jpeg"),
            member("d/2.cls", b"-1"),
            member("d/1.jpg", b"again"),
            member("d/1.cls", b"8"),
        ]),
        ", carry: {caption: TXT, label: .cls}",
        0,
    );
    let expected = [("d/1", "first"), ("d/2", "jpeg"), ("d/1", "again")];
    assert_eq!(read.rows, expected.map(|(key, bytes)| (key.to_owned(), bytes.as_bytes().to_vec())));
    let [_, _, _, Column::Text(captions), Column::Int(labels)] = &read.mapped.columns[..] else { panic!() };
    assert_eq!((captions.get(0), captions.get(1), captions.get(2)), ("one", "", ""));
    assert_eq!(labels.values(), [7, -1, 8]);
}

#[test]
fn a_sample_that_is_not_right_is_one_reject() {
    let read = read_from(
        &tar(&[
            member("1.txt", b"no image"),
            member("1.seg.png", b""),
            member("2.jpg", b"a"),
            member("2.JPG", b"b"),
            member("3.jpg", b"12345678901"),
            member("4.jpg", b"good"),
            member("4.cls", b"4"),
            member("5.jpg", b"good"),
            member("5.cls", b"four"),
            member("6.jpg", b"good"),
            member("7.jpg", b"good"),
            member("7.cls", b"7"),
            member("7.txt", b"\xff"),
        ]),
        ", max_member_bytes: 10, carry: {label: cls, caption: txt}",
        0,
    );
    assert_eq!(keys(&read), ["4"]);
    let codes: Vec<_> = read.rejects.iter().map(|(row, code, _)| (*row, *code)).collect();
    let expected = [
        (0, code::NOT_FOUND),
        (1, code::CORRUPT),
        (2, code::TOO_LARGE),
        (4, code::CORRUPT),
        (5, code::NOT_FOUND),
        (6, code::CORRUPT),
    ];
    assert_eq!(codes, expected);
    let messages: Vec<_> = read.rejects.iter().map(|(.., message)| message.as_str()).collect();
    assert!(messages[0].contains("`x.tar#1`") && messages[0].contains("`txt`, `seg.png`"), "{}", messages[0]);
    assert!(messages[1].contains("two members `.jpg`"), "{}", messages[1]);
    assert!(messages[2].contains("`3.jpg` has 11 bytes"), "{}", messages[2]);
}

#[test]
fn long_names_and_sizes_come_from_the_headers_before() {
    let long = format!("{}/name.jpg", "folder/".repeat(40));
    let gnu = [member_of("././@LongLink", b'L', format!("{long}\0").as_bytes()), member("cut.jpg", b"gnu")];
    let mut ustar = header(b"name.jpg", b"00000000005", b'0', b"ustar\x0000");
    ustar[345..351].copy_from_slice(b"prefix");
    let ustar = [with_sum(ustar).to_vec(), b"ustar".to_vec(), vec![0; 507]].concat();
    let size = [pax(b'x', &[("size", "3"), ("path", "pax/ä.jpg")]), member("p.jpg", b"pax")];
    let global = [pax(b'g', &[("path", "global.jpg")]), member("g.jpg", b"all"), pax(b'g', &[("comment", "x")])];
    let read = read(&tar(&[gnu.concat(), ustar, size.concat(), global.concat()]));
    let long_key = long.strip_suffix(".jpg").unwrap();
    assert_eq!(keys(&read), [long_key, "prefix/name", "pax/ä", "global"]);
    assert!(read.rejects.is_empty(), "{:?}", read.rejects);
}

#[test]
fn a_size_in_the_header_is_nothing_against_the_one_in_the_records() {
    let mut body = pax(b'x', &[("size", "600")]);
    body.extend_from_slice(&header(b"a.jpg", b"00000000000", b'0', b"ustar\x0000"));
    body.extend_from_slice(&[b'x'; 600]);
    body.resize(body.len().next_multiple_of(512), 0);
    let read = read(&tar(&[body, member("b.jpg", b"b")]));
    assert_eq!(keys(&read), ["a", "b"]);
    assert_eq!(read.rows[0].1, [b'x'; 600]);
}

#[test]
fn what_is_stored_for_no_file_is_passed_over() {
    let with_size = |kind| header(b"link.jpg", b"00000001000", kind, b"ustar\x0000").to_vec();
    let kinds: Vec<_> = (b'1'..=b'6').map(with_size).collect();
    let unknown = member_of("odd.jpg", b'V', b"volume");
    let sparse = [pax(b'x', &[("GNU.sparse.major", "1"), ("GNU.sparse.name", "s.jpg")]), member("s.jpg", b"1")];
    let read = read(&tar(&[kinds.concat(), unknown, member("a.jpg", b"a"), sparse.concat(), member("b.jpg", b"b")]));
    assert_eq!(keys(&read), ["a", "b"]);
    assert_eq!(read.rejects[0].1, code::UNSUPPORTED);
}

#[test]
fn a_tar_cut_anywhere_gives_all_whole_samples_and_one_reject() {
    let members = [member("1.jpg", &[1; 700]), member("1.cls", b"1"), member("2.jpg", &[2; 10]), member("2.cls", b"2")];
    let whole = tar(&members);
    let ends: Vec<usize> = members
        .iter()
        .scan(0, |end, member| {
            *end += member.len();
            Some(*end)
        })
        .collect();
    let is_odd = |n_bytes: &usize| [0, 1, 2, 10, 188, 511].contains(&(n_bytes % 512)) || n_bytes.is_multiple_of(97);
    for n_bytes in (1..whole.len()).filter(is_odd) {
        let cut = &whole[..n_bytes];
        let read = read_from(cut, ", carry: {label: cls}", 0);
        // A sample is whole when the body of its last member is.
        let n_whole = [ends[0] + 512 + 1, ends[2] + 512 + 1].iter().filter(|&&end| n_bytes >= end).count();
        assert_eq!(read.rows.len(), n_whole, "cut after {n_bytes} bytes");
        let is_at_end = ends[3] <= n_bytes;
        let is_between_members = ends.contains(&n_bytes);
        if is_at_end && (n_bytes % 512 == 0 || n_bytes > ends[3] + 512) {
            assert!(read.rejects.is_empty(), "cut after {n_bytes} bytes: {:?}", read.rejects);
        } else if is_between_members {
            // Nothing says that there was more, but that a sample is not whole.
            assert!(read.rejects.iter().all(|(_, code, _)| *code == code::NOT_FOUND));
        } else {
            let expected = if n_bytes < 512 { code::UNSUPPORTED } else { code::TRUNCATED };
            let codes: Vec<_> = read.rejects.iter().map(|(_, code, _)| *code).collect();
            assert_eq!(codes, [expected], "cut after {n_bytes} bytes");
        }
        // Resumed anywhere, it is the same.
        let n_rows = read.rows.len() + read.rejects.len();
        for skip in 0..=n_rows + 1 {
            let rest = read_from(cut, ", carry: {label: cls}", skip as u32);
            let is_behind = |row: usize| row >= skip;
            let rows: Vec<_> = read.mapped.passed.iter().copied().filter(|&row| is_behind(row)).collect();
            assert_eq!(rest.rows.len(), rows.len(), "cut after {n_bytes} bytes, from {skip} on");
            assert_eq!(rest.rows[..], read.rows[read.rows.len() - rows.len()..]);
            let rejects = read.rejects.iter().filter(|(row, ..)| is_behind(*row));
            let rejects: Vec<_> = rejects.map(|(row, code, message)| (row - skip, *code, message.clone())).collect();
            assert_eq!(rest.rejects, rejects, "cut after {n_bytes} bytes, from {skip} on");
        }
    }
}

#[test]
fn a_tar_that_ends_within_a_member_names_it() {
    let whole = [member("a.jpg", b"a"), member("b/c.jpg", &[0; 5000])].concat();
    let cut = read(&whole[..2000]);
    assert_eq!(keys(&cut), ["a"]);
    assert_eq!(
        cut.rejects,
        [(1, code::TRUNCATED, "`x.tar` ends early, within `b/c.jpg`, its member number 2".to_owned())]
    );
    let in_header = read(&whole[..1100]);
    assert_eq!(
        in_header.rejects,
        [(1, code::TRUNCATED, "`x.tar` ends early, after `a.jpg`, its member number 1".to_owned())]
    );
}

#[test]
fn lying_headers_are_one_reject_and_take_no_memory() {
    let lies: [(&str, Vec<u8>, &str); 9] = [
        ("negative", header(b"b.jpg", &[0xff; 12], b'0', b"ustar\x0000").to_vec(), code::CORRUPT),
        ("no number", header(b"b.jpg", b"size", b'0', b"ustar\x0000").to_vec(), code::CORRUPT),
        ("8 GiB", header(b"b.jpg", b"77777777777", b'0', b"ustar\x0000").to_vec(), code::TRUNCATED),
        ("beyond", header(b"b.jpg", b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", b'0', b"").to_vec(), code::CORRUPT),
        ("900 MiB", header(b"b.jpg", b"07000000000", b'0', b"ustar\x0000").to_vec(), code::TRUNCATED),
        ("long name", header(b"l", b"77777777777", b'L', b"ustar\x0000").to_vec(), code::TOO_LARGE),
        ("sum", [member("b.jpg", b"")[..500].to_vec(), vec![7; 12]].concat(), code::CORRUPT),
        ("records", member_of("x", b'x', b"5 a=b\n"), code::CORRUPT),
        ("size in records", pax(b'x', &[("size", "-1")]), code::CORRUPT),
    ];
    for (what, lie, expected) in lies {
        let read = read(&tar(&[member("a.jpg", b"a"), lie, member("c.jpg", b"c")]));
        assert_eq!(keys(&read)[0], "a", "{what}");
        assert!(read.rejects.iter().any(|(_, code, _)| *code == expected), "{what}: {:?}", read.rejects);
    }
}

#[test]
fn what_is_no_tar_is_one_reject_and_an_empty_one_is_nothing() {
    for (content, expected) in [
        (&b""[..], code::EMPTY),
        (b"<!DOCTYPE html><html>", code::UNSUPPORTED),
        (&[b'x'; 4096], code::UNSUPPORTED),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff\xff\xff\xff\xff\xff\xff", code::CORRUPT),
    ] {
        let read = read(content);
        assert_eq!(read.rejects.len(), 1);
        assert_eq!(read.rejects[0].1, expected, "{:?}", read.rejects);
    }
    let empty = read(&END);
    assert!(empty.rows.is_empty() && empty.rejects.is_empty());
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(content).unwrap();
    packed.finish().unwrap()
}

#[test]
fn packed_tars_are_the_same_and_end_early_the_same() {
    let members: Vec<_> = (0..400u32)
        .map(|n| {
            let noise: Vec<u8> = (0..3000u32).map(|at| ((at * at * (n + 1)) >> 7) as u8).collect();
            member(&format!("{n}.jpg"), &noise)
        })
        .collect();
    let whole = tar(&members);
    let plain = read(&whole);
    assert_eq!(plain.rows.len(), 400);
    let zstd = zstd::encode_all(&whole[..], 1).unwrap();
    for packed in [gzip(&whole), zstd.clone(), [b"\x50\x2a\x4d\x18\x02\0\0\0ab".to_vec(), zstd].concat()] {
        assert_eq!(read(&packed).rows, plain.rows);
        assert_eq!(read_from(&packed, "", 20).rows, plain.rows[20..]);
        let cut = read(&packed[..packed.len() / 2]);
        assert!(!cut.rows.is_empty() && cut.rows[..] == plain.rows[..cut.rows.len()]);
        assert_eq!(cut.rejects.len(), 1);
        assert_eq!(cut.rejects[0].1, code::TRUNCATED, "{:?}", cut.rejects);
        assert!(cut.rejects[0].2.contains("member number"), "{:?}", cut.rejects);
        let mut damaged = packed.clone();
        let middle = packed.len() / 2;
        damaged[middle..middle + 2000].fill(0xa5);
        let damaged = read(&damaged);
        assert_eq!(damaged.rows[..damaged.rows.len().min(5)], plain.rows[..damaged.rows.len().min(5)]);
        assert!(damaged.rows.len() + damaged.rejects.len() <= 401, "{:?}", damaged.rejects);
    }
}

#[test]
fn names_that_no_text_can_hold_are_percent_encoded() {
    let mut odd = header(b"../\xff\n/a.jpg", b"00000000001", b'0', b"ustar\x0000").to_vec();
    odd.extend_from_slice(&[b'x'; 1]);
    odd.resize(1024, 0);
    assert_eq!(keys(&read(&tar(&[odd]))), ["../%FF%0A/a"]);
}

#[test]
fn lists_in_braces_name_shards_and_a_missing_one_is_a_reject() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["s-00.tar", "s-02.tar"] {
        fs::write(folder.path().join(name), tar(&[member("a.jpg", b"a")])).unwrap();
    }
    let source = |with: &str| Harness::new::<Webdataset>(with, vec![]).in_folder(folder.path());
    let list = source("path: ['./s-{00..02}.tar', 's-0?.tar']");
    let items = list.items(2).unwrap();
    let uris: Vec<_> = items.iter().map(|item| item.uri.as_str()).collect();
    assert_eq!(uris, ["s-00.tar", "s-01.tar", "s-02.tar", "s-00.tar", "s-02.tar"]);
    assert_eq!(list.unpack(0, &items[2], 0).passed.len(), 1);
    let unpack = match list.source().unwrap().reading {
        Reading::Unpacked(unpack) => unpack,
        Reading::Rows(_) => panic!(),
    };
    let missing = unpack.open(1, &items[1], 0).err().unwrap();
    assert_eq!(missing.code, code::NOT_FOUND);
    assert!(missing.message.contains("s-01.tar"), "{}", missing.message);
    assert_ne!(unpack.stamp(&items[0]), Stamp::NONE);
    assert_eq!(unpack.stamp(&items[1]), Stamp::NONE);
    let fault = source("path: 'x-*.tar'").source().map(|_| ()).unwrap_err();
    assert!(fault.message.contains("`x-*.tar` matches no file"), "{}", fault.message);
    assert!(list.node().reads(folder.path(), &folder.path().join("s-01.tar")));
    assert!(!list.node().reads(Path::new("/p"), Path::new("/p/x-03.tar")));
}

#[test]
fn what_is_secret_in_a_url_is_in_no_item() {
    let with = "path: ['https://u:S3CRET@host/a-{0..1}.tar?sig=S3CRET', 's3://b/c.tar']";
    let source = Harness::new::<Webdataset>(with, vec![]);
    assert_eq!(source.spec().unwrap().detail.matches("S3CRET").count(), 0, "{}", source.spec().unwrap().detail);
    let items = source.items(10).unwrap();
    let uris: Vec<_> = items.iter().map(|item| item.uri.as_str()).collect();
    assert_eq!(uris, ["https://host/a-0.tar", "https://host/a-1.tar", "s3://b/c.tar"]);
    assert!(items.iter().all(|item| !item.locator.to_string_lossy().contains("S3CRET")));
    let mistake = Harness::new::<Webdataset>("path: 'https://host/*.tar?sig=S3CRET'", vec![]).spec().unwrap_err();
    assert!(mistake.message.contains("cannot be listed") && !mistake.message.contains("S3CRET"), "{mistake}");
}

#[test]
fn columns_that_clash_are_mistakes_at_their_place() {
    let error = Harness::new::<Webdataset>("{path: a.tar, carry: {uri: txt}}", vec![]).spec().unwrap_err();
    assert_eq!(error.option, ["carry", "uri"]);
}
