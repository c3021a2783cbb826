#!/usr/bin/env python3
"""What `gpu-check.sh` runs: checks of flowgpu on a GPU, one line of a table for each. The standard library alone.

Each check runs the real program on pipelines that it writes into a temporary folder, and judges by what the program and
the driver say: outputs, `--report`, `--trace`, `plan --format json`, `nvidia-smi`, /proc. Nothing is taken from the
program's own opinion where the system knows it too.
"""

import array
import ast
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLOWGPU = os.environ.get("FLOWGPU", "")
WORKER = os.environ.get("FLOWGPU_WORKER_CUDA", "")
# Seconds for all checks together, and for one run of the program.
BUDGET = 235
RUN_LIMIT = 60
MIB = 1 << 20

# Largest difference from the CPU that passes, relative to the largest output of a row.
TOLERANCE = {"f32": 1e-3, "f16": 2e-2, "bf16": 1e-1}
# Operations of one 224×224 image, two for each multiply-add, by published counts.
OPERATIONS = {"resnet50": 8.2e9, "vit_base_patch16_224": 35.1e9}
# Peaks by data sheet: f32 without tensor cores, f16 with them and without sparsity.
PEAKS = {
    "H200": (67e12, 989e12), "H100": (67e12, 989e12), "A100": (19.5e12, 312e12), "A10": (31.2e12, 125e12),
    "L40S": (91.6e12, 362e12), "L4": (30.3e12, 121e12),
}


class Failed(Exception):
    """A check did not pass; the text says what was seen."""


# --- running the program ---------------------------------------------------------------------------------------------


class Bench:
    """The folder that the checks work in, and how they run the program."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.deadline = time.monotonic() + BUDGET
        self.n_runs = 0

    def path(self, name):
        return self.folder / name

    def pipeline(self, name, nodes):
        name = name.replace("_", "-")
        path = self.path(f"{name}.yaml")
        lines = [f"name: {name}", "nodes:", *(f"  {node}: {json.dumps(what)}" for node, what in nodes.items())]
        path.write_text("\n".join(lines) + "\n")
        return path

    def start(self, pipeline, *options, device="cuda"):
        """Starts a run; gives the process and where its report and trace will be."""
        self.n_runs += 1
        report, trace = self.path(f"{self.n_runs}.report.json"), self.path(f"{self.n_runs}.trace.json")
        command = [FLOWGPU, "run", str(pipeline), "--device", device, "--fresh", "-q"]
        command += ["--report", str(report), "--trace", str(trace), *options]
        log = open(self.path(f"{self.n_runs}.log"), "w+")
        child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        return Run(child, report, trace, log, min(RUN_LIMIT, self.left()))

    def run(self, pipeline, *options, device="cuda"):
        return self.start(pipeline, *options, device=device).end()

    def left(self):
        left = self.deadline - time.monotonic()
        if left < 5:
            raise Failed("no time left")
        return left

    def plan(self, pipeline):
        command = [FLOWGPU, "plan", str(pipeline), "--device", "cuda", "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT)
        if done.returncode != 0:
            raise Failed(f"plan: exit {done.returncode}: {last_words(done.stderr)}")
        return json.loads(done.stdout)


class Run:
    """A run under way."""

    def __init__(self, child, report, trace, log, limit):
        self.child, self.report_path, self.trace_path, self.log = child, report, trace, log
        self.give_up = time.monotonic() + limit

    def end(self, codes=(0,)):
        """Waits for the end, and reads what the run left."""
        try:
            code = self.child.wait(timeout=max(1, self.give_up - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failed("a run did not end in its time")
        if code not in codes:
            raise Failed(f"run: exit {code}: {self.words()}")
        self.report = json.loads(self.report_path.read_text())
        self.trace = json.loads(self.trace_path.read_text())
        return self

    def words(self):
        self.log.seek(0)
        return last_words(self.log.read())

    def stop(self):
        self.child.kill()
        self.child.wait()

    def worker_pid(self):
        """The worker's process, once it has been exec'd; `None` before."""
        for pid in children(self.child.pid):
            with contextlib.suppress(OSError):
                if os.path.samefile(f"/proc/{pid}/exe", WORKER):
                    return pid
        return None

    def wait_for(self, what, look):
        """The first answer of `look` that is true."""
        while time.monotonic() < self.give_up:
            answer = look()
            if answer:
                return answer
            if self.child.poll() is not None:
                raise Failed(f"the run ended before {what}: exit {self.child.returncode}: {self.words()}")
            time.sleep(0.02)
        self.stop()
        raise Failed(f"waited in vain for {what}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def metric(port, name):
    """The sum of a figure over all its labels; zero while there is no answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return sum_of_metric(answer.read().decode(), name)
    except OSError:
        return 0.0


