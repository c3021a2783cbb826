//! Zip archives that lie, that unpack to much, or whose names are paths.

use candle_core::{DType, Device};
use nodes::models::TensorSource;
use nodes::weights::open;
use zip::CompressionMethod;

use crate::made::{STORED, Scratch, archive, pickle};

#[test]
fn archives_of_our_own_making_are_read() {
    let values: Vec<u8> = (0..6u8).flat_map(|value| f32::from(value).to_le_bytes()).collect();
    let bytes =
        archive(&[("a/data.pkl", STORED, &pickle("0", 6, 1, &[2, 2], &[1, 3], None)), ("a/data/0", STORED, &values)]);
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
    scratch.refused(&archive(&[("a/data.pkl", STORED, &good)]), "storage `0` is named in `data.pkl` and missing");
    scratch.refused(
        &archive(&[("a/data.pkl", STORED, &good), ("a/data/0", STORED, &values[..23])]),
        "storage `0` should hold 6 elements of F32 and has 23 bytes",
    );
    scratch.refused(
        &archive(&[("readme.txt", STORED, b"hello")]),
        "has no `data.pkl`, so it was not made by `torch.save`; it holds `readme.txt`",
    );
    scratch.refused(&archive(&[]), "has no `data.pkl`");
    scratch
        .refused(&archive(&[("a/data.pkl", STORED, &good), ("b/data.pkl", STORED, &good)]), "has several `data.pkl`");
    scratch.refused(
        &archive(&[("a/data.pkl", STORED, &good), ("a/constants.pkl", STORED, b"")]),
        "is a TorchScript program",
    );
    scratch.refused(&archive(&[("a/data.pkl", STORED, &good), ("a/byteorder", STORED, b"big")]), "big-endian");
    let tensor = |offset, shape: &[u8], strides: &[u8]| {
        archive(&[("a/data.pkl", STORED, &pickle("0", 6, offset, shape, strides, None)), ("a/data/0", STORED, &values)])
    };
    scratch.refused(&tensor(1, &[6], &[1]), "tensor `w` reaches out of its storage of 6 elements");
    scratch.refused(&tensor(0, &[2, 3], &[4, 1]), "tensor `w` reaches out");
    scratch.refused(&tensor(0, &[2, 3], &[3]), "tensor `w` has 2 dimensions and 1 strides");
    scratch.refused(&tensor(0, &[127, 127, 127], &[0, 0, 0]), "a storage of only 6 elements");
    scratch.refused(&tensor(0, &[127; 10], &[0; 10]), "more elements than any memory holds");
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
    scratch.refused(&archive(&[("a/data.pkl", bomb, &zeros)]), "entry `data.pkl` is compressed");
}

#[test]
fn names_in_an_archive_are_never_paths() {
    let scratch = Scratch::new();
    let values = [0; 24];
    scratch.refused(&archive(&[("../../data.pkl", STORED, &pickle("0", 6, 0, &[6], &[1], None))]), "has no `data.pkl`");
    let key = "../../../../../../../../etc/passwd";
    let outside =
        archive(&[("a/data.pkl", STORED, &pickle(key, 6, 0, &[6], &[1], None)), ("a/data/0", STORED, &values)]);
    scratch.refused(&outside, "passwd` is named in `data.pkl` and missing in the archive");
    // An entry may be called so; it is found by that name and nothing leaves the archive.
    let inside = archive(&[
        ("a/data.pkl", STORED, &pickle(key, 6, 0, &[6], &[1], None)),
        (&format!("a/data/{key}"), STORED, &values),
    ]);
    scratch.open(&inside).unwrap();
}

#[test]
fn a_file_without_tensors_says_what_it_holds_instead() {
    let scratch = Scratch::new();
    let checkpoint = b"\x80\x02}(\x8c\x05epochK\x03\x8c\x03net}u.";
    scratch.refused(&archive(&[("a/data.pkl", STORED, checkpoint)]), "holds no tensors; found `epoch`, `net`");
    scratch.refused(b"\x02\0\0\0\0\0\0\0{}", "holds no tensors");
}
