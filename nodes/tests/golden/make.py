"""Writes the golden outputs beside this file: what torchvision, timm and transformers compute from made-up weights.

    python -m venv v && v/bin/pip install torch==2.15.0 torchvision==0.29.2 timm==1.0.31 transformers==5.24.0
    v/bin/python make.py

The weights are the closed formula of `nodes/src/models/random.rs` with seed 0, written here a second time and applied
to the names under which each library saves its tensors. Networks run in float64, so that the outputs carry no
rounding of their own. The file of an architecture and a naming scheme also lists the library's names and shapes.
"""

import json
import math
import pathlib
import tempfile

import numpy as np
import timm
import torch
import torchvision.models as tv
import transformers
from safetensors import safe_open
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
MASK = (1 << 64) - 1


def mix_one(bits):
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def mix(bits):
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def values(name, shape, seed=0):
    if name.endswith("running_var"):
        offset, amplitude = 1.0, 0.5
    elif name.endswith("running_mean") or name.endswith("bias"):
        offset, amplitude = 0.0, 0.1
    elif len(shape) < 2:
        offset, amplitude = 0.8, 0.2
    elif shape[0] == 1:
        offset, amplitude = 0.0, 0.5
    else:
        offset, amplitude = 0.0, math.sqrt(6.0 / math.prod(shape[1:]))
    start = 0xCBF29CE484222325
    for byte in name.encode():
        start = ((start ^ byte) * 0x100000001B3) & MASK
    start ^= mix_one(seed)
    steps = np.arange(math.prod(shape), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    unit = (mix(steps + np.uint64(start)) >> np.uint64(40)).astype(np.float64) / 2**23 - 1.0
    return torch.from_numpy((offset + amplitude * unit).astype(np.float32).reshape(shape))


def fill(shapes):
    return {
        name: torch.tensor(0) if name.endswith("num_batches_tracked") else values(name, shape)
        for name, shape in shapes.items()
    }


def from_module(make, features):
    """torchvision and timm: the names of `state_dict`; `features` gives the pooled vector."""
    model = make()
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    model.load_state_dict(fill(shapes))
    model = model.double().eval()
    return shapes, lambda x: (model(x), features(model, x))


def from_folder(config, cls, features):
    """transformers: the names in the folder that it saves, which are not always those in memory."""
    with tempfile.TemporaryDirectory() as folder:
        cls(config).save_pretrained(folder)
        path = pathlib.Path(folder) / "model.safetensors"
        with safe_open(path, "pt") as file:
            shapes = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}
        save_file(fill(shapes), path, metadata={"format": "pt"})
        model = cls.from_pretrained(folder).double().eval()
    return shapes, lambda x: (model(x).logits, features(model, x))


def tv_mobilenet(model, x):
    return model.features(x).mean((2, 3))


def tv_resnet(model, x):
    model.fc, fc = torch.nn.Identity(), model.fc
    out = model(x)
    model.fc = fc
    return out


def tv_vit(model, x):
    model.heads, heads = torch.nn.Identity(), model.heads
    out = model(x)
    model.heads = heads
    return out


def timm_pooled(model, x):
    return model.forward_head(model.forward_features(x), pre_logits=True)


def hf_resnet_config(layer_type, depths, sizes):
    return transformers.ResNetConfig(
        layer_type=layer_type, depths=depths, hidden_sizes=sizes, embedding_size=64, num_labels=10
    )


def hf_resnet(config):
    return lambda: from_folder(
        config, transformers.ResNetForImageClassification, lambda model, x: model.resnet(x).pooler_output.flatten(1)
    )


def hf_vit():
    # The other two libraries have 1e-6 here, and so had the training of the published weights.
    config = transformers.ViTConfig(num_labels=10, layer_norm_eps=1e-6)
    return from_folder(
        config, transformers.ViTForImageClassification, lambda model, x: model.vit(x).last_hidden_state[:, 0]
    )


def timm_model(name):
    return lambda: from_module(lambda: timm.create_model(name, pretrained=False), timm_pooled)


MODELS = {
    ("efficientnet_lite0", "timm"): timm_model("tf_efficientnet_lite0"),
    ("mobilenet_v2", "torchvision"): lambda: from_module(tv.mobilenet_v2, tv_mobilenet),
    ("mobilenet_v2", "timm"): timm_model("mobilenetv2_100"),
    ("resnet18", "torchvision"): lambda: from_module(tv.resnet18, tv_resnet),
    ("resnet18", "timm"): timm_model("resnet18"),
    ("resnet18", "huggingface"): hf_resnet(hf_resnet_config("basic", [2, 2, 2, 2], [64, 128, 256, 512])),
    ("resnet50", "torchvision"): lambda: from_module(tv.resnet50, tv_resnet),
    ("resnet50", "timm"): timm_model("resnet50"),
    ("resnet50", "huggingface"): hf_resnet(hf_resnet_config("bottleneck", [3, 4, 6, 3], [256, 512, 1024, 2048])),
    ("vit_base_patch16_224", "timm"): timm_model("vit_base_patch16_224"),
    ("vit_base_patch16_224", "huggingface"): hf_vit,
    ("vit_base_patch16_224", "torchvision"): lambda: from_module(tv.vit_b_16, tv_vit),
}


def sin_input(height, width):
    n = np.arange(3 * height * width, dtype=np.float64)
    return torch.from_numpy(np.sin(0.01 * n).astype(np.float32)).double().reshape(1, 3, height, width)


def summary(row):
    row = row.flatten()
    step = 37 if len(row) > 100 else 1
    return {
        "n": len(row),
        "argmax": int(row.argmax()),
        "sum": float(row.sum()),
        "abs_max": float(row.abs().max()),
        "step": step,
        "values": [round(float(value), 7) for value in row[::step]],
    }


def write(name, golden):
    """One tensor, or one list of numbers, a line."""
    lines = []
    for line in json.dumps(golden, indent=1).splitlines():
        is_item = not line.lstrip().startswith(('"', "{", "}", "["))
        if lines and (line.strip() in ("]", "],") or lines[-1].endswith("[") or is_item):
            lines[-1] += (" " if lines[-1].endswith(",") else "") + line.strip()
        else:
            lines.append(line)
    text = "\n".join(lines) + "\n"
    assert json.loads(text) == golden
    (HERE / name).write_text(text)


def main():
    torch.manual_seed(0)
    for (arch, scheme), make in MODELS.items():
        shapes, run = make()
        sizes = [(224, 224)] if arch.startswith("vit") else [(224, 224), (96, 128)]
        outputs = []
        for height, width in sizes:
            with torch.no_grad():
                logits, features = run(sin_input(height, width))
            outputs.append({"input": [height, width], "logits": summary(logits), "features": summary(features)})
            print(
                f"{arch:22} {scheme:12} {height}x{width} logits std {logits.std():.3f} max {logits.abs().max():.3f}"
                f" features std {features.std():.3f} zeros {(features == 0).double().mean():.2f}"
            )
        versions = {"torch": torch.__version__, "torchvision": tv.__package__ and __import__("torchvision").__version__}
        versions |= {"timm": timm.__version__, "transformers": transformers.__version__}
        golden = {"arch": arch, "scheme": scheme, "versions": versions, "outputs": outputs, "shapes": shapes}
        write(f"{arch}.{scheme}.json", golden)


if __name__ == "__main__":
    main()
