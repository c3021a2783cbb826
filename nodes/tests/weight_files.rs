//! The same weights give equal bits from every format; files made by torch itself, values computed here by formula.

use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device};
use nodes::models::TensorSource;
use nodes::weights::{Element, WeightSet, open};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/weights")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Element `i` of a tensor with this seed, as in `weights/make.py`.
fn formula(seed: usize, i: usize) -> f64 {
    ((37 * seed + 13 * i) % 101) as f64 / 16.0 - 50.0 / 16.0
}

fn integer(seed: usize, i: usize) -> f64 {
    ((37 * seed + 13 * i) % 101) as f64
}

/// Name, element type, shape and row-major values of every tensor.
fn expected() -> Vec<(&'static str, Element, Vec<usize>, Vec<f64>)> {
    let filled = |seed: usize, n: usize| (0..n).map(|i| formula(seed, i)).collect::<Vec<_>>();
    let integers = |seed: usize, n: usize| (0..n).map(|i| integer(seed, i)).collect::<Vec<_>>();
    // `fc.weight` is 5 × 8; these look at parts of it.
    let rows = (8..24).map(|i| formula(2, i)).collect();
    let transposed = (0..8).flat_map(|column| (0..5).map(move |row| formula(2, row * 8 + column))).collect();
    let columns = (0..5).flat_map(|row| [1, 3, 5, 7].map(|column| formula(2, row * 8 + column))).collect();
    let repeated = (0..3).flat_map(|row| [formula(4, row); 4]).collect();
    vec![
        ("conv.weight", Element::F32, vec![4, 3, 3, 2], filled(1, 72)),
        ("fc.weight", Element::F32, vec![5, 8], filled(2, 40)),
        ("fc.bias", Element::F32, vec![5], filled(3, 5)),
        ("tied.weight", Element::F32, vec![5, 8], filled(2, 40)),
        ("rows.weight", Element::F32, vec![2, 8], rows),
        ("transposed.weight", Element::F32, vec![8, 5], transposed),
        ("columns.weight", Element::F32, vec![5, 4], columns),
        ("repeated.weight", Element::F32, vec![3, 4], repeated),
        ("half.weight", Element::F16, vec![3, 7], filled(5, 21)),
        ("bfloat.weight", Element::Bf16, vec![2, 2, 2], filled(6, 8)),
        ("double.weight", Element::F64, vec![3], filled(7, 3)),
        ("scale", Element::F32, vec![], filled(8, 1)),
        ("none.weight", Element::F32, vec![0, 4], vec![]),
        ("bn.num_batches_tracked", Element::I64, vec![], integers(10, 1)),
        ("position_ids", Element::I32, vec![1, 6], integers(11, 6)),
        ("short", Element::I16, vec![3], integers(12, 3)),
        ("signed", Element::I8, vec![3], integers(13, 3).iter().map(|value| value - 50.0).collect()),
        ("bytes", Element::U8, vec![3], integers(14, 3)),
        ("mask", Element::Bool, vec![3], vec![1.0, 0.0, 1.0]),
    ]
}

fn values(weights: &WeightSet, name: &str, dtype: DType) -> Vec<f64> {
    let tensor = weights.load(name, dtype, &Device::Cpu).unwrap();
    assert!(tensor.is_contiguous());
    assert_eq!(Some(tensor.dims().to_vec()), weights.shape(name));
    assert_eq!(tensor.dtype(), dtype);
    tensor.flatten_all().unwrap().to_dtype(DType::F64).unwrap().to_vec1().unwrap()
}

fn check(path: &Path) {
    let weights = open(path).unwrap_or_else(|error| panic!("{error}"));
    let mut names = weights.names();
    names.sort();
    let mut expected_names: Vec<_> = expected().into_iter().map(|(name, ..)| name.to_string()).collect();
    expected_names.sort();
    assert_eq!(names, expected_names, "{}", path.display());
    for (name, element, shape, expected_values) in expected() {
        let place = format!("`{name}` in `{}`", path.display());
        assert_eq!(weights.element(name), Some(element), "{place}");
        assert_eq!(weights.shape(name), Some(shape), "{place}");
        // Exact in all three, so that conversion is seen to be one of values.
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            assert_eq!(values(&weights, name, dtype), expected_values, "{place} as {dtype:?}");
        }
    }
    // 72 + 40 + 5 + 40 + 16 + 40 + 20 + 12 + 21 + 8 + 3 + 1
    assert_eq!(weights.n_parameters(), 278, "{}", path.display());
    // 246 of four bytes, 29 of two, 3 of eight; integers: one of eight, six of four, three of two, nine of one
    assert_eq!(weights.n_bytes(), 984 + 58 + 24 + 8 + 24 + 6 + 9, "{}", path.display());
}

#[test]
fn safetensors_holds_the_weights() {
    check(&folder().join("weights.safetensors"));
}

#[test]
fn zip_pickles_hold_the_same_bits() {
    check(&folder().join("zip.pth"));
    check(&folder().join("zip_protocol4.pth"));
}

#[test]
fn legacy_pickles_hold_the_same_bits() {
    check(&folder().join("legacy.pth"));
}

#[test]
fn checkpoints_of_parallel_training_hold_the_same_bits() {
    check(&folder().join("checkpoint.pth"));
}

