"""Memory: large photographs into a sink that cannot keep up, and a run a hundred times as long as another.

    cargo build --release --features testing
    python3 -m venv venv && venv/bin/pip install pillow==13.0.0
    venv/bin/python benches/memory.py [large | flat]

`large`: 200 photographs of 12 megapixels from files, decoded at their own size into a sink that takes them slowly. The
whole process has to stay below 512 MB. `flat`: 1,000 to 400,000 made-up images of 64×64 pixels, decoded into a
file; the resident set may not grow with the number of rows.
"""

import random
import sys
from pathlib import Path

from measure import PHOTOS, median, run, say_where, scratch

MB = 1e6


def make_photos(folder, count, distinct=20):
    """JPEG files of 4000×3000 pixels: parts of the example photographs, enlarged, with grain as a sensor gives it."""
    from PIL import Image

    dice = random.Random(1)
    pictures = [Image.open(path).convert("RGB") for path in sorted(PHOTOS.glob("*.jpg")) + sorted(PHOTOS.glob("*.png"))]
    for number in range(distinct):
        picture = pictures[number % len(pictures)]
        width = min(picture.width, picture.height * 4 / 3) * dice.uniform(0.6, 1)
        left, top = dice.uniform(0, picture.width - width), dice.uniform(0, picture.height - width * 3 / 4)
        large = picture.resize((4000, 3000), Image.Resampling.BICUBIC, box=(left, top, left + width, top + width * 3 / 4))
        grain = Image.effect_noise(large.size, 12).convert("RGB")
        Image.blend(large, grain, 0.1).save(folder / f"{number:03}.jpg", quality=90)
    for number in range(distinct, count):
        (folder / f"{number:03}.jpg").write_bytes((folder / f"{number % distinct:03}.jpg").read_bytes())


def large(folder):
    photos = folder / "photos"
    photos.mkdir()
    make_photos(photos, 200)
    size = sum(path.stat().st_size for path in photos.iterdir()) / 200 / MB
    print(f"200 photographs of 4000×3000, {size:.1f} MB each, decoded without resizing into a sink that takes 4 a second", flush=True)
    done = run(
        folder,
        "name: large\nnodes:\n"
        "  photos: {kind: source.files, with: {path: 'photos/*.jpg'}}\n"
        "  pixels: {kind: decode.image}\n"
        "  out: {kind: sink.test_slow, with: {path: out.jsonl, columns: [id], micros: 250000}}\n",
        sample=0.1,
    )
    assert [at["rows_out"] for at in done.report["nodes"]] == [200] * 3
    blocked = done.report["nodes"][1]["blocked"]
    verdict = "below" if done.peak < 512 * MB else "NOT BELOW"
    typical = median(resident for _, resident in done.samples)
    print(f"  largest resident set {done.peak / MB:.0f} MB ({verdict} 512 MB), median {typical / MB:.0f} MB; decoding was blocked {blocked:.0%} of {done.seconds:.0f} s")


def flat(folder):
    print("made-up images of 64×64 into sink.jsonl, without a model")
    for count in (1_000, 10_000, 100_000, 400_000):
        done = run(
            folder,
            "name: flat\nnodes:\n"
            f"  photos: {{kind: source.synthetic, with: {{images: {{count: {count}, size: [64, 64]}}}}}}\n"
            "  pixels: {kind: decode.image}\n"
            "  out: {kind: sink.jsonl, with: {path: out.jsonl, columns: [id, width]}}\n",
            sample=0.02,
        )
        assert done.report["accounts"][0]["written"] == count
        print(f"  {count:>7,} images in {done.seconds:6.1f} s: largest resident set {done.peak / MB:.1f} MB")
    # The longest run by itself: a straight line through all but its first half, when all threads have met their largest need.
    later = [(at, resident) for at, resident in done.samples if at > done.seconds / 2]
    fifths = [median(r for _, r in later[len(later) * k // 5 : len(later) * (k + 1) // 5]) / MB for k in range(5)]
    mean_at, mean_resident = (sum(column) / len(later) for column in zip(*later))
    slope = sum((at - mean_at) * (r - mean_resident) for at, r in later) / sum((at - mean_at) ** 2 for at, _ in later)
    print("    resident set over the second half of the longest, medians of fifths, MB: " + " ".join(f"{fifth:.1f}" for fifth in fifths))
    per_million = slope * done.seconds / count * 1e6 / MB
    print(f"    straight line through {len(later)} samples: {per_million:+.2f} MB a million images")


def main():
    say_where()
    chosen = sys.argv[1:] or ["flat", "large"]
    for name in chosen:
        with scratch() as folder:
            {"flat": flat, "large": large}[name](Path(folder))


main()
