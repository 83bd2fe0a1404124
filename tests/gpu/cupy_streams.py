"""CuPy on several streams: both kinds of memory pool, pinned copies, events between streams, a graph of its own, cuFFT.

An ordinary CuPy program that knows nothing of cusplice. The two streams depend on each other through events alone. Prints one JSON
line with a hash of its results.
"""

import hashlib
import json

import cupy
import numpy

SCALE = cupy.RawKernel(
    r"""
extern "C" __global__ void scale(const float *in, float *out, float by, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = in[i] * by + 0.125f;
}
""",
    "scale",
)
N = 6000


def pinned(values):
    memory = cupy.cuda.alloc_pinned_memory(values.nbytes)
    array = numpy.frombuffer(memory, values.dtype, values.size).reshape(values.shape)
    array[...] = values
    return array


def ping_pong(digest, rng):
    """Two streams take turns on one array; each waits for the other's event."""
    first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    source = pinned(rng.standard_normal(N).astype(numpy.float32))
    back = pinned(numpy.zeros(N, numpy.float32))
    a, b = cupy.zeros(N, cupy.float32), cupy.zeros(N, cupy.float32)
    cupy.cuda.get_current_stream().synchronize()
    there, here = cupy.cuda.Event(disable_timing=True), cupy.cuda.Event(disable_timing=True)
    for step in range(60):
        with first:
            if step:
                first.wait_event(here)
            a.set(source)
            for turn in range(5):
                SCALE((12,), (128,), (a, b, numpy.float32(0.5 + turn / 10), numpy.int32(N)))
                a += b
            there.record(first)
        with second:
            second.wait_event(there)
            c = cupy.sqrt(cupy.abs(b)) + a  # from the pool, given back to this stream
            for _ in range(3):
                c = cupy.sin(c) * 0.9
            c.get(out=back, blocking=False)
            here.record(second)
        if step % 10 == 9:
            second.synchronize()
            digest.update(back.tobytes())
            source[...] = back
    first.synchronize()
    second.synchronize()


def pools(digest, rng):
    """Blocks that are given back and reused by both kinds of pool, and a pool that is emptied now and then."""
    for allocator in (cupy.cuda.MemoryPool(), cupy.cuda.MemoryAsyncPool()):
        with cupy.cuda.using_allocator(allocator.malloc), cupy.cuda.Stream(non_blocking=True) as stream:
            total = cupy.zeros(N, cupy.float32)
            for step in range(40):
                x = cupy.asarray(rng.standard_normal(N).astype(numpy.float32))
                y = cupy.cumsum(x)
                z = cupy.concatenate([y[: N // 2], x[N // 2:]])
                total += z * 0.01
                del x, y, z
                if step % 13 == 12 and isinstance(allocator, cupy.cuda.MemoryPool):
                    allocator.free_all_blocks()
            digest.update(total.get().tobytes())
            stream.synchronize()


def own_graph(digest):
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = cupy.linspace(0, 1, N, dtype=cupy.float32)
        out = cupy.empty_like(x)
        SCALE((12,), (128,), (x, out, numpy.float32(2), numpy.int32(N)))
        stream.begin_capture()
        for turn in range(4):
            SCALE((12,), (128,), (x, out, numpy.float32(0.9), numpy.int32(N)))
            SCALE((12,), (128,), (out, x, numpy.float32(0.8), numpy.int32(N)))
        graph = stream.end_capture()
        for step in range(30):
            SCALE((12,), (128,), (x, out, numpy.float32(1.1), numpy.int32(N)))
            SCALE((12,), (128,), (out, x, numpy.float32(1.01), numpy.int32(N)))
            graph.launch(stream)
        digest.update(x.get().tobytes())


def transforms(digest, rng):
    a = cupy.asarray(rng.standard_normal((8, 512)).astype(numpy.complex64))
    m = cupy.asarray(rng.standard_normal((48, 48)).astype(numpy.float32))
    m = m @ m.T + 48 * cupy.eye(48, dtype=cupy.float32)
    for _ in range(12):
        a = cupy.fft.ifft(cupy.fft.fft(a, axis=1) * 0.999, axis=1)
        m = cupy.linalg.cholesky(m)
        m = m @ m.T
    digest.update(a.get().tobytes())
    digest.update(m.get().tobytes())


def main():
    rng = numpy.random.default_rng(6)
    digest = hashlib.sha256()
    ping_pong(digest, rng)
    pools(digest, rng)
    own_graph(digest)
    transforms(digest, rng)
    print(json.dumps({"program": "cupy_streams", "hash": digest.hexdigest()[:32]}))


if __name__ == "__main__":
    main()
