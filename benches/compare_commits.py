"""Two commits' benches, in turns.

    python3 benches/compare_commits.py BEFORE AFTER [--bench NAME]... [--rounds N] [--fail-above RATIO] [--profile NAME]
                                       [--threads N] [PART OF A NAME …]

Builds the benches of both in work trees and target folders of their own under `target/compare`, which stay for the next time. Compiled
dependencies are copied from this tree's target folder, or from the first commit's, where they are there. Then it runs BEFORE, AFTER,
BEFORE, AFTER, and so on, and prints for each benchmark the median of each side's rounds, the one over the other, and the lowest and
highest ratio of a round. Below 1 AFTER is faster. What moved by more than it scatters, so that all rounds are on one side of 1, is
marked. With `--fail-above 1.1` it exits with 1 if something that is marked takes more than 1.1 times as long.

Without `--bench` all benches run that both commits have. `--profile dev` is built sooner. `--threads` is for `layers`. A program that was
built already may stand in a commit's place if one bench is named.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# These measure in turns themselves: a line asks for a round. All others are criterion's.
IN_TURNS = {"layers", "worker"}
# Of each benchmark of criterion's in a round: seconds, and samples. Of n samples criterion makes at least n²/2 iterations, however long
# one takes: its usual 100 are 5,000, and half a minute where one takes 5 ms.
WARM_UP, MEASURED, SAMPLES = 0.5, 1.5, 20


class Commit:
    """A commit's work tree, with its target folder."""

    def __init__(self, name):
        self.name = name
        hash = output("git", "rev-parse", "--short", f"{name}^{{commit}}", cwd=ROOT).strip()
        self.tree = ROOT / "target/compare" / hash
        if not self.tree.exists():
            # One that was removed by hand is still on git's list.
            run("git", "worktree", "prune", cwd=ROOT)
            run("git", "worktree", "add", "--quiet", "--detach", self.tree, hash, cwd=ROOT)

    def benches(self):
        packages = json.loads(output("cargo", "metadata", "--no-deps", "--format-version", "1", cwd=self.tree))["packages"]
        return {target["name"] for package in packages for target in package["targets"] if "bench" in target["kind"]}

    def seed(self, profile, targets):
        """Copies what is compiled from the first of `targets` that has something. What belongs to another tree has other names,
        and is compiled anew; it is a copy because Cargo writes over what two trees share."""
        ours = self.tree / "target" / profile
        if ours.exists():
            return
        for theirs in (target / profile for target in targets):
            if not (theirs / ".fingerprint").exists():
                continue
            for part in (".fingerprint", "build"):
                shutil.copytree(theirs / part, ours / part, symlinks=True)
            # Programs have no ending, and are the other tree's own.
            programs = lambda _, names: [name for name in names if "." not in name]
            shutil.copytree(theirs / "deps", ours / "deps", symlinks=True, ignore=programs)
            return

    def build(self, benches, profile):
        """The programs of the benches, by name."""
        chosen = [word for name in benches for word in ("--bench", name)]
        command = ["cargo", "build", "--locked", "--workspace", "--features", "testing", "--profile", profile, *chosen]
        lines = output(
            *command, "--message-format", "json-render-diagnostics", "--target-dir", self.tree / "target", cwd=self.tree
        ).splitlines()
        messages = [json.loads(line) for line in lines]
        found = [m for m in messages if m.get("executable") and "bench" in m["target"]["kind"]]
        return {message["target"]["name"]: message["executable"] for message in found}


