"""The memory that `flowgpu plan` foretells against what a run takes.

    FLOWGPU=target/release/flowgpu python3 benches/foretold.py [MODEL.onnx …]

300 photographs (those of `pipelines/photos`, many times) through each model with the defaults, and through one model in worker
processes. Measured is the largest proportional set size of all processes together, looked at every 20 ms; the median of
three runs is compared. ONNX files are run too where they are named, on images of 224×224.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from measure import PHOTOS, PROGRAM, ROOT, family, median, pss, say_where, scratch

MIB = 1 << 20

CASES = {
    "efficientnet_lite0": ("{model: " + str(ROOT / "pipelines/models/efficientnet_lite0") + "}", ""),
    "mobilenet_v2": ("{model: {arch: mobilenet_v2, weights: random}}", ""),
    "resnet50": ("{model: {arch: resnet50, weights: random}}", ""),
    "vit_base_patch16_224": ("{model: {arch: vit_base_patch16_224, weights: random}}", ""),
    "mobilenet_v2 in two processes": (
        "{model: {arch: mobilenet_v2, weights: random}}", "run: {isolation: process, workers_per_device: 2}\n"
    ),
}


def pipeline(model, run):
    return (
        f"name: foretold\n{run}nodes:\n"
        "  photos: {kind: source.files, with: {path: 'photos/*.jpg'}}\n"
        "  pixels: {kind: decode.image, with: {resize: 256, crop: 224}}\n"
        f"  scores: {{kind: infer, with: {model}}}\n"
        "  labels: {kind: transform.topk, with: {k: 5}}\n"
        "  out:    {kind: sink.jsonl, with: {path: out.jsonl}}\n"
    )


def peak(file):
    process = subprocess.Popen([PROGRAM, "run", "-q", "--fresh", file], stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        most = max(most, sum(pss(pid) or 0 for pid in family(process.pid)))
        time.sleep(0.02)
    if process.returncode:
        sys.exit(f"exit {process.returncode}")
    return most


def main():
    say_where()
    cases = CASES | {Path(path).name: ("{model: " + str(Path(path).resolve()) + ", normalize: imagenet}", "") for path in sys.argv[1:]}
    with scratch() as folder:
        folder = Path(folder)
        (folder / "photos").mkdir()
        photos = sorted(PHOTOS.glob("*.jpg"))
        for number in range(300):
            os.symlink(photos[number % len(photos)], folder / "photos" / f"{number:03}.jpg")
        for name, (model, run) in cases.items():
            file = folder / "pipeline.yaml"
            file.write_text(pipeline(model, run))
            plan = subprocess.run([PROGRAM, "plan", "--format", "json", file], capture_output=True, text=True, check=True)
            foretold = json.loads(plan.stdout)["host_memory"]["bytes"]
            peaks = [peak(file) for _ in range(3)]
            measured = median(peaks)
            spread = " ".join(f"{one / MIB:.0f}" for one in peaks)
            print(f"{name}: foretold {foretold / MIB:.0f} MiB, measured {measured / MIB:.0f} ({spread}), "
                  f"foretold over measured {foretold / measured:.2f}", flush=True)


if __name__ == "__main__":
    main()
