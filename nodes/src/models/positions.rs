//! Learnt positions for images of another size than the trained one, resampled as torch's `interpolate` does it.

use std::sync::Mutex;

use candle_core::{DType, Device, Result, Tensor};

/// How positions between the learnt ones are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resampling {
    /// `mode="bicubic"`: four neighbours, whatever the size.
    Bicubic,
    /// The same with `antialias=True`: as many as a new position covers.
    Antialiased,
}

/// The positions of a class token and a square of patches.
pub(crate) struct Positions {
    /// `[1, 1 + side · side, width]`, as trained.
    trained: Tensor,
    side: usize,
    resampling: Resampling,
    /// Those of the last grid that was asked for, which is nearly always the next one too.
    last: Mutex<Option<([usize; 2], Tensor)>>,
}

impl Positions {
    /// `trained` has a class token's position, and then `side · side` more.
    pub(crate) fn new(trained: Tensor, side: usize, resampling: Resampling) -> Self {
        Self { trained, side, resampling, last: Mutex::new(None) }
    }

    /// Positions for a grid of so many rows and columns of patches.
    pub(crate) fn of(&self, grid: [usize; 2]) -> Result<Tensor> {
        if grid == [self.side, self.side] {
            return Ok(self.trained.clone());
        }
        let mut last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, positions)) = last.as_ref().filter(|(of, _)| *of == grid) {
            return Ok(positions.clone());
        }
        let positions = self.resample(grid)?;
        *last = Some((grid, positions.clone()));
        Ok(positions)
    }

    fn resample(&self, grid: [usize; 2]) -> Result<Tensor> {
        let (_, _, width) = self.trained.dims3()?;
        let trained = self.trained.to_device(&Device::Cpu)?.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        let (class, square) = trained.split_at(width);
        let [rows, columns] = grid.map(|n_out| taps(self.side, n_out, self.resampling));
        // Along each row first, then along the columns of what that gives.
        let mut narrowed = Vec::with_capacity(self.side * columns.len() * width);
        for row in square.chunks_exact(self.side * width) {
            columns.iter().for_each(|taps| sum(row, width, taps, &mut narrowed));
        }
        let mut positions = class.to_vec();
        let n_per_row = columns.len() * width;
        rows.iter().for_each(|taps| sum(&narrowed, n_per_row, taps, &mut positions));
        Tensor::from_vec(positions, (1, 1 + rows.len() * columns.len(), width), &Device::Cpu)?
            .to_dtype(self.trained.dtype())?
            .to_device(self.trained.device())
    }
}

/// Which of the runs of `n` values go into one new run, and how much of each.
type Taps = Vec<(usize, f64)>;

/// Appends the sum of the runs that `taps` names.
fn sum(values: &[f32], n: usize, taps: &Taps, out: &mut Vec<f32>) {
    out.extend(
        (0..n).map(|place| {
            taps.iter().map(|(run, share)| f64::from(values[run * n + place]) * share).sum::<f64>() as f32
        }),
    );
}

/// For each of `n_out` places along an axis of `n_in`.
fn taps(n_in: usize, n_out: usize, resampling: Resampling) -> Vec<Taps> {
    let scale = n_in as f64 / n_out as f64;
    (0..n_out)
        .map(|place| match resampling {
            Resampling::Bicubic => {
                let centre = (place as f64 + 0.5) * scale - 0.5;
                let first = centre.floor();
                // Beyond an edge, the value at the edge.
                let run = |step: f64| (first + step).clamp(0.0, (n_in - 1) as f64) as usize;
                [-1.0, 0.0, 1.0, 2.0].map(|step| (run(step), cubic(first + step - centre, -0.75))).to_vec()
            }
            Resampling::Antialiased => {
                let stretch = scale.max(1.0);
                let (centre, reach) = ((place as f64 + 0.5) * scale, 2.0 * stretch);
                let first = (centre - reach + 0.5).max(0.0) as usize;
                let end = ((centre + reach + 0.5) as usize).min(n_in);
                let share = |run: usize| cubic((run as f64 - centre + 0.5) / stretch, -0.5);
                let total: f64 = (first..end).map(share).sum();
                // Beyond an edge there is nothing, and the rest is scaled up.
                (first..end).map(|run| (run, share(run) / total)).collect()
            }
        })
        .collect()
}

/// The cubic convolution kernel of slope `a`.
fn cubic(distance: f64, a: f64) -> f64 {
    let x = distance.abs();
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((x - 5.0) * x + 8.0) * x * a - 4.0 * a
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Resampling; 2] = [Resampling::Bicubic, Resampling::Antialiased];

    #[test]
    fn shares_add_up_to_one_at_every_place() {
        for resampling in BOTH {
            for (n_in, n_out) in [(37, 16), (16, 37), (5, 5), (2, 9), (1, 3), (9, 1)] {
                for taps in taps(n_in, n_out, resampling) {
                    let total: f64 = taps.iter().map(|(_, share)| share).sum();
                    assert!((total - 1.0).abs() < 1e-12, "{resampling:?} {n_in} {n_out}: {total}");
                    assert!(taps.iter().all(|(run, _)| *run < n_in), "{resampling:?} {n_in} {n_out}");
                }
            }
        }
    }

    #[test]
    fn the_trained_size_is_left_as_it_is_and_another_one_made_once() {
        for resampling in BOTH {
            let trained =
                Tensor::arange(0f32, 50.0, &Device::Cpu).and_then(|all| all.reshape((1, 10, 5))).expect("positions");
            let positions = Positions::new(trained.clone(), 3, resampling);
            let values = |tensor: &Tensor| tensor.flatten_all().and_then(|flat| flat.to_vec1::<f32>()).expect("values");
            assert_eq!(values(&positions.of([3, 3]).expect("trained")), values(&trained));
            // A new grid of the same size would give the same.
            assert_eq!(values(&positions.resample([3, 3]).expect("resampled")), values(&trained));
            let other = positions.of([2, 4]).expect("resampled");
            assert_eq!(other.dims(), [1, 9, 5]);
            assert_eq!(values(&other)[..5], values(&trained)[..5], "the class token keeps its own");
            assert_eq!(positions.of([2, 4]).expect("kept").id(), other.id());
        }
    }
}
