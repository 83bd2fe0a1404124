#!/usr/bin/env bash
# Prints the root of the CUDA toolkit to build with, or nothing and status 1 when there is none.
# The one place that knows where to look: the repository rule @cuda and tools/setup both ask here.
#
# CUSPLICE_CUDA=none says that there is no toolkit, CUSPLICE_CUDA=own looks at the project's own copy alone, and
# CUSPLICE_CUDA=PATH at that one alone. Otherwise, in this order: CUDA_HOME, CUDA_PATH, the nvcc on PATH,
# /usr/local/cuda, and CUSPLICE_TOOLKIT (the project's own copy).
# A toolkit counts when it is CUDA 13.0 or later and has the compiler, the runtime and cuBLAS.
set -euo pipefail

usable() {
    local root=$1 version
    [[ -n $root && -x $root/bin/nvcc && -r $root/include/cuda.h ]] || return 1
    [[ -r $root/include/cuda_runtime.h && -r $root/include/cublas_v2.h ]] || return 1
    compgen -G "$root/lib*/libcudart.so*" >/dev/null || return 1
    compgen -G "$root/lib*/libcublas.so*" >/dev/null || return 1
    version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$root/include/cuda.h")
    [[ ${version:-0} -ge 13000 ]]
}

case ${CUSPLICE_CUDA:-} in
none) exit 1 ;;
"") ;;
own) usable "${CUSPLICE_TOOLKIT:-}" && echo "$CUSPLICE_TOOLKIT" && exit 0 || exit 1 ;;
*)
    usable "$CUSPLICE_CUDA" && echo "$CUSPLICE_CUDA" && exit 0
    echo "CUSPLICE_CUDA=$CUSPLICE_CUDA is not a CUDA 13 toolkit with nvcc, cudart and cuBLAS" >&2
    exit 1
    ;;
esac

on_path=$(command -v nvcc || true)
# An nvcc in a folder of everybody's programs says nothing about where its toolkit is.
[[ -n $on_path ]] && on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")")
[[ $on_path != / && $on_path != /usr && $on_path != /usr/local ]] || on_path=
for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "$on_path" /usr/local/cuda "${CUSPLICE_TOOLKIT:-}"; do
    if usable "$root"; then
        echo "$root"
        exit 0
    fi
done
exit 1
