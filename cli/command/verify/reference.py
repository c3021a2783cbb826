"""What Pillow makes of files, for `flowgpu verify`. Needs Python 3.8 and Pillow; imports torch only where it is asked to.

It is started by flowgpu, which sends one JSON object a line on the standard input, followed by as many bytes as that says, and
gets one JSON object a line back on the standard output, followed by as many bytes as that says. Nothing is written anywhere.

The rules here are written by themselves, from what torchvision, transformers and Ultralytics do, and share nothing with the
program that they are compared with.
"""

import io
import json
import math
import os
import sys
import warnings

# Whatever a library prints goes to the standard error stream: the answers have the standard output for themselves.
ANSWERS = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
QUESTIONS = sys.stdin.buffer


def answer(content, data=b""):
    ANSWERS.write(json.dumps({**content, "n_bytes": len(data)}).encode() + b"\n" + data)
    ANSWERS.flush()


def version_of(name):
    """The version of a module, or why it cannot be had."""
    try:
        module = __import__(name)
        return {"version": str(getattr(module, "__version__", "?"))}
    except Exception as error:  # A broken installation raises anything.
        return {"missing": f"{type(error).__name__}: {error}".splitlines()[0]}


def opened(question):
    """The file that is asked about, as Pillow opens it, and its first bytes."""
    from PIL import Image

    if "path" in question:
        with open(bytes.fromhex(question["path"]), "rb") as file:
            data = file.read()
    else:
        data = question["data"]
    # Pillow refuses pictures of more than twice this.
    Image.MAX_IMAGE_PIXELS = question["max_pixels"] // 2
    return Image.open(io.BytesIO(data)), data[:64]


def kind_of(image, head):
    """Format, mode and, where it says what to expect, how the colours are stored."""
    words = [image.format or "?", image.mode]
    if image.format in ("JPEG", "MPO"):
        words.append(sampling_of(image))
    elif image.format == "WEBP":
        words.append("lossless" if b"VP8L" in head else "lossy")
    elif image.format == "TIFF" and "jpeg" in str(image.info.get("compression", "")):
        words.append("lossy")
    return " ".join(word for word in words if word)


