#!/usr/bin/env python3
"""Writes what Pillow makes of each picture in a folder into a table, beside what flowgpu is expected to make of it.

    scripts/pillow_table.py FOLDER TABLE

One line for each file, in three columns parted by tabs: its path; Pillow's verdict; flowgpu's. Pillow's is

    FORMAT MODE WIDTH×HEIGHT CRC OVER    the crc32 of its RGB, upright, and of the picture laid over the colour `GROUND`
    refused                              it raises an error

and flowgpu's `=` where it is the same, `near R G B` where the mean colour may differ by three from these, `rgb CRC` where there is a
picture that Pillow refuses, and otherwise the code of the rejection. The third column of a table that is there already is
kept: it is written by hand, and the tests hold flowgpu to it. Runs with the Pillow that the tests fetch.
"""

import sys
import warnings
import zlib
from pathlib import Path

from pillow_pixels import import_pillow

GROUND = (200, 30, 90)

# Their decoder rounds as it likes.
LOSSY = ("JPEG", "MPO")


def verdict(image, operations, path):
    """Pillow's verdict, and flowgpu's as long as nobody has said otherwise."""
    try:
        with image.open(path) as opened:
            lossy = opened.format in LOSSY or opened.info.get("compression") == "jpeg"
            kind = f"{opened.format} {opened.mode.replace(' ', '')}"
            upright = operations.exif_transpose(opened)
            rgb = upright.convert("RGB")
    except Exception:
        return "refused", "?"
    try:
        ground = image.new("RGBA", rgb.size, GROUND + (255,))
        over = crc(image.alpha_composite(ground, upright.convert("RGBA")).convert("RGB"))
    except ValueError:
        # A mode that Pillow does not make RGBA of.
        over = "-"
    told = f"{kind} {rgb.width}×{rgb.height} {crc(rgb)} {over}"
    if not lossy:
        return told, "="
    red, green, blue = (sum(n * count for n, count in enumerate(band.histogram())) for band in rgb.split())
    n_pixels = rgb.width * rgb.height
    return told, f"near {red / n_pixels:.2f} {green / n_pixels:.2f} {blue / n_pixels:.2f}"


def crc(rgb):
    return f"{zlib.crc32(rgb.tobytes()):08x}"


def kept(table):
    if not table.exists():
        return {}
    lines = [line.split("\t") for line in table.read_text().splitlines()]
    return {line[0]: line[2] for line in lines if len(line) == 3}


def main():
    folder, table = Path(sys.argv[1]), Path(sys.argv[2])
    image, operations = import_pillow("Image", "ImageOps")
    warnings.simplefilter("ignore")
    expected = kept(table)
    lines = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        told, ours = verdict(image, operations, path)
        lines.append("\t".join((name, told, expected.get(name, ours))))
    table.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
