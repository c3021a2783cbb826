"""Rows that nothing is done to, each with an id, through five nodes and into a file: what the engine itself costs a row.

    cargo build --release --features testing
    python3 benches/noop.py

Two pipelines in turns: five nodes that only pass columns on, and five that are called for each row. The file is read again:
every row has to be in it once, in order.
"""

import sys
from pathlib import Path

from measure import median, node, run, say_where, scratch

ROWS = 2_000_000
ROUNDS = 7
WANTED = 2_000_000

BETWEEN = {
    "columns passed on": [
        f"{{kind: transform.select, with: {{rename: {{{old}: {new}}}}}}}"
        for old, new in [("id", "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("d", "id")]
    ],
    "called for each row": [f"{{kind: transform.test_pass, with: {{as: {name}}}}}" for name in "abcde"],
}


def pipeline(kinds):
    nodes = [f"  n{number}: {kind}\n" for number, kind in enumerate(kinds)]
    return (
        "name: noop\nnodes:\n"
        f"  rows: {{kind: source.synthetic, with: {{rows: {{count: {ROWS}}}}}}}\n"
        f"{''.join(nodes)}"
        "  out: {kind: sink.jsonl, with: {path: rows.jsonl, columns: [id]}}\n"
    )


def check(path):
    with path.open() as lines:
        for number, line in enumerate(lines):
            if line != f'{{"id":"synthetic/{number}"}}\n':
                sys.exit(f"row {number} is {line!r}")
    if number + 1 != ROWS:
        sys.exit(f"{number + 1} rows came out of {ROWS}")


def main():
    say_where()
    with scratch() as folder:
        folder = Path(folder)
        runs = {name: [] for name in BETWEEN}
        for _ in range(ROUNDS):
            for name, kinds in BETWEEN.items():
                runs[name].append(run(folder, pipeline(kinds)))
                check(folder / "rows.jsonl")
    print(f"{ROWS:,} rows from a source through five nodes into sink.jsonl, medians of {ROUNDS} rounds in turns")
    for name, done in runs.items():
        rate = median(ROWS / r.report["seconds"] for r in done)
        low, high = (pick(ROWS / r.report["seconds"] for r in done) for pick in (min, max))
        cpu = median(r.cpu / ROWS * 1e9 for r in done)
        print(f"  {name:<20} {rate:>12,.0f} rows/s ({low:,.0f} to {high:,.0f}), {cpu:.0f} ns of CPU a row, {rate / WANTED:.1f} × the {WANTED:,} wanted")
        work = [(n["name"], median(node(r.report, n["name"])["work_seconds"] for r in done) / ROWS * 1e9) for n in done[0].report["nodes"]]
        print("    work, ns a row: " + ", ".join(f"{at} {ns:.0f}" for at, ns in work))


main()
