"""Makes `golden.json`: what torchvision, transformers and timm make of pictures, as check sums of the bytes.

    python -m venv v && v/bin/pip install torch==2.15.0 torchvision==0.29.2 timm==1.0.31 transformers==5.24.0 pillow==13.0.0
    v/bin/python nodes/tests/preprocess/make.py

All of them run on Pillow's pixels: torchvision's functions on Pillow's images, transformers' image processors with their Pillow
backend, timm's evaluation transforms. Pictures are lossless, so that no decoder's rounding comes in between.
"""

import json
import zlib
from pathlib import Path

import numpy as np
import PIL
import timm
import torch
import torchvision
import transformers
from PIL import Image, ImageOps
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

ROOT = Path(__file__).resolve().parents[3]
PHOTOS = ["pipelines/photos/chelsea.png", "pipelines/photos/coffee.png", "pipelines/photos/camera.png"]
SMALL = [f"nodes/tests/images/given/{name}.png" for name in ["png-2-8", "png-1x30", "png-30x1", "png-3x2", "exif-6"]]

# Ours → Pillow's number.
FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3, "lanczos": 1, "box": 4, "hamming": 5}


def picture(name):
    with Image.open(ROOT / name) as opened:
        return ImageOps.exif_transpose(opened).convert("RGB")


def summed(image):
    """Size and check sum of a Pillow image, or of an array in either order of axes."""
    array = np.asarray(image)
    if array.shape[-1] != 3:
        array = array.transpose(1, 2, 0)
    assert array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] == 3, (array.dtype, array.shape)
    height, width = array.shape[:2]
    return {"size": [width, height], "crc32": zlib.crc32(np.ascontiguousarray(array).tobytes())}


def torchvision_cases():
    resizes = [
        (None, {}),
        (24, {"size": [24]}),
        (256, {"size": [256]}),
        (343, {"size": [343]}),
        ([97, 61], {"size": [61, 97]}),
        ({"longer": 130}, {"size": None, "max_size": 130}),
        ({"shorter": 120, "longer": 160}, {"size": [120], "max_size": 160}),
        ({"shorter": 20, "longer": 23}, {"size": [20], "max_size": 23}),
    ]
    crops = [None, 224, 23, [40, 75], [301, 18]]
    for name in PHOTOS + SMALL:
        for interpolation, number in FILTERS.items():
            # Filters differ in nothing but weights: two of them meet every size, the others a few.
            thorough = interpolation in ("bilinear", "bicubic")
            for resize, arguments in resizes if thorough else resizes[1:5]:
                for crop in crops if thorough else crops[:2]:
                    image = picture(name)
                    mode = {0: InterpolationMode.NEAREST_EXACT, 2: InterpolationMode.BILINEAR, 3: InterpolationMode.BICUBIC,
                            1: InterpolationMode.LANCZOS, 4: InterpolationMode.BOX, 5: InterpolationMode.HAMMING}[number]
                    try:
                        if resize is not None:
                            image = F.resize(image, interpolation=mode, antialias=True, **arguments)
                        if crop is not None:
                            image = F.center_crop(image, crop if isinstance(crop, int) else crop[::-1])
                    except ValueError as error:
                        # A side of no pixels.
                        assert "must be > 0" in str(error), error
                        continue
                    options = {"resize": resize, "crop": crop, "interpolation": interpolation}
                    options = {key: value for key, value in options.items() if value is not None}
                    yield {"picture": name, "options": options, **summed(image)}


def letterbox(image, size, fill=(114, 114, 114), anchor="center", upscale=True, interpolation="bilinear"):
    """The formula of Ultralytics' LetterBox(auto=False, scale_fill=False), on Pillow's resize."""
    width, height = image.size
    ratio = min(size[1] / height, size[0] / width)
    if not upscale:
        ratio = min(ratio, 1.0)
    new = int(round(width * ratio)), int(round(height * ratio))
    dw, dh = size[0] - new[0], size[1] - new[1]
    if anchor == "center":
        dw, dh = dw / 2, dh / 2
        left, top = int(round(dw - 0.1)), int(round(dh - 0.1))
    else:
        left, top = 0, 0
    framed = Image.new("RGB", tuple(size), tuple(fill))
    if image.size != new:
        image = image.resize(new, FILTERS[interpolation])
    framed.paste(image, (left, top))
    return framed, {"scale": ratio, "pad": [left, top]}


def letterbox_cases():
    for name in PHOTOS + SMALL:
        for options in [
            {"size": [640, 640]},
            {"size": [417, 256]},
            {"size": [300, 451], "fill": [0, 7, 255]},
            {"size": [512, 512], "upscale": False},
            {"size": [96, 64], "anchor": "top_left"},
        ]:
            for interpolation in ("bilinear", "bicubic"):
                image, fit = letterbox(picture(name), **options, interpolation=interpolation)
                shown = {"letterbox": options, "interpolation": interpolation}
                yield {"picture": name, "options": shown, **fit, **summed(image)}


