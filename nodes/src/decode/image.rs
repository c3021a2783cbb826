//! `decode.image`: from a picture file's bytes to pixels.

use std::sync::Arc;

use engine::data::{BufferMut, ColumnType, DType, Dim, Field, Reject, Role, RowMut, RowRef};
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, RowMap, SpecCx, SpecError, Stage, find_column};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Alpha, Colours, Crop, Grey16, Interpolation, Letterbox, Limits, Preprocess, Reading, Resize, Rounding, Scaling,
    decode_into, with_scratch,
};

/// Decodes JPEG, PNG, WebP, GIF, BMP and TIFF, told by content and not by name, to upright RGB pixels as Pillow's
/// `convert("RGB")` and `exif_transpose` give them, then resizes and crops as torchvision does, or fits the whole picture
/// into a frame as detectors want it. Of animations, the first frame. A file that is truncated or damaged is a reject.
///
/// # Input
/// A column of bytes, which is used up.
///
/// # Output
/// `image`: `u8 [height, width, 3]`. `width`, `height` and `format` of the original, which sinks write only when
/// `transform.select` names them. With `letterbox` also `scale`, `pad_left` and `pad_top`, in the same way: what lies at x, y in
/// `image` lies at (x - pad_left) / scale, (y - pad_top) / scale in the upright original.
///
/// # Example
/// ```yaml
/// pixels: {kind: decode.image, with: {resize: 256, crop: 224, interpolation: bicubic}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Where resize, crop, interpolation and rounding come from: `model` takes what the model behind this node was trained with.
    preset: Option<From>,
    /// The size before the crop. A number: the shorter side becomes this long and the longer one follows. `[width, height]`:
    /// exactly this size, whatever the shape. `{longer: N}`: the longer side becomes this long. `{shorter: N, longer: M}`: the
    /// shorter side becomes N long, or less where the longer one would be longer than M. Left out: the picture keeps its size.
    resize: Option<Resize>,
    /// The part to keep, from the centre. A number: a square of this side. `[width, height]`: a rectangle. A picture that is
    /// smaller gets black edges. Left out: the whole picture.
    crop: Option<Crop>,
    /// A frame that the whole picture is fitted into, its shape kept, in place of `resize` and `crop`. A number: a square of this
    /// side. `[width, height]`: a rectangle. `{size: …, fill: [114, 114, 114], anchor: center | top_left, upscale: true}`: the
    /// same with the colour of what stays free, the picture's place, and whether smaller pictures grow. Sizes are rounded as by
    /// Ultralytics' LetterBox.
    letterbox: Option<Letterbox>,
    /// How pixels are weighed when the size changes, with antialiasing as in Pillow. Default `bilinear`.
    interpolation: Option<Interpolation>,
    /// Whose roundings sizes and places have. Default `torchvision`.
    rounding: Option<Rounding>,
    /// Pictures of more pixels are rejected as `too_large` before memory is taken. The default is the number from which
    /// Pillow refuses a picture as a decompression bomb.
    #[serde(default = "default_max_pixels")]
    max_pixels: u64,
    /// What becomes of transparency. `drop`: it is left out, as Pillow's `convert("RGB")` does it, and what was invisible
    /// shows. `{over: white}`: the picture is laid over a colour, `white`, `black`, `grey` or `[red, green, blue]`.
    #[serde(default)]
    alpha: Alpha,
    /// What becomes of greys of 12 bits and more. `clip`: all from 255 on is white, as Pillow's `convert("RGB")` does it.
    /// `scale`: the highest eight bits are taken.
    #[serde(default)]
    grey16: Grey16,
    /// Whether a JPEG that is resized to less than half its size is decoded at 1/2, 1/4 or 1/8 of it, so that at least twice the
    /// wanted pixels are left along each side. `auto`: so, with the pixels of Pillow's `draft` and `resize`, which are not those of
    /// decoding all and resizing that. `off`: never.
    #[serde(default)]
    jpeg_scale: JpegScale,
    /// The column of bytes. Default: the only one that fits.
    column: Option<String>,
    /// The name of the new column.
    #[serde(default = "default_as", rename = "as")]
    output: String,
}

/// Where preprocessing comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// The model behind this node.
    Model,
}

/// Whether JPEGs are decoded to a fraction of their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JpegScale {
    /// Always whole.
    #[default]
    Off,
    /// Where much less is wanted.
    Auto,
}

