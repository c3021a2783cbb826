//! DINOv2, with and without registers: a vision transformer over images of any size, whose class token is normed.
//!
//! Canonical names are transformers', but for the blocks.

use candle_core::{Result, Tensor};

use crate::decode::Interpolation;

use super::{
    activations::Map,
    arch::{Arch, InputSize, Parameters},
    layers::{Conv, LayerNorm},
    load::LoadError,
    network::{Network, Outputs},
    normalize::Normalize,
    positions::{Positions, Resampling},
    preset::Preset,
    reader::ParamReader,
    scheme::{Location, Scheme},
    transformer::{Design, Encoder, Mlp, block_name, first_token, patches_of, queries_keys_values, tokens},
};

pub(crate) const NAME: &str = "dinov2";

/// The architecture `dinov2`, of the figures that a folder's `config.json` has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dinov2 {
    pub(crate) encoder: Design,
    pub(crate) patch: usize,
    /// The side of the images that positions were learnt for. Others may come.
    pub(crate) side: usize,
    /// Tokens without a place in the image. Models that have some resample positions in another way.
    pub(crate) registers: Option<usize>,
}

const PLAIN: &[Scheme] =
    &[Scheme { name: "transformers", locate: |canonical| in_transformers(canonical, ["fc1", "fc2"]) }];
const GATED: &[Scheme] =
    &[Scheme { name: "transformers", locate: |canonical| in_transformers(canonical, ["weights_in", "weights_out"]) }];

impl Dinov2 {
    /// Rows and columns of patches that lie whole in an image.
    fn grid(&self, height: usize, width: usize) -> [usize; 2] {
        [height / self.patch, width / self.patch]
    }
}

impl Arch for Dinov2 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters(&self, _n_classes: usize) -> Parameters {
        let width = self.encoder.width;
        let [rows, columns] = self.grid(self.side, self.side);
        let mut parameters = Parameters::default();
        parameters.tensor("embeddings.cls_token", &[1, 1, width]);
        parameters.tensor("embeddings.position_embeddings", &[1, 1 + rows * columns, width]);
        if let Some(n_registers) = self.registers {
            parameters.tensor("embeddings.register_tokens", &[1, n_registers, width]);
        }
        parameters.conv("embeddings.patch_embeddings.projection", width, 3, self.patch);
        parameters.tensor("embeddings.patch_embeddings.projection.bias", &[width]);
        self.encoder.parameters(&mut parameters);
        parameters.layer_norm("layernorm", width);
        parameters
    }

    fn classifier(&self) -> Option<&'static str> {
        None
    }

    fn n_features(&self) -> usize {
        self.encoder.width
    }

    fn schemes(&self) -> &'static [Scheme] {
        match self.encoder.mlp {
            Mlp::Plain(_) => PLAIN,
            Mlp::Gated => GATED,
        }
    }

    fn ignored(&self) -> &'static [&'static str] {
        // What stands in for patches that training hides.
        &["mask_token"]
    }

    fn preset(&self) -> Preset {
        Preset::crop_224(256, Interpolation::Bicubic, Normalize::Imagenet)
    }

    fn input_size(&self) -> InputSize {
        InputSize::AtLeast(self.patch)
    }

    fn activations(&self, height: usize, width: usize) -> u64 {
        let [rows, columns] = self.grid(height, width);
        let n_tokens = 1 + self.registers.unwrap_or(0) + rows * columns;
        self.encoder.activations(Map::image(height, width), self.patch, n_tokens)
    }

    fn build(&self, reader: &ParamReader<'_>) -> std::result::Result<Box<dyn Network>, LoadError> {
        let registers = match self.registers {
            Some(n_registers) if n_registers > 0 => Some(reader.tensor("embeddings.register_tokens")?),
            _ => None,
        };
        let resampling = match self.registers {
            Some(_) => Resampling::Antialiased,
            None => Resampling::Bicubic,
        };
        let positions = reader.tensor("embeddings.position_embeddings")?;
        Ok(Box::new(Backbone {
            arch: *self,
            patches: reader.conv("embeddings.patch_embeddings.projection", patches_of(self.patch))?,
            class_token: reader.tensor("embeddings.cls_token")?,
            registers,
            positions: Positions::new(positions, self.side / self.patch, resampling),
            encoder: self.encoder.read(reader)?,
            norm: reader.layer_norm("layernorm", self.encoder.eps)?,
        }))
    }
}

struct Backbone {
    arch: Dinov2,
    patches: Conv,
    class_token: Tensor,
    registers: Option<Tensor>,
    positions: Positions,
    encoder: Encoder,
    norm: LayerNorm,
}

impl Network for Backbone {
    fn forward(&self, images: &Tensor, _outputs: Outputs) -> Result<Tensor> {
        let (_, _, height, width) = images.dims4()?;
        let positions = self.positions.of(self.arch.grid(height, width))?;
        let tokens = tokens(&self.patches, Some(&self.class_token), &positions, images)?;
        let tokens = match &self.registers {
            Some(registers) => behind_the_first(&tokens, registers)?,
            None => tokens,
        };
        first_token(&self.norm, &self.encoder.forward(tokens)?)
    }
}

/// Puts the registers, which have no position, between the class token and the patches.
fn behind_the_first(tokens: &Tensor, registers: &Tensor) -> Result<Tensor> {
    let (n_rows, n_tokens, width) = tokens.dims3()?;
    let registers = registers.broadcast_as((n_rows, registers.dim(1)?, width))?;
    Tensor::cat(&[tokens.narrow(1, 0, 1)?, registers, tokens.narrow(1, 1, n_tokens - 1)?], 1)
}

/// Query, key and value are three tensors there, and the layers of the small networks have these names.
fn in_transformers(canonical: &str, mlp: [&str; 2]) -> Location {
    let Some((block, layer, part)) = block_name(canonical) else {
        return Location::Whole(canonical.to_owned());
    };
    let prefix = format!("encoder.layer.{block}");
    let layer = match layer {
        "attn.qkv" => return queries_keys_values(&prefix, part),
        "attn.proj" => "attention.output.dense",
        "mlp.fc1" => return Location::Whole(format!("{prefix}.mlp.{}.{part}", mlp[0])),
        "mlp.fc2" => return Location::Whole(format!("{prefix}.mlp.{}.{part}", mlp[1])),
        "ls1" => return Location::Whole(format!("{prefix}.layer_scale1.lambda1")),
        "ls2" => return Location::Whole(format!("{prefix}.layer_scale2.lambda1")),
        other => other,
    };
    Location::Whole(format!("{prefix}.{layer}.{part}"))
}