# (class, what a `preprocessor_config.json` says beside it)
PROCESSORS = [
    ("ViT", {}),
    ("ViT", {"size": 97}),
    ("ViT", {"size": {"height": 98, "width": 61}, "resample": 4}),
    ("ViT", {"size": {"shortest_edge": 99}, "resample": 5}),
    ("ViT", {"size": {"shortest_edge": 120, "longest_edge": 150}}),
    ("ViT", {"size": {"shortest_edge": 31, "longest_edge": 33}, "do_center_crop": True, "crop_size": 30}),
    ("ViT", {"do_resize": False, "do_center_crop": True, "crop_size": 225}),
    ("ViT", {"do_resize": False, "do_center_crop": True, "crop_size": {"height": 40, "width": 301}}),
    ("ViT", {"do_rescale": False, "do_normalize": False}),
    ("ViT", {"rescale_factor": 1 / 127.5, "image_mean": [1, 1, 1], "image_std": [1, 0.5, 2]}),
    ("DeiT", {}),
    ("DeiT", {"size": 248, "crop_size": 223}),
    ("Beit", {}),
    ("Beit", {"do_center_crop": True}),
    ("Pvt", {}),
    ("Blip", {}),
    ("Siglip", {}),
    ("Siglip", {"size": 90}),
    ("CLIP", {}),
    ("CLIP", {"size": 336, "crop_size": 336}),
    ("CLIP", {"size": {"shortest_edge": 225}, "crop_size": {"height": 224, "width": 201}, "resample": 1}),
    ("ChineseCLIP", {}),
    ("Bit", {}),
    # DINOv2's.
    ("Bit", {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224},
             "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}),
    ("ConvNext", {}),
    ("ConvNext", {"size": {"shortest_edge": 224}, "crop_pct": 0.875}),
    ("ConvNext", {"size": 225, "crop_pct": 0.95, "resample": 2}),
    ("EfficientNet", {}),
    ("EfficientNet", {"include_top": False, "rescale_offset": True, "rescale_factor": 1 / 127.5, "resample": 0}),
    ("EfficientNet", {"do_normalize": False, "do_center_crop": True}),
    ("Levit", {}),
    ("Levit", {"size": {"height": 60, "width": 50}, "do_center_crop": False}),
    ("MobileNetV1", {}),
    ("MobileNetV2", {}),
    ("MobileNetV2", {"size": {"shortest_edge": 192}, "crop_size": {"height": 161, "width": 160}}),
]


def processor_cases():
    for name, said in PROCESSORS:
        made = getattr(transformers, f"{name}ImageProcessorPil")(**said)
        config = {"image_processor_type": f"{name}ImageProcessor", **said}
        bare = {"do_rescale": False, "do_normalize": False}
        if name == "EfficientNet":
            bare["include_top"] = False
        for picture_name in PHOTOS[:2] + SMALL[:1] + SMALL[4:]:
            image = picture(picture_name)
            pixels = np.asarray(made(image, **bare)["pixel_values"][0])
            values = np.asarray(made(image)["pixel_values"][0]).astype(np.float64)
            height, width = pixels.shape[1:]
            # One value for each colour, somewhere within.
            at = [(colour, height * (colour + 1) // 4, width * (3 - colour) // 4) for colour in range(3)]
            yield {"picture": picture_name, "config": config, **summed(pixels),
                   "values": [[*place, float(values[place])] for place in at]}


def defaults():
    """What a saved file of each class says when nothing was chosen."""
    for name in dict.fromkeys(name for name, _ in PROCESSORS):
        yield {"class": name, "saved": getattr(transformers, f"{name}ImageProcessorPil")().to_dict()}


TIMM = [
    {"input_size": [3, 224, 224], "interpolation": "bicubic", "crop_pct": 0.9, "crop_mode": "center"},
    {"input_size": [3, 224, 224], "crop_pct": 0.875},
    {"input_size": [3, 240, 240], "interpolation": "bilinear", "crop_pct": 0.95},
    {"input_size": [3, 225, 225], "interpolation": "hamming", "crop_pct": 1.0},
    {"input_size": [3, 192, 160], "interpolation": "bicubic", "crop_pct": 0.9, "crop_mode": "squash"},
    {"input_size": [3, 160, 160], "interpolation": "lanczos", "crop_pct": 0.77, "crop_mode": "squash"},
]


def timm_cases():
    for said in TIMM:
        config = timm.data.resolve_data_config({}, pretrained_cfg=said)
        transform = timm.data.create_transform(**config, normalize=False)
        for name in PHOTOS[:2] + SMALL[:1]:
            pixels = transform(picture(name)).numpy()
            yield {"picture": name, "pretrained_cfg": said, **summed(pixels)}


def main():
    transformers.utils.logging.set_verbosity_error()
    golden = {
        "made_with": {
            "pillow": PIL.__version__, "torch": torch.__version__, "torchvision": torchvision.__version__,
            "transformers": transformers.__version__, "timm": timm.__version__,
        },
        "torchvision": list(torchvision_cases()),
        "letterbox": list(letterbox_cases()),
        "transformers": list(processor_cases()),
        "defaults": list(defaults()),
        "timm": list(timm_cases()),
    }
    lines = [f"{json.dumps('made_with')}: {json.dumps(golden.pop('made_with'))}"]
    for part, cases in golden.items():
        lines.append(f"{json.dumps(part)}: [\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]")
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    json.loads(text)
    (Path(__file__).parent / "golden.json").write_text(text)
    print({part: len(cases) for part, cases in golden.items()})


if __name__ == "__main__":
    main()
