//! `pipelines/flowgpu.schema.json`, which the examples name for editors, is the schema that `flowgpu schema` prints.

use std::path::Path;

#[test]
fn the_published_schema_is_that_of_the_kinds() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/flowgpu.schema.json");
    let schema = engine::config::json_schema(&nodes::registry());
    let wanted = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &wanted).expect("the schema can be written");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == wanted, "`{}` is out of date: run this test with UPDATE_GOLDEN=1", file.display());
}
