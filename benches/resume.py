"""What a kill costs: rows that are done again, and how soon the rest is under way.

    cargo build --release --features testing
    python3 benches/resume.py

A pipeline of 1,000,000 rows, committed once a second as is usual, is killed at nine places between a fifth and nine tenths of it
and started again. Then one that reads 20,000 files is killed when 99 % are done and started again. All outputs are
compared with that of a run that was left alone.
"""

import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from measure import PROGRAM, node, say_where, scratch

ROWS = 1_000_000
FILES = 20_000
SHARES = [0.18, 0.26, 0.34, 0.42, 0.50, 0.58, 0.66, 0.74, 0.82]

NODES = """
  rows: {source}
  work: {{kind: transform.test_spin, with: {{micros: {micros}}}}}
  out: {{kind: sink.jsonl, with: {{path: rows.jsonl}}}}
"""


def write(folder, source, micros, commit):
    nodes = NODES.format(source=source, micros=micros)
    (folder / "pipeline.yaml").write_text(f'name: resume\nrun: {{commit_every: "{commit}"}}\nnodes:{nodes}')


def start(folder, *options):
    command = [str(PROGRAM), "run", "-q", "--report", "report.json", *options, "pipeline.yaml"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finish(folder, *options):
    begin = time.monotonic()
    if code := start(folder, *options).wait():
        sys.exit(f"exit {code}")
    return time.monotonic() - begin, json.loads((folder / "report.json").read_text())


def committed(folder):
    """The rows of each cut in the journal."""
    try:
        lines = (folder / ".flowgpu/resume/journal").read_text().splitlines()
    except FileNotFoundError:
        return []
    records = [json.loads(line[9:]) for line in lines if line.endswith("}")]
    return [record["cut"]["sources"][0]["done"] for record in records if "cut" in record]


def kill_at(folder, rows, wait):
    """Starts anew and kills so many seconds after so many rows are in a cut; the last cut, and the most that one added."""
    shutil.rmtree(folder / ".flowgpu")
    process = start(folder)
    while True:
        done = committed(folder)
        if done and done[-1] >= rows:
            break
        if process.poll() is not None:
            sys.exit("it was done before it could be killed")
        time.sleep(0.001)
    time.sleep(wait)
    process.kill()
    process.wait()
    done = committed(folder)
    groups = [after - before for before, after in zip([0, *done], done)]
    return done[-1], max(groups)


def check(folder, expected):
    if (folder / "rows.jsonl").read_bytes() != expected:
        sys.exit("the output is another than that of a run that was left alone")


def kills(folder):
    write(folder, f"{{kind: source.synthetic, with: {{rows: {{count: {ROWS}}}}}}}", 10, "1s")
    seconds, _ = finish(folder, "--fresh")
    expected = (folder / "rows.jsonl").read_bytes()
    dice = random.Random(1)
    print(f"{ROWS:,} rows, {seconds:.1f} s when left alone, committed every second")
    for share in SHARES:
        # A cut follows another after half a second: anywhere between two.
        cut, group = kill_at(folder, ROWS * share, dice.uniform(0, 0.5))
        seconds, report = finish(folder)
        check(folder, expected)
        done = node(report, "rows")["rows_out"]
        print(
            f"  killed from {share:.0%} on: goes on at {report['resumed_at']:,} (last cut {cut:,}), {report['redone']:,} rows in the output were "
            f"done again, {done:,} of {ROWS - cut:,} listed; the largest group had {group:,}; {seconds:.1f} s",
            flush=True,
        )


def files(folder):
    (folder / "in").mkdir()
    for number in range(FILES):
        (folder / f"in/{number:06}.txt").write_text("text")
    write(folder, '{kind: source.files, with: {path: "in/*.txt"}}', 500, "100ms")
    seconds, _ = finish(folder, "--fresh")
    expected = (folder / "rows.jsonl").read_bytes()
    kill_at(folder, FILES * 0.99, 0)
    again, report = finish(folder)
    check(folder, expected)
    read = node(report, "rows")["rows_out"]
    print(f"{FILES:,} files, {seconds:.1f} s when left alone; killed at 99 %: {read:,} read again ({read / FILES:.2%}), {again:.2f} s from start to end")


def main():
    say_where()
    with scratch() as folder:
        kills(Path(folder))
    with scratch() as folder:
        files(Path(folder))


main()
