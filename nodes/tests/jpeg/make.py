"""Makes the JPEGs of this folder, and writes down what Pillow 13.0.0 makes of them.

    python -m venv venv && venv/bin/pip install pillow==13.0.0 && venv/bin/python make.py

Needs `cjpeg` of libjpeg-turbo on the path (Debian's `libjpeg-turbo-progs`), because Pillow writes few kinds of JPEG.

`pillow.json` has for each file the size and the crc32 of the bytes of `convert("RGB")`, also scaled to a half, a quarter and an
eighth while decoding.
"""

import io
import json
import math
import random
import subprocess
import tempfile
import zlib
from pathlib import Path

import PIL
from PIL import Image

assert PIL.__version__ == "13.0.0", PIL.__version__
HERE = Path(__file__).parent
for old in HERE.glob("*.jpg"):
    old.unlink()


def picture(width, height, seed=1, noise=10):
    """Smooth colour, hard edges, some noise."""
    dice = random.Random(seed)
    image = Image.new("RGB", (width, height))
    put = image.load()
    for y in range(height):
        for x in range(width):
            rgb = [128 + 100 * math.sin(x / 7 + y / 19 + seed), 128 + 90 * math.cos(y / 9 - x / 13), 8 * x % 256]
            if (x - 14) ** 2 + (y - 12) ** 2 < 40:
                rgb = [230, 60, 40]
            if x % 23 > 17 and y % 11 > 4:
                rgb = [20, 40, 200]
            put[x, y] = tuple(max(0, min(255, int(c + dice.gauss(0, noise)))) for c in rgb)
    return image


def cjpeg(image, *options, scans=None):
    source = io.BytesIO()
    image.save(source, "PPM")
    with tempfile.NamedTemporaryFile("w", suffix=".scans") as script:
        if scans:
            script.write(scans)
            script.flush()
            options += ("-scans", script.name)
        return subprocess.run(["cjpeg", *options], input=source.getvalue(), capture_output=True, check=True).stdout


def saved(image, **options):
    out = io.BytesIO()
    image.save(out, "jpeg", **options)
    return out.getvalue()


def write(name, data):
    (HERE / f"{name}.jpg").write_bytes(data)


def segment(data, marker):
    """Begin and end of the first segment of a kind."""
    at = 2
    while data[at + 1] != marker:
        at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    return at, at + 2 + int.from_bytes(data[at + 2:at + 4], "big")


SAMPLINGS = {
    "444": "1x1", "422": "2x1", "420": "2x2", "440": "1x2", "411": "4x1", "410": "4x2", "441": "1x4", "h2v4": "2x4",
    "h3v1": "3x1", "h1v3": "1x3", "h2v2-h1v2": "2x2,1x2,1x2", "h2v2-h2v1": "2x2,2x1,2x1",
    "h1v4-h1v2": "1x4,1x2,1x2", "small-luma": "1x1,2x2,2x2", "mixed": "2x2,1x1,2x1", "mixed-tall": "1x2,1x1,1x2",
    "h4-h2-h1": "4x1,2x1,1x1",
}
for name, factors in SAMPLINGS.items():
    for width, height in ((35, 33), (5, 3), (1, 1), (18, 50)):
        write(f"{name}-{width}x{height}", cjpeg(picture(width, height), "-quality", "85", "-optimize", "-sample", factors))
for name in ("444", "422", "420", "440", "411", "mixed"):
    write(f"{name}-progressive", cjpeg(picture(35, 33), "-quality", "85", "-progressive", "-sample", SAMPLINGS[name]))
    write(f"{name}-arithmetic", cjpeg(picture(35, 33), "-quality", "85", "-arithmetic", "-sample", SAMPLINGS[name]))
# Chroma of each width around those where weighing begins and where loops of sixteen do.
for width in (2, 3, 4, 6, 31, 32, 33, 34, 35, 36, 37, 67, 69, 70):
    for name in ("420", "422"):
        write(f"{name}-{width}x5", cjpeg(picture(width, 5, noise=40), "-quality", "90", "-optimize", "-sample", SAMPLINGS[name]))

for options, name in ((["-progressive"], "progressive"), (["-arithmetic"], "arithmetic"), ([], "sequential")):
    write(f"grey-{name}", cjpeg(picture(35, 33), "-quality", "85", "-grayscale", *options))
    write(f"restart-{name}", cjpeg(picture(50, 41), "-quality", "80", "-sample", "2x2", "-restart", "2B", *options))
    write(f"rgb-{name}", cjpeg(picture(35, 33), "-quality", "90", "-rgb", *options))
