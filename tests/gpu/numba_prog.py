"""Kernels written in Python with Numba: shared memory, integer atomics, streams, events, pinned and mapped arrays, a reduction.

An ordinary Numba-CUDA program that knows nothing of cusplice. Prints one JSON line with a hash of its results.
"""

import hashlib
import json
import warnings

warnings.filterwarnings("ignore")

import numpy

if not hasattr(numpy, "row_stack"):  # NumPy 2.5 took it away; Numba-CUDA still asks for it
    numpy.row_stack = numpy.vstack

from numba import cuda, float32

TILE = 64
N = 9000


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = y[i] * float32(0.5) + a * x[i]


@cuda.jit
def tile_sums(x, out):
    """One sum per block, by halving in shared memory: the order of the additions is fixed."""
    part = cuda.shared.array(TILE, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    width = TILE // 2
    while width:
        if t < width:
            part[t] += part[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


@cuda.jit
def histogram(x, counts):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(counts, int(x[i] * 8) & 15, 1)


def main():
    rng = numpy.random.default_rng(31)
    digest = hashlib.sha256()
    first, second = cuda.stream(), cuda.stream()
    host = cuda.pinned_array(N, numpy.float32)
    host[:] = rng.standard_normal(N)
    x = cuda.to_device(host, stream=first)
    y = cuda.to_device(numpy.ones(N, numpy.float32), stream=first)
    sums = cuda.device_array((N + TILE - 1) // TILE, numpy.float32)
    counts = cuda.to_device(numpy.zeros(16, numpy.int32))
    blocks = sums.size
    done = cuda.event(timing=False)
    first.synchronize()
    for step in range(80):
        n = 1000 + 100 * step  # another grid each step
        axpy[(n + 127) // 128, 128, first](numpy.float32(0.01 * step), x[:n], y[:n])
        axpy[(N + 127) // 128, 128, first](numpy.float32(0.25), x, y)
        tile_sums[blocks, TILE, first](y, sums)
        done.record(first)
        done.wait(second)
        histogram[(N + 127) // 128, 128, second](y, counts)
        axpy[(blocks + 127) // 128, 128, second](numpy.float32(0.125), sums, y[:blocks])
        second.synchronize()
        if step % 10 == 9:
            digest.update(sums.copy_to_host(stream=second).tobytes())
            digest.update(y.copy_to_host(stream=first).tobytes())
    digest.update(counts.copy_to_host().tobytes())
    total = cuda.reduce(lambda a, b: a + b)
    digest.update(repr(int(total(counts))).encode())
    print(json.dumps({"program": "numba", "hash": digest.hexdigest()[:32]}))


if __name__ == "__main__":
    main()
