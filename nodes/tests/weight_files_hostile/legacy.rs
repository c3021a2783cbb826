//! Legacy pickles with views of storages, and such that lie.

use candle_core::{DType, Device};
use nodes::models::TensorSource;
use nodes::weights::open;

use crate::made::{Scratch, legacy, pickle};

#[test]
fn legacy_files_with_views_of_storages_are_read() {
    let values: Vec<u8> = (0..6u8).flat_map(|value| f32::from(value).to_le_bytes()).collect();
    let scratch = Scratch::new();
    scratch.open(&legacy(&pickle("k", 6, 1, &[2], &[1], Some([2, 4])), &[("k", 6, &values)])).unwrap();
    let weights = open(&scratch.path).unwrap();
    assert_eq!(weights.load("w", DType::F32, &Device::Cpu).unwrap().to_vec1::<f32>().unwrap(), [3.0, 4.0]);
}

#[test]
fn legacy_files_that_lie_are_refused() {
    let scratch = Scratch::new();
    let good = pickle("k", 6, 0, &[6], &[1], None);
    let values = [0; 24];
    scratch.open(&legacy(&good, &[("k", 6, &values)])).unwrap();
    scratch.refused(&legacy(&good, &[]), "storage `k` is named by a tensor and missing in the file");
    scratch.refused(&legacy(&good, &[("other", 6, &values)]), "storage `other` belongs to no tensor");
    scratch.refused(&legacy(&good, &[("k", 7, &values)]), "storage `k` has 7 elements, and its tensors expect 6");
    scratch.refused(&legacy(&good, &[("k", -1, &values)]), "storage `k` has -1 elements");
    scratch.refused(&legacy(&good, &[("k", i64::MAX, &values)]), "has 9223372036854775807 elements");
    scratch.refused(&legacy(&good, &[("k", 6, &values), ("k", 6, &values)]), "storage `k` stands twice");
    scratch.refused(&legacy(&good, &[("k", 6, &values[..20])]), "truncated: storage `k` ends at byte");
    scratch.refused(
        &legacy(&pickle("k", 6, 0, &[6], &[1], Some([1, 6])), &[("k", 6, &values)]),
        "is a view that reaches out of its storage",
    );
    scratch.refused(
        &legacy(&pickle("k", 6, 0, &[5], &[1], Some([1, 4])), &[("k", 6, &values)]),
        "reaches out of its storage of 4 elements",
    );
    scratch.refused(&legacy(b"\x80\x02}.", &[]), "holds no tensors");
    let mut other_version = legacy(&good, &[("k", 6, &values)]);
    other_version[18] = 0xea;
    scratch.refused(&other_version, "is not of version 1001 but Int(1002)");
}
