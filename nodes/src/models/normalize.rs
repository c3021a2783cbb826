//! From pixels as bytes to the numbers that a network reads.
//!
//! One pass; each image's numbers depend on that image alone.

use candle_core::{Device, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const IMAGENET_MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f64; 3] = [0.229, 0.224, 0.225];

/// How a byte x becomes a number, per channel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// (x/255 − mean)/std with ImageNet's mean and standard deviation.
    Imagenet,
    /// (x − 127)/128.
    Tf127,
    /// (x/255 − 0.5)/0.5.
    Half,
    /// x as it is.
    None,
    /// (x/255 − mean)/std with these figures.
    #[serde(untagged)]
    Custom(MeanStd),
}

/// Mean and standard deviation per channel (red, green, blue), in units of x/255.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeanStd {
    /// Subtracted from x/255.
    pub mean: [f64; 3],
    /// Divides the difference; no zeros.
    pub std: [f64; 3],
}

/// Pixels that do not make a batch of images, or figures that no pixel can be normalised with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NormalizeError {
    /// The bytes do not fill the shape.
    #[error("{n_bytes} bytes are no batch of {n_rows} images of {height}×{width}×3")]
    Length {
        /// How many bytes there are.
        n_bytes: usize,
        /// Images in the batch.
        n_rows: usize,
        /// Height of each.
        height: usize,
        /// Width of each.
        width: usize,
    },
    /// A standard deviation is zero, negative or not a finite number, or a mean is not finite.
    #[error("`{key}: {value:?}` is no {what}")]
    Figures {
        /// `mean` or `std`.
        key: &'static str,
        /// What was given.
        value: [f64; 3],
        /// What it should be.
        what: &'static str,
    },
    /// The tensor could not be made.
    #[error("a batch of {n_rows} images cannot be normalised: {reason}")]
    Tensor {
        /// Images in the batch.
        n_rows: usize,
        /// The tensor library's reason.
        reason: String,
    },
}

impl Normalize {
    /// Refuses figures that give infinities.
    pub fn check(&self) -> Result<(), NormalizeError> {
        let Self::Custom(MeanStd { mean, std }) = *self else {
            return Ok(());
        };
        if !mean.iter().all(|value| value.is_finite()) {
            return Err(NormalizeError::Figures { key: "mean", value: mean, what: "list of finite numbers" });
        }
        if !std.iter().all(|value| value.is_finite() && *value > 0.0) {
            return Err(NormalizeError::Figures { key: "std", value: std, what: "list of numbers above zero" });
        }
        Ok(())
    }

    /// The form with a name of its own that these figures stand for, or the figures themselves.
    pub fn named(figures: MeanStd) -> Result<Self, NormalizeError> {
        let (mean, std) = Self::Custom(figures).mean_std();
        let close = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9 * b.abs().max(1.0));
        let named = [Self::Imagenet, Self::Tf127, Self::Half, Self::None].into_iter().find(|named| {
            let (named_mean, named_std) = named.mean_std();
            close(mean, named_mean) && close(std, named_std)
        });
        let normalize = named.unwrap_or(Self::Custom(figures));
        normalize.check().map(|()| normalize)
    }

    /// Mean and standard deviation of each channel, in units of x.
    pub(crate) fn mean_std(&self) -> ([f64; 3], [f64; 3]) {
        let bytes = |figures: [f64; 3]| figures.map(|figure| figure * 255.0);
        match *self {
            Self::Imagenet => (bytes(IMAGENET_MEAN), bytes(IMAGENET_STD)),
            Self::Tf127 => ([127.0; 3], [128.0; 3]),
            Self::Half => ([127.5; 3], [127.5; 3]),
            Self::None => ([0.0; 3], [1.0; 3]),
            Self::Custom(MeanStd { mean, std }) => (bytes(mean), bytes(std)),
        }
    }

    /// What every byte becomes, for each channel: exact to the last bit of f32, and quicker than arithmetic.
    pub(crate) fn tables(&self) -> [[f32; 256]; 3] {
        let (mean, std) = self.mean_std();
        std::array::from_fn(|channel| std::array::from_fn(|byte| ((byte as f64 - mean[channel]) / std[channel]) as f32))
    }

    /// Normalises `pixels`, u8 `[n_rows, height, width, 3]`, into an f32 tensor `[n_rows, 3, height, width]` on the CPU. Its
    /// values lie pixel by pixel, as the layers on the CPU want them.
    pub fn to_tensor(
        &self,
        pixels: &[u8],
        n_rows: usize,
        height: usize,
        width: usize,
    ) -> Result<Tensor, NormalizeError> {
        self.check()?;
        let n_bytes = [height, width, 3].iter().try_fold(n_rows, |product, &side| product.checked_mul(side));
        if n_bytes != Some(pixels.len()) {
            return Err(NormalizeError::Length { n_bytes: pixels.len(), n_rows, height, width });
        }
        let [red, green, blue] = self.tables();
        let mut values = Vec::with_capacity(pixels.len());
        for pixel in pixels.chunks_exact(3) {
            values.extend([red[usize::from(pixel[0])], green[usize::from(pixel[1])], blue[usize::from(pixel[2])]]);
        }
        Tensor::from_vec(values, (n_rows, height, width, 3), &Device::Cpu)
            .and_then(|images| images.permute((0, 3, 1, 2)))
            .map_err(|error| NormalizeError::Tensor { n_rows, reason: error.to_string() })
    }
}