def sum_of_metric(text, name):
    lines = (line.rsplit(None, 1) for line in text.splitlines() if line.startswith((name + "{", name + " ")))
    return sum(float(value) for _, value in lines)


def children(pid):
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The command's name is in brackets and may hold anything; the parent is the second field behind it.
            stat = Path(f"/proc/{int(entry)}/stat").read_text()
            if int(stat.rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(entry))
    return found


def last_words(text):
    """What a program said of its end: its first line of an error, or the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("error", "fault"))]
    return (errors or lines[-1:] or ["no word"])[0]


def smi(*fields):
    """What the driver says of the first GPU that this process may use, field by field."""
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    token = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
    if token:
        command += ["-i", token]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    return [field.strip() for field in done.stdout.splitlines()[0].split(",")]


def memory_used():
    """MiB of the GPU that are in use."""
    return int(smi("memory.used")[0])


class PeakMemory(threading.Thread):
    """The most MiB that were in use while it ran."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.done = memory_used(), threading.Event()

    def run(self):
        while not self.done.wait(0.1):
            with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
                self.peak = max(self.peak, memory_used())

    def end(self):
        self.done.set()
        self.join()
        return self.peak


# --- arithmetic ------------------------------------------------------------------------------------------------------


def spans(trace, stage):
    """Intervals in seconds of one stage (`upload`, `compute`, `download`) by track, from a trace of Chrome's form."""
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    tracks = {}
    names = {}
    for event in events:
        if event.get("ph") == "M" and event.get("name") == "thread_name":
            names[event["pid"], event["tid"]] = event["args"]["name"]
    for event in events:
        # Only workers have tracks for their streams; the coordinator's own spans have other names.
        if event.get("ph") == "X" and event["name"] == stage:
            key = event["pid"], event["tid"]
            start = event["ts"] / 1e6
            tracks.setdefault(names.get(key, str(key)), []).append((start, start + event["dur"] / 1e6))
    return {track: sorted(intervals) for track, intervals in tracks.items()}


def union(intervals):
    """The same time, as intervals that do not overlap."""
    joined = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def length(intervals):
    return sum(end - start for start, end in union(intervals))


def common(one, other):
    """Seconds that lie in both."""
    return length(one) + length(other) - length([*one, *other])


def all_spans(trace, stage):
    return [interval for intervals in spans(trace, stage).values() for interval in intervals]


def read_npy(path):
    """Rows of an f32 array as `numpy.save` writes it."""
    data = Path(path).read_bytes()
    if data[:6] != b"\x93NUMPY":
        raise Failed(f"{path} is no array")
    n_header = struct.unpack_from("<H" if data[6] == 1 else "<I", data, 8)[0]
    start = (10 if data[6] == 1 else 12) + n_header
    header = ast.literal_eval(data[start - n_header:start].decode("latin1"))
    if header["descr"] != "<f4" or len(header["shape"]) != 2:
        raise Failed(f"{path} holds {header}")
    values = array.array("f", data[start:])
    n_rows, n_columns = header["shape"]
    return [values[row * n_columns:(row + 1) * n_columns] for row in range(n_rows)]


def difference(found, wanted):
    """The largest difference relative to each row's largest number, and how many rows agree on the largest."""
    if len(found) != len(wanted) or not wanted:
        raise Failed(f"{len(found)} rows, wanted {len(wanted)}")
    worst, n_agree = 0.0, 0
    for one, other in zip(found, wanted):
        scale = max(abs(value) for value in other) or 1.0
        worst = max(worst, max(abs(a - b) for a, b in zip(one, other)) / scale)
        n_agree += max(range(len(one)), key=one.__getitem__) == max(range(len(other)), key=other.__getitem__)
    return worst, n_agree


