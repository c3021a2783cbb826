#!/usr/bin/env bash
# Builds `flowgpu-worker-cuda`, the worker process for NVIDIA GPUs. Needs Rust, a C++ compiler and python3: the CUDA
# toolkit is fetched from PyPI into ~/.cache/flowgpu (675 MB, 1.2 GB unpacked), and neither a GPU nor a driver is needed.
#
#   scripts/cuda-build.sh            builds target/cuda/release/flowgpu-worker-cuda, and prints what it is linked against
#   scripts/cuda-build.sh --check    clippy over the same code, warnings as errors
#   scripts/cuda-build.sh --test     its tests, on a GPU made of threads
#   scripts/cuda-build.sh --env      prints the settings, for a shell: eval "$(scripts/cuda-build.sh --env)"
#
# An installed toolkit is used instead where CUDA_HOME names one. The first build takes long, 15 files of quantised
# kernels above all, which candle always builds: about ten minutes on one core. CUDAFORGE_THREADS sets how many
# compilers run at once.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:-build}
if [[ -z "${CUDA_HOME:-}" ]]; then
    CUDA_HOME=$(python3 scripts/cuda_toolkit.py)
fi
export CUDA_HOME CUDA_PATH=$CUDA_HOME CUDA_ROOT=$CUDA_HOME PATH=$CUDA_HOME/bin:$PATH
# PTX for compute capability 8.0, which the driver compiles for the GPU that it finds: any one since Ampere. A higher
# number would be quicker to start on that GPU and useless on all older ones.
export CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-80}
export CUDAFORGE_THREADS=${CUDAFORGE_THREADS:-2}
# A folder of its own: with other features every crate would be built again at each change from one to the other.
export CARGO_TARGET_DIR=${FLOWGPU_CUDA_TARGET:-target/cuda}

case $mode in
build)
    began=$SECONDS
    cargo build --release --locked --features cuda --bin flowgpu-worker-cuda
    binary=$CARGO_TARGET_DIR/release/flowgpu-worker-cuda
    printf '\nbuilt in %d s for compute capability %s and newer, %s:\n' \
        $((SECONDS - began)) "$CUDA_COMPUTE_CAP" "$(nvcc --version | sed -n 's/.*release \([0-9.]*\),.*/CUDA \1/p')"
    ls -lh "$binary"
    # The libraries as they are found on a machine that has CUDA's folder in LD_LIBRARY_PATH; libcuda is the driver's.
    LD_LIBRARY_PATH=$CUDA_HOME/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ldd "$binary"
    ;;
--check)
    # In the same profile as the program: candle's kernels are compiled once for each.
    cargo clippy --release --workspace --all-targets --locked --features cuda,testing -- -D warnings
    ;;
--test)
    # A stand-in for the driver and the libraries is what the tests compute on: a GPU made of threads.
    mkdir -p "$CARGO_TARGET_DIR/standin"
    standin=$(cd "$CARGO_TARGET_DIR/standin" && pwd)
    cc -O3 -Wall -Wextra -shared -fPIC -pthread nodes/tests/cuda_pipeline/driver.c -o "$standin/libcuda.so.1" -lm
    for library in libcublas.so.13 libcurand.so.10 libcudart.so.13; do
        ln -sf libcuda.so.1 "$standin/$library"
    done
    # The loader says of each that it has no versions, once a process.
    export LD_LIBRARY_PATH=$standin
    cargo test --release --workspace --locked --features cuda,testing --lib cuda::
    cargo test --release --workspace --locked --features cuda,testing --test cuda_pipeline
    ;;
--env)
    for name in CUDA_HOME CUDA_PATH CUDA_ROOT PATH CUDA_COMPUTE_CAP CUDAFORGE_THREADS CARGO_TARGET_DIR; do
        printf 'export %s=%q\n' "$name" "${!name}"
    done
    ;;
*)
    echo "usage: scripts/cuda-build.sh [--check | --test | --env]" >&2
    exit 2
    ;;
esac
