"""Writes the golden features of CLIP, SigLIP and DINOv2 beside this file, as `make.py` writes those of the others.

    python -m venv v && v/bin/pip install torch==2.15.0 torchvision==0.29.2 timm==1.0.31 transformers==5.24.0
    v/bin/python make_embedders.py [PART OF A NAME]

Each file has the `config.json` that transformers wrote, the names and shapes of its weights, and what its class computes:
`image_embeds` of CLIP where it has a projection, else `pooler_output`. Networks run in float64. Text models are as
small as they can be, since nothing reads them.
"""

import json
import pathlib
import sys
import tempfile

import torch
import transformers as tf
from safetensors import safe_open
from safetensors.torch import save_file

from make import fill, sin_input, summary, write

TEXT = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 8}
TEXT |= {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
# Real models have hundreds of numbers where these have tens.
TINY = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
SMALL = TINY | {"intermediate_size": 80}


def image_features(model, x):
    return model.get_image_features(x).pooler_output


def image_embeds(model, x):
    return model(x).image_embeds


def pooled(model, x):
    return model(x).pooler_output


def clip(**vision):
    config = tf.CLIPConfig(text_config=TEXT, vision_config=vision, projection_dim=vision.pop("projected"))
    return tf.CLIPModel, config, image_features


def siglip(**vision):
    return tf.SiglipModel, tf.SiglipConfig(text_config=TEXT, vision_config=vision), image_features


MODELS = {
    "clip.base_patch32": (lambda: clip(projected=512), [(224, 224)]),
    "clip.tiny": (lambda: clip(**SMALL, image_size=56, patch_size=14, projected=20), [(56, 56)]),
    # Pixels behind the last whole patch are not read.
    "clip.tiny_gelu": (
        lambda: clip(**SMALL, image_size=50, patch_size=16, hidden_act="gelu", layer_norm_eps=1e-3, projected=20),
        [(50, 50)],
    ),
    "clip.tiny_vision": (
        lambda: (tf.CLIPVisionModel, tf.CLIPVisionConfig(**SMALL, image_size=56, patch_size=14), pooled),
        [(56, 56)],
    ),
    "clip.tiny_vision_with_projection": (
        lambda: (
            tf.CLIPVisionModelWithProjection,
            tf.CLIPVisionConfig(**SMALL, image_size=56, patch_size=14, projection_dim=20),
            image_embeds,
        ),
        [(56, 56)],
    ),
    "siglip.base_patch16_224": (lambda: siglip(), [(224, 224)]),
    "siglip.tiny": (lambda: siglip(**SMALL, image_size=58, patch_size=14), [(58, 58)]),
    "siglip.tiny_vision": (
        lambda: (tf.SiglipVisionModel, tf.SiglipVisionConfig(**SMALL, image_size=56, patch_size=14), pooled),
        [(56, 56)],
    ),
    "dinov2.small": (
        lambda: (
            tf.Dinov2Model,
            tf.Dinov2Config(hidden_size=384, num_attention_heads=6, image_size=518, patch_size=14),
            pooled,
        ),
        [(224, 224)],
    ),
    "dinov2.tiny": (
        lambda: (tf.Dinov2Model, tf.Dinov2Config(**TINY, image_size=84, patch_size=14), pooled),
        [(84, 84), (56, 56), (126, 99), (14, 140), (91, 84)],
    ),
    "dinov2.tiny_swiglu": (
        lambda: (tf.Dinov2Model, tf.Dinov2Config(**TINY, image_size=56, patch_size=14, use_swiglu_ffn=True), pooled),
        [(56, 56), (42, 70)],
    ),
    "dinov2.tiny_registers": (
        lambda: (
            tf.Dinov2WithRegistersModel,
            tf.Dinov2WithRegistersConfig(**TINY, image_size=84, patch_size=14, num_register_tokens=3),
            pooled,
        ),
        [(84, 84), (56, 56), (126, 99), (14, 140)],
    ),
}


def make(name):
    cls, config, features = MODELS[name][0]()
    with tempfile.TemporaryDirectory() as folder:
        cls(config).save_pretrained(folder)
        written = json.loads((pathlib.Path(folder) / "config.json").read_text())
        path = pathlib.Path(folder) / "model.safetensors"
        with safe_open(path, "pt") as file:
            shapes = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}
        save_file(fill(shapes), path, metadata={"format": "pt"})
        model = cls.from_pretrained(folder).double().eval()
    outputs = []
    for height, width in MODELS[name][1]:
        with torch.no_grad():
            row = features(model, sin_input(height, width))
        outputs.append({"input": [height, width], "features": summary(row)})
        print(f"{name:32} {height}x{width} n {row.numel()} std {row.std():.3f} max {row.abs().max():.3f}")
    versions = {"torch": torch.__version__, "transformers": tf.__version__}
    golden = {"class": cls.__name__, "versions": versions, "outputs": outputs, "config": written, "shapes": shapes}
    write(f"{name}.json", golden)


def main():
    torch.manual_seed(0)
    for name in MODELS:
        if all(part in name for part in sys.argv[1:]):
            make(name)


if __name__ == "__main__":
    main()