impl std::fmt::Display for Normalize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Imagenet => f.write_str("imagenet"),
            Self::Tf127 => f.write_str("tf127"),
            Self::Half => f.write_str("half"),
            Self::None => f.write_str("none"),
            Self::Custom(MeanStd { mean, std }) => write!(f, "mean {mean:?}, std {std:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expected: [[f32; 3]; 2]) {
        let normalize: Normalize = serde_json::from_str(written).expect("a normalisation");
        // One row of two pixels in each of two images: channel, then place.
        let pixels = [0, 127, 255, 10, 20, 30, 0, 127, 255, 10, 20, 30];
        let tensor = normalize.to_tensor(&pixels, 2, 1, 2).expect("a tensor");
        assert_eq!(tensor.dims(), [2, 3, 1, 2]);
        let found = tensor.flatten_all().and_then(|t| t.to_vec1::<f32>()).expect("values");
        let [a, b] = expected;
        let one = [a[0], b[0], a[1], b[1], a[2], b[2]];
        for (found, wanted) in found.iter().zip(one.iter().chain(&one)) {
            assert!((found - wanted).abs() < 1e-5, "{written}: {found} is not {wanted}");
        }
    }

    #[test]
    fn each_form_is_its_formula() {
        check(
            r#""imagenet""#,
            [
                [-0.485 / 0.229, (127.0 / 255.0 - 0.456) / 0.224, (1.0 - 0.406) / 0.225],
                [(10.0 / 255.0 - 0.485) / 0.229, (20.0 / 255.0 - 0.456) / 0.224, (30.0 / 255.0 - 0.406) / 0.225],
            ],
        );
        check(r#""tf127""#, [[-127.0 / 128.0, 0.0, 1.0], [-117.0 / 128.0, -107.0 / 128.0, -97.0 / 128.0]]);
        check(
            r#""half""#,
            [[-1.0, 127.0 / 127.5 - 1.0, 1.0], [10.0 / 127.5 - 1.0, 20.0 / 127.5 - 1.0, 30.0 / 127.5 - 1.0]],
        );
        check(r#""none""#, [[0.0, 127.0, 255.0], [10.0, 20.0, 30.0]]);
        check(
            r#"{"mean": [0, 0.5, 1], "std": [1, 2, 4]}"#,
            [
                [0.0, (127.0 / 255.0 - 0.5) / 2.0, 0.0],
                [10.0 / 255.0, (20.0 / 255.0 - 0.5) / 2.0, (30.0 / 255.0 - 1.0) / 4.0],
            ],
        );
    }

    #[test]
    fn written_and_read_it_is_the_same() {
        for normalize in [
            Normalize::Tf127,
            Normalize::None,
            Normalize::Custom(MeanStd { mean: [0.1, 0.2, 0.3], std: [1.0, 2.0, 3.0] }),
        ] {
            let text = serde_json::to_string(&normalize).expect("text");
            assert_eq!(serde_json::from_str::<Normalize>(&text).expect("the same"), normalize, "{text}");
        }
        assert!(serde_json::from_str::<Normalize>(r#"{"mean": [0, 0, 0]}"#).is_err());
        assert!(serde_json::from_str::<Normalize>(r#""imagnet""#).is_err());
    }

    #[test]
    fn bytes_that_do_not_fill_the_shape_are_refused() {
        let error = Normalize::Half.to_tensor(&[0; 11], 1, 2, 2).expect_err("one byte short");
        assert_eq!(error.to_string(), "11 bytes are no batch of 1 images of 2×2×3");
        assert!(Normalize::Half.to_tensor(&[], usize::MAX, usize::MAX, 2).is_err());
        assert_eq!(Normalize::Half.to_tensor(&[], 0, 2, 2).expect("empty").dims(), [0, 3, 2, 2]);
    }

    #[test]
    fn figures_that_give_infinities_are_refused() {
        let flat = Normalize::Custom(MeanStd { mean: [0.0; 3], std: [1.0, 0.0, 1.0] });
        let error = flat.to_tensor(&[0; 3], 1, 1, 1).expect_err("a zero");
        assert_eq!(error.to_string(), "`std: [1.0, 0.0, 1.0]` is no list of numbers above zero");
    }
}
