#!/usr/bin/env bash
# Makes a libcuda.so to link against, for toolkits that bring none (the wheels on PyPI do not).
# Usage: cuda_stub.sh INCLUDE_DIR OUT_FILE
#
# The names are those that cuda.h and cudaProfiler.h declare under __CUDA_API_VERSION_INTERNAL: every version of every
# entry point, with the twins for per-thread default streams. Each answers CUDA_ERROR_STUB_LIBRARY.
set -euo pipefail

include=$1 out=$2
printf '#include <cuda.h>\n#include <cudaProfiler.h>\n' |
    "${CC:-gcc}" -E -P -D__CUDA_API_VERSION_INTERNAL "-I$include" - |
    tr '\n' ' ' | grep -oE 'CUresult +cu[A-Z][A-Za-z0-9_]* *\(' | grep -oE 'cu[A-Z][A-Za-z0-9_]*' | sort -u |
    sed 's/.*/int &(void);\nint &(void) { return 34; }/' |
    "${CC:-gcc}" -shared -fPIC -O1 -Wl,-soname,libcuda.so.1 -x c -o "$out" -
