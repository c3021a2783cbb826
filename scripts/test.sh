#!/usr/bin/env bash
# Fetches what the tests need (once, into a cache outside of the tree), then runs all of them.
# Arguments go to cargo: `scripts/test.sh import_rule`, `scripts/test.sh --release`.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v python3 >/dev/null; then
    echo "python3 is needed to fetch the test weights and photographs; please install it" >&2
    exit 1
fi
FLOWGPU_TEST_ASSETS=$(python3 scripts/fetch_test_assets.py)
export FLOWGPU_TEST_ASSETS
# The servers that tests start are on this machine, wherever a proxy is for the others.
export NO_PROXY="127.0.0.1,localhost${NO_PROXY:+,$NO_PROXY}"

exec cargo test --workspace --features testing "$@"
