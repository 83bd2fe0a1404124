"""The operators of PyTorch, one after another, on the samples that PyTorch's own tests use (op_db), forward and backward.

An ordinary PyTorch program that knows nothing of cusplice. It needs a stand-in for the package expecttest, which PyTorch's
test helpers import and of which nothing is used here. Every sample runs four times: with its inputs, with other inputs of
the same shapes, and both again, so that a result left over from the execution before is not the right one. An execution
clones the inputs, runs the operator, differentiates its outputs, and packs outputs, gradients and the inputs as they then
are into one tensor of bytes, which is copied to the host; so it is one step between two synchronisations.

Writes one JSON line per operator and type to --out, in front of it one that says which begins: a hash of each execution and of
each of its results. The numbers themselves, evenly thinned where a result has many, go to --out with .bin behind it. Where an
operator leaves the context unusable the process ends with status 17; --first then goes on behind it.
"""

import argparse
import hashlib
import json
import math
import os
import random
import re
import sys
import time
import types
import unittest
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("PYTHONWARNINGS", "ignore")

import numpy
import torch
from torch.utils._pytree import tree_flatten, tree_map

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
BROKEN = 17
# What these return is not defined by their arguments; only shapes and types are taken down.
UNDEFINED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_",
             "resize_as_"}
# Behind the first result of these lies memory that nothing was written to: rows of padding, the state of a generator not used.
FIRST_ONLY = {"torch.ops.aten._efficient_attention_forward", "torch.ops.aten._flash_attention_forward"}
MOST_NUMBERS = 20000  # of one result, that are kept


def database():
    stub = types.ModuleType("expecttest")
    stub.TestCase = unittest.TestCase
    sys.modules.setdefault("expecttest", stub)
    from torch.testing._internal.common_methods_invocations import op_db

    return sorted(op_db, key=lambda op: (op.name, op.variant_test_name))


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def seed_all(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)