def sampling_of(image):
    layers = getattr(image, "layer", None) or []
    if len(layers) < 3:
        return ""
    (_, h, v, _), (_, h1, v1, _), *_ = layers
    names = {(1, 1): "4:4:4", (2, 1): "4:2:2", (2, 2): "4:2:0", (4, 1): "4:1:1", (1, 2): "4:4:0", (4, 2): "4:1:0"}
    if h % h1 or v % v1:
        return f"{h}x{v}/{h1}x{v1}"
    return names.get((h // h1, v // v1), f"{h}x{v}/{h1}x{v1}")


def to_rgb(image, options):
    """RGB by the colour rules of the node."""
    alpha, grey16 = options.get("alpha"), options.get("grey16")
    if grey16 == "scale" and image.mode.startswith("I;16"):
        from PIL import Image

        # Numbers of four bytes; the second from below is the high one of the sixteen bits.
        high = image.convert("I").tobytes()[1 if sys.byteorder == "little" else 2 :: 4]
        return Image.frombytes("L", image.size, high).convert("RGB")
    if isinstance(alpha, dict) and "over" in alpha and ("A" in image.mode or "transparency" in image.info):
        from PIL import Image, ImageColor

        over = alpha["over"]
        colour = ImageColor.getrgb(over) if isinstance(over, str) else tuple(over)
        ground = Image.new("RGBA", image.size, colour[:3] + (255,))
        return Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB")


def resized_size(width, height, resize, rounding):
    """Columns and rows after the resize."""
    if isinstance(resize, list):
        return tuple(resize)
    if isinstance(resize, int):
        resize = {"shorter": resize}
    short, long = min(width, height), max(width, height)
    side, most = resize.get("shorter"), resize.get("longer")
    if side is None:
        new_short, new_long = int(most * short / long), most
    elif most is None:
        new_short, new_long = side, int(side * long / short)
    elif rounding == "transformers":
        raw = float(side)
        if long / short * side > most:
            raw = most * short / long
        new_short, new_long = round(raw), int(raw * long / short)
        if new_short == short:
            new_long = long
    else:
        new_short, new_long = side, int(side * long / short)
        if new_long > most:
            new_short, new_long = int(most * new_short / new_long), most
    new_short, new_long = max(new_short, 1), max(new_long, 1)
    return (new_short, new_long) if width <= height else (new_long, new_short)


def cropped(image, crop, rounding):
    """The part from the centre; black where the picture does not reach."""
    wanted = (crop, crop) if isinstance(crop, int) else tuple(crop)
    box = []
    for have, want in zip(image.size, wanted):
        if have < want:
            edge = math.ceil((want - have) / 2) if rounding == "transformers" else (want - have) // 2
            box.append(-edge)
        else:
            box.append((have - want) // 2 if rounding == "transformers" else int(round((have - want) / 2)))
    left, top = box
    # Pillow's crop fills with black what lies outside.
    return image.crop((left, top, left + wanted[0], top + wanted[1]))


def fitted_size(width, height, frame):
    """Columns and rows of a picture that is fitted into a frame."""
    columns, rows = frame["size"]
    ratio = min(rows / height, columns / width)
    if not frame.get("upscale", True):
        ratio = min(ratio, 1.0)
    return max(int(round(width * ratio)), 1), max(int(round(height * ratio)), 1)


def as_frame(frame):
    """The map form of a frame, its size as columns and rows."""
    if not isinstance(frame, dict):
        frame = {"size": frame}
    size = frame["size"]
    return {**frame, "size": (size, size) if isinstance(size, int) else tuple(size)}


def framed(image, frame):
    """A fitted picture in its frame."""
    from PIL import Image

    columns, rows = frame["size"]
    new = image.size
    left, top = 0, 0
    if frame.get("anchor", "center") == "center":
        left, top = (int(round((whole - part) / 2 - 0.1)) for whole, part in zip((columns, rows), new))
    out = Image.new("RGB", (columns, rows), tuple(frame.get("fill", (114, 114, 114))))
    out.paste(image, (left, top))
    return out


FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}


class TooLarge(Exception):
    """The result would have more pixels than are allowed."""


def wanted_size(width, height, rules):
    """Columns and rows that an upright picture of this size is resized to."""
    if rules.get("letterbox") is not None:
        return fitted_size(width, height, as_frame(rules["letterbox"]))
    if rules.get("resize") is not None:
        return resized_size(width, height, rules["resize"], rules.get("rounding", "torchvision"))
    return width, height


def drafted(image, rules):
    """Decodes to a fraction of the size that leaves twice the wanted pixels, as `thumbnail` does it.

    The upright size of the whole picture, and the box of the upright drafted one that it fills."""
    stored, turned = image.size, image.getexif().get(274, 1)
    on_its_side = turned in (5, 6, 7, 8)
    whole = stored[::-1] if on_its_side else stored
    wanted = wanted_size(*whole, rules)
    image.draft(None, tuple(2 * side for side in (wanted[::-1] if on_its_side else wanted)))
    (width, height), scale = image.size, round(stored[0] / image.size[0])
    left, top, right, bottom = 0, 0, stored[0] / scale, stored[1] / scale
    if turned in (2, 3, 7, 8):
        left, right = width - right, width
    if turned in (3, 4, 6, 7):
        top, bottom = height - bottom, height
    return whole, ((top, left, bottom, right) if on_its_side else (left, top, right, bottom))


def prepared(image, rules, max_pixels, whole, box):
    """`whole` is the size of all of the picture, and `box` the part of `image` that it fills."""
    size = wanted_size(*whole, rules)
    if rules.get("letterbox") is None and rules.get("crop") is None and size[0] * size[1] > max_pixels:
        raise TooLarge(f"{size[0]}x{size[1]}")
    if size != image.size or box != (0, 0, *image.size):
        image = image.resize(size, FILTERS[rules["interpolation"]], box)
    if rules.get("letterbox") is not None:
        return framed(image, as_frame(rules["letterbox"]))
    if rules.get("crop") is not None:
        image = cropped(image, rules["crop"], rules.get("rounding", "torchvision"))
    return image


def look(question):
    """One file: its kind, and its pixels or why there are none."""
    from PIL import Image, ImageOps

    kind = None
    try:
        image, head = opened(question)
        kind = kind_of(image, head)
        part = None
        if question["options"].get("jpeg_scale") == "auto" and image.format in ("JPEG", "MPO"):
            part = drafted(image, question["preprocess"])
        image.load()
        image = ImageOps.exif_transpose(image)
        whole, box = part or (image.size, (0, 0, *image.size))
        image = to_rgb(image, question["options"])
        image = prepared(image, question["preprocess"], question["max_pixels"], whole, box)
    except Exception as error:  # Pillow's plugins raise anything.
        code = "unsupported" if isinstance(error, Image.UnidentifiedImageError) else "damaged"
        if isinstance(error, (TooLarge, Image.DecompressionBombError)):
            code = "too_large"
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        return {"kind": kind, "refused": code, "why": why}, b""
    return {"kind": kind, "size": list(image.size)}, image.tobytes()


class Twin:
    """torchvision's own network with the same weights."""

    def __init__(self, question):
        import torch
        import torchvision

        self.torch = torch
        torch.set_num_threads(max(1, min(4, os.cpu_count() or 1)))
        state = self.state(question["weights"])
        if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
            state = state["state_dict"]
        classes = question["n_classes"]
        self.model = getattr(torchvision.models, question["arch"])(weights=None, num_classes=classes)
        self.model.load_state_dict(state)
        self.model.eval()
        self.mean = torch.tensor(question["mean"], dtype=torch.float64).view(1, 3, 1, 1)
        self.std = torch.tensor(question["std"], dtype=torch.float64).view(1, 3, 1, 1)

    def state(self, path):
        path = os.fsdecode(bytes.fromhex(path))
        if path.endswith(".safetensors"):
            from safetensors.torch import load_file

            return load_file(path)
        # Tensors only: code in the file is not run.
        return self.torch.load(path, map_location="cpu", weights_only=True)

    def compute(self, size, pixels):
        torch = self.torch
        image = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).view(1, size[1], size[0], 3)
        values = (image.permute(0, 3, 1, 2).to(torch.float64) - self.mean) / self.std
        with torch.inference_mode():
            return self.model(values.to(torch.float32))[0].tolist()


def main():
    warnings.simplefilter("ignore")
    answer({"python": sys.version.split()[0], "program": sys.executable, "pillow": version_of("PIL")})
    twin = None
    for line in QUESTIONS:
        question = json.loads(line)
        question["data"] = QUESTIONS.read(question.get("n_bytes", 0))
        if question["ask"] == "pixels":
            answer(*look(question))
        elif question["ask"] == "module":
            answer(version_of(question["name"]))
        elif question["ask"] == "twin":
            try:
                twin = Twin(question)
                answer({"loaded": True})
            except Exception as error:
                answer({"loaded": False, "why": f"{type(error).__name__}: {error}".splitlines()[0]})
        elif question["ask"] == "logits":
            answer({"logits": twin.compute(question["size"], question["data"])})


main()
