"""One job by several programs, each at its best, in turns. `run.sh` makes what this needs and starts it.

    run.py FOLDER [--images N] [--rounds N] [--only NAME,…] [--jobs NAME,…] [--sweep-images N] [--sweep]

First each peer is tried with each of its settings, once; the fastest is kept in FOLDER/settings.json and used again until
`--sweep` asks for new ones. Then the bests run in turns, A B C … A B C …, and then each once more, for its memory: reading that takes
time. Tables go to the standard output in Markdown, everything to FOLDER/results.json.

A peer is one file, which `job.py` describes, and one line in `PEERS`.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FLOWGPU = os.environ.get("FLOWGPU", str(ROOT / "target/release/flowgpu"))
CORES = len(os.sched_getaffinity(0))

# name: (file, threads, processes, batches to try). What the first two mean is said in the file.
PEERS = {
    "flowgpu, candle": ("flowgpu.yaml", [0], [0], [0]),
    "flowgpu, ONNX Runtime": ("flowgpu-onnx.yaml", [0], [0], [0]),
    "onnxruntime, each thread its own": ("ort_each.py", [CORES, 2 * CORES], [1], [1, 8]),
    "onnxruntime, decode pool": ("ort_pool.py", [CORES], [1], [8, 32]),
    "torch, decode pool": ("torch_pool.py", [1, CORES], [1, CORES], [8, 32]),
    "torch DataLoader": ("torch_loader.py", [1, CORES], [1, CORES], [8, 32]),
    "Daft + onnxruntime": ("daft_ort.py", [CORES], [1], [8, 32]),
    "Ray Data + onnxruntime": ("ray_ort.py", [1], [1, CORES], [8, 32]),
    "Ray Data + torch": ("ray_torch.py", [1], [1, CORES], [8, 32]),
}

# name: (model, folder, the most images, JPEGs decoded scaled)
JOBS = {
    "mobilenet_v2": ("mobilenet_v2", "photographs", 10**9, False),
    "resnet50": ("resnet50", "photographs", 10**9, False),
    "trivial": ("trivial", "photographs", 10**9, False),
    "large": ("mobilenet_v2", "large", 30, False),
    "large-scaled": ("mobilenet_v2", "large", 30, True),
}


def can(peer, job):
    """candle's side has no trivial model."""
    return not (PEERS[peer][0] == "flowgpu.yaml" and JOBS[job][0] == "trivial")


def command(peer, folder, job, photographs, out, settings):
    file, model, scaled = PEERS[peer][0], JOBS[job][0], JOBS[job][3]
    if not file.endswith(".yaml"):
        threads, processes, batch = settings
        numbers = ["--threads", threads, "--processes", processes, "--batch", batch]
        draft = ["--draft"] if scaled else []
        return [sys.executable, HERE / file, photographs, folder / f"{model}.onnx", out, *map(str, numbers), *draft], {
            # Ray's and Daft's own processes do not start in that folder.
            "PYTHONPATH": str(HERE)
        }
    sets = {"photos": photographs, "out": out, "jpeg_scale": "auto" if scaled else "off"}
    if file == "flowgpu.yaml":
        sets |= {"arch": model, "weights": folder / f"{model}.pth"}
    else:
        sets |= {"model": folder / f"{model}.onnx"}
    options = [part for name, value in sets.items() for part in ("--set", f"{name}={value}")]
    return [FLOWGPU, "run", "-q", "--fresh", "--state", folder / "state", *options, HERE / file], {
        "FLOWGPU_ONNXRUNTIME": str(onnxruntime_library())
    }


def onnxruntime_library():
    import onnxruntime

    return next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*"))


def some(folder, job, n):
    """A folder with links to the first `n` images of the job, and how many there are."""
    _, name, most, _ = JOBS[job]
    images = sorted((folder / name).glob("*.jpg"))[: min(n, most)]
    part = folder / "parts" / f"{name}-{len(images)}"
    part.mkdir(parents=True, exist_ok=True)
    for image in images:
        if not (part / image.name).exists():
            os.link(image, part / image.name)
    return part, len(images)


def run(peer, folder, job, n, settings, **options):
    """Measures one run, and holds its output against what was asked for. Gives the rows as they were written, too."""
    photographs, n_images = some(folder, job, n)
    out = folder / "out.jsonl"
    what, env = command(peer, folder, job, photographs, out, settings)
    measured = measure.run([str(part) for part in what], out, env=env, **options)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    names = [Path(row["uri"]).name for row in rows]
    if sorted(names) != sorted(path.name for path in photographs.iterdir()):
        raise measure.Failed(f"{peer}: {len(names)} rows of {n_images} images")
    return measured, {name: row["labels"] for name, row in zip(names, rows)}, names == sorted(names)


def best(peer, folder, job, n):
    """The fastest of a peer's settings, by one run of each."""
    grid = list(itertools.product(*PEERS[peer][1:]))
    if len(grid) == 1:
        return grid[0]
    tried = {}
    for settings in grid:
        try:
            tried[settings] = run(peer, folder, job, n, settings)[0].seconds
            print(f"  {job}: {peer}: threads, processes, batch {settings}: {tried[settings]:.2f} s", file=sys.stderr, flush=True)
        except measure.Failed as failed:
            print(f"  {job}: {peer}: {settings}: {failed}", file=sys.stderr, flush=True)
    return min(tried, key=tried.get) if tried else None