def describe(error):
    """Type and first line of an error, less what differs from run to run."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {re.sub(r'0x[0-9a-f]+', '0x', lines[0])[:160]}"


def copy_of(value):
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)


def tensors(tree):
    return [t for t in tree_flatten(tree)[0] if isinstance(t, torch.Tensor)]


def plain_text(tree):
    return re.sub(r"0x[0-9a-f]+", "0x", repr([v for v in tree_flatten(tree)[0] if not isinstance(v, torch.Tensor)]))


def slope(t):
    """What is differentiated with respect to: not the same for every element."""
    values = torch.arange(t.numel(), device=t.device).remainder(7).sub(3)
    return values.to(t.dtype).reshape(t.shape)


def as_bytes(t):
    t = t.detach()
    if t.layout != torch.strided:
        t = t.to_dense()
    if t._is_zerotensor():
        t = torch.zeros(t.shape, dtype=t.dtype, device=t.device)
    t = t.resolve_conj().resolve_neg().contiguous().reshape(-1)
    return (t if t.stride(0) == 1 else t.clone(memory_format=torch.contiguous_format)).view(torch.uint8)


def execute(op, sample, backward, seed):
    """One execution. Returns the bytes of each of its results, and what they are: [part, type, shape]."""
    seed_all(seed)
    args = tree_map(copy_of, (sample.input, sample.args, sample.kwargs))
    value, positional, named = args
    with torch.set_grad_enabled(backward):
        out = op(value, *positional, **named)
    found = [("out", t) for t in tensors(out)][: 1 if op.name in FIRST_ONLY else None]
    if backward:
        ends = [t for t in tensors(sample.output_process_fn_grad(out)) if t.requires_grad]
        leaves = [t for t in tensors(args) if t.requires_grad and t.is_leaf]
        if ends and leaves:
            grads = torch.autograd.grad(ends, leaves, [slope(t) for t in ends], allow_unused=True)
            found += [("grad", g) for g in grads if g is not None]
    found += [("in", t) for t in tensors(args)]
    found.sort(key=lambda one: not one[1].is_cuda)  # what is on the GPU comes first in the bytes
    parts = [[what, str(t.dtype)[6:], list(t.shape)] for what, t in found] + [["text", plain_text(out)]]
    if op.name in UNDEFINED:
        torch.cuda.synchronize()
        return [], parts
    on_gpu = [as_bytes(t) for _, t in found if t.is_cuda]
    packed = torch.cat(on_gpu).cpu().numpy().tobytes() if on_gpu else b""
    packed += b"".join(as_bytes(t).numpy().tobytes() for _, t in found if not t.is_cuda)
    ends = numpy.cumsum([t.numel() * t.element_size() for _, t in found])
    return [packed[end - t.numel() * t.element_size():end] for end, (_, t) in zip(ends, found)], parts


def thinned(piece, part):
    count = math.prod(part[2])
    step = max(1, count // MOST_NUMBERS)
    return piece if step == 1 else numpy.frombuffer(piece, f"V{len(piece) // count}")[::step].tobytes()


def short(data):
    return hashlib.sha256(data).hexdigest()[:24]


class Writer:
    def __init__(self, path):
        self.lines, self.bytes, self.at = open(path, "a"), open(path + ".bin", "ab"), os.path.getsize(path + ".bin")

    def line(self, record):
        self.lines.write(json.dumps(record) + "\n")
        self.lines.flush()

    def keep(self, data):
        """Returns where the data begins in the file of bytes."""
        begin = self.at
        self.bytes.write(data)
        self.at += len(data)
        return begin


def broken(device):
    """True where the context no longer works."""
    if not device.startswith("cuda"):
        return False
    try:
        torch.cuda.synchronize()
        torch.zeros(4, device="cuda").add_(1).sum().item()
        return False
    except RuntimeError:
        return True


def spread(many, limit):
    """Positions of at most `limit` of `many`, evenly spread."""
    if not limit or many <= limit:
        return list(range(many))
    return sorted({i * many // limit for i in range(limit)})


def run(op, dtype, args, writer):
    began = time.monotonic()
    record = {"op": name_of(op), "dtype": dtype, "samples": []}
    backward = op.supports_autograd and TYPES[dtype] in op.supported_backward_dtypes(args.device.split(":")[0])
    record["backward"] = backward
    lists = []
    try:
        for seed in (1000, 2000):
            seed_all(seed)
            lists.append(list(op.sample_inputs(args.device, TYPES[dtype], requires_grad=backward,
                                                    set_seed=False)))
    except Exception as error:  # whatever the database raises is the result, and is compared like any other
        record["error"] = describe(error)
        lists = [[], []]
    count = min(len(one) for one in lists)
    record["of"] = count
    for at in spread(count, args.samples):
        done = {"i": at, "runs": []}
        for turn in range(args.times):
            try:
                pieces, parts = execute(op, lists[turn % 2][at], backward, 3000 + turn % 2)
                kept = b"".join(thinned(*pair) for pair in zip(pieces, parts))
                done["runs"].append({"hash": short(b"".join(pieces) + json.dumps(parts).encode()),
                                     "each": [short(piece)[:12] for piece in pieces],
                                     "at": writer.keep(kept), "bytes": len(kept)})
                if turn < 2:
                    done.setdefault("parts", []).append(parts)
            except Exception as error:
                done["runs"].append({"error": describe(error)})
        record["samples"].append(done)
        if all("error" in r for r in done["runs"]) and broken(args.device):
            record["broke"] = True
            break
    record["seconds"] = round(time.monotonic() - began, 3)
    writer.line(record)
    writer.bytes.flush()
    return not record.get("broke")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--shard", default="0/1", help="I/N: every N-th operator, from the I-th on")
    parser.add_argument("--first", type=int, default=0, help="position in the shard's list to begin at")
    parser.add_argument("--only", help="these operators, name or name.variant, with commas between")
    parser.add_argument("--types", default="float32,bfloat16")
    parser.add_argument("--samples", type=int, default=0, help="samples of one operator at most, evenly spread; 0: all")
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    torch.set_num_threads(1)
    shard, shards = (int(v) for v in args.shard.split("/"))
    todo = [(op, dtype) for op in database() for dtype in args.types.split(",")
            if TYPES[dtype] in op.supported_dtypes(args.device.split(":")[0])]
    if args.only:
        wanted = set(args.only.split(","))
        todo = [(op, dtype) for op, dtype in todo if name_of(op) in wanted]
    todo = todo[shard::shards]
    writer = Writer(args.out)
    for position in range(args.first, len(todo)):
        op, dtype = todo[position]
        writer.line({"begins": position, "op": name_of(op), "dtype": dtype})
        if not run(op, dtype, args, writer):
            print(json.dumps({"program": "op_db", "next": position + 1, "of": len(todo)}))
            sys.stdout.flush()
            os._exit(BROKEN)  # a context that is lost makes the ordinary way out fail as well
    print(json.dumps({"program": "op_db", "next": len(todo), "of": len(todo)}))


if __name__ == "__main__":
    main()
