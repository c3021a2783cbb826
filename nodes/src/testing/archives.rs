//! Files that hold rows, for tests that have no library for them.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

/// A tar of files.
///
/// # Panics
/// If a name is longer than a header has room for.
pub fn tar_of<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, content) in files {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        tar.extend_from_slice(&header);
        tar.extend_from_slice(content);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

/// A Parquet file of row groups of `group_rows` rows: the binary column `image` and its number in `number`.
///
/// # Panics
/// If Arrow's writer fails, which it does not on memory.
pub fn parquet_of(images: &[Vec<u8>], group_rows: usize) -> Vec<u8> {
    let columns: [(&str, ArrayRef); 2] = [
        ("image", Arc::new(images.iter().map(|image| Some(image.as_slice())).collect::<BinaryArray>())),
        ("number", Arc::new((0..images.len() as i64).map(Some).collect::<Int64Array>())),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).expect("a schema");
    writer.write(&batch).expect("memory");
    writer.close().expect("memory");
    file
}
