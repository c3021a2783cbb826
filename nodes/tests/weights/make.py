#!/usr/bin/env python3
"""Makes the weight files beside this script. Needs torch and safetensors (2.15.0 and 0.8.0 made the committed ones).

All hold the same state dict, whose values follow a formula that `weight_files.rs` computes for itself: element i of a
tensor with seed s is ((37 s + 13 i) mod 101 − 50) / 16, exact in every float type here.
"""

import json
from collections import OrderedDict
from pathlib import Path

import torch
from safetensors.torch import save_file

HERE = Path(__file__).parent


def formula(seed, shape, dtype=torch.float32):
    n_elements = torch.Size(shape).numel()
    values = [((37 * seed + 13 * i) % 101 - 50) / 16 for i in range(n_elements)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).to(dtype)


def integers(seed, shape, dtype):
    n_elements = torch.Size(shape).numel()
    return torch.tensor([(37 * seed + 13 * i) % 101 for i in range(n_elements)]).reshape(shape).to(dtype)


def state_dict():
    tensors = OrderedDict()
    # Strided, as a convolution in channels_last is.
    tensors["conv.weight"] = formula(1, (4, 3, 3, 2)).contiguous(memory_format=torch.channels_last)
    tensors["fc.weight"] = formula(2, (5, 8))
    tensors["fc.bias"] = formula(3, (5,))
    # Shared storages: the same tensor twice, rows 1 and 2 of it, its transpose, every other column.
    tensors["tied.weight"] = tensors["fc.weight"]
    tensors["rows.weight"] = tensors["fc.weight"][1:3]
    tensors["transposed.weight"] = tensors["fc.weight"].t()
    tensors["columns.weight"] = tensors["fc.weight"][:, 1::2]
    tensors["repeated.weight"] = formula(4, (3, 1)).expand(3, 4)
    tensors["half.weight"] = formula(5, (3, 7), torch.float16)
    tensors["bfloat.weight"] = formula(6, (2, 2, 2), torch.bfloat16)
    tensors["double.weight"] = formula(7, (3,), torch.float64)
    tensors["scale"] = formula(8, ())
    tensors["none.weight"] = formula(9, (0, 4))
    tensors["bn.num_batches_tracked"] = integers(10, (), torch.int64)
    tensors["position_ids"] = integers(11, (1, 6), torch.int32)
    tensors["short"] = integers(12, (3,), torch.int16)
    tensors["signed"] = integers(13, (3,), torch.int8) - 50
    tensors["bytes"] = integers(14, (3,), torch.uint8)
    tensors["mask"] = torch.tensor([True, False, True])
    # What a module's state dict carries beside its tensors.
    tensors._metadata = OrderedDict([("", {"version": 1})])
    return tensors


def main():
    tensors = state_dict()
    torch.save(tensors, HERE / "zip.pth")
    torch.save(tensors, HERE / "zip_protocol4.pth", pickle_protocol=4)
    torch.save(tensors, HERE / "legacy.pth", _use_new_zipfile_serialization=False)

    parameters = OrderedDict((name, torch.nn.Parameter(tensor, requires_grad=tensor.is_floating_point())) for name, tensor in tensors.items())
    parallel = OrderedDict((f"module.{name}", tensor) for name, tensor in parameters.items())
    checkpoint = {"epoch": 7, "arch": "tiny", "best": 0.5, "optimizer": {"state": {}, "lr": [0.1]}, "state_dict": parallel}
    torch.save(checkpoint, HERE / "checkpoint.pth")

    own = OrderedDict((name, tensor.clone(memory_format=torch.contiguous_format)) for name, tensor in tensors.items())
    save_file(own, HERE / "weights.safetensors", metadata={"format": "pt"})

    folder = HERE / "sharded"
    folder.mkdir(exist_ok=True)
    names = list(own)
    shards = {"model-00001-of-00002.safetensors": names[:9], "model-00002-of-00002.safetensors": names[9:]}
    for file, members in shards.items():
        save_file({name: own[name] for name in members}, folder / file, metadata={"format": "pt"})
    weight_map = {name: file for file, members in shards.items() for name in members}
    size = sum(tensor.numel() * tensor.element_size() for tensor in own.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")

    # Refused by name, never run: each would create a file called PWNED.
    class Runs:
        def __init__(self, function, *arguments):
            self.call = function, arguments

        def __reduce__(self):
            return self.call

    import os
    torch.save(Runs(os.system, "touch PWNED"), HERE / "malicious_zip.pth")
    torch.save(Runs(os.system, "touch PWNED"), HERE / "malicious_legacy.pth", _use_new_zipfile_serialization=False)
    nested = OrderedDict(tensors)
    nested["extra"] = Runs(eval, "open('PWNED', 'w')")
    torch.save(nested, HERE / "malicious_nested.pth")
    torch.save(torch.nn.Linear(2, 2), HERE / "whole_module.pth")


if __name__ == "__main__":
    main()
