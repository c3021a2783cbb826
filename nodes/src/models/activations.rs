//! How much must be in a device's memory at once while a network runs over one row: arithmetic, nothing is loaded.
//!
//! It counts what candle's operations hold on a GPU, where a convolution writes out its windows (also those of 1×1),
//! multiplies, and turns the result around. It is a plan and not a promise: kernels that do with less are welcome.

use super::layers::{Activation, Channels, ConvSpec, Padding};

/// The values of one row between two layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Map {
    pub channels: usize,
    pub height: usize,
    pub width: usize,
}

impl Map {
    /// The image that goes in.
    pub(crate) fn image(height: usize, width: usize) -> Self {
        Map { channels: 3, height, width }
    }

    pub(crate) fn elements(self) -> u64 {
        self.channels as u64 * self.height as u64 * self.width as u64
    }

    /// What a convolution with this stride makes of it, if it sees as far as the borders.
    pub(crate) fn strided(self, stride: usize, channels: usize) -> Self {
        Map { channels, height: self.height.div_ceil(stride), width: self.width.div_ceil(stride) }
    }
}

/// Follows a network layer by layer and keeps the most that was alive. Each method is told what else is `kept`: values
/// that a later layer reads.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    peak: u64,
}

impl Tally {
    /// The most elements that were alive.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    /// So many elements are alive.
    pub(crate) fn alive(&mut self, elements: u64) {
        self.peak = self.peak.max(elements);
    }

    /// A convolution with its bias and activation.
    pub(crate) fn conv(&mut self, kept: u64, input: Map, n_out: usize, kernel: usize, spec: ConvSpec) -> Map {
        let [height, width] = [input.height, input.width].map(|side| out_side(side, kernel, spec));
        let output = Map { channels: n_out, height, width };
        let windows = Map { channels: kernel * kernel, height, width }.elements();
        let scratch = match spec.channels {
            Channels::Mixed => windows * input.channels as u64,
            // Channels are taken one after the other.
            Channels::Separate => windows,
        };
        // The product and the same turned around; or the sums, those with the bias, and what the activation makes.
        let copies = copies(spec.activation) * output.elements();
        let working = (scratch + 2 * output.elements()).max(copies);
        self.alive(kept + input.elements() + padded(input, kernel, spec) + working);
        output
    }

    /// A linear layer with its bias and activation, over so many elements.
    pub(crate) fn linear(&mut self, kept: u64, input: u64, output: u64, activation: Activation) {
        self.alive(kept + input + copies(activation) * output);
    }

    /// The sum of two branches, activated. An input of the network that is one of them is not `kept` besides.
    pub(crate) fn join(&mut self, kept: u64, output: Map) {
        self.alive(kept + 3 * output.elements());
    }

    /// The pooling of [`max_pool_3x3_stride_2`](super::layers::max_pool_3x3_stride_2).
    pub(crate) fn max_pool(&mut self, kept: u64, input: Map) -> Map {
        let output = input.strided(2, input.channels);
        let taller = Map { height: input.height + 2, ..input };
        let padded = Map { width: input.width + 2, ..taller };
        self.alive(kept + input.elements() + taller.elements() + padded.elements() + output.elements());
        output
    }
}

/// How many tensors of a layer's size are there until its output is.
fn copies(activation: Activation) -> u64 {
    match activation {
        Activation::Identity => 2,
        Activation::Relu | Activation::Gelu | Activation::GeluTanh | Activation::QuickGelu => 3,
        // A lower bound, then an upper one.
        Activation::Relu6 => 4,
    }
}

fn out_side(side: usize, kernel: usize, spec: ConvSpec) -> usize {
    match spec.padding {
        Padding::None => side.saturating_sub(kernel) / spec.stride + 1,
        Padding::Centred | Padding::Same => side.div_ceil(spec.stride),
    }
}

/// A copy of the input with zeros around it, where the convolution itself cannot put them there.
fn padded(input: Map, kernel: usize, spec: ConvSpec) -> u64 {
    if spec.padding != Padding::Same {
        return 0;
    }
    let read = |side: usize| ((out_side(side, kernel, spec) - 1) * spec.stride + kernel).max(side);
    let [height, width] = [read(input.height), read(input.width)];
    let is_even = |side: usize, read: usize| read - side == kernel / 2 * 2;
    if is_even(input.height, height) && is_even(input.width, width) {
        return 0;
    }
    Map { height, width, ..input }.elements()
}

#[cfg(test)]
mod tests {
    use super::super::arch;

    fn check(name: &str, height: usize, width: usize, expected: u64) {
        assert_eq!(arch(name).expect(name).activations(height, width), expected, "{name} {height}×{width}");
    }

