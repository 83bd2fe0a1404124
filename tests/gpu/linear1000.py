"""A thousand nn.Linear(32, 32) in a row, in eager PyTorch: the host is far slower than the GPU.

An ordinary PyTorch program that knows nothing of cusplice. `--graph` replays the same model through torch.cuda.graph
instead, the hand-written way to the same end, `--segments N` through a chain of such graphs of N layers each. Prints one JSON
line; `hash` covers the bits of every step's result.
"""

import argparse
import hashlib
import json
import statistics
import time

import torch

from child import ready, step_ended


def build(layers):
    torch.manual_seed(7)
    model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(layers)]).eval()
    for layer in model:  # a gain of one, so that a thousand layers neither die out nor explode
        torch.nn.init.orthogonal_(layer.weight)
    return model.cuda()


def rows_of(batch):
    """The shape of an input: `batch` rows, or a plain vector for 0."""
    return (batch, 32) if batch else (32,)


def count():
    """What one layer consists of on the GPU, by batch: cuBLAS chooses by shape, and some choices are several kernels."""
    from torch.profiler import ProfilerActivity, profile

    model = build(50)
    found = {}
    for batch in (0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 512):
        x = torch.randn(rows_of(batch)).cuda()
        with torch.inference_mode():
            model(x)
            torch.cuda.synchronize()
            with profile(activities=[ProfilerActivity.CUDA]) as prof:
                model(x)
                torch.cuda.synchronize()
        names = {}
        for event in prof.events():
            if event.device_type == torch.autograd.DeviceType.CUDA:
                name = event.name.replace("void ", "").split("<")[0].split("(")[0].strip()[:40]
                names[name] = names.get(name, 0) + 1
        found[batch] = {name: n / 50 for name, n in names.items()}
    print(json.dumps({"program": "linear1000", "mode": "count", "by_batch": found}))


def warm_up(model, x):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(side)


def capture(model, x, layers):
    """Graphs of so many layers each, each of which reads what the one before it wrote; and the last one's result."""
    warm_up(model, x)
    graphs = []
    for first in range(0, len(model), layers):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=graphs[0].pool() if graphs else None):
            x = model[first:first + layers](x)
        graphs.append(graph)
    return graphs, x


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="store_true", help="capture once with torch.cuda.graph, then replay")
    parser.add_argument("--segments", type=int, help="the same, a graph for each so many layers")
    parser.add_argument("--layers", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=32, help="rows of the input; 0: a vector (from 32 rows on a layer is a memset and three kernels)")
    parser.add_argument("--count", action="store_true", help="say what a layer is on the GPU, by batch, and end")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup", type=int, default=15)
    args = parser.parse_args()
    if args.count:
        count()
        return

    model = build(args.layers)
    inputs = torch.randn(8, *rows_of(args.batch)).cuda()
    x = torch.empty_like(inputs[0])
    digest = hashlib.sha256()
    times = []

    with torch.inference_mode():
        graphs, captured = capture(model, x, args.segments or args.layers) if args.graph or args.segments else ([], None)
        ready(steps=True)
        for step in range(args.warmup + args.steps):
            x.copy_(inputs[step % len(inputs)])
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for graph in graphs:
                graph.replay()
            out = captured if graphs else model(x)
            torch.cuda.synchronize()
            if step >= args.warmup:
                times.append((time.perf_counter() - begin) * 1e3)
            digest.update(out.cpu().numpy().tobytes())
            step_ended()

    print(json.dumps({
        "program": "linear1000",
        "mode": "segments" if args.segments else "graph" if args.graph else "eager",
        "median_ms": statistics.median(times),
        "p10_ms": sorted(times)[len(times) // 10],
        "min_ms": min(times),
        "max_ms": max(times),
        "last": float(out.flatten()[0]),
        "hash": digest.hexdigest()[:32],
    }))


if __name__ == "__main__":
    main()
