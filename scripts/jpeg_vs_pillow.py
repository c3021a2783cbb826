"""Compares the JPEG decoder with Pillow 13.0.0, file by file and bit by bit.

    cargo build --features testing --workspace --example decode_rgb
    python3 scripts/jpeg_vs_pillow.py FOLDER...

Looks at every file of the folders that begins as a JPEG. Prints each file that is not equal, and why, then how many are equal,
refused by both, refused by one. Ends with 1 if the pixels of any file differ, or if a file is decoded that Pillow refuses.
Pillow comes as a pinned wheel, as for the tests, and is not installed.
"""

import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

from pillow_pixels import _import_pillow

PROGRAM = Path(__file__).parent.parent / "target/debug/examples/decode_rgb"


def ours(program, path):
    """Size and bytes, or a text that says why not."""
    program.stdin.write(f"{path}\n".encode())
    program.stdin.flush()
    line = program.stdout.readline().decode().strip()
    if not line.startswith("ok "):
        return line
    width, height = map(int, line.split()[1:])
    return (width, height), program.stdout.read(width * height * 3)


def pillows(image, ops, path):
    try:
        with image.open(path) as opened:
            picture = ops.exif_transpose(opened).convert("RGB")
            return picture.size, picture.tobytes()
    except Exception as error:  # Pillow raises many kinds for broken files.
        return f"{type(error).__name__}: {error}"


def main():
    image = _import_pillow()
    from PIL import ImageOps as ops

    image.MAX_IMAGE_PIXELS = None
    warnings.simplefilter("ignore")
    paths = sorted({path.resolve() for folder in sys.argv[1:] for path in Path(folder).rglob("*") if path.is_file()})
    program = subprocess.Popen([str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    outcomes = Counter()
    for path in paths:
        with open(path, "rb") as file:
            if file.read(3) != b"\xff\xd8\xff":
                continue
        here, there = ours(program, path), pillows(image, ops, path)
        if isinstance(here, str) and isinstance(there, str):
            outcome, what = "refused by both", f"{here} | {there}"
        elif isinstance(here, str):
            outcome, what = "refused here alone", here
        elif isinstance(there, str):
            outcome, what = "refused by Pillow alone", there
        elif here == there:
            outcome, what = "equal", ""
        else:
            same_size = here[0] == there[0]
            most = max(map(lambda a, b: abs(a - b), here[1], there[1])) if same_size else f"{here[0]} and {there[0]}"
            outcome, what = "different", f"by up to {most}" if same_size else str(most)
        outcomes[outcome] += 1
        if outcome != "equal":
            print(f"{path.name}: {outcome}: {what}")
    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(outcomes.items())))
    return 1 if outcomes["different"] or outcomes["refused by Pillow alone"] else 0


sys.exit(main())