def compare(folder, job, peers, args):
    chosen = settled(folder, job, peers, args)
    runs, rows, in_order = {peer: [] for peer in peers}, {}, {}
    load = [os.getloadavg()[0]]
    for number in range(args.rounds + 1):
        for peer in list(runs):
            try:
                measured, rows[peer], in_order[peer] = run(
                    peer, folder, job, args.images, chosen[peer], memory=number == args.rounds
                )
            except (measure.Failed, KeyError) as failed:
                print(f"  {job}: {peer} is left out: {failed}", file=sys.stderr, flush=True)
                del runs[peer]
                continue
            runs[peer].append(measured)
            print(f"  {job}: round {number + 1}: {peer}: {measured}", file=sys.stderr, flush=True)
        load.append(os.getloadavg()[0])
    ours = next((peer for peer in rows if PEERS[peer][0].endswith(".yaml")), next(iter(rows)))
    n = some(folder, job, args.images)[1]
    return {
        "job": job, "images": n, "rounds": args.rounds, "load": load, "ours": ours,
        "peers": {
            peer: {
                "settings": chosen[peer], "in_order": in_order[peer], "runs": [asdict(one) for one in measured],
                "top1": sum(rows[peer][name][0]["index"] == rows[ours][name][0]["index"] for name in rows[ours]),
                "largest_difference": max(difference(rows[peer][name], rows[ours][name]) for name in rows[ours]),
            }
            for peer, measured in runs.items()
        },
    }


def difference(labels, ours):
    """The largest difference of the scores of classes that both name."""
    scores = {label["index"]: label["score"] for label in ours}
    return max((abs(label["score"] - scores[label["index"]]) for label in labels if label["index"] in scores), default=1.0)


def settled(folder, job, peers, args):
    file = folder / "settings.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    for peer in peers:
        key = f"{job} / {peer}"
        if args.sweep or key not in kept:
            if found := best(peer, folder, job, args.sweep_images):
                kept[key] = found
                file.write_text(json.dumps(kept, indent=1))
    return {peer: kept[f"{job} / {peer}"] for peer in peers if f"{job} / {peer}" in kept}


def table(result):
    n = result["images"]
    load = f"{min(result['load']):.1f} to {max(result['load']):.1f}"
    print(f"\n**{result['job']}**: {n} images, medians of {result['rounds']} rounds (lowest to highest), load {load}.\n")
    print("| program | threads × processes × batch | images/s | steady | first result, s | CPU, s | peak PSS, MB | in order | top-1 as ours |")
    print("|---|---|---|---|---|---|---|---|---|")
    lines = []
    for peer, measured in result["peers"].items():
        *timed, for_memory = measured["runs"]
        overall = [n / one["seconds"] for one in timed]
        middle = {what: statistics.median(one[what] for one in timed) for what in ("steady", "first", "cpu")}
        settings = " × ".join(map(str, measured["settings"])) if any(measured["settings"]) else "defaults"
        lines.append((-statistics.median(overall), (
            f"| {peer} | {settings} | **{statistics.median(overall):.1f}** ({min(overall):.1f} to {max(overall):.1f}) "
            f"| {middle['steady']:.1f} | {middle['first']:.2f} | {middle['cpu']:.1f} | {for_memory['pss'] / 1e6:.0f} "
            f"| {'yes' if measured['in_order'] else 'no'} | {measured['top1']} of {n} |"
        )))
    print("\n".join(line for _, line in sorted(lines)), flush=True)


def say_where():
    from importlib.metadata import version

    packages = ["onnxruntime", "torch", "torchvision", "daft", "ray", "pillow", "numpy"]
    cpu = next(line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line)
    ours = subprocess.run([FLOWGPU, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, {CORES} cores of {cpu}, {os.uname().release}, Python {sys.version.split()[0]}, "
          f"{ours}, {', '.join(f'{name} {version(name)}' for name in packages)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="parts of names or files of peers, such as flowgpu,ort_each,daft")
    parser.add_argument("--jobs", default=",".join(JOBS), help="separated by commas")
    parser.add_argument("--sweep-images", type=int, default=200)
    parser.add_argument("--sweep", action="store_true")
    args = parser.parse_args()
    folder = args.folder.resolve()
    wanted = [part.strip().lower() for part in args.only.split(",")] if args.only else [""]
    peers = [peer for peer in PEERS if any(part in peer.lower() or part in PEERS[peer][0] for part in wanted)]
    if not peers:
        sys.exit(f"`--only {args.only}` names no peer: {', '.join(PEERS)}")
    jobs = [part.strip() for part in args.jobs.split(",")]
    if unknown := [job for job in jobs if job not in JOBS]:
        sys.exit(f"`{unknown[0]}` is no job: {', '.join(JOBS)}")
    measure.become_reaper()
    say_where()
    results = []
    for job in jobs:
        results.append(compare(folder, job, [peer for peer in peers if can(peer, job)], args))
        (folder / "results.json").write_text(json.dumps(results, indent=1))
        table(results[-1])


if __name__ == "__main__":
    main()
