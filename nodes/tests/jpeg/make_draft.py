"""Makes `draft-301x237.jpg` and `draft.json`: what Pillow 13.0.0's `draft` and `resize` make of it, turned in all ways.

    python -m venv venv && venv/bin/pip install pillow==13.0.0 && venv/bin/python make_draft.py
"""

import io
import json
import math
import zlib
from pathlib import Path

import PIL
from PIL import Image, ImageOps

assert PIL.__version__ == "13.0.0", PIL.__version__
HERE = Path(__file__).parent


def picture(width, height):
    """Waves that become finer from left to right, and an edge."""
    image = Image.new("RGB", (width, height))
    put = image.load()
    for y in range(height):
        for x in range(width):
            wave = math.sin(x * x / 400 + y / 5)
            put[x, y] = (int(128 + 100 * wave), int(128 + 90 * math.cos(y / 9)), 230 if x + y > 260 else 40)
    return image


def with_orientation(data, value):
    tag = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0" + bytes([value]) + b"\0\0\0\0\0\0"
    return data[:2] + b"\xff\xe1" + (len(tag) + 2).to_bytes(2, "big") + tag + data[2:]


def reduced(data, size, resample):
    """Upright and resized as `thumbnail` does it: by `draft` to at least twice the size, and a box that ends where the picture
    does. The picture is turned in between, and the box with it."""
    with Image.open(io.BytesIO(data)) as opened:
        stored = opened.size
        turned = opened.getexif().get(274, 1)
        wanted = size if turned < 5 else size[::-1]
        opened.draft("RGB", tuple(2 * side for side in wanted))
        denominator = round(stored[0] / opened.size[0])
        width, height = opened.size
        left, top, right, bottom = 0, 0, stored[0] / denominator, stored[1] / denominator
        if turned in (2, 3, 7, 8):
            left, right = width - right, width
        if turned in (3, 4, 6, 7):
            top, bottom = height - bottom, height
        box = (left, top, right, bottom) if turned < 5 else (top, left, bottom, right)
        upright = ImageOps.exif_transpose(opened).convert("RGB")
        return denominator, upright.resize(size, resample, box)


# Sides that no denominator divides.
out = io.BytesIO()
picture(301, 237).save(out, "jpeg", quality=80)
plain = out.getvalue()
(HERE / "draft-301x237.jpg").write_bytes(plain)
cases = []
for turned in range(1, 9):
    for size in [(151, 118), (150, 118), (75, 59), (74, 58), (37, 29), (18, 14), (5, 7)]:
        size = size if turned < 5 else size[::-1]
        for name, resample in [("bilinear", 2), ("bicubic", 3), ("nearest", 0)]:
            denominator, image = reduced(with_orientation(plain, turned), size, resample)
            told = {"orientation": turned, "size": size, "interpolation": name, "denominator": denominator}
            cases.append({**told, "crc32": zlib.crc32(image.tobytes())})
assert {case["denominator"] for case in cases} == {1, 2, 4, 8}
(HERE / "draft.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
