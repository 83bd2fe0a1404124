"""Steps of some hundred small CuPy kernels: a stencil, a blend and a damping in turn, over buffers that stay where they are.

An ordinary CuPy program that knows nothing of cusplice; its host is far slower than the GPU. `--graph` captures a step once on the stream and replays
it, the hand-written way to the same end, `--segments N` as graphs of N rounds each. Prints one JSON line; `hash` covers the bits of the buffers.
"""

import argparse
import hashlib
import json
import statistics
import time

import cupy
import numpy

SMOOTH = cupy.RawKernel(
    r"""
extern "C" __global__ void smooth(const float *in, float *out, int n, float weight) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float left = in[i == 0 ? n - 1 : i - 1], right = in[i == n - 1 ? 0 : i + 1];
        out[i] = weight * in[i] + (1.0f - weight) * 0.5f * (left + right);
    }
}
""",
    "smooth",
)
BLEND = cupy.ElementwiseKernel("float32 a, float32 b, float32 t", "float32 c", "c = a + t * (b - a)", "loop_blend")
DAMP = cupy.ElementwiseKernel("float32 a, float32 b", "float32 c", "c = 0.75f * a + 0.125f * b / (1.0f + b * b)", "loop_damp")
SIZE = 4096


def rounds(first, end, line, other, third):
    for n in range(first, end):
        SMOOTH((SIZE // 128,), (128,), (line, other, numpy.int32(SIZE), numpy.float32(0.5 + n / 512)))
        BLEND(other, third, numpy.float32(0.25), line)
        DAMP(third, line, third)


def capture(stream, first, end, buffers):
    stream.begin_capture()
    rounds(first, end, *buffers)
    return stream.end_capture()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="store_true", help="capture a step once, then replay it")
    parser.add_argument("--segments", type=int, help="the same, a graph for each so many rounds")
    parser.add_argument("--rounds", type=int, default=100, help="of three launches each, in a step")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=20)
    args = parser.parse_args()
    rng = numpy.random.default_rng(5)
    buffers = [cupy.asarray(rng.standard_normal(SIZE, dtype=numpy.float32)) for _ in range(3)]
    before = [buffer.copy() for buffer in buffers]
    cupy.cuda.Device().synchronize()
    times = []
    with cupy.cuda.Stream(non_blocking=True) as stream:
        rounds(0, 1, *buffers)  # compiles, and loads the code
        for buffer, value in zip(buffers, before):
            cupy.copyto(buffer, value)
        stream.synchronize()
        each = args.segments or args.rounds
        graphs = [capture(stream, n, min(n + each, args.rounds), buffers) for n in range(0, args.rounds, each)] if args.graph or args.segments else []
        for step in range(args.warmup + args.steps):
            begin = time.perf_counter()
            for graph in graphs:
                graph.launch(stream)
            if not graphs:
                rounds(0, args.rounds, *buffers)
            stream.synchronize()
            if step >= args.warmup:
                times.append((time.perf_counter() - begin) * 1e3)
    digest = hashlib.sha256()
    for buffer in buffers:
        digest.update(buffer.get().tobytes())
    print(json.dumps({"program": "cupy_loop", "launches": 3 * args.rounds, "median_ms": statistics.median(times), "hash": digest.hexdigest()[:32]}))


if __name__ == "__main__":
    main()
