#!/usr/bin/env bash
# Checks on a machine with an NVIDIA GPU what cannot be checked without one, and prints one table; under four minutes.
# Builds nothing: it wants `cargo build --release` and `scripts/cuda-build.sh` done, here or elsewhere on the same commit.
# Needs python3 and nvidia-smi.
#
#   scripts/gpu-check.sh               exit code 0 if every check passed, 1 if one failed
#   scripts/gpu-check.sh NAME…         only these checks
#   scripts/gpu-check.sh --self-test   its own arithmetic, without a GPU
#
# FLOWGPU and FLOWGPU_WORKER_CUDA name other programs than target/release/flowgpu and
# target/cuda/release/flowgpu-worker-cuda.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ "${1:-}" == --self-test ]]; then
    exec python3 scripts/gpu_check.py --self-test
fi

export FLOWGPU=${FLOWGPU:-$PWD/target/release/flowgpu}
export FLOWGPU_WORKER_CUDA=${FLOWGPU_WORKER_CUDA:-$PWD/target/cuda/release/flowgpu-worker-cuda}
for program in "$FLOWGPU" "$FLOWGPU_WORKER_CUDA"; do
    if [[ ! -x "$program" ]]; then
        echo "there is no program $program: build with cargo build --release and scripts/cuda-build.sh" >&2
        exit 2
    fi
done

# Everything that the worker is linked against, in one of the places where CUDA's libraries are wont to be.
missing() {
    LD_LIBRARY_PATH="$1${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ldd "$FLOWGPU_WORKER_CUDA" | grep 'not found' || true
}
places() {
    if [[ -n "${CUDA_HOME:-}" ]]; then printf '%s\n' "$CUDA_HOME/lib64"; fi
    printf '%s\n' /usr/local/cuda/lib64 /usr/local/cuda-13*/lib64
    printf '%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}"/flowgpu/cuda/*/nvidia/cu13/lib
    # NVIDIA's wheels, where a framework has installed them.
    python3 -c 'import glob, site, sys
for folder in {*sys.path, *site.getsitepackages()}:
    print(*glob.glob(folder + "/nvidia/cu13/lib"), sep="\n")' || true
}
if [[ -n "$(missing '')" ]]; then
    found=
    while read -r place; do
        if [[ -n "$place" && -d "$place" && -z "$(missing "$place")" ]]; then
            found=$place
            break
        fi
    done < <(places)
    if [[ -z "$found" ]]; then
        echo "libraries of CUDA 13 are missing; put their folder into LD_LIBRARY_PATH:" >&2
        missing '' >&2
        exit 2
    fi
    export LD_LIBRARY_PATH=$found${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

exec python3 scripts/gpu_check.py "$@"
