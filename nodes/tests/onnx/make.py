"""Makes the files that the tests of ONNX run and read.

    make.py FOLDER MOBILENET_V2.safetensors PP_OCR_REC.onnx

`mobilenet_v2.onnx` is torchvision's network with these weights, built node by node; `half.onnx` the same that takes and gives half
precision; `apart.onnx` the same with its weights in a file beside it. `line.rgb` is a drawn line of text of 320×48 pixels,
`line-192.rgb` the same at 192×48, `turned-192.rgb` turned by half. `characters.json` are those of the OCR model.
"""

import json
import sys
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageDraw, ImageFont
from safetensors.numpy import load_file

# Expansion, channels, repetitions, stride of each group of blocks: table 2 of the paper (arXiv 1801.04381).
GROUPS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


class Builder:
    def __init__(self, weights, dtype):
        self.weights, self.dtype = weights, dtype
        self.nodes, self.stored, self.last, self.count = [], {}, "input", 0
        self.store("zero", numpy.array(0.0))
        self.store("six", numpy.array(6.0))

    def store(self, name, values):
        if name not in self.stored:
            self.stored[name] = numpy_helper.from_array(numpy.ascontiguousarray(values.astype(self.dtype)), name)
        return name

    def push(self, operator, *inputs, **attributes):
        self.count += 1
        out = f"v{self.count}"
        self.nodes.append(helper.make_node(operator, [self.last, *inputs], [out], **attributes))
        self.last = out
        return out

    def conv(self, name, stride=1, groups=1):
        weight = self.weights[f"{name}.weight"]
        side = weight.shape[2]
        pad = side // 2
        self.push("Conv", self.store(f"{name}.weight", weight), strides=[stride] * 2, pads=[pad] * 4,
                  kernel_shape=[side] * 2, group=groups)

    def norm(self, name):
        figures = [self.store(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in ("weight", "bias", "running_mean", "running_var")]
        self.push("BatchNormalization", *figures, epsilon=1e-5)

    def clip(self):
        self.push("Clip", "zero", "six")

    def block(self, name, expand, inside, stride, is_residual):
        start, at = self.last, 0
        if expand:
            self.conv(f"{name}.conv.0.0")
            self.norm(f"{name}.conv.0.1")
            self.clip()
            at = 1
        self.conv(f"{name}.conv.{at}.0", stride, inside)
        self.norm(f"{name}.conv.{at}.1")
        self.clip()
        self.conv(f"{name}.conv.{at + 1}")
        self.norm(f"{name}.conv.{at + 2}")
        if is_residual:
            self.push("Add", start)


def mobilenet(weights, dtype, element):
    build = Builder(weights, dtype)
    build.conv("features.0.0", 2)
    build.norm("features.0.1")
    build.clip()
    channels, number = 32, 0
    for expansion, out, repeat, stride in GROUPS:
        for index in range(repeat):
            number += 1
            build.block(f"features.{number}", expansion > 1, channels * expansion, stride if index == 0 else 1,
                        index > 0 or (stride == 1 and channels == out))
            channels = out
    build.conv("features.18.0")
    build.norm("features.18.1")
    build.clip()
    build.push("GlobalAveragePool")
    build.push("Flatten")
    classifier = [build.store(f"classifier.1.{part}", weights[f"classifier.1.{part}"]) for part in ("weight", "bias")]
    build.push("Gemm", *classifier, transB=1)
    build.nodes[-1].output[0] = "logits"
    shapes = [helper.make_tensor_value_info("input", element, ["N", 3, 224, 224]),
              helper.make_tensor_value_info("logits", element, ["N", 1000])]
    graph = helper.make_graph(build.nodes, "mobilenet_v2", shapes[:1], shapes[1:], list(build.stored.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def line(size):
    """A line of text that fills most of a white picture."""
    image = Image.new("RGB", (320, 48), "white")
    ImageDraw.Draw(image).text((160, 24), "Hello GPU 2026", fill="black", font=ImageFont.load_default(36), anchor="mm")
    return image.resize(size, Image.Resampling.BILINEAR)


def main():
    folder = Path(sys.argv[1])
    weights = load_file(sys.argv[2])
    plain = mobilenet(weights, numpy.float32, TensorProto.FLOAT)
    onnx.save(plain, folder / "mobilenet_v2.onnx")
    onnx.save(mobilenet(weights, numpy.float16, TensorProto.FLOAT16), folder / "half.onnx")
    onnx.save(plain, folder / "apart.onnx", save_as_external_data=True, location="apart.onnx.data", size_threshold=1024)
    (folder / "line.rgb").write_bytes(line((320, 48)).tobytes())
    (folder / "line-192.rgb").write_bytes(line((192, 48)).tobytes())
    (folder / "turned-192.rgb").write_bytes(line((192, 48)).transpose(Image.Transpose.ROTATE_180).tobytes())
    metadata = {entry.key: entry.value for entry in onnx.load(sys.argv[3]).metadata_props}
    (folder / "characters.json").write_text(json.dumps(metadata["character"].splitlines()))


main()
