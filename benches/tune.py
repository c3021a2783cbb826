"""What `flowgpu tune` finds against the best of a full sweep.

    FLOWGPU=target/release/flowgpu python3 benches/tune.py [PIPELINE …]

For three pipelines: `tune` writes its best settings; then every combination of batch size and threads is measured once by
`flowgpu bench`, and the fastest of them, the settings of `tune` and the pipeline as it is are measured in turns. Wanted is that
`tune` is within 5 % of the best.
"""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

from measure import PHOTOS, PROGRAM, ROOT, median, say_where, scratch

CORES = len(os.sched_getaffinity(0))
BATCHES = [1, 2, 4, 8, 32, 128]
ROUNDS = 5
WANTED = 0.95
# The fastest of one measurement each are partly those that were lucky: so many are measured again.
AGAIN = 3

# Name: the model and what is done to the photographs before it.
PIPELINES = {
    "mobilenet": ("{arch: mobilenet_v2, weights: random}", "{resize: 256, crop: 224}"),
    "efficientnet, folder": (str(ROOT / "pipelines/models/efficientnet_lite0"), "{preset: model}"),
    "resnet18, small": ("{arch: resnet18, weights: random}", "{resize: 80, crop: 64}"),
}


def pipeline(name, run="", batch=""):
    model, pixels = PIPELINES[name]
    return (
        f"name: tune\n{run}nodes:\n"
        f"  photos: {{kind: source.files, with: {{path: '{PHOTOS}/*.jpg'}}}}\n"
        f"  pixels: {{kind: decode.image, with: {pixels}}}\n"
        f"  scores: {{kind: infer, with: {{model: {model}{batch}}}}}\n"
        "  labels: {kind: transform.topk, with: {k: 5}}\n"
        "  out:    {kind: sink.jsonl, with: {path: out.jsonl}}\n"
    )


def answer(*arguments):
    done = subprocess.run([str(PROGRAM), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def rate(file, seconds):
    return answer("bench", "--seconds", seconds, "--format", "json", file)["end_to_end"]


def compare(name, folder):
    as_it_is, tuned = folder / "as-it-is.yaml", folder / "tuned.yaml"
    as_it_is.write_text(pipeline(name))
    found = answer("tune", "--format", "json", "--write", tuned, as_it_is)
    if not tuned.exists():
        tuned.write_text(pipeline(name))
    swept = {}
    for batch, rows, model in itertools.product(BATCHES, range(1, 2 * CORES + 1), range(1, CORES + 1)):
        file = folder / f"{batch}-{rows}-{model}.yaml"
        file.write_text(pipeline(name, f"run: {{threads: {{rows: {rows}, model: {model}}}}}\n", f", batch: {batch}"))
        swept[file] = rate(file, 1)
    best = sorted(swept, key=swept.get)[-AGAIN:]
    rounds = [{file: rate(file, 2) for file in [as_it_is, tuned, *best]} for _ in range(ROUNDS)]
    rates = {file: median(one[file] for one in rounds) for file in rounds[0]}
    of_best = [one[tuned] / max(one[file] for file in best) for one in rounds]
    print(f"{name}: tune tried {len(found['tried'])} settings, chose {found['settings'] or 'the defaults'}; swept {len(swept)}")
    for file, per_second in rates.items():
        print(f"  {file.stem:<16} {per_second:8.1f} rows/s ({' '.join(f'{one[file]:.1f}' for one in rounds)})")
    reached = rates[tuned] / max(rates[file] for file in best)
    print(f"  tuned over the best of the sweep {reached:.3f} ({WANTED} wanted); against the fastest of each round "
          f"{' '.join(f'{one:.2f}' for one in of_best)}", flush=True)


def main():
    say_where()
    for name in sys.argv[1:] or PIPELINES:
        with scratch() as folder:
            compare(name, Path(folder))


main()
