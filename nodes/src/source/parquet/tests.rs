//! Files that Arrow's own writer makes, and the same damaged.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::{ArrayRef, BinaryArray, Int32Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field};
use engine::data::{Column, Dim, code};
use engine::node::harness::{Harness, Mapped};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::*;

const N_ROWS: usize = 100;

fn content(row: usize) -> Vec<u8> {
    (0..3000 + row).map(|at| ((at * (row + 3)) >> 4) as u8).collect()
}

fn images(bytes: Vec<Option<Vec<u8>>>, paths: Vec<Option<&str>>) -> ArrayRef {
    let bytes: BinaryArray = bytes.iter().map(Option::as_deref).collect();
    let fields: Vec<(Arc<Field>, ArrayRef)> = vec![
        (Arc::new(Field::new("bytes", DataType::Binary, true)), Arc::new(bytes)),
        (Arc::new(Field::new("path", DataType::Utf8, true)), Arc::new(StringArray::from(paths))),
    ];
    Arc::new(StructArray::from(fields))
}

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
    let batch = batch.unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(30))
        .set_data_page_row_count_limit(7)
        .set_write_batch_size(7)
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// 100 rows in four row groups: images with labels, captions and vectors.
fn hugging_face(path: &Path) {
    let bytes = (0..N_ROWS).map(|row| (row != 5).then(|| content(row))).collect();
    let names: Vec<_> = (0..N_ROWS).map(|row| format!("{row}.jpg")).collect();
    let paths = names.iter().enumerate().map(|(row, name)| (row % 2 == 0).then_some(name.as_str())).collect();
    let labels: Int32Array = (0..N_ROWS as i32).map(|row| (row != 9).then_some(row % 10)).collect();
    let captions: StringArray = (0..N_ROWS).map(|row| (row != 7).then(|| format!("caption {row}"))).collect();
    let mut vectors = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    for row in 0..N_ROWS {
        vectors.values().append_slice(&[row as f32, 0.5]);
        vectors.append(true);
    }
    write(
        path,
        vec![
            ("image", images(bytes, paths)),
            ("label", Arc::new(labels)),
            ("caption", Arc::new(captions)),
            ("vector", Arc::new(vectors.finish())),
        ],
    );
}

fn source(base: &Path, with: &str) -> Harness {
    Harness::new::<Parquet>(with, vec![]).in_folder(base)
}

fn texts(mapped: &Mapped, column: usize) -> Vec<String> {
    let Column::Text(text) = &mapped.columns[column] else { panic!("column {column} is no text") };
    (0..mapped.passed.len()).map(|row_idx| text.get(row_idx).to_owned()).collect()
}

#[test]
fn rows_of_hugging_face_bring_their_image_and_their_other_columns() {
    let folder = tempfile::tempdir().unwrap();
    hugging_face(&folder.path().join("x.parquet"));
    let source = source(folder.path(), "path: x.parquet");
    let spec = source.spec().unwrap();
    let names: Vec<_> = spec.outputs.iter().map(|output| &*output.field.name).collect();
    assert_eq!(names, ["id", "uri", "bytes", "label", "caption", "vector"]);
    let vector = ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(2)] };
    assert_eq!(spec.outputs[5].field.ty, vector);
    let items = source.items(3).unwrap();
    let uris: Vec<_> = items.iter().map(|item| item.uri.as_str()).collect();
    assert_eq!(uris, ["x.parquet#group-0", "x.parquet#group-1", "x.parquet#group-2", "x.parquet#group-3"]);
    let mut row = 0;
    for (number, item) in items.iter().enumerate() {
        let mapped = source.unpack(number as u64, item, 0);
        let Column::Bytes(bytes) = &mapped.columns[2] else { panic!() };
        let Column::Int(labels) = &mapped.columns[3] else { panic!() };
        let Column::Ragged(vectors) = &mapped.columns[5] else { panic!() };
        let (ids, uris, captions) = (texts(&mapped, 0), texts(&mapped, 1), texts(&mapped, 4));
        let (mut passed, mut rejected) = (0, mapped.rejects.iter());
        for _ in 0..[30, 30, 30, 10][number] {
            match row {
                5 | 9 => {
                    let expected = if row == 5 { code::NOT_FOUND } else { code::CORRUPT };
                    assert_eq!(rejected.next().unwrap().1.code, expected);
                }
                _ => {
                    assert_eq!(bytes.values()[passed], content(row));
                    assert_eq!(labels.values()[passed], row as i64 % 10);
                    assert_eq!(uris[passed], format!("x.parquet#{row}"));
                    let id = if row % 2 == 0 { format!("{row}.jpg") } else { format!("x.parquet#{row}") };
                    assert_eq!(ids[passed], id);
                    assert_eq!(captions[passed], if row == 7 { String::new() } else { format!("caption {row}") });
                    assert_eq!(*vectors.values()[passed].view().to_f32(), [row as f32, 0.5]);
                    passed += 1;
                }
            }
            row += 1;
        }
        assert!(rejected.next().is_none());
    }
    assert_eq!(row, N_ROWS);
}

