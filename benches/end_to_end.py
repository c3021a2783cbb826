"""A whole pipeline against its parts: decoding alone, the model alone, both together, in turns.

    cargo build --release --features testing
    python3 -m venv venv && venv/bin/pip install pillow==13.0.0
    venv/bin/python benches/end_to_end.py [decode-bound | balanced | model-bound]

All parts compute on the same cores, so a pipeline that wastes nothing takes for an image the sum of what its parts take:
1 / (1/decode + 1/infer) images a second. The model alone gets tensors that a test node makes; what making them takes is
measured too, and subtracted. Start and loading are in a run of one batch, which is subtracted from each. Next to the
rates stands the processor time of the whole process, which other programs on the machine disturb less.
"""

import random
import sys
from pathlib import Path

from measure import PHOTOS, median, run, say_where, scratch

ROUNDS = 3
WANTED = 0.97
BATCH = 8

# Name: width and height of the files, how many, architecture.
CASES = {
    "decode-bound": (4000, 3000, 64, "mobilenet_v2"),
    "balanced": (3200, 2400, 80, "mobilenet_v2"),
    "model-bound": (256, 192, 96, "resnet18"),
}


def make_photos(folder, width, height, count):
    """Parts of the example photographs, as JPEG files of one size."""
    from PIL import Image

    dice = random.Random(1)
    pictures = [Image.open(path).convert("RGB") for path in sorted(PHOTOS.glob("*.jpg")) + sorted(PHOTOS.glob("*.png"))]
    for number in range(count):
        file = folder / f"{number:04}.jpg"
        if number >= 20:
            file.write_bytes((folder / f"{number % 20:04}.jpg").read_bytes())
            continue
        picture = pictures[number % len(pictures)]
        w = min(picture.width, picture.height * width / height) * dice.uniform(0.6, 1)
        h = w * height / width
        left, top = dice.uniform(0, picture.width - w), dice.uniform(0, picture.height - h)
        picture.resize((width, height), Image.Resampling.BICUBIC, box=(left, top, left + w, top + h)).save(file, quality=88)


def pipelines(count, arch):
    files = "  photos: {kind: source.files, with: {path: 'photos/*.jpg'}}\n"
    decode = "  pixels: {kind: decode.image, with: {resize: 256, crop: 224}}\n"
    rows = f"  photos: {{kind: source.synthetic, with: {{rows: {{count: {count}}}}}}}\n"
    tensors = "  pixels: {kind: transform.test_tensor, with: {shape: [224, 224, 3], dtype: u8, as: image}}\n"
    infer = f"  scores: {{kind: infer, with: {{model: {{arch: {arch}, weights: random}}, batch: {BATCH}}}}}\n"
    out = "  out: {kind: sink.jsonl, with: {path: out.jsonl, columns: [id]}}\n"
    parts = {"decode": files + decode, "tensors": rows + tensors, "model": rows + tensors + infer, "both": files + decode + infer}
    return {name: f"name: part\nnodes:\n{nodes}{out}" for name, nodes in parts.items()}


def each(folder, pipeline, count):
    """Seconds and processor seconds that a row takes, without the start."""
    start, whole = run(folder, pipeline, "--limit", str(BATCH)), run(folder, pipeline)
    assert whole.report["accounts"][0]["written"] == count
    rows = count - BATCH
    return (whole.seconds - start.seconds) / rows, (whole.cpu - start.cpu) / rows


def measure(name, folder):
    width, height, count, arch = CASES[name]
    (folder / "photos").mkdir()
    make_photos(folder / "photos", width, height, count)
    parts = pipelines(count, arch)
    rounds = [{part: each(folder, text, count) for part, text in parts.items()} for _ in range(ROUNDS)]
    wall, cpu = ([{part: times[part][which] for part in parts} for times in rounds] for which in (0, 1))
    print(f"{name}: {count} JPEGs of {width}×{height}, resize 256, crop 224, {arch}, medians of {ROUNDS} rounds in turns")
    for what, times in (("time", wall), ("CPU", cpu)):
        ms = {part: median(t[part] for t in times) * 1e3 for part in parts}
        infer = ms["model"] - ms["tensors"]
        reached = (ms["decode"] + infer) / ms["both"]
        by_round = sorted((t["decode"] + t["model"] - t["tensors"]) / t["both"] for t in times)
        print(f"  {what:<5} ms an image: decode {ms['decode']:.2f}, model {infer:.2f} (tensors, subtracted: {ms['tensors']:.2f}), both {ms['both']:.2f}")
        if what == "time":
            print(f"        images/s: decode {1e3 / ms['decode']:.1f}, model {1e3 / infer:.1f}, both {1e3 / ms['both']:.1f} of {1e3 / (ms['decode'] + infer):.1f}")
        verdict = "" if what == "CPU" else f" ({WANTED} wanted)"
        print(f"        both / (1 / (1/decode + 1/model)) = {reached:.2f}{verdict}, by rounds {' '.join(f'{r:.2f}' for r in by_round)}", flush=True)


def main():
    say_where()
    for name in sys.argv[1:] or CASES:
        with scratch() as folder:
            measure(name, Path(folder))


main()
