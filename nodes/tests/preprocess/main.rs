//! Preprocessing against torchvision, transformers, timm and the formula of Ultralytics' LetterBox, from equal pixels: byte for byte.
//! `make.py` made what they say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nodes::decode::{Limits, Preprocess, Scratch, decode_into};
use nodes::models::folder::{parse_config, parse_preprocessor};
use serde::Deserialize;
use serde_json::{Value as Json, json};

#[derive(Deserialize)]
struct Golden {
    torchvision: Vec<Case>,
    letterbox: Vec<Case>,
    transformers: Vec<Case>,
    defaults: Vec<Default>,
    timm: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    picture: String,
    options: Option<Preprocess>,
    config: Option<Json>,
    pretrained_cfg: Option<Json>,
    scale: Option<f64>,
    pad: Option<[u32; 2]>,
    size: [usize; 2],
    crc32: u32,
    values: Option<Vec<(usize, usize, usize, f64)>>,
}

#[derive(Deserialize)]
struct Default {
    class: String,
    saved: Json,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn golden() -> Golden {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preprocess/golden.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Pictures by name, read once, and what is made of them.
#[derive(std::default::Default)]
struct Studio {
    files: BTreeMap<String, Vec<u8>>,
    scratch: Scratch,
    wrong: Vec<String>,
}

impl Studio {
    /// Width and height of the result, and its pixels.
    fn make(&mut self, picture: &str, options: &Preprocess) -> ([usize; 2], Vec<u8>) {
        let file = self.files.entry(picture.to_owned()).or_insert_with(|| {
            std::fs::read(root().join(picture)).unwrap_or_else(|error| panic!("{picture}: {error}"))
        });
        let (mut size, mut pixels) = ([0; 2], Vec::new());
        let made = decode_into(file, options, Limits::default(), &mut self.scratch, |height, width| {
            size = [width, height];
            pixels.resize(width * height * 3, 1);
            &mut pixels
        });
        made.unwrap_or_else(|error| panic!("{picture}: {error}"));
        (size, pixels)
    }

    fn check(&mut self, case: &Case, options: &Preprocess) -> Vec<u8> {
        let (size, pixels) = self.make(&case.picture, options);
        if (size, crc32fast::hash(&pixels)) != (case.size, case.crc32) {
            self.wrong.push(format!("{}: {options}: {size:?}, and expected was {:?}", case.picture, case.size));
        }
        pixels
    }

    fn end(self, n_cases: usize, at_least: usize) {
        assert!(n_cases >= at_least, "{n_cases} cases");
        assert!(self.wrong.is_empty(), "{} of {n_cases}:\n{}", self.wrong.len(), self.wrong.join("\n"));
    }
}

#[test]
fn resize_and_crop_give_the_bytes_of_torchvision() {
    let (cases, mut studio) = (golden().torchvision, Studio::default());
    for case in &cases {
        studio.check(case, &case.options.expect("options"));
    }
    studio.end(cases.len(), 800);
}

#[test]
fn a_letterbox_has_the_bytes_and_the_inverse_of_ultralytics() {
    let (cases, mut studio) = (golden().letterbox, Studio::default());
    for case in &cases {
        let options = case.options.expect("options");
        studio.check(case, &options);
        let (original, _) = studio.make(&case.picture, &Preprocess::default());
        let fit = options.letterbox.expect("a letterbox").fit(original[0] as u32, original[1] as u32);
        assert_eq!((Some(fit.scale), Some(fit.place)), (case.scale, case.pad), "{}: {options}", case.picture);
    }
    studio.end(cases.len(), 80);
}

#[test]
fn each_image_processor_gives_the_bytes_and_the_numbers_of_transformers() {
    let (cases, mut studio) = (golden().transformers, Studio::default());
    for case in &cases {
        let config = case.config.as_ref().expect("a configuration").to_string();
        let preset = parse_preprocessor(&config).unwrap_or_else(|error| panic!("{config}: {error}"));
        let pixels = studio.check(case, &preset.pixels);
        let [width, height] = case.size;
        let tensor = preset.normalize.to_tensor(&pixels, 1, height, width).unwrap();
        let numbers = tensor.squeeze(0).unwrap().to_vec3::<f32>().unwrap();
        for &(colour, y, x, expected) in case.values.as_ref().expect("values") {
            let got = f64::from(numbers[colour][y][x]);
            // The sums are the same; single precision rounds them in another order.
            assert!((got - expected).abs() <= 2e-6 * expected.abs().max(1.0), "{config}: {got}, not {expected}");
        }
    }
    studio.end(cases.len(), 100);
}

#[test]
fn what_a_file_leaves_out_is_the_default_of_its_class() {
    for Default { class, saved } in golden().defaults {
        let bare = json!({"image_processor_type": format!("{class}ImageProcessor")});
        let fast = json!({"image_processor_type": format!("{class}ImageProcessorFast")});
        let [bare, fast, saved] =
            [bare, fast, saved].map(|file| parse_preprocessor(&file.to_string()).map_err(|error| error.to_string()));
        assert!(saved.is_ok(), "{class}: {saved:?}");
        assert_eq!(bare, saved, "{class}");
        assert_eq!(fast, saved, "{class}");
    }
}

#[test]
fn the_preprocessing_of_timm_gives_its_bytes() {
    let (cases, mut studio) = (golden().timm, Studio::default());
    for case in &cases {
        let config = json!({"architecture": "resnet18", "pretrained_cfg": case.pretrained_cfg}).to_string();
        let config = parse_config(&config).unwrap_or_else(|error| panic!("{config}: {error}"));
        studio.check(case, &config.preset.expect("a preset").pixels);
    }
    studio.end(cases.len(), 18);
}
