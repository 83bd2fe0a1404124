"""Some hundred launches of Triton kernels: an axpy over a growing length, a row softmax and a small matrix product.

An ordinary Triton program that knows nothing of cusplice. Configurations are fixed (no autotuning), so the hash of its
results is the same in every run on one machine.
"""

import argparse
import hashlib
import json

import torch
import triton
import triton.language as tl


@triton.jit
def axpy(x, y, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(y + at, tl.load(y + at, mask=inside) * 0.5 + alpha * tl.load(x + at, mask=inside), mask=inside)


@triton.jit
def softmax_rows(x, columns, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    row = x + tl.program_id(0) * columns + at
    v = tl.load(row, mask=at < columns, other=-float("inf"))
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(row, v / tl.sum(v, axis=0), mask=at < columns)


@triton.jit
def matmul(a, b, c, SIZE: tl.constexpr, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, TILE)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, SIZE, TILE):
        left = tl.load(a + rows[:, None] * SIZE + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * SIZE + columns[None, :])
        sums += tl.dot(left, right, input_precision="ieee")
    tl.store(c + rows[:, None] * SIZE + columns[None, :], sums)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    generator = torch.Generator().manual_seed(13)
    size, tile = 96, 32
    a = torch.randn(size, size, generator=generator).to(args.device)
    b = torch.randn(size, size, generator=generator).to(args.device)
    c = torch.zeros_like(a)
    x = torch.randn(20000, generator=generator).to(args.device)
    y = torch.zeros_like(x)
    digest = hashlib.sha256()

    for step in range(args.steps):
        n = 1000 + 200 * step  # another grid each step
        axpy[(triton.cdiv(n, 256),)](x, y, n, 1.0 / (step + 1), BLOCK=256)
        matmul[(size // tile, size // tile)](a, b, c, SIZE=size, TILE=tile)
        softmax_rows[(size,)](c, size, WIDTH=128)
        matmul[(size // tile, size // tile)](c, b, a, SIZE=size, TILE=tile)
        axpy[(triton.cdiv(size * size, 256),)](c, a, size * size, 0.25, BLOCK=256)
        if step % 16 == 15:
            digest.update(a.cpu().numpy().tobytes())
    digest.update(y.cpu().numpy().tobytes())
    print(json.dumps({"program": "triton", "sum": float(y.sum() + a.sum()), "hash": digest.hexdigest()[:32]}))


if __name__ == "__main__":
    main()
