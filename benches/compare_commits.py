"""Two commits' layers and models on the CPU, in turns.

    python3 benches/compare_commits.py BEFORE AFTER [--rounds N] [--threads N] [--dev] [PART OF A NAME …]

Builds the bench `layers` of both in work trees and target folders of their own under `target/compare` (the first time takes as long as
building everything), runs one turn of the one, one of the other, and so on, and prints what AFTER takes of BEFORE's time: the median of the
rounds' ratios, the quarter and three quarters of them, and the same of processor time. Below 1 AFTER is faster. A program that was
built already may stand in a commit's place.
"""

import argparse
import json
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build(commit, profile):
    """The bench's program of a commit."""
    if Path(commit).is_file():
        return commit
    name = subprocess.run(["git", "rev-parse", "--short", f"{commit}^{{commit}}"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    tree = ROOT / "target/compare" / name
    if not tree.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), name], cwd=ROOT, check=True)
    command = ["cargo", "build", *profile, "--workspace", "--features", "testing", "--bench", "layers", "--message-format", "json-render-diagnostics"]
    # A target folder that both share would have one's program overwritten by the other's.
    target = ["--target-dir", str(tree / "target")]
    lines = subprocess.run([*command, *target], cwd=tree, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    messages = (json.loads(line) for line in lines)
    return next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "layers")


class Side:
    def __init__(self, program, options):
        command = [program, "--turns", "--threads", str(options.threads), *options.names]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def turn(self):
        """Seconds and processor seconds of each case."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found = {}
        while line := self.process.stdout.readline().rstrip("\n"):
            name, seconds, cpu = line.split("\t")
            found[name] = float(seconds), float(cpu)
        return found


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("before")
    options.add_argument("after")
    options.add_argument("names", nargs="*", metavar="PART OF A NAME")
    options.add_argument("--rounds", type=int, default=11)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--dev", action="store_true", help="the development build, which is there sooner")
    options = options.parse_intermixed_args()
    profile = [] if options.dev else ["--release"]
    sides = [Side(build(commit, profile), options) for commit in (options.before, options.after)]
    for side in sides:
        side.turn()
    turns = [[side.turn() for side in sides] for _ in range(options.rounds)]
    cases = [name for name in turns[0][0] if name in turns[0][1]]
    print(f"{'':<40} {'before':>10} {'after':>10}   after / before, quarters    of processor time")
    for name in cases:
        before, after = ([turn[which][name] for turn in turns] for which in (0, 1))
        ratios = [[a[n] / b[n] for a, b in zip(after, before)] for n in (0, 1)]
        low, middle, high = statistics.quantiles(ratios[0], n=4)
        milliseconds = [statistics.median(seconds for seconds, _ in side) * 1e3 for side in (before, after)]
        print(f"{name:<40} {milliseconds[0]:>7.3f} ms {milliseconds[1]:>7.3f} ms   {middle:.3f} ({low:.3f} to {high:.3f})    {statistics.median(ratios[1]):.3f}")


main()
