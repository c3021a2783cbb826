//! Weight files that are damaged or made to do harm: each is an error that names the file, none a panic, none is run.

use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device};
use nodes::models::TensorSource;
use nodes::weights::{WeightsError, WeightsFault, open};
use proptest::prelude::*;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/weights")
        .join(name)
}

/// A folder with one file in it that is written again and again.
struct Scratch {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.pth");
        Self {
            _folder: folder,
            path,
        }
    }

    /// Opens these bytes as a file; if that succeeds, every tensor listed must be readable as well.
    fn open(&self, bytes: &[u8]) -> Result<(), WeightsError> {
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

    fn refused(&self, bytes: &[u8], expected: &str) {
        let error = self.open(bytes).unwrap_err().to_string();
        assert!(error.contains("weights.pth`"), "{error}");
        assert!(error.contains(expected), "{error}\nlacks: {expected}");
    }
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let scratch = Scratch::new();
    for name in [
        "weights.safetensors",
        "zip.pth",
        "legacy.pth",
        "checkpoint.pth",
    ] {
        let whole = fs::read(committed(name)).unwrap();
        scratch.open(&whole).unwrap();
        for length in 0..whole.len() {
            assert!(
                scratch.open(&whole[..length]).is_err(),
                "`{name}` cut at {length} of {}",
                whole.len()
            );
        }
    }
}

#[test]
fn the_message_for_a_file_cut_off_says_where_it_ends() {
    let scratch = Scratch::new();
    let cut = |name: &str, length: usize| fs::read(committed(name)).unwrap()[..length].to_vec();
    let length = fs::metadata(committed("legacy.pth")).unwrap().len() as usize;
    scratch.refused(&[], "is empty");
    scratch.refused(&cut("weights.safetensors", 2000), "truncated: tensor `");
    scratch.refused(
        &cut("weights.safetensors", 200),
        "truncated: the header ends at byte",
    );
    scratch.refused(&cut("zip.pth", 3000), "the file is probably cut off");
    scratch.refused(
        &cut("legacy.pth", 1000),
        "the pickle breaks off at byte 1000",
    );
    scratch.refused(&cut("legacy.pth", length - 1), "truncated: storage `");
}

#[test]
fn a_flipped_byte_never_panics() {
    let scratch = Scratch::new();
    for name in ["weights.safetensors", "zip.pth", "legacy.pth"] {
        let whole = fs::read(committed(name)).unwrap();
        for at in 0..whole.len() {
            for value in [0xff, whole[at].wrapping_add(1)] {
                let mut changed = whole.clone();
                changed[at] = value;
                let _ = scratch.open(&changed);
            }
        }
    }
}

#[test]
fn pickles_that_run_something_are_refused_by_name() {
    let refused = |name: &str, global: &str| {
        let error = open(&committed(name)).unwrap_err();
        assert!(
            matches!(&error.fault, WeightsFault::Refused(found) if found == global),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .contains(&format!("{name}` asks to run `{global}`: refused")),
            "{error}"
        );
    };
    refused("malicious_zip.pth", "posix.system");
    refused("malicious_legacy.pth", "posix.system");
    refused("malicious_nested.pth", "__builtin__.eval");
    refused("whole_module.pth", "torch.nn.modules.linear.Linear");
    assert!(!Path::new("PWNED").exists());
}

