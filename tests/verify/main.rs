//! `flowgpu verify`: our pixels against those of the very Pillow whose pixels are promised, on the project's pictures and odd files.

#[path = "../cli/program.rs"]
#[allow(dead_code)]
mod program;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use program::{Done, Folder, ROOT, TESTING, done};
use serde_json::Value as Json;

const OUT: &str = "  out: {kind: sink.jsonl, with: {path: out.jsonl}}\n";

/// A folder that Python imports the pinned Pillow from.
fn pillow() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let script = Path::new(ROOT).join("scripts/pillow_pixels.py");
        let output = Command::new("python3").arg(script).output().expect("python3");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        PathBuf::from(String::from_utf8(output.stdout).expect("UTF-8").trim_end())
    })
}

/// Verifies `p.yaml`, with Pillow and what else is in `modules`.
fn verify(folder: &Folder, modules: Option<&Path>, args: &[&str]) -> Done {
    let args: Vec<_> = ["verify", "p.yaml"].iter().chain(args).copied().collect();
    let mut path = pillow().as_os_str().to_owned();
    if let Some(modules) = modules {
        path = [modules.as_os_str(), ":".as_ref(), &path].into_iter().collect();
    }
    done(folder.command(TESTING, &args).env("PYTHONPATH", path).output().expect("it starts"))
}

/// A pipeline over files of the repository that decodes with these options.
fn over(files: &str, options: &str) -> Folder {
    let files = Path::new(ROOT).join(files);
    Folder::with_nodes(&format!(
        "  files: {{kind: source.files, with: {{path: '{}'}}}}\n  pixels: {{kind: decode.image, with: {options}}}\n{OUT}",
        files.display()
    ))
}