fn default_max_pixels() -> u64 {
    Limits::DEFAULT_MAX_PIXELS
}

fn default_as() -> String {
    "image".to_owned()
}

impl Image {
    /// What is made of a picture, with the wish of the model behind this node where that is followed.
    ///
    /// # Errors
    /// Options that contradict each other or the wish.
    pub fn preprocess(&self, advice: Option<&engine::node::Advice>) -> Result<Preprocess, SpecError> {
        let Some(advice) = advice else {
            let both = [("resize", self.resize.is_some()), ("crop", self.crop.is_some())];
            if let Some((option, _)) = both.into_iter().find(|(_, said)| *said && self.letterbox.is_some()) {
                let message = format!("`letterbox` and `{option}` both say how large pictures become");
                return Err(SpecError::new(message).at(&[option]).label("leave one of them out"));
            }
            return Ok(Preprocess {
                resize: self.resize,
                crop: self.crop,
                letterbox: self.letterbox,
                interpolation: self.interpolation.unwrap_or_default(),
                rounding: self.rounding.unwrap_or_default(),
            });
        };
        let said = [
            ("resize", self.resize.is_some()),
            ("crop", self.crop.is_some()),
            ("letterbox", self.letterbox.is_some()),
            ("interpolation", self.interpolation.is_some()),
            ("rounding", self.rounding.is_some()),
        ];
        if let Some((option, _)) = said.into_iter().find(|(_, said)| *said) {
            let message = format!("`{option}` and `preset: model` both say how pictures are prepared");
            return Err(SpecError::new(message).at(&[option]).label("leave one of them out"));
        }
        serde_json::from_value(advice.value.clone())
            .map_err(|error| SpecError::new(format!("the model's preset is not understood: {error}")).at(&["preset"]))
    }

    fn colours(&self) -> Colours {
        Colours { alpha: self.alpha, grey16: self.grey16 }
    }

    /// Pictures of more pixels are refused.
    pub fn max_pixels(&self) -> u64 {
        self.max_pixels
    }

    /// The name of the column of pixels.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// The column of bytes that is decoded.
    ///
    /// # Errors
    /// If there is none, or several and none is named.
    pub fn column(&self, cx_input: &engine::data::Schema) -> Result<usize, SpecError> {
        let hint = "read files before it";
        find_column(cx_input, self.column.as_deref(), "a column of bytes", hint, |field: &Field| {
            field.ty == ColumnType::Bytes
        })
    }
}

impl NodeKind for Image {
    const NAME: &'static str = "decode.image";
    const EXAMPLE: &'static str = "pixels: {kind: decode.image, with: {preset: model}}";
    /// 2: TIFF is decoded, and the orientation is found in more files.
    const REVISION: u32 = 2;
}

impl Node for Image {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let column = self.column(cx.input())?;
        let preprocess = self.preprocess(cx.advice)?;
        let [height, width] = match preprocess.output_size() {
            Some((height, width)) => [Dim::Fixed(height as usize), Dim::Fixed(width as usize)],
            None => [Dim::Any, Dim::Any],
        };
        let image = ColumnType::Tensor { dtype: DType::U8, shape: vec![height, width, Dim::Fixed(3)] };
        let origin = if cx.advice.is_some() { " (from model)" } else { "" };
        let scaled = if self.jpeg_scale == JpegScale::Auto { ", JPEG scaled" } else { "" };
        let mut spec = NodeSpec::passing(cx.input(), &[column])
            .with_new(&self.output, image, Role::Result)
            .map_err(|error| error.at(&["as"]))?
            .with_new("width", ColumnType::Int, Role::Auxiliary)?
            .with_new("height", ColumnType::Int, Role::Auxiliary)?
            .with_new("format", ColumnType::Text, Role::Auxiliary)?;
        if preprocess.letterbox.is_some() {
            for (name, ty) in
                [("scale", ColumnType::Float), ("pad_left", ColumnType::Int), ("pad_top", ColumnType::Int)]
            {
                spec = spec.with_new(name, ty, Role::Auxiliary)?;
            }
        }
        Ok(spec.with_detail(format!("{preprocess}{origin}{scaled}{}", self.colours())))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let mistaken = |error: SpecError| Fault::permanent(error.message);
        let preprocess = self.preprocess(cx.advice).map_err(mistaken)?;
        let map = Decode {
            column: self.column(cx.input()).map_err(mistaken)?,
            uri: cx.input().index_of_role(Role::Uri),
            preprocess,
            reading: Reading {
                limits: Limits { max_pixels: self.max_pixels },
                colours: self.colours(),
                scaling: match self.jpeg_scale {
                    JpegScale::Off => Scaling::default(),
                    JpegScale::Auto => Scaling::Toward(preprocess),
                },
            },
        };
        Ok(Stage::Rows(Arc::new(map)))
    }

    fn asks_advice(&self) -> bool {
        self.preset == Some(From::Model)
    }
}

