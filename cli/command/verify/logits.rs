//! A model's numbers, made here and by torchvision with the same weights, from the same pixels.

use engine::data::{ColumnType, DType, Tensor};
use engine::runtime::{LoneModel, Sampler};
use nodes::infer::Infer;

use super::checking::{Checking, LISTED, options, picture};
use super::figures::{Logits, Model};
use crate::failure::Failure;

/// Rows that are compared at most: networks differ in all of them or in none.
const MOST_ROWS: usize = 16;

/// What is needed beside Pillow.
const MODULES: [&str; 2] = ["torch", "torchvision"];

impl Checking<'_> {
    /// Compares what a node computes.
    pub(super) fn model(&mut self, node_idx: usize) -> Result<Model, Failure> {
        let found = self.logits(node_idx)?;
        Ok(Model { name: self.graph.nodes[node_idx].name.clone(), found })
    }

    fn logits(&mut self, node_idx: usize) -> Result<Result<Logits, String>, Failure> {
        for module in MODULES {
            if self.reference.lacks(module)?.is_some() {
                return Ok(Err(format!("{module} is not importable")));
            }
        }
        let node = &self.graph.nodes[node_idx];
        let twin = serde_json::from_value::<Infer>(options(node))
            .map_err(|_| format!("nodes of the kind `{}` have no model of torchvision's", node.kind.name()))
            .and_then(|infer| infer.twin(&self.graph.base));
        let twin = match twin {
            Ok(twin) => twin,
            Err(why) => return Ok(Err(why)),
        };
        if let Some(why) = self.reference.build(&twin)? {
            return Ok(Err(format!("torchvision cannot take its weights: {why}")));
        }
        let [batches] = &node.inputs[..] else { return Ok(Err("its rows come from several nodes".to_owned())) };
        self.compare_rows(node_idx, batches.from)
    }

    fn compare_rows(&mut self, node_idx: usize, batches: usize) -> Result<Result<Logits, String>, Failure> {
        let is_image =
            |ty: &ColumnType| matches!(ty, ColumnType::Tensor { dtype: DType::U8, shape } if shape.len() == 3);
        let node = &self.graph.nodes[node_idx];
        let Some(column) = node.schemas[0].fields.iter().position(|field| is_image(&field.ty)) else {
            return Ok(Err("it reads no images".to_owned()));
        };
        let mut model = LoneModel::load(self.graph, node_idx)?;
        let mut logits = Logits::default();
        let limit = self.limit.min(MOST_ROWS);
        for source_idx in self.sources(node_idx) {
            let Some(mut sampler) = Sampler::new(self.graph, source_idx, batches)? else { continue };
            for (index, item) in sampler.items(limit - logits.n_rows.min(limit), LISTED)? {
                // What is rejected has been told by the node that decodes it.
                let Some(Ok(row)) = sampler.take(index, &item, 0)?.map(|sampled| sampled.after) else { continue };
                let Some(image) = picture(&row, column) else { continue };
                let theirs = self.reference.logits(image.size, image.pixels)?;
                let ours = model.compute(&row)?;
                logits.add(&numbers(&ours), &theirs);
            }
        }
        Ok(if logits.n_rows == 0 { Err("no row comes to it".to_owned()) } else { Ok(logits) })
    }
}

impl Logits {
    fn add(&mut self, ours: &[f64], theirs: &[f64]) {
        let (ours, theirs) = (softmax(ours), softmax(theirs));
        let apart = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let apart = if ours.len() == theirs.len() { apart } else { 1.0 };
        self.n_rows += 1;
        self.n_same_first += usize::from(first(&ours) == first(&theirs));
        self.most = self.most.max(apart);
    }
}

fn numbers(outputs: &[Tensor]) -> Vec<f64> {
    outputs
        .first()
        .map_or_else(Vec::new, |tensor| tensor.row(0).to_f32().iter().map(|value| f64::from(*value)).collect())
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = logits.iter().map(|logit| (logit - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

fn first(probabilities: &[f64]) -> Option<usize> {
    (0..probabilities.len()).max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_are_compared_as_probabilities() {
        let mut logits = Logits::default();
        logits.add(&[1.0, 3.0, 2.0], &[101.0, 103.0, 102.0]);
        assert!(logits.is_fine() && logits.most < 1e-12, "{logits:?}");
        logits.add(&[0.0, 0.0], &[0.0, 3.0_f64.ln()]);
        assert!((logits.most - 0.25).abs() < 1e-12 && !logits.is_fine(), "{logits:?}");
        logits.add(&[0.0, 9.0], &[9.0, 0.0]);
        assert_eq!((logits.n_rows, logits.n_same_first), (3, 2));
    }
}