#[test]
fn a_row_group_goes_on_wherever_it_was_left() {
    let folder = tempfile::tempdir().unwrap();
    hugging_face(&folder.path().join("x.parquet"));
    let source = source(folder.path(), "{path: x.parquet, carry: none}");
    let item = &source.items(9).unwrap()[1];
    let whole = source.unpack(1, item, 0);
    for skip in 0..=31 {
        let rest = source.unpack(1, item, skip as u32);
        assert_eq!(texts(&rest, 1)[..], texts(&whole, 1)[skip.min(30)..], "from row {skip} on");
        let (Column::Bytes(all), Column::Bytes(rest)) = (&whole.columns[2], &rest.columns[2]) else { panic!() };
        assert_eq!(rest.values(), &all.values()[skip.min(30)..]);
    }
}

#[test]
fn bytes_and_paths_are_images_too() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("d/a.jpg"), "AAA").unwrap();
    let binary: BinaryArray = [Some(&b"one"[..]), None].into_iter().collect();
    let paths: StringArray = [Some("a.jpg"), Some("none.jpg")].into_iter().collect();
    let struct_of_paths = images(vec![None, None], vec![Some("a.jpg"), None]);
    write(
        &folder.path().join("x.parquet"),
        vec![("raw", Arc::new(binary)), ("file", Arc::new(paths)), ("image", struct_of_paths)],
    );
    for (column, expected, id) in [("raw", "one", "x.parquet#0"), ("file", "AAA", "a.jpg"), ("image", "AAA", "a.jpg")] {
        let source = source(folder.path(), &format!("{{path: x.parquet, column: {column}, base: d, carry: [file]}}"));
        let mapped = source.unpack(0, &source.items(9).unwrap()[0], 0);
        let Column::Bytes(bytes) = &mapped.columns[2] else { panic!() };
        assert_eq!(bytes.values(), [expected.as_bytes()], "{column}");
        assert_eq!(texts(&mapped, 0), [id]);
        let rejects: Vec<_> = mapped.rejects.iter().map(|(row, reject)| (*row, reject.code)).collect();
        assert_eq!(rejects, [(1, code::NOT_FOUND)]);
    }
}

#[test]
fn columns_that_do_not_fit_are_mistakes_at_their_place() {
    let folder = tempfile::tempdir().unwrap();
    hugging_face(&folder.path().join("x.parquet"));
    let check = |with: &str, at: &[&str], message: &str| {
        let error = source(folder.path(), with).spec().unwrap_err();
        assert_eq!(error.option, at, "{with}");
        assert!(error.message.contains(message), "{}", error.message);
    };
    check("{path: x.parquet, column: img}", &["column"], "`x.parquet` has no column `img`");
    check("{path: x.parquet, column: label}", &["column"], "`label` is Int32, which holds no images");
    check("{path: x.parquet, carry: [label, image]}", &["carry", "1"], "which no column of rows can be");
    check("{path: x.parquet, carry: [labels]}", &["carry", "0"], "has no column `labels`");
    check("{path: none.parquet}", &["path"], "matches nothing");
}

/// What became of a damaged file that stands behind a good one.
fn damaged(content: &[u8]) -> Vec<(usize, &'static str)> {
    let folder = tempfile::tempdir().unwrap();
    hugging_face(&folder.path().join("a.parquet"));
    fs::write(folder.path().join("b.parquet"), content).unwrap();
    let source = source(folder.path(), "path: '{a,b}.parquet'");
    let items = source.items(9).unwrap();
    let Reading::Unpacked(unpack) = source.source().unwrap().reading else { panic!() };
    let mut seen = Vec::new();
    for (number, item) in items.iter().enumerate().skip(4) {
        // As the runtime does: what panics costs this item.
        let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut opened = unpack.open(number as u64, item, 0)?;
            let mut n_rows = 0;
            while let Some(entry) = opened.next_entry() {
                entry.content?;
                n_rows += 1;
            }
            Ok::<_, Reject>(n_rows)
        }));
        seen.push(match opened {
            Ok(Ok(n_rows)) => (n_rows, ""),
            Ok(Err(reject)) => {
                assert!(reject.message.contains("b.parquet"), "{}", reject.message);
                (0, reject.code)
            }
            Err(_) => (0, code::PANIC),
        });
    }
    seen
}

