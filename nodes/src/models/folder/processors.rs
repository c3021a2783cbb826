//! The image processors of transformers that are understood, and what each does where its file says nothing.
//!
//! The figures are those of transformers 5.24; `nodes/tests/preprocess` holds them against the library's own.

use super::preprocessor::Size;

const HALF: [f64; 3] = [0.5; 3];
const IMAGENET_MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f64; 3] = [0.229, 0.224, 0.225];
const CLIP_MEAN: [f64; 3] = [0.48145466, 0.4578275, 0.40821073];
const CLIP_STD: [f64; 3] = [0.26862954, 0.26130258, 0.27577711];

/// A class of image processors.
#[derive(Debug)]
pub(super) struct Processor {
    /// Its name, without `ImageProcessor` or `FeatureExtractor` behind it.
    pub(super) name: &'static str,
    /// What it resizes to.
    pub(super) size: Size,
    /// What a bare number means as a size.
    pub(super) number: Number,
    /// How it resizes.
    pub(super) resizing: Resizing,
    /// Pillow's number of its filter.
    pub(super) resample: u8,
    /// Whether it cuts out the middle, where the file does not say.
    pub(super) crops: bool,
    /// The side of the square that it cuts out then.
    pub(super) crop_size: Option<u64>,
    /// What it subtracts, in units of x/255.
    pub(super) mean: [f64; 3],
    /// What it divides by.
    pub(super) std: [f64; 3],
    /// Whether it divides by `std` once more, where the file does not say.
    pub(super) include_top: bool,
}

/// What a bare number means as a size.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    /// Both sides.
    Square,
    /// The shorter side.
    Shorter,
}

/// What a processor does with its size.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resizing {
    /// What the size says.
    Plain,
    /// Resizes to more than the size and cuts, up to a size from which it does neither.
    CropPct,
    /// Resizes the shorter side to 256/224 of what the size says.
    Larger,
}

const VIT: Processor = Processor {
    name: "ViT",
    size: Size::Exact { height: 224, width: 224 },
    number: Number::Square,
    resizing: Resizing::Plain,
    resample: 2,
    crops: false,
    crop_size: None,
    mean: HALF,
    std: HALF,
    include_top: false,
};

const CLIP: Processor = Processor {
    name: "CLIP",
    size: Size::Shorter { shortest_edge: 224 },
    number: Number::Shorter,
    resample: 3,
    crops: true,
    crop_size: Some(224),
    mean: CLIP_MEAN,
    std: CLIP_STD,
    ..VIT
};

const MOBILENET: Processor = Processor {
    name: "MobileNetV2",
    size: Size::Shorter { shortest_edge: 256 },
    number: Number::Shorter,
    crops: true,
    crop_size: Some(224),
    ..VIT
};

/// All of them. The first is taken where a file names none.
pub(super) const PROCESSORS: &[Processor] = &[
    VIT,
    Processor {
        name: "DeiT",
        size: Size::Exact { height: 256, width: 256 },
        resample: 3,
        crops: true,
        crop_size: Some(224),
        ..VIT
    },
    Processor { name: "Beit", resample: 3, crop_size: Some(224), ..VIT },
    Processor { name: "Pvt", resample: 3, mean: IMAGENET_MEAN, std: IMAGENET_STD, ..VIT },
    Processor {
        name: "Blip",
        size: Size::Exact { height: 384, width: 384 },
        resample: 3,
        mean: CLIP_MEAN,
        std: CLIP_STD,
        ..VIT
    },
    Processor { name: "Siglip", number: Number::Shorter, resample: 3, ..VIT },
    Processor {
        name: "EfficientNet",
        size: Size::Exact { height: 346, width: 346 },
        resample: 3,
        crop_size: Some(289),
        include_top: true,
        ..VIT
    },
    CLIP,
    Processor { name: "ChineseCLIP", ..CLIP },
    Processor { name: "Bit", ..CLIP },
    Processor {
        name: "ConvNext",
        size: Size::Shorter { shortest_edge: 384 },
        number: Number::Shorter,
        resizing: Resizing::CropPct,
        resample: 3,
        ..VIT
    },
    Processor { name: "Levit", resizing: Resizing::Larger, mean: IMAGENET_MEAN, std: IMAGENET_STD, ..CLIP },
    Processor { name: "MobileNetV1", ..MOBILENET },
    MOBILENET,
];
