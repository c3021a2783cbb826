"""What it costs to keep a journal, and what is kept.

    cargo build --release --features testing
    python3 benches/journal.py [PAIRS]

Two pipelines, each in pairs of a run with the journal and one without, taking turns at going first: rows that nothing is done
to, and the example classifier over made-up photographs. Compared is the processor time of the whole process, user and
system. The interval of the ratio is by bootstrap over the pairs.

Then a run of 1,000,000 rows that makes a hundred cuts a second: the size of the journal, and whether its memory grows.
"""

import random
import shutil
import sys
from pathlib import Path

from measure import ROOT, median, run, say_where, scratch

PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 12
ROWS = 1_000_000
IMAGES = 240
RESAMPLES = 10_000

NOOP = f"""
  rows: {{kind: source.synthetic, with: {{rows: {{count: {ROWS}}}}}}}
  one: {{kind: transform.test_pass, with: {{as: one}}}}
  two: {{kind: transform.test_pass, with: {{as: two}}}}
  out: {{kind: sink.jsonl, with: {{path: rows.jsonl}}}}
"""

REAL = f"""
  photos: {{kind: source.synthetic, with: {{images: {{count: {IMAGES}, size: [500, 375]}}}}}}
  pixels: {{kind: decode.image, with: {{preset: model}}}}
  scores: {{kind: infer, with: {{model: {ROOT}/pipelines/models/efficientnet_lite0, batch: 2}}}}
  labels: {{kind: transform.topk, with: {{k: 5, labels: imagenet1k}}}}
  out: {{kind: sink.jsonl, with: {{path: rows.jsonl}}}}
"""

PIPELINES = [
    (f"{ROWS:,} rows through two nodes that do next to nothing", NOOP, ROWS, 1.05),
    (f"{IMAGES} photographs of 500×375, decoded and classified", REAL, IMAGES, 1.03),
]


def pipeline(nodes, **options):
    said = ", ".join(f'{key}: "{value}"' for key, value in options.items())
    return f"name: journal\nrun: {{{said}}}\nnodes:{nodes}"


def once(folder, nodes, journal):
    """A run that finds nothing of an earlier one; the processor time that it took, in seconds."""
    shutil.rmtree(folder / ".flowgpu", ignore_errors=True)
    (folder / "rows.jsonl").unlink(missing_ok=True)
    done = run(folder, pipeline(nodes, journal=journal))
    if (folder / ".flowgpu").exists() != (journal == "on"):
        sys.exit(f"a run with `journal: {journal}` has the wrong state")
    return done.cpu


def interval(pairs):
    """The ratio of all processor time with the journal to all without, and the middle 95 % of what resampled pairs give."""
    dice = random.Random(1)

    def ratio(pairs):
        return sum(on for on, _ in pairs) / sum(off for _, off in pairs)

    ratios = sorted(ratio(dice.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return ratio(pairs), ratios[RESAMPLES // 40], ratios[-RESAMPLES // 40]


def cost(folder):
    for name, nodes, n_rows, wanted in PIPELINES:
        pairs = []
        for number in range(PAIRS):
            order = ["on", "off"] if number % 2 else ["off", "on"]
            cpu = {journal: once(folder, nodes, journal) for journal in order}
            pairs.append((cpu["on"], cpu["off"]))
        ratio, low, high = interval(pairs)
        on, off = (median(column) / n_rows * 1e6 for column in zip(*pairs))
        print(f"{name}, {PAIRS} pairs")
        print(f"  {on:.3f} µs of CPU a row with the journal, {off:.3f} without (medians)")
        print(f"  ratio {ratio:.3f}, 95 % from {low:.3f} to {high:.3f}; wanted: the lower end at most {wanted}", flush=True)


def size(folder):
    nodes = NOOP.replace("kind: transform.test_pass, with: {as: two}", "kind: transform.test_spin, with: {micros: 10}")
    shutil.rmtree(folder / ".flowgpu", ignore_errors=True)
    done = run(folder, pipeline(nodes, commit_every="10ms"), sample=0.02)
    state = folder / ".flowgpu/journal"
    sizes = {file.name: file.stat().st_size for file in sorted(state.iterdir())}
    cuts = (state / "journal").read_text().count('{"cut":')
    resident = [bytes for _, bytes in done.samples]
    quarters = [median(resident[start : start + len(resident) // 4]) / 1e6 for start in (len(resident) // 4, len(resident) * 3 // 4)]
    print(f"{ROWS:,} rows, {cuts} cuts in {done.seconds:.1f} s")
    print("  " + ", ".join(f"{name} {size:,} bytes" for name, size in sizes.items()))
    print(f"  resident set: {quarters[0]:.1f} MB in the second quarter, {quarters[1]:.1f} in the last, {done.peak / 1e6:.1f} at most")


def main():
    say_where()
    with scratch() as folder:
        cost(Path(folder))
        size(Path(folder))


main()
