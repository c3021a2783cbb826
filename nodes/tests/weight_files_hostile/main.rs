//! Weight files that are damaged or made to do harm: each is an error that names the file, none a panic, none is run.

mod archives;
mod folders;
mod legacy;
mod made;

use std::fs;
use std::path::Path;

use made::{STORED, Scratch, archive, committed, legacy, pickle};
use nodes::weights::{WeightsFault, open};
use proptest::prelude::*;

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let scratch = Scratch::new();
    for name in ["weights.safetensors", "zip.pth", "legacy.pth", "checkpoint.pth"] {
        let whole = fs::read(committed(name)).unwrap();
        scratch.open(&whole).unwrap();
        for length in 0..whole.len() {
            assert!(scratch.open(&whole[..length]).is_err(), "`{name}` cut at {length} of {}", whole.len());
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
    scratch.refused(&cut("weights.safetensors", 200), "truncated: the header ends at byte");
    scratch.refused(&cut("zip.pth", 3000), "the file is probably cut off");
    scratch.refused(&cut("legacy.pth", 1000), "the pickle breaks off at byte 1000");
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
        assert!(matches!(&error.fault, WeightsFault::Refused(found) if found == global), "{error}");
        assert!(error.to_string().contains(&format!("{name}` asks to run `{global}`: refused")), "{error}");
    };
    refused("malicious_zip.pth", "posix.system");
    refused("malicious_legacy.pth", "posix.system");
    refused("malicious_nested.pth", "__builtin__.eval");
    refused("whole_module.pth", "torch.nn.modules.linear.Linear");
    assert!(!Path::new("PWNED").exists());
}

#[test]
fn what_is_no_weight_file_says_what_it_looks_like() {
    let scratch = Scratch::new();
    scratch.refused(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "is a Git LFS pointer");
    scratch.refused(b"<!DOCTYPE html><html>Not Found</html>", "is a web page");
    scratch.refused(b"\x80\x02K\x01.", "is a pickle that `torch.save` did not make");
    scratch.refused(b"\x89PNG\r\n\x1a\n....", "is not a weight file (it begins with 89 50 4e 47 0d 0a 1a 0a)");
    scratch.refused(b"x", "is not a weight file");
    let error = open(Path::new("/nonexistent/model.safetensors")).unwrap_err().to_string();
    assert!(error.starts_with("`/nonexistent/model.safetensors` does not exist"), "{error}");
    let error = open(Path::new("/dev/null")).unwrap_err().to_string();
    assert_eq!(error, "`/dev/null` is neither a file nor a folder");
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
