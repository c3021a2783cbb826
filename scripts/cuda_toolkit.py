#!/usr/bin/env python3
"""Prints the folder of a CUDA toolkit that is enough to compile and link, fetched into a cache outside of the tree.

No GPU, no driver and no installed CUDA are needed for it: the compiler, the headers and the libraries come as NVIDIA's own
wheels from PyPI, pinned and checked by sha256. Only libcuda is missing from them, because it belongs to the driver: a stub with
its name and no content stands in for it when linking, and is never found at run time.

With `--ld-path` it prints the folder of the libraries alone, without the stub: what a binary needs in LD_LIBRARY_PATH.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from pypi import Unreachable, Wheel, cache_root, fetch

CUDA = "13.0"
WHEELS = [
    Wheel("nvidia-cuda-nvcc", "13.0.88",
          "nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
          "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03"),
    Wheel("nvidia-cuda-crt", "13.0.88",
          "nvidia_cuda_crt-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
          "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4"),
    Wheel("nvidia-nvvm", "13.0.88",
          "nvidia_nvvm-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl",
          "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0"),
    Wheel("nvidia-cuda-runtime", "13.0.96",
          "nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
          "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"),
    Wheel("nvidia-cuda-cccl", "13.0.85",
          "nvidia_cuda_cccl-13.0.85-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
          "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649"),
    Wheel("nvidia-curand", "10.4.0.35",
          "nvidia_curand-10.4.0.35-py3-none-manylinux_2_27_x86_64.whl",
          "1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc"),
    Wheel("nvidia-cublas", "13.0.2.14",
          "nvidia_cublas-13.0.2.14-py3-none-manylinux_2_27_x86_64.whl",
          "0cf238ffdbe46c00cb9aa98e7bca745c223a5ca5a53e686ac8b3e5a08fe80d6c"),
    Wheel("nvidia-cuda-nvrtc", "13.0.88",
          "nvidia_cuda_nvrtc-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl",
          "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575"),
]
# The name that a linker looks for, and the major version of the library that the wheels hold.
LINKS = {"cudart": 13, "cublas": 13, "cublasLt": 13, "curand": 10, "nvrtc": 13}
# Raised whenever the steps below change, so that a folder made by older ones is made anew.
LAYOUT = 1


def built(folder: Path) -> Path:
    """The toolkit's root in `folder`; everything is made beside it first, so that a run cut short leaves none."""
    root = folder / "nvidia" / "cu13"
    if (folder / "complete").is_file():
        return root
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        n_bytes = sum(unpack(wheel, made) for wheel in WHEELS)
        finish(made / "nvidia" / "cu13")
        (made / "complete").write_text("\n".join(f"{wheel.project} {wheel.version}" for wheel in WHEELS) + "\n")
        print(f"CUDA {CUDA}: {len(WHEELS)} wheels, {n_bytes / 1e6:.0f} MB fetched", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(made, folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return root


def unpack(wheel: Wheel, folder: Path) -> int:
    """Unpacks one wheel and tells its size."""
    print(f"fetching {wheel.project} {wheel.version}", file=sys.stderr)
    with fetch(wheel) as path:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        return path.stat().st_size


def finish(root: Path) -> None:
    """What an installer would have done: run bits, unversioned names, `lib64`, and a libcuda to link against."""
    for program in [*(root / "bin").iterdir(), *(root / "nvvm" / "bin").iterdir()]:
        if program.is_file():
            program.chmod(0o755)
    for name, major in LINKS.items():
        library = root / "lib" / f"lib{name}.so.{major}"
        if not library.is_file():
            raise Unreachable(f"the wheels hold no `{library.name}`")
        link(root / "lib" / f"lib{name}.so", library.name)
    link(root / "lib64", "lib")
    stub(root)


def link(path: Path, target: str) -> None:
    if not path.exists():
        path.symlink_to(target)


def stub(root: Path) -> None:
    """A libcuda.so with every function that the toolkit's cuda.h declares, under the driver's own soname. Each answers
    CUDA_ERROR_STUB_LIBRARY, as NVIDIA's own stub does."""
    header = (root / "include" / "cuda.h").read_text(errors="replace")
    # The header maps most names to a versioned one by macro (cuMemAlloc to cuMemAlloc_v2): the driver exports both.
    names = set(re.findall(r"\b(cu[A-Z]\w+)\s*\(", header)) | set(re.findall(r"\b(cu[A-Z]\w+_v\d+(?:_ptsz|_ptds)?)\b", header))
    source = "".join(f"int {name}(void) {{ return 34; }}\n" for name in sorted(names))
    stubs = root / "lib" / "stubs"
    stubs.mkdir(exist_ok=True)
    command = ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", str(stubs / "libcuda.so"), "-Wl,-soname,libcuda.so.1"]
    subprocess.run(command, input=source, text=True, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        sys.exit("the pinned CUDA wheels are for x86-64 Linux: install CUDA 13 here and set CUDA_HOME")
    try:
        root = built(cache_root() / "cuda" / f"{CUDA}-{LAYOUT}")
    except (Unreachable, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"cannot make a CUDA toolkit: {error}")
    print(root / "lib" if "--ld-path" in sys.argv[1:] else root)
