"""What containers, listings and bad files cost.

    cargo build --release --features testing
    python3 -m venv venv && venv/bin/pip install pillow==13.0.0
    venv/bin/python benches/sources.py [tar | embeddings | listing | truncated]

`tar`: 2 GB of JPEGs decoded from a folder and from one tar of the same files, in turns. `embeddings`: 10,000,000 vectors of 512 floats
into Parquet, in parts. `listing`: 1,000,000 tiny files; when the first row is written, and the memory of the whole run. `truncated`: one
JPEG of 1,000 is cut in its middle; the rate of the rows behind it against that of the rows before it.
"""

import random
import statistics
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from measure import PHOTOS, PROGRAM, median, resident_bytes, run, say_where, scratch

MB = 1e6


def photographs(distinct, size):
    """JPEG files in memory: parts of the example photographs."""
    import io

    from PIL import Image

    dice = random.Random(1)
    pictures = [Image.open(path).convert("RGB") for path in sorted(PHOTOS.glob("*.jpg")) + sorted(PHOTOS.glob("*.png"))]
    files = []
    for number in range(distinct):
        picture = pictures[number % len(pictures)]
        width = min(picture.width, picture.height * size[0] / size[1]) * dice.uniform(0.5, 1)
        height = width * size[1] / size[0]
        left, top = dice.uniform(0, picture.width - width), dice.uniform(0, picture.height - height)
        out = io.BytesIO()
        picture.resize(size, Image.Resampling.BICUBIC, box=(left, top, left + width, top + height)).save(out, "jpeg", quality=90)
        files.append(out.getvalue())
    return files


