"""What grows with the number of rows and of devices, and what must not.

    cargo build --release --workspace --features testing
    python3 benches/growth.py [rows | devices] [--rounds N]

`rows`: 1,000 to 1,000,000 rows with an id each, through five nodes that are called for each row, into a file. The processor time of a
row, with the program's start and without it (what a run of more rows takes beyond one of 1,000), and the largest resident set should
not depend on their number.

`devices`: 1 to 8 GPUs that are stood in for, with a model that only waits: 20 ms a batch of 8, and 1 s to be loaded. A device gives 400
rows a second, so the rate should be as many times that as there are devices, and all should be at work about when one alone would be:
workers that were loaded one after the other would take 8 s. Both are read from the run's trace.
"""

import argparse
import json
from pathlib import Path

from measure import PROGRAM, median, run, say_where, scratch

ROWS = (1_000, 10_000, 100_000, 1_000_000)
DEVICES = (1, 2, 4, 8)
BATCH, BATCH_MS, LOAD_MS = 8, 20, 1000
# Of a run with all devices at work.
SECONDS = 4


def noop(count):
    between = "".join(f"  n{number}: {{kind: transform.test_pass, with: {{as: {name}}}}}\n" for number, name in enumerate("abcde"))
    return (
        "name: growth\nnodes:\n"
        f"  rows: {{kind: source.synthetic, with: {{rows: {{count: {count}}}}}}}\n"
        f"{between}"
        "  out: {kind: sink.jsonl, with: {path: rows.jsonl, columns: [id]}}\n"
    )


def rows(folder, n_rounds):
    runs = {count: [] for count in ROWS}
    for _ in range(n_rounds):
        for count, done in runs.items():
            done.append(run(folder, noop(count), sample=0.002))
            assert done[-1].report["accounts"][0]["written"] == count
    print(f"rows through five nodes into sink.jsonl, medians of {n_rounds} rounds in turns")
    start = median(done.cpu for done in runs[ROWS[0]])
    for count, done in runs.items():
        cpu, peak = median(d.cpu for d in done), median(d.peak for d in done)
        beyond = f"{(cpu - start) / (count - ROWS[0]) * 1e9:6.0f} ns beyond the first {ROWS[0]:,}" if count > ROWS[0] else ""
        print(f"  {count:>9,} rows: {cpu / count * 1e9:8.0f} ns of CPU a row, largest resident set {peak / 1e6:5.1f} MB {beyond}")


def uuid(device):
    return f"GPU-{str(device) * 8}-0000-0000-0000-000000000000"


def machine(folder, n_devices):
    """The environment of a machine with so many GPUs."""
    gpus = [
        {"uuid": uuid(device), "name": f"Stand-in {device}", "memory": 8 << 30, "compute_ms": BATCH_MS, "load_ms": LOAD_MS}
        for device in range(n_devices)
    ]
    description = folder / "gpus.json"
    description.write_text(json.dumps({"driver": "580.159", "gpus": gpus}))
    library = PROGRAM.resolve().parent / "libflowgpu_standin_nvml.so"
    if not library.exists():
        library = library.parent / "deps" / library.name
    visible = ",".join(str(device) for device in range(n_devices))
    names = {"FLOWGPU_NVML": library, "FLOWGPU_STANDIN": description, "FLOWGPU_WORKER_CUDA": PROGRAM.resolve(), "CUDA_VISIBLE_DEVICES": visible}
    return {name: str(value) for name, value in names.items()}


def waiting(count):
    return (
        "name: waiting\nrun: {workers_per_device: 1}\nnodes:\n"
        f"  rows: {{kind: source.synthetic, with: {{rows: {{count: {count}}}}}}}\n"
        "  tensor: {kind: transform.test_tensor}\n"
        f"  sums: {{kind: infer.test, with: {{n: 1, batch: {BATCH}, device: cuda}}}}\n"
        "  out: {kind: sink.jsonl, with: {path: out.jsonl, columns: [id]}}\n"
    )


def at_work(path, n_devices):
    """When all devices are at work, in seconds from the start, and rows a second until the first has done its last batch."""
    spans = {}
    for event in json.loads(path.read_text()):
        if event["ph"] == "X" and event["name"] == "compute":
            start, end = event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6
            spans.setdefault(event["pid"], []).append((start, end))
    assert len(spans) == n_devices, f"{len(spans)} of {n_devices} devices were at work"
    begin = max(min(start for start, _ in of_one) for of_one in spans.values())
    end = min(max(end for _, end in of_one) for of_one in spans.values())
    n_batches = sum(begin <= start and stop <= end for of_one in spans.values() for start, stop in of_one)
    return begin, n_batches * BATCH / (end - begin)


def devices(folder, n_rounds):
    found = {n_devices: [] for n_devices in DEVICES}
    for _ in range(n_rounds):
        for n_devices, done in found.items():
            count = round(SECONDS * n_devices * BATCH / (BATCH_MS / 1e3))
            trace = folder / "trace.json"
            run(folder, waiting(count), "--trace", str(trace), environment=machine(folder, n_devices))
            done.append(at_work(trace, n_devices))
    print(f"a model that waits {BATCH_MS} ms a batch of {BATCH}, loaded in {LOAD_MS} ms, medians of {n_rounds} rounds in turns")
    alone, rate = (median(values) for values in zip(*found[1]))
    for n_devices, done in found.items():
        busy, reached = (median(values) for values in zip(*done))
        print(
            f"  {n_devices} devices: {reached:6.0f} rows/s, {reached / rate / n_devices:.3f} of {n_devices} × one alone; "
            f"all at work after {busy:.2f} s, {busy / alone:.2f} × one alone"
        )


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", default=[], metavar="rows | devices")
    options.add_argument("--rounds", type=int, default=5)
    options = options.parse_args()
    say_where()
    for name in options.names or ["rows", "devices"]:
        with scratch() as folder:
            {"rows": rows, "devices": devices}[name](Path(folder), options.rounds)


main()
