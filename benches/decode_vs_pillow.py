"""CPU time of decoding here and of Pillow's `load()`, in turns: Pillow, flowgpu, Pillow, flowgpu, ...

    python -m venv venv && venv/bin/pip install pillow==13.0.0
    venv/bin/python benches/decode_vs_pillow.py make PHOTOS FOLDER   # 240 JPEGs of about 500x375 from a folder of photographs
    cargo build --release -p flowgpu-nodes --example decode_bench
    venv/bin/python benches/decode_vs_pillow.py FOLDER [BENCH_PROGRAM]

Prints medians over the rounds, in microseconds a picture on one thread. Pillow's `load()` is libjpeg-turbo's decoding and a few
microseconds of Python; files are read into memory first, by both.
"""

import io
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

from PIL import Image

ROUNDS = 9
FILTERS = ["bilinear", "bicubic", "lanczos"]


def make(photos, folder):
    dice = random.Random(1)
    folder.mkdir(parents=True, exist_ok=True)
    sources = [path for path in sorted(photos.rglob("*")) if path.suffix in (".jpg", ".png")]
    pictures = [Image.open(path).convert("RGB") for path in sources]
    pictures = [picture for picture in pictures if min(picture.size) >= 250]
    for n in range(240):
        picture = pictures[n % len(pictures)]
        width, height = picture.size
        part = dice.uniform(0.6, 1.0)
        ratio = dice.choice([4 / 3, 4 / 3, 3 / 2, 3 / 4])
        w = min(width * part, height * part * ratio)
        h = w / ratio
        left, top = dice.uniform(0, width - w), dice.uniform(0, height - h)
        size = (500, round(500 / ratio)) if ratio > 1 else (375, 500)
        small = picture.resize(size, Image.Resampling.LANCZOS, box=(left, top, left + w, top + h))
        small.save(folder / f"{n:03}.jpg", quality=dice.randint(85, 90))


def pillow(files):
    start = time.thread_time_ns()
    for data in files:
        Image.open(io.BytesIO(data)).load()
    return (time.thread_time_ns() - start) / 1e3 / len(files)


def here(program, folder):
    out = subprocess.run([program, str(folder), *FILTERS], capture_output=True, text=True, check=True).stdout
    return {name: float(value) for name, value in (line.split() for line in out.splitlines())}


def main():
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    folder = Path(sys.argv[1])
    program = sys.argv[2] if len(sys.argv) > 2 else "target/release/examples/decode_bench"
    files = [path.read_bytes() for path in sorted(folder.iterdir())]
    size = sum(map(len, files)) / len(files) / 1e3
    pillow(files[:20])
    rounds = [(pillow(files), here(program, folder)) for _ in range(ROUNDS)]
    base = statistics.median(load for load, _ in rounds)
    print(f"{len(files)} files of {size:.0f} kB on average, medians of {ROUNDS} rounds, CPU µs a picture")
    print(f"  Pillow's load()            {base:8.0f}")
    for name in rounds[0][1]:
        median = statistics.median(times[name] for _, times in rounds)
        # Each round's own ratio: both sides of it met the same neighbours on the machine.
        ratio = statistics.median(times[name] / load for load, times in rounds)
        what = "decode" if name == "decode" else f"decode + 256 {name} + 224"
        print(f"  {what:<26} {median:8.0f}   {ratio:.2f} × load()")


main()
