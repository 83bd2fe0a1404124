#!/bin/bash
# shellcheck disable=SC2046  # lists of targets are to be split
# make_llamacpp.sh OUT: llama.cpp from the source archive of llama-cpp-python 0.3.36 (PyPI) as OUT/llamacpp.tar.xz, for compute capability 9.0 and for
# progs/llamacpp.py alone: f16 weights, heads of 64. Of the CUDA kernels only what such a model may launch is compiled, of the models only Llama and GPT-2; a call of
# anything else ends the program (ud2). Needs cmake, ninja, g++, nvcc and the libraries of CUDA 13. 6 minutes on two idle cores.
set -eu
OUT=$(realpath "$1") WORK=$(mktemp -d) CUDA=${CUDA_HOME:-/usr/local/cuda}
cd "$WORK"
python3 -m pip download -q --no-deps --no-binary=llama-cpp-python llama-cpp-python==0.3.36
tar xzf llama_cpp_python-0.3.36.tar.gz
PY=$WORK/llama_cpp_python-0.3.36 SRC=$WORK/llama_cpp_python-0.3.36/vendor/llama.cpp
T=$SRC/ggml/src/ggml-cuda/template-instances
for f in "$T"/fattn-mma-f16-instance-*.cu "$T"/fattn-vec-instance-f16-f16.cu; do
    sed -i '/_CASE(/{/CASE( *64,/!d}' "$f"
done
mkdir build
cd build
cmake -G Ninja "$SRC" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="-O2 -DNDEBUG" -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -DGGML_CUDA=ON -DGGML_NATIVE=OFF \
    -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DCMAKE_CUDA_ARCHITECTURES=90-real -DGGML_CUDA_FA_QUANTS=f16-f16 -DGGML_CUDA_NCCL=OFF -DGGML_CUDA_GRAPHS=ON \
    -DGGML_OPENMP=OFF -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF \
    -DLLAMA_OPENSSL=OFF -DCUDAToolkit_ROOT="$CUDA" -DCMAKE_CUDA_COMPILER="$CUDA/bin/nvcc"
K=ggml/src/ggml-cuda/CMakeFiles/ggml-cuda.dir L=src/CMakeFiles/llama.dir
all() { ninja -t targets all | grep -oE "^$1"; }
some() { for f in "$@"; do echo "$K/$f.cu.o"; done; }
# Of the operations all but these, which no such model has.
skip='mmvq|moe-weighted|opt-step|out-prod|pad_reflect|pool|quantize|roll|set|snake|solve_tri|ssm|top-k|topk|tri|tsembd|upscale|wkv'
make() { nice -n 19 ninja "$@"; }
make $(all "$K/[^/]*\.cu\.o" | grep -vE "/($skip)[^/]*\.cu\.o") "$K/set-rows.cu.o"
make $(some template-instances/{fattn-vec-instance-f16-f16,fattn-tile-instance-dkq64-dv64,mmf-instance-ncols_8,mmf-instance-ncols_16} \
    template-instances/fattn-mma-f16-instance-ncols1_{8,16,32,64}-ncols2_1 template-instances/fattn-mma-f16-instance-ncols1_{4,8,16,32}-ncols2_2)
make $(all 'ggml/src/CMakeFiles/ggml(-base|-cpu)?\.dir/.*\.o') $(all "$L/[^/]*\.o")
# The models are compiled sixteen at once; these three alone. qwen3vl is asked for its type.
mkdir -p "$L/models"
for m in llama gpt2 qwen3vl; do
    ninja -t commands "$L/llama-model.cpp.o" | tail -1 | sed "s#$L/llama-model.cpp#$L/models/$m.cpp#g; s#/src/llama-model.cpp#/src/models/$m.cpp#g" | bash
done

mkdir out
FIND="-Lout -L$CUDA/lib64 -L$CUDA/lib64/stubs -Wl,-rpath-link,$CUDA/lib64:out"
objects() { find "$@" -name '*.o'; }
defined() { nm -D --defined-only "$@" 2>/dev/null | awk '{print $NF}' | sed 's/@.*//' | sort -u; }
# What nobody has, as functions that end the program. Two are asked of any weights; no to f16 is right.
stubs() {
    g++ -shared -o asks.so "$@"
    defined out/*.so "$CUDA"/lib64/lib{cudart,cublas}.so.13 "$CUDA/lib64/stubs/libcuda.so" $(ldd asks.so | grep -oE '/[^ ]+') > have
    nm -D --undefined-only asks.so | awk '$1 == "U" {print $2}' | sed 's/@.*//' | sort -u | comm -23 - have | while read -r n; do
        case $n in
            _ZTV* | _ZTI*) printf '.section .data.rel.ro,"aw",@progbits\n.balign 8\n.globl %s\n.type %s,@object\n.size %s,128\n%s: .zero 128\n' "$n" "$n" "$n" "$n" ;;
            *should_use_mmvq* | *should_use_topk_moe*) printf '.text\n.globl %s\n.type %s,@function\n%s: xorl %%eax,%%eax\nret\n' "$n" "$n" "$n" ;;
            *) printf '.text\n.globl %s\n.type %s,@function\n%s: ud2\n' "$n" "$n" "$n" ;;
        esac
    done > stubs.s
    echo '.section .note.GNU-stack,"",@progbits' >> stubs.s
    gcc -c stubs.s -o stubs.o
}
link() {   # NAME, its objects, then what it needs
    g++ -shared -o "out/$1" $2 "-Wl,-rpath,\$ORIGIN" "-Wl,-soname,$1" $FIND -Wl,--no-as-needed "${@:3}" -lpthread -lm -Wl,--no-undefined
}
link libggml-base.so "$(objects ggml/src/CMakeFiles/ggml-base.dir)"
link libggml-cpu.so "$(objects ggml/src/CMakeFiles/ggml-cpu.dir)" -lggml-base
stubs $(objects $K)
link libggml-cuda.so "$(objects $K) stubs.o" -lggml-base -lcudart -l:libcublas.so.13 -lcuda
link libggml.so "$(objects ggml/src/CMakeFiles/ggml.dir)" -lggml-cpu -lggml-cuda -lggml-base
stubs $(objects $L)
link libllama.so "$(objects $L) stubs.o" -lggml -lggml-base
strip --strip-unneeded out/*.so

mkdir -p "$WORK/pack/llama_cpp/lib"
cp out/*.so "$WORK/pack/llama_cpp/lib/"
cp "$PY"/llama_cpp/{llama_cpp,_ctypes_extensions}.py "$WORK/pack/llama_cpp/"
echo 'from .llama_cpp import *' > "$WORK/pack/llama_cpp/__init__.py"
cp -r "$SRC/gguf-py/gguf" "$WORK/pack/"
cp "$PY"/LICENSE* "$WORK/pack/"
tar -C "$WORK/pack" --exclude=scripts -cJf "$OUT/llamacpp.tar.xz" .
ls -la "$OUT/llamacpp.tar.xz"
rm -rf "$WORK"