class InTurns:
    """A program that answers a line with a round."""

    def __init__(self, program, options):
        threads = ["--threads", str(options.threads)] if "layers" in Path(program).name else []
        command = [program, "--turns", *threads, *options.names]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.prefix = "" if threads else "worker/"
        self.turn()

    def turn(self):
        """Seconds, and processor seconds where they are told, of each benchmark."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found = {}
        while line := self.process.stdout.readline().rstrip("\n"):
            name, *seconds = line.split("\t")
            if not seconds:
                sys.exit(f"{self.process.args[0]} does not measure in turns: it says {line!r}")
            found[self.prefix + name] = [float(number) for number in seconds]
        return found


class Criterion:
    """A program of criterion's, started anew for each round."""

    def __init__(self, program, options):
        filters = ["|".join(re.escape(name) for name in options.names)] if options.names else []
        times = ["--warm-up-time", str(WARM_UP), "--measurement-time", str(MEASURED), "--sample-size", str(SAMPLES)]
        self.command = [program, "--bench", "--noplot", *times, *filters]

    def turn(self):
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            run(*self.command, env={**os.environ, "CRITERION_HOME": folder}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for path in Path(folder).rglob("new/estimates.json"):
                name = json.loads((path.parent / "benchmark.json").read_text())["full_id"]
                found[name] = [json.loads(path.read_text())["median"]["point_estimate"] / 1e9]
        return found


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


def output(*command, cwd):
    return subprocess.run([str(word) for word in command], cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def build(options):
    """The programs of both sides, for each bench."""
    if any(Path(side).is_file() for side in (options.before, options.after)) and len(options.bench) != 1:
        sys.exit("with a program in a commit's place one `--bench` has to be named")
    sides = [side if Path(side).is_file() else Commit(side) for side in (options.before, options.after)]
    commits = [side for side in sides if isinstance(side, Commit)]
    known = [commit.benches() for commit in commits]
    benches = options.bench or sorted(set.intersection(*known))
    for commit, has in zip(commits, known):
        if missing := [name for name in benches if name not in has]:
            sys.exit(f"{commit.name} has no bench {', '.join(missing)}; it has {', '.join(sorted(has))}")
    folder = "debug" if options.profile == "dev" else options.profile
    for number, commit in enumerate(commits):
        commit.seed(folder, [ROOT / "target", *(earlier.tree / "target" for earlier in commits[:number])])
    programs = [side.build(benches, options.profile) if isinstance(side, Commit) else {benches[0]: side} for side in sides]
    return {name: [of_side[name] for of_side in programs] for name in benches}


def scaled(seconds):
    factor, unit = next((f, u) for f, u in [(1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")] if seconds * f >= 1 or u == "ns")
    return f"{seconds * factor:.4g} {unit}"


def told(name, rounds):
    """The line of a benchmark, from the seconds of both sides in each round, and its ratio if it moved by more than it scatters."""
    before, after = (statistics.median(turn[side][0] for turn in rounds) for side in (0, 1))
    ratios = [after[0] / before[0] for before, after in rounds]
    ratio, low, high = after / before, min(ratios), max(ratios)
    moved = low > 1 or high < 1
    line = f"{name:<52} {scaled(before):>9} {scaled(after):>9}   {ratio:.3f} ({low:.3f} to {high:.3f})"
    if all(len(side) > 1 for turn in rounds for side in turn):
        line += f", of processor time {statistics.median(after[1] / before[1] for before, after in rounds):.3f}"
    if moved:
        line += "  SLOWER" if ratio > 1 else "  faster"
    return line, ratio if moved else None


def parse():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("before")
    options.add_argument("after")
    options.add_argument("names", nargs="*", metavar="PART OF A NAME")
    options.add_argument("--bench", action="append", default=[], metavar="NAME")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--fail-above", type=float, metavar="RATIO")
    options.add_argument("--profile", default="release", metavar="NAME")
    options.add_argument("--threads", type=int, default=1)
    return options.parse_intermixed_args()


def main():
    options = parse()
    worst = 0
    print(f"{'after / before, lowest to highest':<52} {'before':>9} {'after':>9}", flush=True)
    for bench, programs in build(options).items():
        sides = [(InTurns if bench in IN_TURNS else Criterion)(program, options) for program in programs]
        turns = [[side.turn() for side in sides] for _ in range(options.rounds)]
        for name in (name for name in turns[0][0] if name in turns[0][1]):
            line, ratio = told(name, [[side[name] for side in turn] for turn in turns])
            print(line, flush=True)
            worst = max(worst, ratio or 0)
    if options.fail_above and worst > options.fail_above:
        sys.exit(1)


main()
