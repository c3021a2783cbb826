//! The folder of the quick start's model says what the architecture itself would.

use std::path::Path;

use nodes::models::folder::{Described, parse_config, parse_preprocessor};
use nodes::models::identify;

#[test]
fn the_quick_start_model_is_described_by_its_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipelines/models/efficientnet_lite0");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of the folder");
    let config = parse_config(&read("config.json")).expect("a configuration");
    assert_eq!((config.arch, config.n_classes), (Described::Listed("efficientnet_lite0"), Some(1000)));

    let preset = config.arch.arch().preset();
    assert_eq!(parse_preprocessor(&read("preprocessor_config.json")).expect("a preset"), preset);
    assert_eq!(preset.to_string(), "256 bicubic, crop 224, normalize tf127");

    let weights = nodes::weights::open(&folder).expect("weights that open");
    assert_eq!(identify(&weights).map(|arch| arch.name()), Some("efficientnet_lite0"));
}
