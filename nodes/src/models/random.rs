//! Weights made up from a closed formula, for tests and for trying a pipeline without a download.
//!
//! The same name, shape and seed give the same numbers in every process and on every machine, and the scale is such
//! that activations stay finite through the deepest network.

use candle_core::{DType, Device, Tensor};
use indexmap::IndexMap;

use super::{
    arch::Arch,
    params::{ReadTensorError, TensorSource},
};

/// Made-up tensors of given names and shapes; values are computed when they are loaded.
#[derive(Debug, Clone)]
pub struct RandomWeights {
    shapes: IndexMap<String, Vec<usize>>,
    seed: u64,
}

impl RandomWeights {
    /// Weights for one architecture, under its canonical names.
    pub fn new(arch: &dyn Arch, n_classes: usize, seed: u64) -> Self {
        let parameters = arch.parameters(n_classes);
        let shapes = parameters.iter().map(|p| (p.name.clone(), p.shape.clone())).collect();
        Self { shapes, seed }
    }

    /// Tensors of any names and shapes.
    pub fn of_shapes(shapes: IndexMap<String, Vec<usize>>, seed: u64) -> Self {
        Self { shapes, seed }
    }
}

impl TensorSource for RandomWeights {
    fn names(&self) -> Vec<String> {
        self.shapes.keys().cloned().collect()
    }

    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.shapes.get(name).cloned()
    }

    fn load(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor, ReadTensorError> {
        let shape = self.shapes.get(name).ok_or_else(|| ReadTensorError::new(name, "there is no such tensor"))?;
        Tensor::from_vec(values(name, shape, self.seed), shape.as_slice(), &Device::Cpu)
            .and_then(|tensor| tensor.to_dtype(dtype))
            .and_then(|tensor| tensor.to_device(device))
            .map_err(|error| ReadTensorError::new(name, error))
    }
}

/// The values of one tensor. What a tensor is for is read off its name and shape.
fn values(name: &str, shape: &[usize], seed: u64) -> Vec<f32> {
    let (offset, amplitude) = if name.ends_with("running_var") {
        (1.0, 0.5)
    } else if name.ends_with("running_mean") || name.ends_with("bias") {
        (0.0, 0.1)
    } else if shape.len() < 2 {
        // The scale of a norm. Below one, so that sums over many residual branches stay small.
        (0.8, 0.2)
    } else if shape[0] == 1 {
        // A token or an embedding, one for all rows of a batch.
        (0.0, 0.5)
    } else {
        // He's rule for a uniform distribution, which keeps the scale of activations through a rectifier.
        let fan_in: usize = shape[1..].iter().product();
        (0.0, (6.0 / fan_in as f64).sqrt())
    };
    let start = name_hash(name) ^ mix(seed);
    (0..shape.iter().product::<usize>())
        .map(|value_idx| {
            let bits = mix(start.wrapping_add((value_idx as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            let unit = (bits >> 40) as f64 / f64::from(1 << 23) - 1.0;
            (offset + amplitude * unit) as f32
        })
        .collect()
}

/// FNV-1a.
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// The finalizer of SplitMix64: every output bit depends on every input bit.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_formula_and_depend_on_name_and_seed() {
        let first = values("conv.weight", &[4, 3, 3, 3], 0);
        assert_eq!(first, values("conv.weight", &[4, 3, 3, 3], 0));
        assert_ne!(first, values("conv.weight", &[4, 3, 3, 3], 1));
        assert_ne!(first, values("convs.weight", &[4, 3, 3, 3], 0));
        let bound = (6.0_f32 / 27.0).sqrt();
        assert!(first.iter().all(|value| value.abs() <= bound));
        assert!(first.iter().any(|value| value.abs() > 0.8 * bound));
    }

    #[test]
    fn variances_are_positive() {
        assert!(values("bn.running_var", &[1000], 7).iter().all(|&value| value >= 0.5));
    }
}
