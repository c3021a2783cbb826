//! Small folders in the form of Hugging Face's embedders, with made-up weights, for the examples that people run on large ones.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::workplace::Workplace;

/// Writes the folder `models-small/<name>`: how long its vectors are, and the option that names it.
pub fn write(workplace: &Workplace, name: &str) -> (usize, String) {
    // What `nodes/tests/golden/make_embedders.py` wrote of a model of transformers': its configuration, and what its file holds.
    let golden = format!("nodes/tests/golden/{name}.tiny.json");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(golden)).expect("a description");
    let described: Value = serde_json::from_str(&text).expect("a description");
    let (config, shapes) = (&described["config"], described["shapes"].as_object().expect("shapes"));
    let vision = config.get("vision_config").unwrap_or(config);
    let n_features = config.get("projection_dim").filter(|_| name == "clip").unwrap_or(&vision["hidden_size"]);
    let n_features = n_features.as_u64().expect("a length") as usize;
    let side = vision["image_size"].as_u64().expect("a side");
    let folder = format!("models-small/{name}");
    workplace.write(&format!("{folder}/config.json"), config.to_string());
    workplace.write(&format!("{folder}/preprocessor_config.json"), preprocessor(name, side).to_string());
    workplace.write(&format!("{folder}/model.safetensors"), weights(shapes));
    (n_features, format!("model={folder}"))
}

/// As each of them has it, but for the side.
fn preprocessor(name: &str, side: u64) -> Value {
    match name {
        "clip" => json!({
            "image_processor_type": "CLIPImageProcessor", "crop_size": side, "size": side, "resample": 3,
            "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
        }),
        "siglip" => json!({
            "image_processor_type": "SiglipImageProcessor", "size": {"height": side, "width": side}, "resample": 3,
            "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
        }),
        _ => json!({
            "image_processor_type": "BitImageProcessor", "crop_size": {"height": side, "width": side},
            "size": {"shortest_edge": side + side / 8}, "resample": 3,
            "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
        }),
    }
}

/// A safetensors file: the length of its header, the header, and the numbers.
fn weights(shapes: &Map<String, Value>) -> Vec<u8> {
    let (mut header, mut numbers) = (Map::new(), Vec::<u8>::new());
    for (name, shape) in shapes {
        let sides = shape.as_array().expect("sides").iter().map(|side| side.as_u64().expect("a side") as usize);
        let (start, n_values) = (numbers.len(), sides.product::<usize>());
        numbers.extend((0..n_values).flat_map(|at| (0.2 * ((start + 7 * at) as f32).sin()).to_le_bytes()));
        header.insert(name.clone(), json!({"dtype": "F32", "shape": shape, "data_offsets": [start, numbers.len()]}));
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &numbers].concat()
}