/// A zip archive of these entries.
fn archive(entries: &[(&str, CompressionMethod, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, method, bytes) in entries {
        writer
            .start_file(
                *name,
                SimpleFileOptions::default().compression_method(*method),
            )
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The pickle of `{"w": tensor}`, the tensor having these numbers (each below 128) and this storage.
fn pickle(
    key: &str,
    n_elements: u8,
    offset: u8,
    shape: &[u8],
    strides: &[u8],
    view: Option<[u8; 2]>,
) -> Vec<u8> {
    let number = |value: u8| [b'K', value];
    let text = |value: &str| [&[0x8c, value.len() as u8], value.as_bytes()].concat();
    let tuple = |items: &[u8]| {
        [
            b"(".to_vec(),
            items.iter().flat_map(|item| number(*item)).collect(),
            b"t".to_vec(),
        ]
        .concat()
    };
    let view = view.map(|[offset, length]| {
        [
            b"(".to_vec(),
            text(key),
            number(offset).to_vec(),
            number(length).to_vec(),
            b"t".to_vec(),
        ]
        .concat()
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

const STORED: CompressionMethod = CompressionMethod::Stored;

#[test]
fn archives_of_our_own_making_are_read() {
    let values: Vec<u8> = (0..6u8)
        .flat_map(|value| f32::from(value).to_le_bytes())
        .collect();
    let bytes = archive(&[
        (
            "a/data.pkl",
            STORED,
            &pickle("0", 6, 1, &[2, 2], &[1, 3], None),
        ),
        ("a/data/0", STORED, &values),
    ]);
    let scratch = Scratch::new();
    scratch.open(&bytes).unwrap();
    let weights = open(&scratch.path).unwrap();
    let tensor = weights.load("w", DType::F32, &Device::Cpu).unwrap();
    assert_eq!(tensor.to_vec2::<f32>().unwrap(), [[1.0, 4.0], [2.0, 5.0]]);
}

#[test]
fn archives_that_lie_are_refused() {
    let scratch = Scratch::new();
    let good = pickle("0", 6, 0, &[6], &[1], None);
    let values = [0; 24];
    scratch.refused(
        &archive(&[("a/data.pkl", STORED, &good)]),
        "storage `0` is named in `data.pkl` and missing",
    );
    scratch.refused(
        &archive(&[
            ("a/data.pkl", STORED, &good),
            ("a/data/0", STORED, &values[..23]),
        ]),
        "storage `0` should hold 6 elements of F32 and has 23 bytes",
    );
    scratch.refused(
        &archive(&[("readme.txt", STORED, b"hello")]),
        "has no `data.pkl`, so it was not made by `torch.save`; it holds `readme.txt`",
    );
    scratch.refused(&archive(&[]), "has no `data.pkl`");
    scratch.refused(
        &archive(&[("a/data.pkl", STORED, &good), ("b/data.pkl", STORED, &good)]),
        "has several `data.pkl`",
    );
    scratch.refused(
        &archive(&[
            ("a/data.pkl", STORED, &good),
            ("a/constants.pkl", STORED, b""),
        ]),
        "is a TorchScript program",
    );
    scratch.refused(
        &archive(&[
            ("a/data.pkl", STORED, &good),
            ("a/byteorder", STORED, b"big"),
        ]),
        "big-endian",
    );
    let tensor = |offset, shape: &[u8], strides: &[u8]| {
        archive(&[
            (
                "a/data.pkl",
                STORED,
                &pickle("0", 6, offset, shape, strides, None),
            ),
            ("a/data/0", STORED, &values),
        ])
    };
    scratch.refused(
        &tensor(1, &[6], &[1]),
        "tensor `w` reaches out of its storage of 6 elements",
    );
    scratch.refused(&tensor(0, &[2, 3], &[4, 1]), "tensor `w` reaches out");
    scratch.refused(
        &tensor(0, &[2, 3], &[3]),
        "tensor `w` has 2 dimensions and 1 strides",
    );
    scratch.refused(
        &tensor(0, &[127, 127, 127], &[0, 0, 0]),
        "a storage of only 6 elements",
    );
    scratch.refused(
        &tensor(0, &[127; 10], &[0; 10]),
        "more elements than any memory holds",
    );
}

#[test]
fn an_archive_that_unpacks_to_much_is_refused_unopened() {
    let scratch = Scratch::new();
    let zeros = vec![0; 50 << 20];
    let bomb = CompressionMethod::Deflated;
    let good = pickle("0", 6, 0, &[6], &[1], None);
    scratch.refused(
        &archive(&[("a/data.pkl", STORED, &good), ("a/data/0", bomb, &zeros)]),
        "entry `0` is compressed (52,428,800 bytes when unpacked)",
    );
    scratch.refused(
        &archive(&[("a/data.pkl", bomb, &zeros)]),
        "entry `data.pkl` is compressed",
    );
}

#[test]
fn names_in_an_archive_are_never_paths() {
    let scratch = Scratch::new();
    let values = [0; 24];
    scratch.refused(
        &archive(&[(
            "../../data.pkl",
            STORED,
            &pickle("0", 6, 0, &[6], &[1], None),
        )]),
        "has no `data.pkl`",
    );
    let key = "../../../../../../../../etc/passwd";
    let outside = archive(&[
        ("a/data.pkl", STORED, &pickle(key, 6, 0, &[6], &[1], None)),
        ("a/data/0", STORED, &values),
    ]);
    scratch.refused(
        &outside,
        "passwd` is named in `data.pkl` and missing in the archive",
    );
    // An entry may be called so; it is found by that name and nothing leaves the archive.
    let inside = archive(&[
        ("a/data.pkl", STORED, &pickle(key, 6, 0, &[6], &[1], None)),
        (&format!("a/data/{key}"), STORED, &values),
    ]);
    scratch.open(&inside).unwrap();
}

/// A legacy file around a pickled object, with these keys and, for each, a count and bytes.
fn legacy(object: &[u8], storages: &[(&str, i64, &[u8])]) -> Vec<u8> {
    let mut file = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}\x8c\x0dlittle_endian\x88s.".to_vec();
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

#[test]
fn legacy_files_with_views_of_storages_are_read() {
    let values: Vec<u8> = (0..6u8)
        .flat_map(|value| f32::from(value).to_le_bytes())
        .collect();
    let scratch = Scratch::new();
    scratch
        .open(&legacy(
            &pickle("k", 6, 1, &[2], &[1], Some([2, 4])),
            &[("k", 6, &values)],
        ))
        .unwrap();
    let weights = open(&scratch.path).unwrap();
    assert_eq!(
        weights
            .load("w", DType::F32, &Device::Cpu)
            .unwrap()
            .to_vec1::<f32>()
            .unwrap(),
        [3.0, 4.0]
    );
}

#[test]
fn legacy_files_that_lie_are_refused() {
    let scratch = Scratch::new();
    let good = pickle("k", 6, 0, &[6], &[1], None);
    let values = [0; 24];
    scratch.open(&legacy(&good, &[("k", 6, &values)])).unwrap();
    scratch.refused(
        &legacy(&good, &[]),
        "storage `k` is named by a tensor and missing in the file",
    );
    scratch.refused(
        &legacy(&good, &[("other", 6, &values)]),
        "storage `other` belongs to no tensor",
    );
    scratch.refused(
        &legacy(&good, &[("k", 7, &values)]),
        "storage `k` has 7 elements, and its tensors expect 6",
    );
    scratch.refused(
        &legacy(&good, &[("k", -1, &values)]),
        "storage `k` has -1 elements",
    );
    scratch.refused(
        &legacy(&good, &[("k", i64::MAX, &values)]),
        "has 9223372036854775807 elements",
    );
    scratch.refused(
        &legacy(&good, &[("k", 6, &values), ("k", 6, &values)]),
        "storage `k` stands twice",
    );
    scratch.refused(
        &legacy(&good, &[("k", 6, &values[..20])]),
        "truncated: storage `k` ends at byte",
    );
    scratch.refused(
        &legacy(
            &pickle("k", 6, 0, &[6], &[1], Some([1, 6])),
            &[("k", 6, &values)],
        ),
        "is a view that reaches out of its storage",
    );
    scratch.refused(
        &legacy(
            &pickle("k", 6, 0, &[5], &[1], Some([1, 4])),
            &[("k", 6, &values)],
        ),
        "reaches out of its storage of 4 elements",
    );
    scratch.refused(&legacy(b"\x80\x02}.", &[]), "holds no tensors");
    let mut other_version = legacy(&good, &[("k", 6, &values)]);
    other_version[18] = 0xea;
    scratch.refused(&other_version, "is not of version 1001 but Int(1002)");
}

#[test]
fn a_file_without_tensors_says_what_it_holds_instead() {
    let scratch = Scratch::new();
    let checkpoint = b"\x80\x02}(\x8c\x05epochK\x03\x8c\x03net}u.";
    scratch.refused(
        &archive(&[("a/data.pkl", STORED, checkpoint)]),
        "holds no tensors; found `epoch`, `net`",
    );
    scratch.refused(b"\x02\0\0\0\0\0\0\0{}", "holds no tensors");
}

#[test]
fn what_is_no_weight_file_says_what_it_looks_like() {
    let scratch = Scratch::new();
    scratch.refused(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
        "is a Git LFS pointer",
    );
    scratch.refused(b"<!DOCTYPE html><html>Not Found</html>", "is a web page");
    scratch.refused(
        b"\x80\x02K\x01.",
        "is a pickle that `torch.save` did not make",
    );
    scratch.refused(
        b"\x89PNG\r\n\x1a\n....",
        "is not a weight file (it begins with 89 50 4e 47 0d 0a 1a 0a)",
    );
    scratch.refused(b"x", "is not a weight file");
    let error = open(Path::new("/nonexistent/model.safetensors"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("`/nonexistent/model.safetensors` cannot be read: No such file"),
        "{error}"
    );
    let error = open(Path::new("/dev/null")).unwrap_err().to_string();
    assert_eq!(error, "`/dev/null` is neither a file nor a folder");
}

fn folder_of(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn folder_refused(files: &[(&str, &[u8])], expected: &str) {
    let folder = folder_of(files);
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}\nlacks: {expected}");
}

#[test]
fn a_folder_without_weights_lists_what_was_looked_for() {
    folder_refused(
        &[("config.json", b"{}"), ("README.md", b"")],
        "has no weight file: looked for `model.safetensors`, `model.safetensors.index.json`, `pytorch_model.bin`, \
         `pytorch_model.bin.index.json`, then for one of `*.safetensors`, `*.pth`, `*.pt`, `*.bin`; found `README.md`, `config.json`",
    );
    folder_refused(
        &[("b.pth", b""), ("a.safetensors", b"")],
        "has several weight files: `a.safetensors`, `b.pth`; name the one you mean",
    );
}

#[test]
fn an_index_may_only_name_files_beside_it() {
    let index = |map: &str| format!(r#"{{"weight_map": {map}}}"#).into_bytes();
    let refused = |map: &str, expected: &str| {
        folder_refused(&[("model.safetensors.index.json", &index(map))], expected)
    };
    refused(
        r#"{"w": "../../etc/passwd"}"#,
        "names the file `../../etc/passwd` for tensor `w`; it must lie beside the index",
    );
    refused(r#"{"w": "/etc/passwd"}"#, "it must lie beside the index");
    refused(r#"{"w": ".."}"#, "it must lie beside the index");
    refused(r#"{"w": ""}"#, "it must lie beside the index");
    refused(
        r#"{"w": "a.safetensors"}"#,
        "a.safetensors` cannot be read: No such file",
    );
    refused(r#"{"w": 3}"#, "the index is not valid");
    refused("{}", "holds no tensors");
    let shard = fs::read(committed("weights.safetensors")).unwrap();
    let map = index(r#"{"fc.weight": "a.safetensors", "fc.wieght": "a.safetensors"}"#);
    folder_refused(
        &[
            ("model.safetensors.index.json", &map),
            ("a.safetensors", &shard),
        ],
        "the index says that tensor `fc.wieght` is in `a.safetensors`, and it is not",
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(magic in 0usize..4, rest in proptest::collection::vec(any::<u8>(), 0..300)) {
        let beginnings: [&[u8]; 4] = [b"", b"PK\x03\x04", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", b"\x40\0\0\0\0\0\0\0{"];
        let _ = Scratch::new().open(&[beginnings[magic], &rest].concat());
    }

    /// Numbers of every size in the places that matter.
    #[test]
    fn no_tensor_description_makes_it_panic(
        n_elements in 0u8..128, offset in 0u8..128,
        shape in proptest::collection::vec(0u8..128, 0..6), strides in proptest::collection::vec(0u8..128, 0..6),
        view in proptest::option::of([0u8..128, 0u8..128]),
    ) {
        let values = vec![0; usize::from(n_elements) * 4];
        let scratch = Scratch::new();
        let object = pickle("k", n_elements, offset, &shape, &strides, view);
        let _ = scratch.open(&legacy(&object, &[("k", i64::from(n_elements), &values)]));
        let _ = scratch.open(&archive(&[("a/data.pkl", STORED, &object), ("a/data/k", STORED, &values)]));
    }

    /// Headers that are valid JSON with any numbers.
    #[test]
    fn no_safetensors_header_makes_it_panic(
        shape in proptest::collection::vec(prop_oneof![0u64..5, any::<u64>()], 0..4),
        start in prop_oneof![0u64..5, any::<u64>()], end in prop_oneof![0u64..40, any::<u64>()],
        length in prop_oneof![Just(None), any::<u64>().prop_map(Some)],
    ) {
        let header = format!(r#"{{"w": {{"dtype": "F32", "shape": {shape:?}, "data_offsets": [{start}, {end}]}}}}"#);
        let length = length.unwrap_or(header.len() as u64);
        let _ = Scratch::new().open(&[&length.to_le_bytes(), header.as_bytes(), &[0; 36]].concat());
    }
}
