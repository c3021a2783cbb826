//! Attention of tokens over each other, on the CPU.
//!
//! Queries, keys and values are read where the layer before has put them; keys and values of a head are packed once, and
//! scores exist for a block of tokens at a time.

use candle_core::{Device, Result, Tensor, bail};
use rayon::prelude::*;

use super::{
    Activation,
    kernel::Isa,
    matrix::{Finish, Matrix, Plain},
    softmax::Softmax,
    values::with_values,
};

/// Tokens whose scores are in memory at once.
const BLOCK: usize = 96;

/// Of `[rows, tokens, 3 · width]`, the queries, keys and values of `n_heads` heads, gives `[rows, tokens, width]`.
pub(crate) fn attend(qkv: &Tensor, n_heads: usize) -> Result<Tensor> {
    let (n_rows, n_tokens, triple) = qkv.dims3()?;
    let width = triple / 3;
    if n_heads == 0 || triple != 3 * width || !width.is_multiple_of(n_heads) {
        bail!("attention of {n_heads} heads over {:?}", qkv.dims());
    }
    let mut out = vec![0.0_f32; n_rows * n_tokens * width];
    if !out.is_empty() {
        with_values(qkv, |values| {
            let images = out.chunks_exact_mut(n_tokens * width).zip(values.chunks_exact(n_tokens * triple));
            images.for_each(|(out, qkv)| Image { qkv, n_tokens, width, n_heads }.attend(out));
            Ok(())
        })?;
    }
    Tensor::from_vec(out, (n_rows, n_tokens, width), &Device::Cpu)
}

/// The tokens of one image.
struct Image<'a> {
    qkv: &'a [f32],
    n_tokens: usize,
    width: usize,
    n_heads: usize,
}

impl Image<'_> {
    fn attend(&self, out: &mut [f32]) {
        let heads: Vec<[Matrix; 2]> = (0..self.n_heads).into_par_iter().map(|head_idx| self.pack(head_idx)).collect();
        let (n_tokens, width) = (self.n_tokens, self.width);
        let head_width = width / self.n_heads;
        let no_bias = vec![0.0_f32; n_tokens.max(head_width)];
        let isa = Isa::best();
        out.par_chunks_mut(BLOCK * width).enumerate().for_each(|(block_idx, out)| {
            let n_rows = out.len() / width;
            let mut scores = vec![0.0_f32; n_rows * n_tokens];
            let finish = Finish { bias: &no_bias, added: None, activation: Activation::Identity };
            for (head_idx, [keys, values]) in heads.iter().enumerate() {
                let first = head_idx * head_width;
                let queries = Plain { values: &self.qkv[first..], n_summed: head_width, stride: 3 * width };
                keys.multiply_block(&queries, [block_idx * BLOCK, n_rows], finish, &mut scores, n_tokens);
                isa.run(Softmax { rows: &mut scores, n_columns: n_tokens });
                let weights = Plain { values: &scores, n_summed: n_tokens, stride: n_tokens };
                values.multiply_block(&weights, [0, n_rows], finish, &mut out[first..], width);
            }
        });
    }

    /// The keys of a head as columns, divided by the root of their length, and its values as rows.
    fn pack(&self, head_idx: usize) -> [Matrix; 2] {
        let (n_tokens, width, qkv) = (self.n_tokens, self.width, self.qkv);
        let head_width = width / self.n_heads;
        let scale = 1.0 / (head_width as f32).sqrt();
        let first = head_idx * head_width;
        let keys =
            Matrix::new([head_width, n_tokens], |place, token| qkv[token * 3 * width + width + first + place] * scale);
        let values =
            Matrix::new([n_tokens, head_width], |token, place| qkv[token * 3 * width + 2 * width + first + place]);
        [keys, values]
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{D, IndexOp};
    use candle_nn::ops::softmax_last_dim;

    use super::*;

    #[test]
    fn it_is_what_candle_computes_step_by_step() {
        let (n_rows, n_tokens, n_heads, head_width) = (2, 101, 3, 20);
        let n_values = n_rows * n_tokens * 3 * n_heads * head_width;
        let values: Vec<f32> = (0..n_values).map(|n| (n as f32 * 0.73).sin() * 3.0).collect();
        let qkv =
            Tensor::from_vec(values, (n_rows, n_tokens, 3 * n_heads * head_width), &Device::Cpu).expect("a tensor");
        let by_candle = || -> Result<Tensor> {
            let qkv = qkv.reshape((n_rows, n_tokens, 3, n_heads, head_width))?.permute((2, 0, 3, 1, 4))?;
            let query = (qkv.i(0)?.contiguous()? * (1.0 / (head_width as f64).sqrt()))?;
            let scores = query.matmul(&qkv.i(1)?.contiguous()?.transpose(D::Minus2, D::Minus1)?)?;
            let mixed = softmax_last_dim(&scores)?.matmul(&qkv.i(2)?.contiguous()?)?;
            mixed.transpose(1, 2)?.contiguous()?.reshape((n_rows, n_tokens, n_heads * head_width))
        };
        let found = attend(&qkv, n_heads).expect("our kernel");
        let difference = by_candle()
            .and_then(|wanted| (found - wanted)?.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>())
            .expect("a difference");
        assert!(difference < 2e-5, "{difference}");
    }

    #[test]
    fn heads_that_do_not_divide_the_width_are_refused() {
        let qkv = Tensor::zeros((1, 2, 30), candle_core::DType::F32, &Device::Cpu).expect("a tensor");
        assert!(attend(&qkv, 3).is_err());
        assert!(attend(&qkv, 0).is_err());
    }
}
