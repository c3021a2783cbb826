//! Weight files made byte by byte, and a place to open them.

use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device};
use nodes::models::TensorSource;
use nodes::weights::{WeightsError, open};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

pub const STORED: CompressionMethod = CompressionMethod::Stored;

pub fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/weights").join(name)
}

/// A folder with one file in it that is written again and again.
pub struct Scratch {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl Scratch {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.pth");
        Self { _folder: folder, path }
    }

    /// Opens these bytes as a file; if that succeeds, every tensor listed must be readable as well.
    pub fn open(&self, bytes: &[u8]) -> Result<(), WeightsError> {
        // Removed first: truncating the old file would pull it from under a mapping.
        let _ = fs::remove_file(&self.path);
        fs::write(&self.path, bytes).unwrap();
        let weights = open(&self.path)?;
        for name in weights.names() {
            let tensor = weights.load(&name, DType::F32, &Device::Cpu).unwrap();
            assert_eq!(Some(tensor.dims().to_vec()), weights.shape(&name));
        }
        Ok(())
    }

    pub fn refused(&self, bytes: &[u8], expected: &str) {
        let error = self.open(bytes).unwrap_err().to_string();
        assert!(error.contains("weights.pth`"), "{error}");
        assert!(error.contains(expected), "{error}\nlacks: {expected}");
    }
}

/// A zip archive of these entries.
pub fn archive(entries: &[(&str, CompressionMethod, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, method, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(*method)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The pickle of `{"w": tensor}`, the tensor having these numbers (each below 128) and this storage.
pub fn pickle(key: &str, n_elements: u8, offset: u8, shape: &[u8], strides: &[u8], view: Option<[u8; 2]>) -> Vec<u8> {
    let number = |value: u8| [b'K', value];
    let text = |value: &str| [&[0x8c, value.len() as u8], value.as_bytes()].concat();
    let tuple =
        |items: &[u8]| [b"(".to_vec(), items.iter().flat_map(|item| number(*item)).collect(), b"t".to_vec()].concat();
    let view = view.map(|[offset, length]| {
        [b"(".to_vec(), text(key), number(offset).to_vec(), number(length).to_vec(), b"t".to_vec()].concat()
    });
    [
        b"\x80\x02}".to_vec(),
        text("w"),
        b"ctorch._utils\n_rebuild_tensor_v2\n((".to_vec(),
        text("storage"),
        b"ctorch\nFloatStorage\n".to_vec(),
        text(key),
        text("cpu"),
        number(n_elements).to_vec(),
        view.unwrap_or_default(),
        b"tQ".to_vec(),
        number(offset).to_vec(),
        tuple(shape),
        tuple(strides),
        b"\x89}tRs.".to_vec(),
    ]
    .concat()
}

/// A legacy file around a pickled object, with these keys and, for each, a count and bytes.
pub fn legacy(object: &[u8], storages: &[(&str, i64, &[u8])]) -> Vec<u8> {
    let mut file =
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}\x8c\x0dlittle_endian\x88s.".to_vec();
    file.extend(object);
    file.extend(b"\x80\x02](");
    for (key, ..) in storages {
        file.extend([0x8c, key.len() as u8]);
        file.extend(key.as_bytes());
    }
    file.extend(b"e.");
    for (_, count, bytes) in storages {
        file.extend(count.to_le_bytes());
        file.extend(*bytes);
    }
    file
}
