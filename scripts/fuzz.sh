#!/usr/bin/env bash
# Feeds changed inputs to one fuzz target for a time: scripts/fuzz.sh TARGET [SECONDS] [SEED]
# Says how many it fed; an input that fails is put into tests/fuzz/corpus/TARGET, where it is replayed by the tests from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:?scripts/fuzz.sh TARGET [SECONDS] [SEED]; targets: $(sed -n 's/^targets!\[\(.*\)\];$/\1/p' tests/fuzz/main.rs)}
export FLOWGPU_FUZZ_TARGET=$target FLOWGPU_FUZZ_SECONDS=${2:-60} FLOWGPU_FUZZ_SEED=${3:-$RANDOM$RANDOM}
echo "target $target, $FLOWGPU_FUZZ_SECONDS seconds, seed $FLOWGPU_FUZZ_SEED"

code=0
cargo test --workspace --features testing --test fuzz -- --ignored --exact by_hand --nocapture || code=$?
# Where the process was killed, by its memory or by its stack, it could not say what it had been fed.
left=target/tmp/fuzz-$target.case
if [ "$code" != 0 ] && [ -f "$left" ]; then
    kept=tests/fuzz/corpus/$target/found-$(sha256sum "$left" | cut -c1-8)
    mkdir -p "$(dirname "$kept")"
    cmp -s "$left" "$(dirname "$kept")"/found-* 2>/dev/null || cp "$left" "$kept"
    echo "what was fed last: $kept" >&2
fi
exit "$code"