write("grey-h2v2", cjpeg(picture(35, 33), "-quality", "85", "-grayscale", "-sample", "2x2"))
write("arithmetic-progressive", cjpeg(picture(50, 41), "-quality", "92", "-arithmetic", "-progressive", "-restart", "1"))
write("restart-each", cjpeg(picture(50, 41), "-quality", "80", "-sample", "2x1", "-restart", "1B"))
write("scans-three", cjpeg(picture(35, 33), "-quality", "85", "-sample", "2x2", scans="0;\n1;\n2;\n"))
write("scans-two", cjpeg(picture(35, 33), "-quality", "85", "-sample", "2x2", "-restart", "3B", scans="0;\n1 2;\n"))
write("scans-spectral", cjpeg(picture(35, 33), "-quality", "85", scans="0 1 2: 0-0,0,0;\n0: 1-63,0,0;\n1: 1-63,0,0;\n2: 1-63,0,0;\n"))
write("scans-many", cjpeg(picture(35, 33), "-quality", "95", "-sample", "2x2", scans=(
    "0 1 2: 0-0,0,3;\n0: 1-63,0,3;\n1: 1-63,0,3;\n2: 1-63,0,3;\n0 1 2: 0-0,3,2;\n0: 1-63,3,2;\n1: 1-63,3,2;\n2: 1-63,3,2;\n"
    "0 1 2: 0-0,2,1;\n0: 1-63,2,1;\n1: 1-63,2,1;\n2: 1-63,2,1;\n0 1 2: 0-0,1,0;\n0: 1-63,1,0;\n1: 1-63,1,0;\n2: 1-63,1,0;\n")))
noise = picture(48, 40, noise=200)
for quality in (1, 30, 100):
    write(f"noise-q{quality}", cjpeg(noise, "-quality", str(quality), "-sample", "2x2"))
    write(f"noise-q{quality}-progressive", cjpeg(noise, "-quality", str(quality), "-progressive"))

ink = picture(35, 33).convert("CMYK")
write("cmyk", saved(ink, quality=90))
write("cmyk-progressive", saved(ink, quality=90, progressive=True))
adobe = saved(ink, quality=90)
begin, end = segment(adobe, 0xEE)
write("ycck", adobe[:end - 1] + b"\2" + adobe[end:])
write("cmyk-without-adobe", adobe[:begin] + adobe[end:])
base = saved(picture(35, 33), quality=85, subsampling=2)
app = segment(base, 0xE0)
bare = base[:app[0]] + base[app[1]:]
begin, end = segment(bare, 0xC0)
renamed = bytearray(bare)
for n, letter in enumerate(b"RGB"):
    renamed[begin + 10 + 3 * n] = letter
at = segment(bytes(renamed), 0xDA)[0]
for n, letter in enumerate(b"RGB"):
    renamed[at + 5 + 2 * n] = letter
write("named-rgb", bytes(renamed))
write("adobe-0", bare[:2] + b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0" + bare[2:])
write("adobe-1", bare[:2] + b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\1" + bare[2:])
write("jfif-and-adobe-0", base[:app[1]] + b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0" + base[app[1]:])
write("app-of-no-length", bare[:2] + b"\xff\xe5\0\0" + bare[2:])

plain = saved(picture(35, 33), quality=85)
while b"\xff\xc4\0" in plain:
    begin, end = segment(plain, 0xC4)
    plain = plain[:begin] + plain[end:]
write("without-huffman-tables", plain)
# Steps of quantisation with which sums exceed 16 bits.
for seed in range(6):
    wild = bytearray(saved(picture(40, 24, seed=seed, noise=120), quality=100, subsampling=seed % 3, optimize=True))
    begin, end = segment(bytes(wild), 0xDB)
    dice = random.Random(seed)
    for at in range(begin + 5, begin + 69):
        if dice.random() < (0.1, 0.5, 1)[seed // 2]:
            wild[at] = 255
    write(f"wild-{seed}", bytes(wild))
    steps = b"".join((step * dice.choice([1, 1, 1, 150])).to_bytes(2, "big") for step in wild[begin + 5:end])
    write(f"wild-16-bit-{seed}", wild[:begin] + b"\xff\xdb\0\x83\x10" + steps + wild[end:])



def drafted(opened, denominator):
    """Scaled in the transform. Pillow's `draft` does this, but not for pictures that become smaller than a pixel of it."""
    size = tuple(-(-side // denominator) for side in opened.size)
    opened.tile = [opened.tile[0]._replace(extents=(0, 0, *size))]
    opened._size = size
    opened.decoderconfig = (denominator, 0)
    return opened.convert("RGB")


told = {}
for path in sorted(HERE.glob("*.jpg")):
    with Image.open(path) as opened:
        rgb = opened.convert("RGB")
    told[path.stem] = {"size": list(rgb.size), "crc32": zlib.crc32(rgb.tobytes()), "scaled": {}}
    for denominator in (2, 4, 8):
        with Image.open(path) as opened:
            told[path.stem]["scaled"][denominator] = zlib.crc32(drafted(opened, denominator).tobytes())
lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in told.items())
(HERE / "pillow.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
