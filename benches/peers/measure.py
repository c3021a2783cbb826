"""Running one job and measuring it from outside: time, first result, processor time and memory of the whole process tree."""

import ctypes
import os
import resource
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Measured:
    seconds: float
    # Seconds until a first line could be read in the output.
    first: float
    # Images a second between the first and the last growth of the output; 0 where it grew once.
    steady: float
    # Processor seconds of the tree.
    cpu: float
    # Largest sum of proportional set sizes, bytes; 0 where it was not asked for.
    pss: int


class Failed(Exception):
    pass


def become_reaper():
    """Daemons that a job leaves behind become children of this process, so that they are counted and ended."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("this process cannot become the reaper of its descendants")


def run(command, out, *, memory=False, env=None, limit=300):
    """Runs a command that writes lines into `out`, or into a hidden partial file beside it until it is complete."""
    partial = out.with_name(f".{out.name}.partial")
    for path in (out, partial):
        path.unlink(missing_ok=True)
    log = out.with_suffix(".log")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("w") as errors:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=errors, stderr=errors, env={**os.environ, **(env or {})})
        watcher = Watcher(memory)
        growth, size = [], 0
        while process.poll() is None:
            now = time.monotonic() - start
            if (grown := size_of(partial) or size_of(out)) > size:
                size = grown
                growth.append((now, size))
            if now > limit:
                end_all(process)
                raise Failed(f"not done after {limit} s: {' '.join(map(str, command))}")
            time.sleep(0.003)
        seconds = time.monotonic() - start
    watcher.stop()
    end_all(process)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise Failed(f"exit {process.returncode}: {' '.join(map(str, command))}\n{log.read_text()[-2000:]}")
    lines = out.read_bytes().count(b"\n")
    if not growth:
        growth = [(seconds, out.stat().st_size)]
    (first, first_size), (last, last_size) = growth[0], growth[-1]
    steady = lines * (last_size - first_size) / last_size / (last - first) if last > first else 0.0
    reaped = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Who ignores its children's ends is not told of their time, so each process was also looked at while it ran.
    return Measured(seconds, first, steady, max(reaped, watcher.cpu()), watcher.pss)


def size_of(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class Watcher:
    """Looks at the tree every 100 ms; with `memory` every 50 ms, at its memory too, which takes time from the job."""

    def __init__(self, memory):
        self.memory, self.pss, self.times, self.ended = memory, 0, {}, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.ended.wait(0.05 if self.memory else 0.1):
            tree = descendants()
            self.times.update({(pid, started): cpu for pid, started, cpu in tree})
            if self.memory:
                self.pss = max(self.pss, sum(pss_of(pid) for pid, _, _ in tree))

    def stop(self):
        self.ended.set()
        self.thread.join()

    def cpu(self):
        return sum(self.times.values())


def descendants():
    """(pid, start, processor seconds) of all below this process."""
    parents, rows = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            pid = int(entry)
            parents.setdefault(int(fields[1]), []).append(pid)
            rows[pid] = (pid, fields[19], (int(fields[11]) + int(fields[12])) / TICKS)
    below, todo = [], [os.getpid()]
    while todo:
        children = parents.get(todo.pop(), [])
        todo += children
        below += [rows[pid] for pid in children]
    return below


def pss_of(pid):
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def end_all(process):
    """Ends what is left of the tree and waits for all of it."""
    if process.poll() is None:
        process.kill()
        process.wait()
    for _ in range(100):
        for pid, _, _ in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.02)