def planned_memory(plan):
    """Bytes that the plan gives to each worker on a GPU, wherever the plan has its list of workers."""
    found = []

    def look(value):
        if isinstance(value, dict):
            is_worker = "memory" in value and ("models" in value or "nodes" in value)
            if is_worker and value.get("device") not in ("cpu", None):
                found.append(value["memory"])
            elif not is_worker:
                for inner in value.values():
                    look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    look(plan)
    if not found:
        raise Failed("the plan names no worker on a GPU")
    return found


# --- checks ----------------------------------------------------------------------------------------------------------


def images(count, size=224):
    return {"kind": "source.synthetic", "with": {"images": {"count": count, "size": [size, size]}}}


def decode(source):
    return {"kind": "decode.image", "from": source, "with": {"crop": 224}}


def infer(source, arch, batch, dtype="f32", weights="random"):
    model = {"arch": arch, "weights": weights}
    return {"kind": "infer", "from": source, "with": {"model": model, "batch": batch, "dtype": dtype, "as": "out"}}


def throughput_nodes(count, models):
    """Images through several models at once, their outputs joined into nothing but rows."""
    nodes = {"photos": images(count), "pixels": decode("photos")}
    for name, (arch, batch, dtype) in models.items():
        nodes[name] = infer("pixels", arch, batch, dtype)
        nodes[f"{name}-out"] = {"kind": "sink.npy", "from": name, "with": {"path": f"{name}.npy", "column": "out"}}
    return nodes


def check_same(bench):
    """CPU = GPU"""
    archs = {"lite0": None, "mobilenet": "mobilenet_v2", "resnet18": "resnet18", "vit": "vit_base_patch16_224"}
    photos = str(ROOT / "pipelines/photos")

    def outputs(device, dtype):
        nodes = {
            "photos": {"kind": "source.files", "with": {"path": [f"{photos}/*.jpg", f"{photos}/*.png"]}},
            "pixels": {"kind": "decode.image", "with": {"resize": 256, "crop": 224, "interpolation": "bicubic"}},
        }
        for name, arch in archs.items():
            node = infer("pixels", arch, 4, dtype)
            if arch is None:
                node["with"]["model"] = str(ROOT / "pipelines/models/efficientnet_lite0")
            nodes[name] = node
            nodes[f"{name}-out"] = {"kind": "sink.npy", "from": name, "with": {"path": f"{name}.{device}.{dtype}.npy"}}
        bench.run(bench.pipeline(f"same-{device}-{dtype}", nodes), device=device)
        return {name: read_npy(bench.path(f"{name}.{device}.{dtype}.npy")) for name in archs}

    wanted = outputs("cpu", "f32")
    said, bad = [], []
    for dtype in ("f32", "f16", "bf16"):
        found = outputs("cuda", dtype)
        worst = 0.0
        for name in archs:
            apart, n_agree = difference(found[name], wanted[name])
            worst = max(worst, apart)
            # Trained weights tell classes well apart; made-up ones may have ties.
            must_agree = name == "lite0" and dtype == "f32"
            if not apart <= TOLERANCE[dtype] or (must_agree and n_agree < len(wanted[name])):
                bad.append(f"{name} {dtype}: {apart:.1e}, {n_agree} of {len(wanted[name])} alike")
        said.append(f"{dtype} {worst:.1e}")
    if bad:
        raise Failed("; ".join(bad))
    return f"{len(archs)} models, largest relative difference: " + ", ".join(said)


