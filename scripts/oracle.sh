#!/usr/bin/env bash
# Interrupts pipelines again and again and compares what they write with undisturbed runs; see tests/oracle/main.rs.
#   scripts/oracle.sh [SEED [ROUNDS]]
# SEED is the first round's seed (1), ROUNDS how many there are (50). The seed of a round that fails is printed, and where
# its files are; `scripts/oracle.sh SEED 1` runs that round again.
set -euo pipefail
cd "$(dirname "$0")/.."

export FLOWGPU_ORACLE_SEED=${1:-1} FLOWGPU_ORACLE_ROUNDS=${2:-50}
exec cargo test --workspace --features testing --test oracle -- --nocapture
