"""PyTorch programs that make graphs of their own: torch.cuda.graph beside eager work, and torch.compile's CUDA graphs.

Ordinary PyTorch programs that know nothing of cusplice. `--mode capture` records graphs for several shapes on a side stream,
some of them while eager launches are under way, replays them between eager operations, records a training step, and uses
make_graphed_callables. `--mode compile` runs a model and a training step compiled with mode="reduce-overhead". Prints one JSON line.
"""

import argparse
import hashlib
import json

import torch
from torch import nn


def mlp(width, layers=6):
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()]
    return nn.Sequential(*parts).cuda()


def record(function):
    """The graph of one call, after three calls on a side stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph, result


def inference(digest):
    model = mlp(128).eval()
    busy = torch.randn(64, 128, device="cuda")
    with torch.inference_mode():
        made = []
        for rows in (1, 4, 16, 64):
            x = torch.zeros(rows, 128, device="cuda")
            for _ in range(20):  # launches that may still be deferred when the capture begins
                busy = busy * 0.99 + 0.01
            made.append((x, *record(lambda x=x: model(x))))
        for step in range(80):
            x, graph, out = made[step % 4 if step < 40 else 2]
            x.copy_(torch.full_like(x, step / 50).add_(busy[: x.shape[0]]))
            graph.replay()
            busy = torch.tanh(busy + out.mean())
            busy = model(busy)
            if step % 8 == 7:
                digest.update(out.cpu().numpy().tobytes())
        digest.update(busy.cpu().numpy().tobytes())


def training(digest):
    torch.manual_seed(3)
    model, x, y = mlp(64), torch.randn(32, 64, device="cuda"), torch.randn(32, 64, device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    graph, loss = record(step)
    for turn in range(50):
        x.copy_(torch.randn(32, 64, device="cuda"))
        y.copy_(x.flip(0) * 0.5)
        graph.replay()
        if turn % 10 == 9:
            for _ in range(3):
                step()  # the same step, eagerly, on the same weights
            digest.update(loss.detach().cpu().numpy().tobytes())
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())


def callables(digest):
    torch.manual_seed(4)
    first, second = mlp(64, 3), mlp(64, 3)
    graphed = torch.cuda.make_graphed_callables(first, (torch.randn(16, 64, device="cuda", requires_grad=True),))
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    for turn in range(40):
        x = torch.randn(16, 64, device="cuda", requires_grad=True)
        optimizer.zero_grad(set_to_none=True)
        loss = second(graphed(x) if turn % 3 else first(x)).square().mean()
        loss.backward()
        optimizer.step()
        if turn % 5 == 4:
            digest.update(x.grad.cpu().numpy().tobytes())
    digest.update(loss.detach().cpu().numpy().tobytes())


def compiled(digest):
    torch.manual_seed(5)
    model = mlp(128, 4)
    fast = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        for turn in range(30):
            torch.compiler.cudagraph_mark_step_begin()
            x = torch.randn(16, 128, device="cuda")
            out = fast(x).clone()
            tail = model(out)  # and the same model eagerly
            if turn % 5 == 4:
                digest.update(out.cpu().numpy().tobytes())
                digest.update(tail.cpu().numpy().tobytes())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(30):
        torch.compiler.cudagraph_mark_step_begin()
        optimizer.zero_grad(set_to_none=True)
        loss = fast(torch.randn(16, 128, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        if turn % 5 == 4:
            digest.update(loss.detach().cpu().numpy().tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["capture", "compile"], default="capture")
    args = parser.parse_args()
    torch.manual_seed(2)
    digest = hashlib.sha256()
    for part in (inference, training, callables) if args.mode == "capture" else (compiled,):
        part(digest)
    print(json.dumps({"program": "own_graphs", "mode": args.mode, "hash": digest.hexdigest()[:32]}))


if __name__ == "__main__":
    main()
