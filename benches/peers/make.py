"""Makes what is missing of the photographs and models of the comparison: make.py FOLDER ASSETS N_PHOTOGRAPHS

FOLDER/photographs: N JPEGs of about 500×375, distinct parts of the photographs in `pipelines/photos` and ASSETS/imagenet20.
FOLDER/large: 30 JPEGs of 4000×3000: enlarged parts with a camera's noise.
FOLDER/NAME.onnx, .pt (TorchScript, frozen) and .pth (weights) for three models: `mobilenet_v2` (torchvision's weights),
`resnet50` (random ones of one seed), `trivial` (mean colour → ten classes, random).
"""

import random
import sys
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent.parent
N_LARGE = 30


def part(picture, dice, size):
    """A part of a picture in the shape of `size`, at that size."""
    width, height = picture.size
    scale = dice.uniform(0.6, 1.0) * min(width / size[0], height / size[1])
    w, h = size[0] * scale, size[1] * scale
    left, top = dice.uniform(0, width - w), dice.uniform(0, height - h)
    return picture.resize(size, Image.Resampling.LANCZOS, box=(left, top, left + w, top + h))


def photographs(folder, assets, n):
    dice = random.Random(1)
    found = sorted([*(ROOT / "pipelines/photos").glob("*.[jp][pn]g"), *(assets / "imagenet20").glob("*.jpg")])
    pictures = [Image.open(path).convert("RGB") for path in found]
    small = folder / "photographs"
    small.mkdir(parents=True, exist_ok=True)
    for number in range(n):
        size = dice.choice([(500, 375), (500, 375), (500, 333), (375, 500)])
        if not (path := small / f"{number:05}.jpg").exists():
            part(pictures[number % len(pictures)], random.Random(number), size).save(path, quality=90)
    large = folder / "large"
    large.mkdir(exist_ok=True)
    for number in range(N_LARGE):
        if not (path := large / f"{number:02}.jpg").exists():
            picture = np.asarray(part(pictures[number % len(pictures)], random.Random(number), (4000, 3000)), np.float32)
            noise = np.random.default_rng(number).standard_normal(picture.shape, np.float32) * 3
            Image.fromarray(np.clip(picture + noise, 0, 255).astype(np.uint8)).save(path, quality=90)


def network(name, assets):
    import torch
    import torchvision

    class Trivial(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.classifier = torch.nn.Linear(3, 10)

        def forward(self, images):
            return self.classifier(images.mean((2, 3)))

    torch.manual_seed(0)
    if name == "trivial":
        return Trivial().eval()
    made = getattr(torchvision.models, name)()
    if name == "mobilenet_v2":
        made.load_state_dict(torch.load(assets / "mobilenet_v2-b0353104.pth", weights_only=True))
    return made.eval()


def models(folder, assets):
    import torch

    for name in ["mobilenet_v2", "resnet50", "trivial"]:
        if (last := folder / f"{name}.onnx").exists():
            continue
        made, example = network(name, assets), torch.zeros(2, 3, 224, 224)
        torch.save(made.state_dict(), folder / f"{name}.pth")
        with torch.inference_mode():
            frozen = torch.jit.freeze(torch.jit.trace(made.to(memory_format=torch.channels_last), example))
        torch.jit.save(frozen, folder / f"{name}.pt")
        torch.onnx.export(
            network(name, assets), (example,), last, input_names=["input"], output_names=["logits"], dynamo=False,
            dynamic_axes={"input": {0: "n"}, "logits": {0: "n"}}, opset_version=17,
        )


if __name__ == "__main__":
    folder, assets, n = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    photographs(folder, assets, n)
    models(folder, assets)
