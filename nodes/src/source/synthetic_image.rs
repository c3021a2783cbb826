//! JPEG files out of nothing, for benchmarks and tests without data.
//!
//! The pictures look and weigh like photographs to a decoder: smooth shading, hard edges, fine noise. The same arguments give the
//! same bytes, whatever was asked for before.

use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;

/// Picture number `index` of the series `seed`, as a JPEG file. Sides outside what the format holds, 1 to 65,535, are brought
/// within.
pub fn jpeg(index: u64, width: u32, height: u32, seed: u64) -> Vec<u8> {
    let [width, height] = [width, height].map(|side| side.clamp(1, u32::from(u16::MAX)));
    let pixels = paint(&mut Dice::new(seed, index), width as usize, height as usize);
    let mut file = Vec::with_capacity(pixels.len() / 8 + 1024);
    JpegEncoder::new_with_quality(&mut file, QUALITY)
        .encode(&pixels, width, height, ExtendedColorType::Rgb8)
        .expect("a Vec takes every byte, and the sides fit the format");
    file
}

const QUALITY: u8 = 85;
const N_SHAPES: usize = 7;

/// Three colour samples, or what is added to them.
type Rgb = [i32; 3];

fn paint(dice: &mut Dice, width: usize, height: usize) -> Vec<u8> {
    let ground: Rgb = std::array::from_fn(|_| 70 + dice.below(116) as i32);
    let across: [Vec<i32>; 3] = std::array::from_fn(|_| wave(dice, width, 40));
    let down: [Vec<i32>; 3] = std::array::from_fn(|_| wave(dice, height, 40));
    let shapes: [Shape; N_SHAPES] = std::array::from_fn(|_| Shape::throw(dice, width, height));

    let mut pixels = vec![0; width * height * 3];
    let mut line: Vec<Rgb> = vec![[0; 3]; width];
    for (y, row) in pixels.chunks_exact_mut(width * 3).enumerate() {
        for (x, pixel) in line.iter_mut().enumerate() {
            *pixel = std::array::from_fn(|c| ground[c] + across[c][x] + down[c][y]);
        }
        for shape in &shapes {
            let (from, to) = shape.span(y as i32, width);
            for pixel in &mut line[from..to] {
                // The shading shines through, so that a shape is no flat patch.
                *pixel = std::array::from_fn(|c| shape.color[c] + pixel[c] / 4);
            }
        }
        let mut bits = 0;
        for (x, (pixel, out)) in line.iter().zip(row.chunks_exact_mut(3)).enumerate() {
            if x % 4 == 0 {
                bits = dice.next();
            }
            // Two dice make small noise likelier than large.
            let noise = (bits & 15) as i32 + (bits >> 4 & 15) as i32 - 15;
            let tint = (bits >> 8 & 7) as i32 - 3;
            bits >>= 16;
            let noise: Rgb = [noise + tint, noise, noise - tint];
            for c in 0..3 {
                out[c] = (pixel[c] + noise[c] * 2 / 3).clamp(0, 255) as u8;
            }
        }
    }
    pixels
}

/// A smooth curve of a few bends, by place.
fn wave(dice: &mut Dice, n: usize, height: i32) -> Vec<i32> {
    let bends = 0.5 + dice.below(300) as f32 / 100.0;
    let phase = dice.below(628) as f32 / 100.0;
    let step = bends * std::f32::consts::TAU / n as f32;
    (0..n).map(|place| ((place as f32 * step + phase).sin() * height as f32) as i32).collect()
}

/// A rectangle or an ellipse.
struct Shape {
    center: (i32, i32),
    half: (i32, i32),
    round: bool,
    color: Rgb,
}

impl Shape {
    fn throw(dice: &mut Dice, width: usize, height: usize) -> Self {
        let half = |dice: &mut Dice, side: usize| 1 + dice.below(side as u64 / 5 + 1) as i32;
        Self {
            center: (dice.below(width as u64) as i32, dice.below(height as u64) as i32),
            half: (half(dice, width), half(dice, height)),
            round: dice.below(3) > 0,
            color: std::array::from_fn(|_| dice.below(200) as i32),
        }
    }

    /// The columns that it covers in a row, from and to.
    fn span(&self, y: i32, width: usize) -> (usize, usize) {
        let away = (y - self.center.1).abs() as f32 / self.half.1 as f32;
        if away > 1.0 {
            return (0, 0);
        }
        let reach = if self.round { (1.0 - away * away).sqrt() } else { 1.0 };
        let reach = (reach * self.half.0 as f32) as i32;
        let inside = |x: i32| (x.max(0) as usize).min(width);
        (inside(self.center.0 - reach), inside(self.center.0 + reach))
    }
}

/// SplitMix64: each picture's numbers begin at their own place, without those before.
struct Dice(u64);

impl Dice {
    fn new(seed: u64, index: u64) -> Self {
        let mut dice = Self(seed);
        let start = dice.next();
        Self(start ^ index.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::jpeg;
    use crate::decode::{Format, Limits, decode};

    #[test]
    fn pictures_decode_at_the_size_that_was_asked_for() {
        for (width, height) in [(500, 375), (64, 64), (1, 1), (1, 40), (33, 7)] {
            let picture = decode(&jpeg(3, width, height, 7), Limits::default()).unwrap();
            let expected = (Format::Jpeg, width, height);
            assert_eq!((picture.format, picture.width, picture.height), expected);
        }
    }

    #[test]
    fn bytes_depend_on_index_and_seed_alone() {
        let file = jpeg(5, 64, 48, 1);
        assert_eq!(file, jpeg(5, 64, 48, 1));
        assert_ne!(file, jpeg(6, 64, 48, 1));
        assert_ne!(file, jpeg(5, 64, 48, 2));
    }

    #[test]
    fn they_weigh_what_photographs_of_their_size_weigh() {
        for index in 0..8 {
            let bytes = jpeg(index, 500, 375, 0).len();
            assert!((30_000..=60_000).contains(&bytes), "picture {index} has {bytes} bytes");
        }
    }
}
