"""Steps of some hundred small Triton kernels over buffers that stay where they are: an axpy, a damping, a row softmax in turn.

An ordinary Triton program that knows nothing of cusplice; its host is far slower than the GPU. `--graph` replays a step through torch.cuda.graph, the
hand-written way to the same end, `--segments N` as graphs of N rounds each. Prints one JSON line; `hash` covers the bits of the buffers.
"""

import argparse
import hashlib
import json
import statistics
import time

import torch
import triton
import triton.language as tl

ROWS, WIDTH = 32, 128
SIZE = ROWS * WIDTH


@triton.jit
def axpy(x, y, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(y + at, tl.load(y + at, mask=inside) * 0.5 + alpha * tl.load(x + at, mask=inside), mask=inside)


@triton.jit
def damp(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    b = tl.load(y + at, mask=inside)
    tl.store(x + at, tl.load(x + at, mask=inside) * 0.75 + b / (1.0 + b * b), mask=inside)


@triton.jit
def softmax_rows(x, columns, WIDE: tl.constexpr):
    at = tl.arange(0, WIDE)
    row = x + tl.program_id(0) * columns + at
    v = tl.load(row, mask=at < columns, other=-float("inf"))
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(row, v / tl.sum(v, axis=0), mask=at < columns)


def rounds(first, end, x, y):
    for n in range(first, end):
        axpy[(SIZE // 256,)](x, y, SIZE, 1.0 / (n + 1), BLOCK=256)
        damp[(SIZE // 256,)](x, y, SIZE, BLOCK=256)
        softmax_rows[(ROWS,)](y, WIDTH, WIDE=WIDTH)


def capture(first, end, x, y):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rounds(first, end, x, y)
    return graph


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="store_true", help="capture a step once, then replay it")
    parser.add_argument("--segments", type=int, help="the same, a graph for each so many rounds")
    parser.add_argument("--rounds", type=int, default=100, help="of three launches each, in a step")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=20)
    args = parser.parse_args()
    generator = torch.Generator().manual_seed(13)
    x, y = (torch.randn(SIZE, generator=generator).cuda() for _ in range(2))
    before = x.clone(), y.clone()
    rounds(0, 2, x, y)  # compiles (1.0 is an argument that Triton takes apart from others), and loads the code
    x.copy_(before[0])
    y.copy_(before[1])
    torch.cuda.synchronize()
    each = args.segments or args.rounds
    graphs = [capture(n, min(n + each, args.rounds), x, y) for n in range(0, args.rounds, each)] if args.graph or args.segments else []
    times = []
    for step in range(args.warmup + args.steps):
        begin = time.perf_counter()
        for graph in graphs:
            graph.replay()
        if not graphs:
            rounds(0, args.rounds, x, y)
        torch.cuda.synchronize()
        if step >= args.warmup:
            times.append((time.perf_counter() - begin) * 1e3)
    digest = hashlib.sha256(x.cpu().numpy().tobytes() + y.cpu().numpy().tobytes())
    print(json.dumps({"program": "triton_loop", "launches": 3 * args.rounds, "median_ms": statistics.median(times), "hash": digest.hexdigest()[:32]}))


if __name__ == "__main__":
    main()
