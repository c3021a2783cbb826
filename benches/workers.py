"""Worker processes over time: whether memory grows, and how many threads want to run at once.

    python3 benches/workers.py

Two runs by two worker processes. In the first, more than 10,000 batches of 1 to 64 rows go through a model that
adds up each row; the proportional set size of the coordinator and of each worker is read twice a second (shared memory
counts once) and its medians over the second and the last quarter are told. In the second, a real model is the
bottleneck, and the threads of all processes that are running or ready to run are counted every few milliseconds.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import PHOTOS, PROGRAM, family, pss

VARYING = """
name: varying
nodes:
  rows:    {kind: source.test_slow, with: {count: 300000, micros: 40}}
  tensor:  {kind: transform.test_tensor, with: {shape: [1000]}}
  batches: {kind: batch, with: {size: 64, max_wait: 1ms}}
  sums:    {kind: infer.test, with: {n: 1, unpadded: true}}
  out:     {kind: sink.jsonl, with: {path: out.jsonl}}
"""

MODEL_BOUND = """
name: bound
nodes:
  photos: {kind: source.files, with: {path: "photos/*.jpg"}}
  pixels: {kind: decode.image, with: {preset: model}}
  scores: {kind: infer, with: {model: {arch: resnet50, weights: random}}}
  labels: {kind: transform.topk, with: {k: 5, labels: imagenet1k}}
  out:    {kind: sink.jsonl, with: {path: out.jsonl}}
"""


def start(folder, pipeline, *options):
    file = Path(folder) / "p.yaml"
    file.write_text(pipeline)
    command = [str(PROGRAM), "run", "-q", "--fresh", "--isolation", "process", "--workers-per-device", "2", *options, str(file)]
    return subprocess.Popen(command)


def runnable(pids):
    """Threads that run or are ready to."""
    count = 0
    for pid in pids:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                stat = Path(f"/proc/{pid}/task/{task}/stat").read_text()
                count += stat.rsplit(")", 1)[1].split()[0] == "R"
        except OSError:
            continue
    return count


def memory():
    with tempfile.TemporaryDirectory() as folder:
        process = start(folder, VARYING, "--trace", str(Path(folder) / "t.json"))
        samples = {}
        while process.poll() is None:
            for number, pid in enumerate(sorted(family(process.pid))):
                if bytes_now := pss(pid):
                    samples.setdefault(number, []).append(bytes_now)
            time.sleep(0.5)
        if process.returncode:
            sys.exit(f"exit {process.returncode}")
        with (Path(folder) / "t.json").open() as trace:
            batches = sum('"ph":"b"' in line for line in trace)
    print(f"{batches:,} batches")
    for number, taken in samples.items():
        quarter = len(taken) // 4
        early, late = statistics.median(taken[quarter : 2 * quarter]), statistics.median(taken[-quarter:])
        name = "coordinator" if number == 0 else f"worker {number - 1}"
        print(f"{name:12} {early / 1e6:7.1f} MB in the second quarter, {late / 1e6:7.1f} MB in the last")


def threads():
    with tempfile.TemporaryDirectory() as folder:
        copies = Path(folder) / "photos"
        copies.mkdir()
        originals = sorted(PHOTOS.glob("*.jpg"))
        for number in range(100):
            shutil.copy(originals[number % len(originals)], copies / f"{number:04}.jpg")
        process = start(folder, MODEL_BOUND)
        time.sleep(2)
        pids, counts = family(process.pid), []
        while process.poll() is None:
            counts.append(runnable(pids))
            time.sleep(0.005)
        if process.returncode:
            sys.exit(f"exit {process.returncode}")
    counts = sorted(counts[: len(counts) * 9 // 10])
    quota = len(os.sched_getaffinity(0))
    at = lambda share: counts[int(len(counts) * share)]
    print(f"{quota} cores; threads that want to run: median {at(0.5)}, 95th percentile {at(0.95)}, most {counts[-1]}")


if __name__ == "__main__":
    memory()
    threads()