def tar(folder, total=2_000_000_000, rounds=3):
    files = photographs(200, (800, 600))
    photos, n_bytes, count = folder / "photos", 0, 0
    photos.mkdir()
    with tarfile.open(folder / "photos.tar", "w") as archive:
        while n_bytes < total:
            path = photos / f"{count:06}.jpg"
            path.write_bytes(files[count % len(files)])
            archive.add(path, path.name)
            n_bytes, count = n_bytes + path.stat().st_size, count + 1
    print(f"{count:,} JPEGs of 800×600, {n_bytes / 1e9:.1f} GB: decode, resize 256, crop 224, medians of {rounds} rounds in turns")
    sources = {
        "folder": "{kind: source.files, with: {path: 'photos/*.jpg'}}",
        "tar": "{kind: source.webdataset, with: {path: photos.tar}}",
    }
    rates, cpus, peaks = {name: [] for name in sources}, {name: [] for name in sources}, {name: [] for name in sources}
    for _ in range(rounds):
        for name, source in sources.items():
            done = run(
                folder,
                f"name: {name}\nnodes:\n  photos: {source}\n"
                "  pixels: {kind: decode.image, with: {resize: 256, crop: 224}}\n"
                "  out: {kind: sink.jsonl, with: {path: out.jsonl, columns: [id]}}\n",
                sample=0.1,
            )
            assert done.report["accounts"][0]["written"] == count
            rates[name].append(count / done.seconds)
            cpus[name].append(done.cpu)
            later = [resident for at, resident in done.samples if at > done.seconds / 4]
            peaks[name].append((done.peak / MB, median(later[: len(later) // 3]) / MB, median(later[-len(later) // 3 :]) / MB))
    for name in sources:
        peak, early, late = (median(column) for column in zip(*peaks[name]))
        print(
            f"  {name:>6}: {median(rates[name]):7,.0f} images/s, CPU {median(cpus[name]):6.1f} s, largest resident set {peak:.0f} MB, "
            f"typical in the second quarter {early:.0f} MB and in the last {late:.0f} MB"
        )
    ratios = [b / a for a, b in zip(rates["folder"], rates["tar"])]
    print(f"  rate of the tar / rate of the folder: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); wanted 0.9")


def embeddings(folder, count=10_000_000):
    print(f"{count:,} vectors of 512 floats into sink.parquet, 250,000 in a part")
    done = run(
        folder,
        "name: embeddings\nnodes:\n"
        f"  rows: {{kind: source.synthetic, with: {{rows: {{count: {count}}}}}}}\n"
        "  vectors: {kind: transform.test_tensor, with: {shape: [512], dtype: f32, numbered: true}}\n"
        "  out: {kind: sink.parquet, with: {path: out/e.parquet, rotate: {rows: 250000}}}\n",
        sample=0.5,
    )
    parts = sorted((folder / "out").glob("e-*.parquet"))
    assert done.report["accounts"][0]["written"] == count and len(parts) == -(-count // 250_000), len(parts)
    appeared = [part.stat().st_mtime for part in parts]
    tenths = [median(r for _, r in done.samples[len(done.samples) * k // 10 : len(done.samples) * (k + 1) // 10]) / MB for k in range(10)]
    print(f"  {count / done.seconds:,.0f} rows/s, {done.seconds:.0f} s, largest resident set {done.peak / MB:.0f} MB; medians of tenths, MB: " + " ".join(f"{tenth:.0f}" for tenth in tenths))
    print(f"  {len(parts)} parts; the first was complete {appeared[-1] - appeared[0]:.0f} s before the last")


def listing(folder, count=1_000_000):
    for shelf in range(count // 1000):
        inside = folder / "tiny" / f"{shelf:04}"
        inside.mkdir(parents=True)
        for number in range(1000):
            (inside / f"{number:03}.txt").write_bytes(b"tiny")
    (folder / "p.yaml").write_text(
        "name: tiny\nnodes:\n  files: {kind: source.files, with: {path: 'tiny/**'}}\n"
        "  out: {kind: sink.jsonl, with: {path: '-', columns: [uri]}}\n"
    )
    start = time.monotonic()
    process = subprocess.Popen([str(PROGRAM), "run", "-q", "--fresh", str(folder / "p.yaml")], stdout=subprocess.PIPE, bufsize=0)
    process.stdout.read(1)
    first, peak, n_lines = time.monotonic() - start, 0, 0
    while chunk := process.stdout.read(1 << 16):
        n_lines += chunk.count(b"\n")
        peak = max(peak, (resident_bytes(process.pid) or {"VmHWM": 0})["VmHWM"])
    assert process.wait() == 0 and n_lines == count, n_lines
    seconds = time.monotonic() - start
    print(f"{count:,} files of 4 bytes in {count // 1000:,} folders, read and written by name")
    print(f"  the first row after {first:.2f} s, all after {seconds:.0f} s ({count / seconds:,.0f} files/s); largest resident set {peak / MB:.0f} MB")


def truncated(folder, count=1000):
    files = photographs(50, (500, 375))
    photos = folder / "photos"
    photos.mkdir()
    for number in range(count):
        data = files[number % len(files)]
        (photos / f"{number:04}.jpg").write_bytes(data[: len(data) // 2] if number == count // 2 else data)
    yaml = (
        "name: cut\nnodes:\n  photos: {kind: source.files, with: {path: 'photos/*.jpg'}}\n"
        "  pixels: {kind: decode.image, with: {resize: 256, crop: 224}}\n"
        "  out: {kind: sink.jsonl, with: {path: '-', columns: [id]}}\n"
    )
    (folder / "p.yaml").write_text(yaml)
    ratios = []
    for _ in range(30):
        process = subprocess.Popen([str(PROGRAM), "run", "-q", "--fresh", str(folder / "p.yaml")], stdout=subprocess.PIPE, bufsize=0)
        times = []
        while chunk := process.stdout.read(1 << 16):
            times += [time.monotonic()] * chunk.count(b"\n")
        assert process.wait() == 3 and len(times) == count - 1, (process.returncode, len(times))
        # Without the start, and of both halves equally many rows.
        edge = 100
        before = (count // 2 - edge) / (times[count // 2 - 1] - times[edge - 1])
        after = (count // 2 - edge) / (times[-1] - times[edge + count // 2 - 2])
        ratios.append(after / before)
    mean, error = statistics.mean(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5
    print(f"one truncated JPEG, number {count // 2} of {count:,}; {len(ratios)} runs: rate behind it / rate before it {mean:.3f}, 95 % interval {mean - 1.96 * error:.3f} to {mean + 1.96 * error:.3f}")


def main():
    say_where()
    kinds = {"tar": tar, "embeddings": embeddings, "listing": listing, "truncated": truncated}
    for name in sys.argv[1:] or kinds:
        with scratch() as folder:
            kinds[name](Path(folder))


main()
