#!/usr/bin/env bash
# Makes what --config=aarch64 needs, in .cache/aarch64, once: a CUDA toolkit whose libraries are for AArch64. Headers and nvcc are the
# machine's; the runtime comes from PyPI (pinned in aarch64-wheels.txt); cuBLAS is a stub to link against, with the names of the
# machine's. Compiler, C library and archives are Debian's (tools/setup --aarch64).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
to=$PWD/.cache/aarch64
stamp=$(cat tools/bazel/aarch64.sh tools/bazel/aarch64-wheels.txt | sha256sum | cut -c 1-12)-$PWD
[[ ! -r $to/stamp || $(<"$to/stamp") != "$stamp" ]] || exit 0

die() {
    echo "aarch64: $*" >&2
    exit 2
}
toolkit=$(bash tools/bazel/find_cuda.sh) || die "no CUDA toolkit found (tools/setup fetches one)"

rm -rf "$to"
cuda=$to/cuda-${stamp%%-*} bin=$to/cuda-${stamp%%-*}/bin
mkdir -p "$bin" "$cuda/lib64"
work=$(mktemp -d "$to/XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary :all: --require-hashes \
    --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 --dest "$work" -r tools/bazel/aarch64-wheels.txt </dev/null ||
    die "pip could not fetch the CUDA runtime for AArch64"
python3 -m zipfile -e "$work"/*.whl "$work/unpacked"
cp "$work"/unpacked/nvidia/cu13/lib/lib* "$cuda/lib64/"

# Bazel lets the compiler look for the linker beside itself.
printf '#!/bin/sh\nexec aarch64-linux-gnu-gcc "$@"\n' >"$bin/gcc"
chmod +x "$bin/gcc"
for tool in ar as ld ld.gold ld.bfd nm objcopy objdump strip; do ln -s "/usr/bin/aarch64-linux-gnu-$tool" "$bin/$tool"; done
ln -s "$toolkit/include" "$cuda/include"
cat >"$bin/nvcc" <<END
#!/bin/sh
exec $toolkit/bin/nvcc -ccbin "\${NVCC_CCBIN:-aarch64-linux-gnu-g++}" -I$cuda/include "\$@"
END
chmod +x "$bin/nvcc"
for library in "$toolkit"/lib*/libcublas.so.?? "$toolkit"/lib*/libcublasLt.so.??; do
    [[ -e $library ]] || continue
    nm -D --defined-only "$library" | sed -nE 's/^[0-9a-f]+ [Ti] (cublas[A-Za-z0-9_]*)(@.*)?$/void \1(void) {}/p' | sort -u |
        aarch64-linux-gnu-gcc -shared -fPIC -Wl,-soname,"${library##*/}" -x c -o "$cuda/lib64/${library##*/}" -
done
cat >"$to/bazelrc" <<END
build:aarch64 --config=aarch64_options
build:aarch64 --repo_env=CUSPLICE_CUDA=$cuda
build:aarch64 --repo_env=CC=$bin/gcc
build:aarch64 --repo_env=AR=$bin/ar
END
echo "$stamp" >"$to/stamp"
