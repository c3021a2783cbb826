"""Pillow's own test pictures, whole and broken ones of every format that it knows, out of its source archive.

They are fetched for tests and never committed. Needs the standard library alone.
"""

import json
import sys
import tarfile
from pathlib import Path, PurePosixPath
from typing import Dict

from pypi import Wheel, extract_source, sha256_of, write_whole

VERSION = "13.0.0"
SOURCE = Wheel(
    "pillow", VERSION, f"pillow-{VERSION}.tar.gz", "cdcd1ba258178f7356d74170c9a81ba4eab6a5d55748bc402a5a2a6fe6be3510"
)


def images_folder(assets: Path) -> Path:
    return assets / f"pillow-{VERSION}-images"


def fetch_images(assets: Path) -> None:
    """Puts them under `images_folder`, if they are not there already as they were put there."""
    folder = images_folder(assets)
    # Written last; beside the folder, so that the folder holds pictures alone.
    stamp = assets / f"{folder.name}.json"
    if _is_whole(folder, stamp):
        return
    print(f"fetching the test pictures of Pillow {VERSION} from PyPI", file=sys.stderr)
    sums = {}

    def take(archive: tarfile.TarFile) -> Dict[Path, bytes]:
        root = PurePosixPath(f"pillow-{VERSION}/Tests/images")
        found = {}
        for member in archive:
            path = PurePosixPath(member.name)
            if member.isfile() and root in path.parents and ".." not in path.parts:
                found[folder / path.relative_to(root)] = archive.extractfile(member).read()
        return found

    extract_source(SOURCE, take)
    for path in folder.rglob("*"):
        if path.is_file():
            sums[path.relative_to(folder).as_posix()] = sha256_of(path)
    write_whole(stamp, json.dumps(sums, indent=0, sort_keys=True).encode())


def _is_whole(folder: Path, stamp: Path) -> bool:
    try:
        sums = json.loads(stamp.read_text())
        return all(sha256_of(folder / name) == expected for name, expected in sums.items())
    except (OSError, ValueError, AttributeError):
        return False