#[test]
fn sharded_folders_hold_the_same_bits() {
    check(&folder().join("sharded"));
}

#[test]
fn a_folder_is_opened_by_its_well_known_or_only_file() {
    for (source, name) in [
        ("weights.safetensors", "model.safetensors"),
        ("zip.pth", "pytorch_model.bin"),
        ("legacy.pth", "pytorch_model.bin"),
        ("legacy.pth", "resnet50-0676ba61.pth"),
        ("weights.safetensors", "anything.safetensors"),
    ] {
        let model = tempfile::tempdir().unwrap();
        fs::write(model.path().join("config.json"), "{}").unwrap();
        fs::copy(folder().join(source), model.path().join(name)).unwrap();
        check(model.path());
    }
}

#[test]
fn well_known_names_go_before_others() {
    let model = tempfile::tempdir().unwrap();
    fs::copy(folder().join("weights.safetensors"), model.path().join("model.safetensors")).unwrap();
    fs::write(model.path().join("pytorch_model.bin"), "not looked at").unwrap();
    fs::write(model.path().join("optimizer.pt"), "not looked at").unwrap();
    check(model.path());
}

#[test]
fn the_format_is_told_by_content_and_not_by_name() {
    let files = tempfile::tempdir().unwrap();
    for source in ["weights.safetensors", "zip.pth", "legacy.pth"] {
        for name in ["x.pth", "x.safetensors", "x"] {
            let path = files.path().join(name);
            fs::copy(folder().join(source), &path).unwrap();
            check(&path);
        }
    }
}

#[test]
fn weights_may_be_read_from_several_threads() {
    let weights = open(&folder().join("zip.pth")).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (name, _, _, expected_values) in expected() {
                    assert_eq!(values(&weights, name, DType::F32), expected_values, "{name}");
                }
            });
        }
    });
}

#[test]
fn an_unknown_tensor_is_an_error() {
    let weights = open(&folder().join("zip.pth")).unwrap();
    assert_eq!(weights.shape("fc.wieght"), None);
    let error = weights.load("fc.wieght", DType::F32, &Device::Cpu).unwrap_err();
    assert_eq!(error.to_string(), "tensor `fc.wieght` cannot be read: there is no such tensor");
}

/// The committed f16 model against the f32 original that it was made from, a legacy pickle with strided tensors.
#[test]
fn the_quickstart_model_is_the_original_rounded_to_half() {
    let assets = test_assets();
    let original = open(&assets.join("efficientnet-lite0-57934424.pth")).unwrap();
    let rounded = open(&repository().join("pipelines/models/efficientnet_lite0")).unwrap();
    assert_eq!(rounded.len(), 247);
    assert_eq!((rounded.n_parameters(), rounded.n_bytes()), (4_694_024, 9_388_048));
    let counters = original.names().into_iter().filter(|name| name.ends_with("num_batches_tracked")).count();
    assert_eq!(original.len(), rounded.len() + counters);
    assert_eq!(original.n_parameters(), rounded.n_parameters());
    for name in rounded.names() {
        let halves = |weights: &WeightSet| {
            let tensor = weights.load(&name, DType::F16, &Device::Cpu).unwrap();
            tensor.flatten_all().unwrap().to_vec1::<half::f16>().unwrap()
        };
        assert_eq!(original.shape(&name), rounded.shape(&name), "{name}");
        assert!(halves(&original) == halves(&rounded), "{name}");
    }
}

#[test]
fn a_real_legacy_file_gives_its_known_values() {
    let weights = open(&test_assets().join("mobilenet_v2-b0353104.pth")).unwrap();
    // torchvision documents 3,504,872 parameters; the running means and variances of 52 batch norms come on top.
    assert_eq!(weights.n_parameters(), 3_504_872 + 2 * 17_056);
    assert_eq!(weights.shape("features.0.0.weight"), Some(vec![32, 3, 3, 3]));
    assert_eq!(weights.shape("classifier.1.weight"), Some(vec![1000, 1280]));
    // First values and sums as torch 2.15 loads them.
    for (name, first, sum) in [
        (
            "features.0.0.weight",
            [0.013185339979827404, -0.004321294371038675, 0.014823135919868946],
            -0.7730716340520303,
        ),
        (
            "classifier.1.weight",
            [-0.031177138909697533, 0.08958731591701508, -0.07481194287538528],
            0.12846647834186342,
        ),
        (
            "features.18.1.running_var",
            [0.017886118963360786, 0.019175060093402863, 0.01874396577477455],
            24.652515053749084,
        ),
    ] {
        let values = values(&weights, name, DType::F64);
        assert_eq!(values[..3], first, "{name}");
        assert!((values.iter().sum::<f64>() - sum).abs() < 1e-9, "{name}");
    }
}

fn test_assets() -> PathBuf {
    let folder = std::env::var_os("FLOWGPU_TEST_ASSETS").map(PathBuf::from);
    let folder = folder.or_else(|| Some(std::env::home_dir()?.join(".cache/flowgpu/test-assets")));
    let folder = folder.filter(|folder| folder.is_dir());
    folder.expect("the test weights are not there: run `scripts/test.sh`, which fetches them")
}
