"""What the measurements share: running the program on a pipeline, and saying where it was done."""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The kinds with `test` in their name are in this program only; else it is the one that ships.
PROGRAM = Path(os.environ.get("FLOWGPU", ROOT / "target/release/flowgpu-test"))
PHOTOS = ROOT / "pipelines/photos"


@dataclass
class Run:
    """One run of a pipeline: its report, the processor time of the whole process, and where it was asked for its largest
    resident set in bytes and samples of it (seconds since the start, resident bytes)."""

    report: dict
    seconds: float
    cpu: float
    peak: int
    samples: list


def run(folder, pipeline, *options, sample=None, environment=None):
    """Runs `pipeline`, the text of a file, in `folder`, from its first row on whatever was run there before. With `sample`,
    reads the resident set every so many seconds; `environment` is added to this script's own."""
    file, report = folder / "pipeline.yaml", folder / "report.json"
    file.write_text(pipeline)
    command = [str(PROGRAM), "run", "-q", "--fresh", "--report", str(report), *options, str(file)]
    errors = (folder / "errors.txt").open("w+")
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ, **(environment or {})})
    samples, peak = [], 0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG if sample else 0)
        if pid:
            break
        # Not `ru_maxrss`: that counts what this script held when it started the program.
        if resident := resident_bytes(process.pid):
            samples.append((time.monotonic() - start, resident["VmRSS"]))
            peak = resident["VmHWM"]
        time.sleep(sample)
    seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        errors.seek(0)
        sys.exit(f"{' '.join(command)}: exit {process.returncode}\n{errors.read()}")
    return Run(json.loads(report.read_text()), seconds, usage.ru_utime + usage.ru_stime, peak, samples)


def resident_bytes(pid):
    """The resident set of a process now and at its largest; None when it is gone or not the program yet."""
    try:
        lines = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
        running = os.readlink(f"/proc/{pid}/exe") == str(PROGRAM.resolve())
    except (FileNotFoundError, ProcessLookupError):
        return None
    sizes = {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines if line[0] in ("VmRSS:", "VmHWM:")}
    return sizes if running and sizes else None


def family(pid):
    """A process and its children."""
    found = [pid]
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            if stat.rsplit(")", 1)[1].split()[1] == str(pid):
                found.append(int(entry))
    return found


def pss(pid):
    """The proportional set size of a process in bytes; None when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), None)


def node(report, name):
    return next(node for node in report["nodes"] if node["name"] == name)


def scratch():
    """A folder for pipelines and outputs, gone at the end."""
    return tempfile.TemporaryDirectory(prefix="flowgpu-bench-")


def say_where():
    """Prints the machine and how busy it is: only ratios within one run count."""
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM} is missing: cargo build --release --features testing")
    model = next(line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line)
    version = subprocess.run([str(PROGRAM), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    date, load = time.strftime("%Y-%m-%d %H:%M"), " ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"{date}, {version}, {len(os.sched_getaffinity(0))} cores {model}, {platform.release()}, load {load}", flush=True)


def median(values):
    return statistics.median(values)
