#!/bin/sh
# The comparison with peers: makes the environment, the photographs and the models once, then measures.
#
#   FLOWGPU=target/release/flowgpu benches/peers/run.sh [--images N] [--rounds N] [--only NAME,…] [--jobs NAME,…] [--sweep]
#
# The environment takes about 6.5 GB under ~/.cache/flowgpu/peers; everything else lies in target/peers.
set -eu
cd "$(dirname "$0")/../.."
cache="${XDG_CACHE_HOME:-$HOME/.cache}/flowgpu/peers"
python="$cache/venv/bin/python"
stamp="$cache/requirements.txt"
if ! cmp -s benches/peers/requirements.txt "$stamp"; then
    python3 -m venv "$cache/venv"
    "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r benches/peers/requirements.txt
    cp benches/peers/requirements.txt "$stamp"
fi
images=1000
wanted=no
for argument in "$@"; do
    if [ "$wanted" = yes ]; then images="$argument"; fi
    if [ "$argument" = --images ]; then wanted=yes; else wanted=no; fi
done
assets="$(python3 scripts/fetch_test_assets.py)"
"$python" -W ignore benches/peers/make.py target/peers "$assets" "$images"
exec "$python" benches/peers/run.py target/peers "$@"
