//! What models take of a GPU's memory: the one place where it is added up.
//!
//! The plan, its errors and what `flowgpu plan` prints all show these values.

use std::fmt;

use serde::Serialize;

use super::Need;

/// Bytes that a process takes of a GPU before its first allocation: the context and the kernels loaded into it.
///
/// Public reports of processes that only opened a GPU range from 300 to 500 MB since kernels are loaded when they are
/// first used (CUDA 11.7); the handles of cuBLAS come with workspaces of 8 to 32 MiB more, which models count as their own.
pub const CONTEXT_BYTES: u64 = 450 << 20;

/// What one model takes in one worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelMemory {
    /// The index of its node.
    #[serde(skip)]
    pub node: usize,
    /// The node's name.
    pub name: String,
    /// Bytes of its weights.
    pub weights: u64,
    /// Rows of a batch.
    pub rows: usize,
    /// Bytes that one row's activations take at their peak.
    pub activations_per_row: u64,
    /// Bytes of scratch memory.
    pub workspace: u64,
}

impl ModelMemory {
    /// What a need comes to.
    pub fn of(need: &Need) -> Self {
        ModelMemory {
            node: need.node,
            name: need.name.clone(),
            weights: need.model.weights,
            rows: need.rows,
            activations_per_row: need.model.activations_per_row,
            workspace: need.model.workspace,
        }
    }

    /// The sum.
    pub fn bytes(&self) -> u64 {
        let activations = self.activations_per_row.saturating_mul(self.rows as u64);
        self.weights.saturating_add(activations).saturating_add(self.workspace)
    }

    /// Whether nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        self.bytes() == 0
    }
}

/// `weights 18 MiB + activations 32 x 27 MiB + workspace 256 MiB`.
impl fmt::Display for ModelMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unknown() {
            return f.write_str("memory not known");
        }
        write!(
            f,
            "weights {} + activations {} x {} + workspace {}",
            Bytes(self.weights),
            self.rows,
            Bytes(self.activations_per_row),
            Bytes(self.workspace)
        )
    }
}

/// What one worker process takes of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerMemory {
    /// Its models.
    pub models: Vec<ModelMemory>,
    /// What the process takes before any model: see [`CONTEXT_BYTES`].
    pub context: u64,
}

impl WorkerMemory {
    /// A worker with these models.
    pub fn of<'a>(needs: impl IntoIterator<Item = &'a Need>) -> Self {
        WorkerMemory { models: needs.into_iter().map(ModelMemory::of).collect(), context: CONTEXT_BYTES }
    }

    /// The sum.
    pub fn bytes(&self) -> u64 {
        self.models.iter().fold(self.context, |sum, model| sum.saturating_add(model.bytes()))
    }

    /// The sum as lines, one for each model and, if there are several, one for the worker:
    /// `scores  weights 18 MiB + activations 32 x 27 MiB + workspace 256 MiB + context 450 MiB = 1.6 GiB a worker`.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.models.iter().map(|model| model.name.chars().count()).max().unwrap_or(0);
        let (context, sum) = (Bytes(self.context), Bytes(self.bytes()));
        if let [model] = &self.models[..] {
            return vec![format!("{}  {model} + context {context} = {sum} a worker", model.name)];
        }
        let mut lines: Vec<String> = self
            .models
            .iter()
            .map(|model| match model.is_unknown() {
                true => format!("{:<columns$}  {model}", model.name),
                false => format!("{:<columns$}  {model} = {}", model.name, Bytes(model.bytes())),
            })
            .collect();
        lines.push(format!("{:<columns$}  context {context} + these = {sum} a worker", ""));
        lines
    }
}

/// Bytes as people read them: `0 B`, `18 MiB`, `1.6 GiB`, `21.8 GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut size = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while size >= 1023.5 {
            size /= 1024.0;
            unit += 1;
        }
        // Tenths tell something of small figures, and of gibibytes, which are few.
        let tenths = (size * 10.0).round();
        let whole = tenths % 10.0 == 0.0 || tenths >= 1000.0 || (tenths >= 100.0 && unit < 2);
        if whole { write!(f, "{size:.0} {}", UNITS[unit]) } else { write!(f, "{:.1} {}", tenths / 10.0, UNITS[unit]) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::tests::need;
    use super::*;

    #[test]
    fn bytes_have_a_unit_that_suits_them() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (18 << 20, "18 MiB"),
            ((27 << 20) + (300 << 10), "27 MiB"),
            (450 << 20, "450 MiB"),
            (24 << 30, "24 GiB"),
            ((218 << 30) / 10, "21.8 GiB"),
            ((16 << 30) / 10, "1.6 GiB"),
            ((1 << 30) - 1, "1 GiB"),
            (139 << 30, "139 GiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (bytes, shown) in cases {
            assert_eq!(Bytes(bytes).to_string(), shown);
        }
    }

    #[test]
    fn a_sum_is_shown_with_all_that_is_in_it() {
        let scores = need("scores", 18, 27, 256);
        let memory = WorkerMemory::of([&scores]);
        assert_eq!(
            memory.lines(),
            [
                "scores  weights 18 MiB + activations 32 x 27 MiB + workspace 256 MiB + context 450 MiB = 1.6 GiB a worker"
            ]
        );
        assert_eq!(memory.bytes(), (18 + 32 * 27 + 256 + 450) << 20);
        let both = WorkerMemory::of([&scores, &need("tag", 0, 0, 0)]);
        assert_eq!(
            both.lines(),
            [
                "scores  weights 18 MiB + activations 32 x 27 MiB + workspace 256 MiB = 1.1 GiB",
                "tag     memory not known",
                "        context 450 MiB + these = 1.6 GiB a worker",
            ]
        );
    }

    #[test]
    fn sums_do_not_overflow() {
        let mut huge = need("huge", 0, 0, 0);
        huge.model.weights = u64::MAX;
        huge.model.activations_per_row = u64::MAX;
        assert_eq!(WorkerMemory::of([&huge, &huge]).bytes(), u64::MAX);
    }
}
