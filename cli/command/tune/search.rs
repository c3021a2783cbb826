//! Which settings are tried: one knob after the other is turned as long as that gains.
//!
//! Machines are noisy, and rates drift. So each setting is measured between two measurements of the best so far, and has
//! to beat both; in the end the best is measured against the pipeline as it is once more.

use super::knobs::{Knobs, Point, Setting};
use crate::failure::Failure;

/// What is gained by less is taken for noise.
const LEAST_STEP: f64 = 1.02;
/// The same for all settings together.
const LEAST_GAIN: f64 = 1.03;
/// Times that all knobs are gone through at most.
const MOST_ROUNDS: usize = 3;

/// A search; `measure` gives rows a second, or `None` where settings cannot be.
pub(super) struct Search<'a, M> {
    pub(super) knobs: &'a Knobs,
    pub(super) measure: M,
}

/// A setting that was tried.
pub(super) struct Trial {
    /// The knob that was turned, and what to.
    pub(super) knob: usize,
    pub(super) setting: Setting,
    /// With all other settings as they were best then.
    pub(super) rows: f64,
    /// By how much it beats the best so far.
    pub(super) gain: f64,
    pub(super) is_kept: bool,
}

/// What was found.
pub(super) struct Found {
    pub(super) trials: Vec<Trial>,
    /// The best settings: none where nothing gains enough.
    pub(super) best: Point,
    /// Rows a second of the pipeline as it is.
    pub(super) default_rows: f64,
    /// Rows a second with the best settings.
    pub(super) best_rows: f64,
}

impl Found {
    /// Whether anything is faster than the pipeline as it is.
    pub(super) fn has_gained(&self) -> bool {
        self.best.iter().any(Option::is_some)
    }

    /// How many times as fast as it is the pipeline can be.
    pub(super) fn gain(&self) -> f64 {
        self.best_rows / self.default_rows
    }
}

impl<M: FnMut(&Point) -> Result<Option<f64>, Failure>> Search<'_, M> {
    pub(super) fn run(mut self) -> Result<Found, Failure> {
        let default: Point = vec![None; self.knobs.0.len()];
        let mut state = State { rows: self.certain(&default)?, best: default.clone(), tried: vec![default.clone()] };
        let mut trials = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let n_kept = trials.iter().filter(|trial: &&Trial| trial.is_kept).count();
            for knob in 0..self.knobs.0.len() {
                self.turn(knob, &mut state, &mut trials)?;
            }
            if trials.iter().filter(|trial| trial.is_kept).count() == n_kept {
                break;
            }
        }
        self.judge(default, state, trials)
    }

    /// Turns one knob up, or else down, as long as that gains.
    fn turn(&mut self, knob: usize, state: &mut State, trials: &mut Vec<Trial>) -> Result<(), Failure> {
        let mut is_turning = true;
        while is_turning {
            is_turning = false;
            let now = state.best[knob].unwrap_or(self.knobs.0[knob].default);
            for setting in self.knobs.0[knob].beside(now) {
                let mut point = state.best.clone();
                point[knob] = (setting != self.knobs.0[knob].default).then_some(setting);
                if state.tried.contains(&point) {
                    continue;
                }
                state.tried.push(point.clone());
                let Some(rows) = (self.measure)(&point)? else { continue };
                let again = self.certain(&state.best)?;
                let gain = rows / ((state.rows + again) / 2.0);
                let is_kept = gain > LEAST_STEP && rows > state.rows.max(again);
                trials.push(Trial { knob, setting, rows, gain, is_kept });
                state.rows = again;
                if is_kept {
                    (state.best, state.rows, is_turning) = (point, rows, true);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Measures the best against the pipeline as it is, in turns.
    fn judge(&mut self, default: Point, state: State, trials: Vec<Trial>) -> Result<Found, Failure> {
        if state.best == default {
            return Ok(Found { trials, best: default, default_rows: state.rows, best_rows: state.rows });
        }
        let (mut default_rows, mut best_rows) = (0.0, 0.0);
        for _ in 0..2 {
            default_rows += self.certain(&default)? / 2.0;
            best_rows += self.certain(&state.best)? / 2.0;
        }
        if best_rows < default_rows * LEAST_GAIN {
            return Ok(Found { trials, best: default, default_rows, best_rows: default_rows });
        }
        Ok(Found { trials, best: state.best, default_rows, best_rows })
    }

    /// The rate of settings that were measured before, or are the pipeline's own.
    fn certain(&mut self, point: &Point) -> Result<f64, Failure> {
        let rows = (self.measure)(point)?;
        rows.ok_or_else(|| Failure::fault("the pipeline cannot be placed any more: is the device used by others?"))
    }
}

struct State {
    best: Point,
    /// Its rate when it was measured last.
    rows: f64,
    tried: Vec<Point>,
}
