//! The photographs out of what people keep them in: the same labels as out of their folder.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::workplace::{PIPELINES, Workplace};

/// The pixels, the model and the labels of the quick start behind another source.
pub fn classified(workplace: &Workplace, source: &str) -> Vec<Value> {
    let yaml = format!(
        "name: again\nnodes:\n  photos: {source}\n  pixels: {{kind: decode.image, with: {{preset: model}}}}\n  scores: {{kind: infer, with: \
         {{model: models/efficientnet_lite0, batch: 2}}}}\n  labels: {{kind: transform.topk, with: {{k: 5, labels: imagenet1k}}}}\n  out: \
         {{kind: sink.jsonl, with: {{path: out/again.jsonl}}}}\n"
    );
    workplace.write("again.yaml", yaml);
    workplace.run(&["again.yaml"]).expect(0);
    workplace.rows("out/again.jsonl")
}

/// Writes the photographs as `datasets` of Hugging Face does when it is told to write Parquet: `paths.parquet` has their paths,
/// as of a data set from local files, and `bytes.parquet` the files themselves, as of one from the hub.
pub fn write_by_datasets(workplace: &Workplace) {
    let script = "import sys, datasets\n\
        folder, out = sys.argv[1:]\n\
        names = ['astronaut.jpg', 'hubble_deep_field.jpg', 'rocket.jpg', 'camera.png', 'chelsea.png', 'coffee.png']\n\
        paths = [f'{folder}/{name}' for name in names]\n\
        files = [{'bytes': open(path, 'rb').read(), 'path': name} for path, name in zip(paths, names)]\n\
        features = datasets.Features({'image': datasets.Image(), 'shot': datasets.Value('int64')})\n\
        for kind, images in (('paths', paths), ('bytes', files)):\n\
        \x20   data = datasets.Dataset.from_dict({'image': images, 'shot': list(range(6))}, features=features)\n\
        \x20   data.to_parquet(f'{out}/{kind}.parquet')\n";
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let requirements = root.join("nodes/tests/sources/requirements.txt");
    let environment = root.join("scripts/python_env.py");
    let made = Command::new("python3").arg(environment).arg(requirements).output().expect("python3");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let python = String::from_utf8(made.stdout).expect("a path");
    let home = tempfile::tempdir().expect("a folder");
    let run = Command::new(python.trim())
        .args(["-c", script, &format!("{PIPELINES}/photos")])
        .arg(workplace.path(""))
        .envs([("HF_HOME", home.path().as_os_str()), ("HF_HUB_OFFLINE", "1".as_ref())])
        .output()
        .expect("the interpreter");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
