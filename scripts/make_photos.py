#!/usr/bin/env python3
"""Makes `pipelines/photos/` from scikit-image's sample pictures. Needs Pillow (13.0.0 made the committed files).

Four are copied as they are; the two large ones are encoded again as JPEG of quality 92. Where each comes from and under
which licence is in `pipelines/photos/LICENSES.md`.
"""

import io
from pathlib import Path

from PIL import Image
from pypi import Wheel, extract

SCIKIT_IMAGE = Wheel(
    "scikit-image", "0.26.0", "scikit_image-0.26.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
    "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af",
    ("--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"),
)
FOLDER = Path(__file__).parent.parent / "pipelines/photos"
AS_IS = ["camera.png", "chelsea.png", "coffee.png", "rocket.jpg"]
ENCODED = {"astronaut.png": "astronaut.jpg", "hubble_deep_field.jpg": "hubble_deep_field.jpg"}


def take(archive):
    photos = {FOLDER / name: archive.read(f"skimage/data/{name}") for name in AS_IS}
    for source, target in ENCODED.items():
        encoded = io.BytesIO()
        with Image.open(io.BytesIO(archive.read(f"skimage/data/{source}"))) as picture:
            picture.convert("RGB").save(encoded, "JPEG", quality=92, optimize=True)
        photos[FOLDER / target] = encoded.getvalue()
    return photos


if __name__ == "__main__":
    extract(SCIKIT_IMAGE, take)
    print(f"{FOLDER}: {sum(file.stat().st_size for file in FOLDER.iterdir()):,} bytes")
