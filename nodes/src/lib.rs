//! The kinds of node that flowgpu ships, and [`registry`], the one list of them.

pub mod batch;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod decode;
pub mod infer;
pub mod models;
pub mod onnx;
pub mod sink;
pub mod source;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transform;
pub mod weights;

use engine::node::Registry;

/// Every kind that flowgpu ships, in the order of its manual, and the devices that this build can open.
pub fn registry() -> Registry {
    let registry = Registry::new()
        .with::<source::files::Files>()
        .with::<source::webdataset::Webdataset>()
        .with::<source::parquet::Parquet>()
        .with::<source::jsonl::Jsonl>()
        .with::<source::csv::Csv>()
        .with::<source::rejects::Rejects>()
        .with::<source::synthetic::Synthetic>()
        .with::<decode::image::Image>()
        .with::<batch::Pack>()
        .with::<infer::Infer>()
        .with::<transform::topk::TopK>()
        .with::<transform::join::Join>()
        .with::<transform::select::Select>()
        .with::<sink::jsonl::Jsonl>()
        .with::<sink::csv::Csv>()
        .with::<sink::npy::Npy>()
        .with::<sink::parquet::Parquet>()
        .with::<sink::webdataset::WebDataset>()
        .with::<sink::safetensors::SafeTensors>();
    #[cfg(feature = "cuda")]
    let registry = registry.with_device(cuda::OpenCuda);
    registry
}

#[cfg(feature = "testing")]
pub use testing::testing_registry;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_option_is_documented() {
        for kind in registry().iter() {
            let description = kind.schema()["description"].as_str().unwrap_or_default();
            for section in ["# Input", "# Output", "# Example"] {
                assert!(description.contains(section), "`{}` has no `{section}`", kind.name());
            }
            let options = kind.schema()["properties"].as_object().into_iter().flatten();
            for (option, schema) in options {
                assert!(schema["description"].is_string(), "`{option}` of `{}` is not documented", kind.name());
            }
        }
    }

    #[test]
    fn every_example_is_a_node_of_its_kind() {
        for kind in registry().iter() {
            let description = kind.schema()["description"].as_str().unwrap();
            let in_manual = description.split("```yaml\n").nth(1).unwrap().split("\n```").next().unwrap();
            for example in [kind.example(), in_manual] {
                let nodes: serde_json::Value = serde_yaml::from_str(example).unwrap();
                let node = nodes.as_object().unwrap().values().next().unwrap();
                assert_eq!(node["kind"], kind.name());
                let with = node.get("with").cloned().unwrap_or_else(|| serde_json::json!({}));
                kind.parse(serde_yaml::to_value(with).unwrap()).unwrap();
            }
        }
    }
}
