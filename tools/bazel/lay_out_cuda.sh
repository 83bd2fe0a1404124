#!/usr/bin/env bash
# Fetches wheels from PyPI and lays them out as nvcc expects a toolkit; TO gets its name when it is whole.
# Usage: lay_out_cuda.sh WHEELS TO     WHEELS: a requirements file of pip, with hashes
#
# Environment: PYTHON (one with pip; default python3).
set -euo pipefail
wheels=$1 to=$2 python=${PYTHON:-python3}
mkdir -p "$(dirname "$to")"
work=$(mktemp -d "$to.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$python" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary :all: --require-hashes \
    --dest "$work/wheels" -r "$wheels" </dev/null
for wheel in "$work"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$work/unpacked"
    rm "$wheel"
done
# Wheels of CUDA 13 share one folder; each of CUDA 12 has one of its own.
root=$work/root
mkdir "$root"
for part in "$work"/unpacked/nvidia/*/; do cp -r "$part." "$root/"; done
for program in "$root"/bin/* "$root"/nvvm/bin/*; do [[ ! -f $program ]] || chmod +x "$program"; done
ln -s lib "$root/lib64"
mkdir -p "$root/targets/x86_64-linux"
ln -s ../../include "$root/targets/x86_64-linux/include"
ln -s ../../lib "$root/targets/x86_64-linux/lib"
for so in "$root"/lib/lib*.so.*; do
    [[ ! -e $so ]] || ln -sf "$(basename "$so")" "${so%.so.*}.so"
done
rm -rf "$to"
mv "$root" "$to"