    /// Values of one row at these channels and side.
    fn map(channels: u64, side: u64) -> u64 {
        channels * side * side
    }

    #[test]
    fn mobile_networks_peak_where_they_widen_first() {
        // 16 → 96 channels at 112×112: the image, the layer's input, and four times its output (sums, with the bias,
        // not below zero, not above six), which is more than windows and two outputs.
        let peak = map(3, 224) + map(16, 112) + 4 * map(96, 112);
        assert_eq!(peak, 5_168_128);
        check("mobilenet_v2", 224, 224, peak);
        check("efficientnet_lite0", 224, 224, peak);
        check("mobilenet_v2", 448, 448, 4 * peak);
    }

    #[test]
    fn on_a_processor_wide_values_are_lines() {
        let on_cpu = |name: &str, side| arch(name).expect(name).activations_on_cpu(side, side);
        // 32 → 16 channels at 112×112, the first of the blocks, and four lines of its wide values, which are the input.
        assert_eq!(on_cpu("mobilenet_v2", 224), map(32, 112) + map(16, 112) + 4 * 32 * 112);
        assert_eq!(on_cpu("efficientnet_lite0", 224), on_cpu("mobilenet_v2", 224));
        // Too small for lines: what is widened, from 16 to 96 channels, and convolved with a stride of 2.
        assert_eq!(on_cpu("mobilenet_v2", 64), map(16, 32) + map(96, 32) + map(96, 16));
        assert_eq!(on_cpu("resnet50", 224), arch("resnet50").expect("resnet50").activations(224, 224));
    }

    #[test]
    fn residual_networks_peak_in_the_stem_s_windows() {
        // 7×7 windows over 3 channels at 112×112, the image, and the product twice.
        let peak = map(3, 224) + map(49 * 3, 112) + 2 * map(64, 112);
        assert_eq!(peak, 3_600_128);
        check("resnet18", 224, 224, peak);
        check("resnet50", 224, 224, peak);
        // Height and width count by themselves.
        check("resnet50", 224, 448, 2 * peak);
    }

    #[test]
    fn the_transformer_peaks_in_its_hidden_layer() {
        // The image, its patches, tokens before and after attention and normed, and three times the hidden layer.
        let (tokens, hidden) = (197 * 768, 197 * 3072);
        let peak = map(3, 224) + 196 * 768 + 3 * tokens + 3 * hidden;
        assert_eq!(peak, 2_570_496);
        check("vit_base_patch16_224", 224, 224, peak);
    }

    fn check_described(json: &str, side: usize, expected: u64) {
        let arch = super::super::folder::parse_config(json).expect("a configuration").arch.arch();
        assert_eq!(arch.activations(side, side), expected, "{json} {side}");
    }

    #[test]
    fn embedders_peak_in_their_hidden_layer_or_in_the_scores_of_many_tokens() {
        // As ViT: the image, its patches, tokens three times and the hidden layer three times.
        let tokens = 50 * 768;
        let peak = map(3, 224) + 49 * 768 + 3 * tokens + 3 * 4 * tokens;
        assert_eq!(peak, 764_160);
        check_described(r#"{"model_type": "clip"}"#, 224, peak);
        let tokens = 196 * 768;
        let peak = map(3, 224) + tokens + 3 * tokens + 3 * 4 * tokens;
        check_described(r#"{"model_type": "siglip"}"#, 224, peak);
        // 1,370 tokens: eight times those, and the scores of six heads twice, which grow with their square.
        let tokens = 1370 * 384;
        let peak = map(3, 518) + 1369 * 384 + 8 * tokens + 2 * 6 * 1370 * 1370;
        let json = r#"{"model_type": "dinov2", "hidden_size": 384, "num_attention_heads": 6, "image_size": 518}"#;
        check_described(json, 518, peak);
        // Another size than the trained one: the scores are still the most.
        let tokens = 257 * 384;
        check_described(json, 224, map(3, 224) + 256 * 384 + 8 * tokens + 2 * 6 * 257 * 257);
        // Gated: twice the hidden layer together, and apart, and what passes.
        let json =
            r#"{"model_type": "dinov2", "hidden_size": 1536, "num_attention_heads": 24, "use_swiglu_ffn": true}"#;
        let tokens = 257 * 1536;
        check_described(json, 224, map(3, 224) + 256 * 1536 + 3 * tokens + 5 * 257 * 4096);
    }

    #[test]
    fn every_architecture_needs_more_for_larger_images() {
        for arch in super::super::ARCHS.iter().filter(|arch| arch.input_size().admits(256, 256)) {
            assert!(arch.activations(256, 256) > arch.activations(224, 224), "{}", arch.name());
        }
    }
}
