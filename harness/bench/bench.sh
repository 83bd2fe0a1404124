#!/usr/bin/env bash
# Runs the bench suite (tests/gpu/bench.py) with the programs that Bazel just built: bazel run //harness/bench -- [its options].
set -euo pipefail
tree=${BUILD_WORKSPACE_DIRECTORY:?start this by bazel run //harness/bench, or tests/gpu/bench.py behind tools/gpu-check --build-only}
built=$PWD carry=$(mktemp -d)
trap 'rm -rf "$carry"' EXIT
for file in harness/bench/hostloop harness/bench/hostloop_driver harness/bench/hostloop_shared harness/decode/decode shim/libcusplice.so; do
    ln -s "$(readlink -f "$built/$file")" "$carry/"
done
cd "${BUILD_WORKING_DIRECTORY:-$tree}"
python3 "$tree/tests/gpu/bench.py" --carry "$carry" "$@"
