"""The job, and what every peer does of it in the same way.

Each peer is a program of its own, `PEER.py FOLDER MODEL OUT --threads N --processes N --batch N [--draft]`: every JPEG of the
folder, in order of names → shorter side 256, middle 224 × 224 → MODEL → a line `{"uri", "labels": [{"index", "score"} × 5]}`.
Lines are flushed when a batch of them is done. How files are read, decoded and batched is the peer's own affair; what stands
here is the arithmetic, so that all compute the same.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image

# ImageNet's mean and standard deviation, for bytes.
MEAN = np.array([0.485, 0.456, 0.406], np.float32) * 255
STD = np.array([0.229, 0.224, 0.225], np.float32) * 255


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("model", type=Path, help="an .onnx file; torch takes the .pt beside it")
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--draft", action="store_true", help="decode JPEGs at a half, a quarter or an eighth, where that suffices")
    return parser.parse_args()


def paths(folder):
    return sorted(str(path) for path in folder.glob("*.jpg"))


def pixels(path, draft=False):
    """u8 [224, 224, 3], as torchvision's `Resize(256)` and `CenterCrop(224)` on Pillow make it, in one pass over the picture."""
    image = Image.open(path)
    if draft:
        # Pillow's own rule: twice the wanted size is left.
        image.draft("RGB", (512, 512))
    image = image.convert("RGB")
    width, height = image.size
    scale = 256 / min(width, height)
    size = (256, int(height * scale)) if width <= height else (int(width * scale), 256)
    image = image.resize(size, Image.Resampling.BILINEAR)
    left, top = round((size[0] - 224) / 2), round((size[1] - 224) / 2)
    return np.asarray(image.crop((left, top, left + 224, top + 224)))


def normalised(picture):
    """f32 [3, 224, 224] of u8 [224, 224, 3]."""
    return np.ascontiguousarray(((picture - MEAN) / STD).transpose(2, 0, 1))


def tensor(path, draft=False):
    return normalised(pixels(path, draft))


def session(model, threads):
    """An ONNX Runtime session whose threads do not spin while they wait: they would take the cores from decoding."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def infer(session, tensors):
    return session.run(None, {"input": tensors})[0]


def line(path, logits):
    """The five best classes with their softmax, or all where there are fewer."""
    scores = np.exp(logits - logits.max())
    scores /= scores.sum()
    best = np.argsort(-scores, kind="stable")[:5]
    labels = [{"index": int(index), "score": round(float(scores[index]), 7)} for index in best]
    return json.dumps({"uri": path, "labels": labels}) + "\n"


def batched(items, size):
    return [items[start : start + size] for start in range(0, len(items), size)]


def put(out, names, logits):
    out.writelines(line(name, row) for name, row in zip(names, logits))
    out.flush()