struct Decode {
    column: usize,
    uri: Option<usize>,
    preprocess: Preprocess,
    reading: Reading,
}

impl RowMap for Decode {
    fn map_row(&self, row: RowRef<'_>, out: &mut RowMut<'_>) -> Result<(), Reject> {
        let mut buffer: Option<BufferMut> = None;
        let mut shape = [0, 0, 3];
        let original = with_scratch(|scratch| {
            decode_into(row.bytes(self.column), &self.preprocess, self.reading, scratch, |height, width| {
                shape = [height, width, 3];
                let buffer = buffer.insert(out.alloc(DType::U8, &shape));
                &mut buffer.bytes_mut()[..height * width * 3]
            })
        });
        let original = original.map_err(|error| {
            let message = match self.uri {
                Some(uri) => format!("`{}`: {error}", row.text(uri)),
                None => error.to_string(),
            };
            Reject::new(error.code(), message)
        })?;
        out.tensor(0, DType::U8, &shape, buffer.expect("a decoded picture has pixels"));
        out.int(1, i64::from(original.width));
        out.int(2, i64::from(original.height));
        out.text(3, &original.format.to_string());
        if let Some(letterbox) = self.preprocess.letterbox {
            let fit = letterbox.fit(original.width, original.height);
            out.float(4, fit.scale);
            out.int(5, i64::from(fit.place[0]));
            out.int(6, i64::from(fit.place[1]));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use engine::data::{Column, Schema};
    use engine::node::harness::{Harness, batch};

    use super::*;

    /// Red, green and blue of the first pixels of a picture of the tests, or the code of its reject.
    fn decoded(with: &str, file: &str) -> Result<Vec<[u8; 3]>, String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images/formats").join(file);
        let bytes = std::fs::read(path).unwrap();
        let schema = Schema { fields: vec![Field::new("bytes", ColumnType::Bytes, Role::Result)], batch: None };
        let rows = batch(&schema, 0, 1, |_, out| out.bytes(0, bytes.clone().into()));
        let mapped = Harness::new::<Image>(with, vec![schema]).map(&rows);
        if let Some((_, reject)) = mapped.rejects.first() {
            return Err(reject.code.to_string());
        }
        let pixels = match &mapped.columns[0] {
            Column::Dense(tensor) => tensor.bytes().to_vec(),
            Column::Ragged(tensors) => tensors.values()[0].bytes().to_vec(),
            other => panic!("{other:?}"),
        };
        Ok(pixels.chunks_exact(3).take(19).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect())
    }

    #[test]
    fn the_rules_for_colours_reach_the_pixels() {
        // Zeros are the transparent colour of this one.
        let dropped = decoded("{}", "png-grey-1-key-0.png").unwrap();
        let over = decoded("{alpha: {over: [200, 30, 90]}}", "png-grey-1-key-0.png").unwrap();
        assert!(dropped.contains(&[0; 3]) && dropped.contains(&[255; 3]));
        let expected: Vec<_> =
            dropped.iter().map(|&pixel| if pixel == [0; 3] { [200, 30, 90] } else { pixel }).collect();
        assert_eq!(over, expected);
        assert_eq!(decoded("{}", "png-grey-16.png").unwrap()[10], [255; 3]);
        assert_eq!(decoded("{grey16: scale}", "png-grey-16.png").unwrap()[10], [128; 3]);
    }

    #[test]
    fn what_is_too_large_is_rejected_by_its_header() {
        assert_eq!(decoded("{}", "png-20000x20000.png"), Err("too_large".to_owned()));
        assert_eq!(decoded("{max_pixels: 246}", "png-rgba-8.png"), Err("too_large".to_owned()));
        assert_eq!(decoded("{max_pixels: 247}", "png-rgba-8.png").map(|pixels| pixels.len()), Ok(19));
    }
}
