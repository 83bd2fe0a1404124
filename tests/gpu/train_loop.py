"""Trains a small transformer: forward, backward on autograd's own thread, AdamW; batches come from a loader thread of its own
that copies pinned memory on a side stream.

An ordinary PyTorch program that knows nothing of cusplice. The loss is read after each step. Prints one JSON line; `hash` covers
the bits of all losses and of the weights at the end. Attention is written out, since the fused backward of some GPUs adds
in any order. `--models 2` trains two models at a time, each on a thread and a stream of its own. `--graph` captures a whole step once, the
optimizer's with capturable=True, and replays it: the hand-written way, which rounds otherwise in the optimizer.
"""

import argparse
import hashlib
import json
import math
import queue
import statistics
import threading
import time

import torch
from torch import nn
from torch.nn import functional

from child import ready, step_ended


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1)) / math.sqrt(width // self.heads) + mask
        x = x + self.out((weights.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.second(x))))


class Model(nn.Module):
    def __init__(self, words, width, layers, heads, length):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, ids):
        x = self.words(ids) + self.places.weight
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


def loader(args, seed, into):
    """Runs on a thread of its own: draws batches on the host and copies them on a side stream."""
    generator = torch.Generator().manual_seed(seed)
    side = torch.cuda.Stream()
    rows = torch.randint(0, args.words, (64, args.length + 1), generator=generator)
    for _ in range(args.steps):
        batch = rows[torch.randint(0, 64, (args.batch,), generator=generator)].pin_memory()
        with torch.cuda.stream(side):
            ids = batch.cuda(non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record(side)
        into.put((ids, arrived, batch))


class Captured:
    """A whole step as one graph: forward, backward and the optimizer, over the same batch in the same place."""

    def __init__(self, args, model, optimizer):
        self.ids = torch.zeros(args.batch, args.length + 1, dtype=torch.long, device="cuda")
        before = {name: value.clone() for name, value in model.state_dict().items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step(args, model, optimizer)
        torch.cuda.current_stream().wait_stream(side)
        optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = self.step(args, model, optimizer)
        model.load_state_dict(before)  # the steps for warming up have not been
        for state in optimizer.state.values():
            for value in state.values():
                value.zero_()

    def step(self, args, model, optimizer):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(args, model, self.ids)
        loss.backward()
        optimizer.step()
        return loss

    def __call__(self, ids):
        self.ids.copy_(ids)
        self.graph.replay()
        return self.loss


def loss_of(args, model, ids):
    out = model(ids[:, :-1])
    return functional.cross_entropy(out.reshape(-1, args.words), ids[:, 1:].reshape(-1))


def train(args, number, model, results):
    stream = torch.cuda.Stream() if args.models > 1 else torch.cuda.current_stream()
    with torch.cuda.stream(stream):
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=args.foreach, capturable=args.graph)
        captured = Captured(args, model, optimizer) if args.graph else None
        waiting = queue.Queue(maxsize=4)
        thread = threading.Thread(target=loader, args=(args, 100 + number, waiting))
        thread.start()
        losses, times = [], []
        for step in range(args.steps):
            begin = time.perf_counter()
            ids, arrived, _ = waiting.get()
            stream.wait_event(arrived)
            ids.record_stream(stream)
            if captured:
                loss = captured(ids)
            else:
                optimizer.zero_grad(set_to_none=True)
                loss = loss_of(args, model, ids)
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
            took = (time.perf_counter() - begin) * 1e3
            counts = args.models > 1 or step_ended()  # more than one thread takes no turns
            if step >= args.steps // 4:
                times.append((took, counts))
        thread.join()
        digest = hashlib.sha256(json.dumps([value.hex() for value in losses]).encode())
        for parameter in model.parameters():
            digest.update(parameter.detach().cpu().numpy().tobytes())
    results[number] = (losses, times, digest.hexdigest())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--words", type=int, default=1000)
    parser.add_argument("--models", type=int, default=1)
    parser.add_argument("--foreach", action="store_true", help="the optimizer's fused lists instead of one parameter at a time")
    parser.add_argument("--graph", action="store_true", help="capture a step once, then replay it")
    args = parser.parse_args()
    if args.graph and args.models > 1:
        parser.error("--graph goes with one model")
    torch.manual_seed(21)  # one generator for all threads, so the models are made here
    models = [Model(args.words, args.width, args.layers, args.heads, args.length).cuda() for _ in range(args.models)]
    torch.cuda.synchronize()
    results = {}
    ready(steps=args.models == 1)
    threads = [threading.Thread(target=train, args=(args, n, models[n], results)) for n in range(1, args.models)]
    for thread in threads:
        thread.start()
    train(args, 0, models[0], results)
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    print(json.dumps({
        "program": "train_loop",
        "median_ms": statistics.median([took for took, counts in results[0][1] if counts] or [took for took, _ in results[0][1]]),
        "median_of_all_ms": statistics.median(took for took, _ in results[0][1]),
        "first": results[0][0][0],
        "last": results[0][0][-1],
        "hash": hashlib.sha256("".join(results[n][2] for n in sorted(results)).encode()).hexdigest()[:32],
    }))


if __name__ == "__main__":
    main()