def check_isolation(bench):
    """isolation"""
    nodes = throughput_nodes(4000, {"model": ("resnet18", 64, "f32")})
    run = bench.start(bench.pipeline("isolation", nodes))
    pid = run.wait_for("a worker", run.worker_pid)
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    tokens = [entry.split(b"=", 1)[1].decode() for entry in environment if entry.startswith(b"CUDA_VISIBLE_DEVICES=")]
    n_others = sum(os.path.basename(os.readlink(f"/proc/{run.child.pid}/fd/{fd}")).startswith("nvidia")
                   for fd in os.listdir(f"/proc/{run.child.pid}/fd") if os.path.islink(f"/proc/{run.child.pid}/fd/{fd}"))
    libraries = Path(f"/proc/{run.child.pid}/maps").read_text()
    run.end()
    uuid = smi("uuid")[0]
    workers = run.report["workers"]
    if len(tokens) != 1 or not tokens[0] or "," in tokens[0]:
        raise Failed(f"the worker was shown {tokens}")
    if [worker["uuid"] for worker in workers] != [uuid] * len(workers) or not workers:
        raise Failed(f"workers report {[worker['uuid'] for worker in workers]}, the driver {uuid}")
    if "libcuda.so" in libraries:
        raise Failed("the coordinator has loaded CUDA")
    if pid not in [worker["pid"] for worker in workers]:
        raise Failed(f"the worker is {pid}, the report has {[worker['pid'] for worker in workers]}")
    return f"token {tokens[0]}, {uuid}; the coordinator has {n_others} descriptors of the driver and no CUDA"


def measured(bench, name, models, count):
    """One run, and by model the seconds that its compute spans cover."""
    run = bench.run(bench.pipeline(name, throughput_nodes(count, models)))
    tracks = spans(run.trace, "compute")
    if len(tracks) != len(models):
        raise Failed(f"the trace has compute spans of {sorted(tracks)} for {sorted(models)}")
    return run, tracks


def check_overlap(bench):
    """two models side by side"""
    count = 3200
    one, other = ("resnet50", 32, "f16"), ("vit_base_patch16_224", 32, "f16")
    alone = [length(all_spans(measured(bench, f"alone-{arch[0]}", {"model": arch}, count)[0].trace, "compute"))
             for arch in (one, other)]
    run, tracks = measured(bench, "both", {"one": one, "other": other}, count)
    first, second = tracks.values()
    share = common(first, second) / min(length(first), length(second))
    together = length(all_spans(run.trace, "compute"))
    text = f"{together:.2f} s together, {alone[0]:.2f} + {alone[1]:.2f} s one after the other; {share:.0%} overlap"
    if share < 0.5 or together > 1.1 * sum(alone):
        raise Failed(text)
    return text


def check_upload(bench):
    """upload hidden"""
    run, _ = measured(bench, "upload", {"model": ("vit_base_patch16_224", 64, "f32")}, 2560)
    uploads, computes = sorted(all_spans(run.trace, "upload")), all_spans(run.trace, "compute")
    # The first batches have nothing to hide behind.
    uploads = uploads[3:]
    if not uploads:
        raise Failed("no uploads in the trace")
    hidden = common(uploads, computes) / length(uploads)
    text = f"{hidden:.0%} of {1e3 * length(uploads):.1f} ms of uploads lie behind {length(computes):.2f} s of computing"
    if hidden < 0.8:
        raise Failed(text)
    return text


def check_memory(bench):
    """memory as planned"""
    before = memory_used()
    nodes = throughput_nodes(3200, {"model": ("resnet50", 64, "f32")})
    pipeline = bench.pipeline("memory", nodes)
    planned = sum(planned_memory(bench.plan(pipeline))) / MIB
    watch = PeakMemory()
    watch.start()
    try:
        bench.run(pipeline)
    finally:
        peak = watch.end()
    used = peak - before
    text = f"planned {planned:,.0f} MiB, used {used:,} MiB at most ({used / planned:.0%})"
    if used > 1.1 * planned or used < 0.3 * planned:
        raise Failed(text)
    return text


def check_throughput(bench):
    """throughput"""
    name = smi("name")[0]
    peaks = next((peaks for part, peaks in PEAKS.items() if part in name.replace("-", " ").split()), None)
    said, rates = [], {}
    for arch, batch in (("resnet50", 128), ("vit_base_patch16_224", 128)):
        for place, dtype in enumerate(("f32", "f16")):
            count = 20 * batch
            run, _ = measured(bench, f"rate-{arch[:3]}-{dtype}", {"model": (arch, batch, dtype)}, count)
            rate = count / length(all_spans(run.trace, "compute"))
            rates[arch, dtype] = rate
            part = f" ({rate * OPERATIONS[arch] / peaks[place]:.0%} of the peak)" if peaks else ""
            said.append(f"{arch.split('_')[0]} {dtype} {rate:,.0f}/s{part}")
    text = ", ".join(said) + ("" if peaks else f"; no peak known for {name}")
    slower = [arch for arch in OPERATIONS if rates[arch, "f16"] < rates[arch, "f32"]]
    if slower:
        raise Failed(f"f16 is slower than f32 for {', '.join(slower)}: {text}")
    return text