#[test]
fn what_is_no_parquet_file_or_ends_early_is_one_reject() {
    let folder = tempfile::tempdir().unwrap();
    hugging_face(&folder.path().join("x"));
    let good = fs::read(folder.path().join("x")).unwrap();
    assert_eq!(damaged(&good), [(30, ""), (30, ""), (30, ""), (10, "")]);
    assert_eq!(damaged(b""), [(0, code::EMPTY)]);
    assert_eq!(damaged(b"<html>"), [(0, code::UNSUPPORTED)]);
    assert_eq!(damaged(b"PAR1PAR1"), [(0, code::TRUNCATED)]);
    assert_eq!(damaged(&good[..good.len() / 2]), [(0, code::TRUNCATED)]);
    assert_eq!(damaged(&good[..good.len() - 1]), [(0, code::TRUNCATED)]);
    for n_footer in [u32::MAX, good.len() as u32, 0, 7] {
        let mut lying = good.clone();
        let at = lying.len() - 8;
        lying[at..at + 4].copy_from_slice(&n_footer.to_le_bytes());
        assert_eq!(damaged(&lying), [(0, code::CORRUPT)], "a footer of {n_footer} bytes");
    }
}

#[test]
fn a_damaged_file_costs_row_groups_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    hugging_face(&folder.path().join("x"));
    let good = fs::read(folder.path().join("x")).unwrap();
    let n_footer = u32::from_le_bytes(good[good.len() - 8..good.len() - 4].try_into().unwrap()) as usize;
    let footer = good.len() - 8 - n_footer;
    // Each byte of the footer in turn, and some of the pages.
    for at in (4..footer).step_by(footer / 40).chain((footer..good.len() - 8).step_by(3)) {
        let mut content = good.clone();
        content[at] = !content[at];
        let n_rows: usize = damaged(&content).iter().map(|(n_rows, _)| n_rows).sum();
        assert!(n_rows <= N_ROWS * 4, "byte {at}");
    }
}

/// A file of one column without compression, and where the header of its first page stands.
fn plain(path: &Path, codec: Compression, image: &[u8]) -> Vec<u8> {
    let column: ArrayRef = Arc::new(BinaryArray::from_iter_values([image]));
    let batch = RecordBatch::try_from_iter([("image", column)]).unwrap();
    let properties = WriterProperties::builder().set_compression(codec).set_dictionary_enabled(false).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    fs::read(path).unwrap()
}

/// The reject of the only row of `x.parquet`.
fn only_reject(base: &Path, with: &str) -> (&'static str, String) {
    let source = source(base, with);
    let items = source.items(10).unwrap();
    let mapped = source.unpack(0, &items[0], 0);
    let [(0, reject)] = &mapped.rejects[..] else { panic!("{:?}", mapped.rejects) };
    (reject.code, reject.message.clone())
}

#[test]
fn a_page_that_says_to_be_huge_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let mut file = plain(&path, Compression::SNAPPY, &[7; 200_000]);
    // The first field of the header is the kind of page, 0; then the size, of three bytes here and of five there.
    assert_eq!(file[4..7], [0x15, 0x00, 0x15]);
    let size = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    let start = 7;
    let end = start + file[start..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    file.splice(start..end, size);
    fs::write(&path, &file).unwrap();
    let (code, message) = only_reject(folder.path(), "path: x.parquet");
    assert_eq!(code, code::TOO_LARGE, "{message}");
    assert!(message.contains("has a page of 2147483647 bytes, more than `max_page_bytes` 1073741824"), "{message}");
}

#[test]
fn pages_are_bounded_when_they_are_unpacked_whatever_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let counted = [Compression::GZIP(Default::default()), Compression::BROTLI(Default::default())];
    for codec in [counted[0], counted[1], Compression::ZSTD(Default::default()), Compression::SNAPPY] {
        plain(&path, codec, &[7; 3_000_000]);
        let (code, message) = only_reject(folder.path(), "{path: x.parquet, max_page_bytes: 1MB}");
        assert_eq!(code, code::TOO_LARGE, "{message}");
        assert!(message.contains("more than `max_page_bytes` 1000000"), "{message}");
        let source = source(folder.path(), "{path: x.parquet, max_page_bytes: 4MB}");
        let mapped = source.unpack(0, &source.items(1).unwrap()[0], 0);
        assert_eq!((mapped.passed.len(), mapped.rejects.len()), (1, 0));
    }
    // A header that says less than what comes out.
    for codec in counted {
        let mut file = plain(&path, codec, &[7; 3_000_000]);
        assert_eq!(file[4..7], [0x15, 0x00, 0x15]);
        assert!(file[7..11].iter().filter(|&&byte| byte & 0x80 != 0).count() >= 3);
        file[7] = 0x80 | (file[7] & 0x0f);
        file[8] = 0x80;
        file[9] = 0x80;
        file[10] = 0;
        fs::write(&path, &file).unwrap();
        let (code, message) = only_reject(folder.path(), "{path: x.parquet, max_page_bytes: 1MB}");
        assert_eq!(code, code::TOO_LARGE, "{message}");
        assert!(message.contains("a page that unpacks to more than `max_page_bytes` 1000000"), "{message}");
    }
}
