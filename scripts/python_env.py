#!/usr/bin/env python3
"""A Python environment with pinned packages, made once and kept in the cache outside of the tree.

    scripts/python_env.py tests/store_server/requirements.txt

prints the path of its interpreter. The file lists every package with its version; what is not listed is not installed,
and nothing is built from source. Several that ask at once wait for the first. Needs Python 3.8 or newer with `venv`.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pypi

# Written last: an environment without it was not finished.
COMPLETE = "complete"


def interpreter(requirements: Path) -> Path:
    """The interpreter of the environment for `requirements`, which is made if it is not there yet."""
    identity = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:16]
    root = pypi.cache_root() / "python"
    folder = root / f"{requirements.parent.name}-{identity}"
    python = folder / "bin" / "python"
    if (folder / COMPLETE).is_file():
        return python
    root.mkdir(parents=True, exist_ok=True)
    with open(root / f".{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / COMPLETE).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder, python, requirements)
            (folder / COMPLETE).touch()
    return python


def _make(folder: Path, python: Path, requirements: Path) -> None:
    steps = (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        + ["--only-binary", ":all:", "--requirement", str(requirements)],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"`{' '.join(step)}` failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(interpreter(Path(sys.argv[1]).resolve()))