HOG = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        sys.exit(f"{name}: {code}")
device, context = ctypes.c_int(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
print("ready", flush=True)
keep = int(sys.stdin.readline())
free, total, address = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(free.value - keep, 1)))
print("taken", flush=True)
sys.stdin.read()
"""


def check_out_of_memory(bench):
    """out of memory"""
    batch, count = 512, 3072
    pipeline = bench.pipeline("oom", throughput_nodes(count, {"model": ("resnet50", batch, "f32")}))
    # Room for the context, the weights and a batch of a fifth.
    small = bench.pipeline("oom-small", throughput_nodes(count, {"model": ("resnet50", batch // 5, "f32")}))
    room = sum(planned_memory(bench.plan(small)))
    hog = subprocess.Popen([sys.executable, "-c", HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if hog.stdout.readline() != "ready\n":
            raise Failed("memory cannot be taken away: no CUDA from Python")
        # The plan is made with all memory free; it is gone before the first batch.
        run = bench.start(pipeline)
        run.wait_for("a worker", run.worker_pid)
        hog.stdin.write(f"{room}\n")
        hog.stdin.flush()
        if hog.stdout.readline() != "taken\n":
            raise Failed("memory cannot be taken away")
        run.end()
    finally:
        hog.kill()
        hog.wait()
    n_rows = len(read_npy(bench.path("model.npy")))
    caps = [cap["rows"] for worker in run.report["workers"] for cap in worker["caps"]]
    if n_rows != count:
        raise Failed(f"{n_rows} of {count} rows")
    if not caps:
        raise Failed("all batches fitted: nothing was shown")
    return f"batches of {batch} with room for {batch // 5}: all {count:,} rows, in parts of {caps[0]}"


def check_kill(bench):
    """kill -9 of a worker"""
    count = 6400
    nodes = {
        "photos": images(count), "pixels": decode("photos"), "model": infer("pixels", "resnet18", 32),
        "top": {"kind": "transform.topk", "with": {"k": 1}}, "out": {"kind": "sink.jsonl", "with": {"path": "kill.jsonl"}},
    }
    port = free_port()
    run = bench.start(bench.pipeline("kill", nodes), "--metrics-addr", f"127.0.0.1:{port}")
    pid = run.wait_for("a worker", run.worker_pid)
    run.wait_for("a batch", lambda: metric(port, "flowgpu_worker_rows_total") > 0)
    os.kill(pid, signal.SIGKILL)
    run.end()
    rows = [json.loads(line)["uri"] for line in bench.path("kill.jsonl").read_text().splitlines()]
    restarts = sum(worker["restarts"] for worker in run.report["workers"])
    hurt = [worker["trouble"] for worker in run.report["workers"] if worker.get("trouble")]
    if rows != [f"synthetic/{row}" for row in range(count)]:
        raise Failed(f"{len(rows)} rows, {len(set(rows))} of them different, of {count}, or out of order")
    # Where there are several workers, the others may be done before the dead one is replaced.
    if not restarts and not hurt:
        raise Failed("the worker was killed, and the report has no word of it")
    return f"all {count:,} rows once and in order, {restarts} replaced ({'; '.join(hurt)})"


def check_left(bench, before):
    """nothing left"""
    used = memory_used()
    for _ in range(50):
        if used <= before + 16:
            break
        time.sleep(0.1)
        used = memory_used()
    left = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if os.path.samefile(f"/proc/{entry}/exe", WORKER):
                left.append(entry)
    if left or used > before + 16:
        raise Failed(f"{used} MiB in use, {before} before; processes {left}")
    return f"{used} MiB in use as before, no process"


CHECKS = {
    "same": check_same, "isolation": check_isolation, "memory": check_memory, "upload": check_upload,
    "overlap": check_overlap, "throughput": check_throughput, "oom": check_out_of_memory, "kill": check_kill,
}


def main(chosen):
    unknown = [name for name in chosen if name not in CHECKS]
    if unknown:
        sys.exit(f"no check `{unknown[0]}`; there are {', '.join(CHECKS)}")
    name, driver, total = smi("name", "driver_version", "memory.total")
    before = memory_used()
    print(f"{name}, driver {driver}, {int(total):,} MiB, {before} MiB in use by others\n", flush=True)
    began, n_failed = time.monotonic(), 0

    def line(title, check, *arguments):
        start = time.monotonic()
        try:
            verdict, text = "ok", check(*arguments)
        except Failed as error:
            verdict, text = "FAILED", str(error)
        except Exception as error:  # One check that breaks is no reason to know nothing of the others.
            verdict, text = "FAILED", f"{type(error).__name__}: {error}"
        print(f"{title:<24} {verdict:<7} {time.monotonic() - start:5.1f} s  {text}", flush=True)
        return verdict != "ok"

    with tempfile.TemporaryDirectory(prefix="flowgpu-check-") as folder:
        bench = Bench(folder)
        for check in [CHECKS[name] for name in chosen or CHECKS]:
            n_failed += line(check.__doc__, check, bench)
        n_failed += line(check_left.__doc__, check_left, bench, before)
    print(f"\n{n_failed} failed, {time.monotonic() - began:.0f} s")
    sys.exit(1 if n_failed else 0)


# --- its own arithmetic ----------------------------------------------------------------------------------------------


def self_test():
    assert union([(3, 4), (0, 1), (1, 2), (0.5, 0.6)]) == [(0, 2), (3, 4)]
    assert length([(0, 1), (0.5, 2), (4, 5)]) == 3
    assert common([(0, 2)], [(1, 3), (5, 6)]) == 1 and common([(0, 1)], [(2, 3)]) == 0
    trace = [
        {"ph": "M", "name": "thread_name", "pid": 2, "tid": 1, "args": {"name": "scores compute"}},
        {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "worker 0"}},
        {"ph": "X", "name": "compute", "pid": 2, "tid": 1, "ts": 2e6, "dur": 1e6, "args": {"rows": 8}},
        {"ph": "X", "name": "compute", "pid": 2, "tid": 1, "ts": 1e6, "dur": 5e5},
        {"ph": "X", "name": "upload", "pid": 2, "tid": 2, "ts": 0, "dur": 5e5},
        {"ph": "b", "cat": "job", "name": "compute", "id": "x", "pid": 1, "ts": 1},
    ]
    for form in (trace, {"traceEvents": trace}):
        assert spans(form, "compute") == {"scores compute": [(1, 1.5), (2, 3)]}
        assert all_spans(form, "upload") == [(0, 0.5)] and all_spans(form, "download") == []
    assert difference([[1.0, 2.0], [0.0, -4.0]], [[1.0, 2.0], [1.0, -4.0]]) == (0.25, 2)
    assert difference([[3.0, 2.0]], [[1.0, 2.0]]) == (1.0, 0)
    with tempfile.TemporaryDirectory() as folder:
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".ljust(117) + b"\n"
        data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<6f", *range(6))
        path = Path(folder) / "a.npy"
        path.write_bytes(data)
        assert [list(row) for row in read_npy(path)] == [[0, 1, 2], [3, 4, 5]]
        bench = Bench(folder)
        text = bench.pipeline("p", {"a": images(3), "b": decode("a")}).read_text()
        assert text.startswith("name: p\nnodes:\n  a: {\"kind\": \"source.synthetic\"")
    text = "# TYPE a counter\na{w=\"0\"} 3\na{w=\"1\"} 4.5\nab 9\n"
    assert sum_of_metric(text, "a") == 7.5 and sum_of_metric(text, "b") == 0
    plan = {"placement": {"isolation": "process", "workers": [
        {"device": {"gpu": 0}, "models": [2], "threads": 1, "memory": 5 * MIB},
        {"device": "cpu", "models": [3], "threads": 1, "memory": 7},
    ]}, "host": {"memory": 99}}
    assert planned_memory(plan) == [5 * MIB]
    assert planned_memory({"workers": [{"device": "cuda:0", "nodes": ["a"], "memory": 3}]}) == [3]
    child = subprocess.Popen(["sleep", "30"])
    try:
        assert child.pid in children(os.getpid())
    finally:
        child.kill()
        child.wait()
    print("the arithmetic holds")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        main(sys.argv[1:])
