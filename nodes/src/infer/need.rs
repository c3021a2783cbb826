//! What an image model needs of a device: from headers and arithmetic.

use candle_core::DType;
use engine::config::Devices;
use engine::node::{FileStamp, HostNeed, ModelNeed};

use super::model_ref::Resolved;

/// Bytes that cuBLAS takes for a stream to work in: its reference (`cublasSetWorkspace`) recommends 32 MiB on Hopper and
/// 4 MiB on older GPUs, and the larger is planned for.
const WORKSPACE: u64 = 32 << 20;

/// What `resolved` needs for images of height and width `size`, in `dtype`.
///
/// Batch norms are folded into the weights when a model is loaded, so that their means and variances are not counted;
/// their scales are, which is a thousandth too much. Pixels are uploaded as bytes and normalised on the device, where both
/// are kept while the row is computed.
pub(super) fn of(resolved: &Resolved, size: [usize; 2], dtype: DType, devices: Option<Devices>) -> ModelNeed {
    let bytes = dtype.size_in_bytes() as u64;
    let [height, width] = size;
    let pixels = 3 * height as u64 * width as u64;
    let n_parameters = resolved.arch.parameters(resolved.n_classes).n_kept();
    let activations = resolved.arch.activations(height, width);
    let on_cpu = resolved.arch.activations_on_cpu(height, width);
    ModelNeed {
        weights: n_parameters * bytes,
        activations_per_row: pixels + activations * bytes,
        workspace: WORKSPACE,
        host: HostNeed { weights: 4 * n_parameters, per_thread: 4 * on_cpu },
        devices,
        files: resolved.files.iter().filter_map(|path| FileStamp::of(path)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use engine::data::{ColumnType, DType, Dim, Field, Role, Schema};
    use engine::node::harness::Harness;

    use super::super::Infer;
    use super::*;

    fn need(with: &str, side: usize, base: &Path) -> ModelNeed {
        let shape = vec![Dim::Fixed(side), Dim::Fixed(side), Dim::Fixed(3)];
        let image = ColumnType::Tensor { dtype: DType::U8, shape };
        let input = Schema { fields: vec![Field::new("image", image, Role::Result)], batch: Some(8) };
        Harness::new::<Infer>(with, vec![input]).in_folder(base).spec().unwrap().need.unwrap()
    }

    fn random(arch: &str, dtype: &str) -> ModelNeed {
        need(&format!("{{model: {{arch: {arch}, weights: random}}, dtype: {dtype}}}"), 224, Path::new("."))
    }

    #[test]
    fn weights_are_the_published_numbers_of_parameters_by_the_bytes_of_each() {
        // As torchvision and timm publish them for 1,000 classes.
        let published = [
            ("efficientnet_lite0", 4_652_008),
            ("mobilenet_v2", 3_504_872),
            ("resnet18", 11_689_512),
            ("resnet50", 25_557_032),
            ("vit_base_patch16_224", 86_567_656),
        ];
        for (arch, n_parameters) in published {
            assert_eq!(random(arch, "f32").weights, 4 * n_parameters, "{arch}");
            assert_eq!(random(arch, "f16").weights, 2 * n_parameters, "{arch}");
        }
    }

    #[test]
    fn a_row_needs_its_bytes_and_its_activations() {
        let pixels = 224 * 224 * 3;
        assert_eq!(random("mobilenet_v2", "f32").activations_per_row, pixels + 4 * 5_168_128);
        assert_eq!(random("mobilenet_v2", "bf16").activations_per_row, pixels + 2 * 5_168_128);
        assert_eq!(random("mobilenet_v2", "f32").files, []);
    }

    #[test]
    fn files_are_stamped_and_devices_are_the_node_s_own() {
        let pipelines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipelines");
        let found = need("{model: models/efficientnet_lite0, device: \"cuda:1\"}", 224, &pipelines);
        let path = pipelines.join("models/efficientnet_lite0/model.safetensors");
        assert_eq!(found.files, [FileStamp::of(&path).unwrap()]);
        assert_eq!(found.weights, 4 * 4_652_008);
        assert_eq!(found.devices, Some(Devices::Cuda(vec![1])));
        assert_eq!(need("{model: models/efficientnet_lite0}", 224, &pipelines).devices, None);
    }
}