fn json(done: &Done) -> Json {
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

#[test]
fn lossless_files_have_every_byte_of_pillow_whatever_is_made_of_them() {
    for options in [
        "{}",
        "{resize: 224, crop: 200}",
        "{resize: [61, 97], interpolation: bicubic}",
        "{resize: {longer: 100}, interpolation: lanczos}",
        "{resize: {shorter: 50, longer: 60}, crop: 57, interpolation: hamming}",
        "{resize: {shorter: 50, longer: 60}, crop: 57, rounding: transformers, interpolation: box}",
        "{crop: [301, 40], rounding: transformers}",
        "{resize: 40, interpolation: nearest}",
        "{alpha: {over: white}, resize: 20}",
        "{alpha: {over: [9, 99, 0]}, grey16: scale}",
        "{letterbox: 96}",
        "{letterbox: {size: [640, 201], fill: [1, 2, 3], anchor: top_left, upscale: false}}",
    ] {
        for (files, at_least) in [("pipelines/photos/*.png", 3), ("nodes/tests/images/given/png-[0-6]-*.png", 20)] {
            let done = verify(&over(files, options), None, &["--format", "json"]);
            assert_eq!(done.code, 0, "{files} {options}: {done:?}");
            let report = json(&done);
            let node = &report["nodes"][0];
            assert!(node["compared"].as_u64() >= Some(at_least), "{files} {options}: {report}");
            for kind in node["kinds"].as_array().expect("kinds") {
                assert_eq!(kind["equal"], kind["files"], "{files} {options}: {kind}");
            }
        }
    }
}

#[test]
fn every_kind_of_file_is_told_with_its_bound() {
    let folder = over("pipelines/photos/*.{jpg,png}", "{resize: 256, crop: 224, interpolation: bicubic}");
    let done = verify(&folder, None, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.stderr, "");
    let lines: Vec<_> = done.stdout.lines().collect();
    assert_eq!(lines[0], "pixels  256 bicubic, crop 224, against Pillow 13.0.0");
    for kind in ["kind ", "JPEG RGB 4:2:0 ", "PNG L ", "PNG RGB "] {
        assert!(lines.iter().any(|line| line.trim_start().starts_with(kind)), "{kind}: {}", done.stdout);
    }
    assert!(lines.last().expect("a line").starts_with("p.yaml: fine, 6 files compared, "), "{}", done.stdout);
}

#[test]
fn pictures_that_are_decoded_to_a_fraction_have_the_bytes_of_pillows_draft() {
    for options in [
        "{jpeg_scale: auto, resize: [40, 29]}",
        "{jpeg_scale: auto, resize: 25, crop: 20, interpolation: bicubic}",
        "{jpeg_scale: auto, letterbox: [64, 30]}",
        "{jpeg_scale: auto}",
    ] {
        let folder = over("nodes/tests/jpeg/{draft-*,420-*,cmyk*,grey-*}.jpg", options);
        let done = verify(&folder, None, &["--format", "json"]);
        assert_eq!(done.code, 0, "{options}: {done:?}");
        let report = json(&done);
        let node = &report["nodes"][0];
        assert!(node["compared"].as_u64() >= Some(20), "{options}: {report}");
        for kind in node["kinds"].as_array().expect("kinds") {
            assert_eq!(kind["equal"], kind["files"], "{options}: {kind}");
        }
    }
}

#[test]
fn files_that_one_side_or_both_refuse_are_told_by_name() {
    let folder = over("nodes/tests/images/given/*.{png,gif,bmp,jpg}", "{resize: 64, crop: 64}");
    let done = verify(&folder, None, &["--limit", "1000", "--format", "json"]);
    let report = json(&done);
    let rejected = &report["nodes"][0]["rejected"];
    assert!(rejected["both"].as_u64() >= Some(10), "{report}");
    let here: Vec<_> = rejected["here"].as_array().expect("a list").iter().map(|row| row["uri"].to_string()).collect();
    // libjpeg makes up the missing part in grey: an answer that is not in the file.
    assert!(here.iter().any(|uri| uri.contains("jpeg-cut-with-end-marker.jpg")), "{here:?}");
    assert_eq!(done.code, 1, "a picture that only Pillow has is a difference: {report}");
}

#[test]
fn a_filter_that_is_not_the_pipelines_is_found() {
    let folder = over("pipelines/photos/*.png", "{resize: 100, interpolation: bicubic}");
    // Pillow, but for one thing: it resizes by another filter than it is asked to.
    let wrong = "import PIL.Image\n\
                 resize = PIL.Image.Image.resize\n\
                 PIL.Image.Image.resize = lambda image, size, resample=None, *rest: resize(image, size, 2)\n";
    folder.write("modules/sitecustomize.py", wrong);
    let done = verify(&folder, Some(&folder.path("modules")), &[]);
    assert_eq!(done.code, 1, "{done:?}");
    let last = done.stdout.lines().last().expect("a line");
    assert_eq!(last, "p.yaml: 3 files not as Pillow makes them (3 files compared)");
    assert!(done.stdout.contains("chelsea.png: off by up to "), "{}", done.stdout);
}

#[test]
fn pixels_of_another_size_are_found() {
    let folder = over("pipelines/photos/chelsea.png", "{resize: 100}");
    let wrong = "import PIL.Image\n\
                 resize = PIL.Image.Image.resize\n\
                 PIL.Image.Image.resize = lambda image, size, *rest: resize(image, (size[0] + 1, size[1]), *rest)\n";
    folder.write("modules/sitecustomize.py", wrong);
    let done = verify(&folder, Some(&folder.path("modules")), &[]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("chelsea.png: 150×100 here, 151×100 in Pillow"), "{}", done.stdout);
}

#[test]
fn a_python_that_has_no_pillow_is_named_with_what_to_do() {
    let folder = over("pipelines/photos/*.png", "{resize: 100}");
    folder.write("bare-python", "#!/bin/sh\nexec python3 -S -E -s \"$@\"\n");
    fs::set_permissions(folder.path("bare-python"), fs::Permissions::from_mode(0o755)).expect("a program");
    let done = verify(&folder, None, &["--python", "./bare-python"]);
    assert_eq!((done.code, &*done.stdout), (2, ""), "{done:?}");
    assert!(done.stderr.starts_with("error: Pillow is not importable in `"), "{}", done.stderr);
    assert!(done.stderr.contains("help: `pip install pillow`, or name another Python"), "{}", done.stderr);
}

#[test]
fn a_python_that_is_not_there_is_named_with_what_to_do() {
    let folder = over("pipelines/photos/*.png", "{resize: 100}");
    let done = verify(&folder, None, &["--python", "nowhere/python3"]);
    assert_eq!((done.code, &*done.stdout), (2, ""), "{done:?}");
    assert!(
        done.stderr.starts_with("error: `nowhere/python3` not found\n  help: install Python 3.8"),
        "{}",
        done.stderr
    );
    let done = verify(&folder, None, &["--python", "/bin/true"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.starts_with("error: `/bin/true` does not answer as Python"), "{}", done.stderr);
}

#[test]
fn a_pipeline_without_pictures_or_files_is_refused() {
    let folder =
        Folder::with_nodes(&format!("  rows: {{kind: source.synthetic, with: {{rows: {{count: 3}}}}}}\n{OUT}"));
    let done = verify(&folder, None, &[]);
    assert_eq!(done.code, 2, "{done:?}");
    assert_eq!(done.stderr, "error: `p.yaml` decodes nothing that could be compared\n");
    let done = verify(&over("pipelines/photos/*.tif", "{}"), None, &[]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("pipelines/photos/*.tif` matches no file"), "{done:?}");
}

#[test]
fn the_limit_is_spread_over_the_listing() {
    let folder = Folder::new();
    let photo = fs::read(Path::new(ROOT).join("nodes/tests/images/given/png-3x2.png")).expect("a picture");
    fs::create_dir(folder.path("in")).expect("a folder");
    for n in 0..100 {
        fs::write(folder.path(&format!("in/{n:02}.png")), &photo).expect("a file");
    }
    // What is at a tenth, two tenths, … is no picture.
    for n in (0..100).step_by(10) {
        fs::write(folder.path(&format!("in/{n:02}.png")), "no picture").expect("a file");
    }
    let nodes = "  files: {kind: source.files, with: {path: in/*.png}}\n  pixels: {kind: decode.image}\n";
    folder.write("p.yaml", &format!("name: p\nnodes:\n{nodes}{OUT}"));
    let report = json(&verify(&folder, None, &["--limit", "10", "--format", "json"]));
    let node = &report["nodes"][0];
    assert_eq!((&node["files"], &node["rejected"]["both"]), (&Json::from(10), &Json::from(10)), "{report}");
    assert!(!folder.path("out.jsonl").exists(), "nothing is written");
}

#[test]
fn a_source_whose_items_have_no_names_is_compared_by_their_bytes() {
    let folder = Folder::with_nodes(&format!(
        "  made: {{kind: source.synthetic, with: {{images: {{count: 3, size: [50, 40]}}}}}}\n  \
         pixels: {{kind: decode.image, with: {{resize: 32}}}}\n{OUT}"
    ));
    let done = verify(&folder, None, &["--format", "json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(json(&done)["nodes"][0]["compared"], 3, "{done:?}");
}

#[test]
fn a_model_says_why_its_logits_are_not_compared() {
    let photos = Path::new(ROOT).join("pipelines/photos/*.png");
    let folder = Folder::with_nodes(&format!(
        "  files: {{kind: source.files, with: {{path: '{}'}}}}\n  pixels: {{kind: decode.image, with: {{preset: model}}}}\n  \
         scores: {{kind: infer, with: {{model: {{arch: resnet18, weights: random}}}}}}\n{OUT}",
        photos.display()
    ));
    let done = verify(&folder, None, &["--limit", "1"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("pixels  256 bilinear, crop 224 (from model), against Pillow "), "{}", done.stdout);
    let line = done.stdout.lines().find(|line| line.starts_with("scores")).expect("a line about the model");
    let whys = ["torch is not importable", "torchvision is not importable", "its weights are random"];
    assert!(whys.iter().any(|why| line == format!("scores  logits: not compared ({why})")), "{line}");
}
