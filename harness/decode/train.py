#!/usr/bin/env python3
"""Trains the character model of the decode host and writes its weights file (see README.md).

    python3 train.py austen.txt --out austen.bin [--steps N | --seconds S] [--samples FILE]

Needs PyTorch, and a GPU to finish in minutes. A text file is ASCII with one paragraph per line;
corpus.py makes one. Every 25th part of the text is held out. The script keeps the weights with the
lowest loss on that part. --seconds measures the speed first, takes as many steps as fit, and prints
their number, so that --steps can repeat the run. The same seed, steps and device give the same
weights, except for the order in which the device adds.
"""

import argparse
import math
import struct
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

# Token 0 ends a line, the others are the printable characters of ASCII.
VOCABULARY = b"\n" + bytes(range(32, 127))
MAGIC, VERSION, HEADER = b"CHARLLM\0", 1, 256
HELD_OUT_PARTS = 100
PROMPTS = ["", "It is a truth universally acknowledged, that ", "Elizabeth was ", '"My dear Emma," said ']


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        kv_dim = c.kv_heads * (c.dim // c.heads)
        self.c = c
        self.wq = nn.Linear(c.dim, c.dim, bias=False)
        self.wk = nn.Linear(c.dim, kv_dim, bias=False)
        self.wv = nn.Linear(c.dim, kv_dim, bias=False)
        self.wo = nn.Linear(c.dim, c.dim, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, -1, self.c.dim // self.c.heads).transpose(1, 2)
                   for w in (self.wq, self.wk, self.wv))
        repeat = self.c.heads // self.c.kv_heads
        k, v = rotate(k, cos, sin).repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        y = F.scaled_dot_product_attention(rotate(q, cos, sin).to(v.dtype), k.to(v.dtype), v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, -1))


def rotate(x, cos, sin):
    """Rotary positions: the neighbours (2i, 2i + 1) of a head turn by pos * base^(-2i / head_dim)."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attn_norm = nn.RMSNorm(c.dim, eps=c.eps)
        self.attn = Attention(c)
        self.mlp_norm = nn.RMSNorm(c.dim, eps=c.eps)
        self.gate = nn.Linear(c.dim, c.hidden, bias=False)
        self.up = nn.Linear(c.dim, c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.dim, bias=False)
        self.dropout = nn.Dropout(c.dropout)

    def forward(self, x, cos, sin):
        x = x + self.dropout(self.attn(self.attn_norm(x), cos, sin))
        y = self.mlp_norm(x)
        return x + self.dropout(self.down(F.silu(self.gate(y)) * self.up(y)))


class Model(nn.Module):
    """A Llama-style decoder whose output matrix is its embedding."""

    def __init__(self, c):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), c.dim)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = nn.RMSNorm(c.dim, eps=c.eps)
        self.dropout = nn.Dropout(c.dropout)
        half = c.dim // c.heads // 2
        angle = torch.outer(torch.arange(c.context).float(), c.rope_base ** (-torch.arange(half) / half))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                last = name.endswith(("wo.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * c.layers) if last else
                                (0.02 if "embedding" in name else p.shape[1] ** -0.5 * 0.6))

    def forward(self, tokens):
        t = tokens.shape[1]
        x = self.dropout(self.embedding(tokens))
        for layer in self.layers:
            x = layer(x, self.cos[:t], self.sin[:t])
        return F.linear(self.norm(x), self.embedding.weight)

    def tensors(self):
        """The weights in the order of the file."""
        yield self.embedding.weight
        for l in self.layers:
            yield from (l.attn_norm.weight, l.attn.wq.weight, l.attn.wk.weight, l.attn.wv.weight,
                        l.attn.wo.weight, l.mlp_norm.weight, l.gate.weight, l.up.weight, l.down.weight)
        yield self.norm.weight


def write_model(path, model, c):
    """The weights file: a header of 256 bytes, then every matrix row by row in half precision."""
    header = MAGIC + struct.pack("<8I2f", VERSION, c.dim, c.layers, c.heads, c.kv_heads, c.hidden,
                                 len(VOCABULARY), c.context, c.rope_base, c.eps)
    header += VOCABULARY
    with open(path, "wb") as f:
        f.write(header.ljust(HEADER, b"\0"))
        for tensor in model.tensors():
            f.write(tensor.detach().cpu().half().numpy().astype("<f2").tobytes())


def read_texts(paths):
    token = {byte: i for i, byte in enumerate(VOCABULARY)}
    data = b"".join(open(path, "rb").read() for path in paths)
    unknown = set(data) - set(VOCABULARY)
    if unknown:
        raise SystemExit("train.py: not in the vocabulary: %r" % bytes(sorted(unknown)))
    return torch.tensor([token[byte] for byte in data], dtype=torch.uint8)


def split(data):
    """The training text and the held-out text: every 25th of 100 equal parts."""
    parts = data.chunk(HELD_OUT_PARTS)
    return (torch.cat([p for i, p in enumerate(parts) if i % 25 != 12]),
            torch.cat([p for i, p in enumerate(parts) if i % 25 == 12]))


def batch(data, rows, context, generator):
    start = torch.randint(len(data) - context, (rows, 1), generator=generator).to(data.device)
    window = data[start + torch.arange(context + 1, device=data.device)].long()
    return window[:, :-1], window[:, 1:]


def loss_of(model, tokens, targets, c):
    with torch.autocast(c.device, dtype=torch.bfloat16, enabled=c.device == "cuda"):
        logits = model(tokens)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


@torch.no_grad()
def held_out_loss(model, data, c):
    model.eval()
    windows = data[:(len(data) - 1) // c.context * c.context].long().view(-1, c.context)
    targets = data[1:windows.numel() + 1].long().view(-1, c.context)
    total = sum(loss_of(model, t, y, c).item() * len(t)
                for t, y in zip(windows.split(64), targets.split(64)))
    model.train()
    return total / len(windows)


@torch.no_grad()
def generate(model, prompt, tokens, temperature, c, seed=1):
    """Greedy (temperature 0) or drawn text, as the host does it: a line end first, then the prompt."""
    generator = torch.Generator().manual_seed(seed)
    ids = [VOCABULARY.index(byte) for byte in b"\n" + prompt.encode()]
    for _ in range(tokens):
        logits = model(torch.tensor([ids[-c.context:]], device=c.device))[0, -1].float().cpu()
        ids.append(int(logits.argmax()) if not temperature else
                   int(torch.multinomial((logits / temperature).softmax(0), 1, generator=generator)))
    return bytes(VOCABULARY[i] for i in ids[1:]).decode()


def train(model, data, held_out, c):
    """Leaves the best weights in the model and returns (steps, loss on the held-out text)."""
    decay = [p for p in model.parameters() if p.dim() == 2]
    plain = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                                  lr=c.rate, betas=(0.9, 0.98), fused=c.device == "cuda")
    generator = torch.Generator().manual_seed(c.seed)
    steps, best, best_state, start, at_10 = c.steps, math.inf, None, time.monotonic(), 0.0
    step = 0
    while step < steps:
        done = max(0.0, (step - 200) / max(1, steps - 200))
        rate = c.rate * min(1.0, (step + 1) / 200) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(model, *batch(data, c.batch, c.context, generator), c)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if c.seconds and step in (10, 110):
            if c.device == "cuda":
                torch.cuda.synchronize()
            if step == 10:
                at_10 = time.monotonic()
            else:
                each = (time.monotonic() - at_10) / 100
                steps = max(400, int((c.seconds - (time.monotonic() - start)) * 0.95 / each))
                print("%.4f s a step: --steps %d" % (each, steps), flush=True)
        if step % c.every == 0 or step == steps:
            value = held_out_loss(model, held_out, c)
            print("step %d of %d: loss %.4f, held out %.4f, rate %.2e, %.0f s"
                  % (step, steps, loss.item(), value, rate, time.monotonic() - start), flush=True)
            if value < best:
                best, best_state = value, {k: v.clone() for k, v in model.state_dict().items()}
                write_model(c.out, model, c)
        if c.limit and time.monotonic() - start > c.limit:
            print("stopped at the limit of %d s" % c.limit)
            break
    model.load_state_dict(best_state or model.state_dict())
    return step, best


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("texts", nargs="+")
    p.add_argument("--out", required=True)
    p.add_argument("--samples", help="write text of the trained model here")
    p.add_argument("--steps", type=int, default=10000)
    p.add_argument("--seconds", type=float, default=0, help="take as many steps as fit in this time")
    p.add_argument("--limit", type=float, default=0, help="stop after this time whatever happens")
    p.add_argument("--every", type=int, default=500, help="steps between looks at the held-out text")
    for name, value in (("dim", 160), ("layers", 6), ("heads", 5), ("kv-heads", 5), ("hidden", 448),
                        ("context", 512), ("batch", 64), ("seed", 1)):
        p.add_argument("--" + name, type=int, default=value)
    for name, value in (("rate", 3e-3), ("dropout", 0.1), ("rope-base", 10000.0), ("eps", 1e-5)):
        p.add_argument("--" + name, type=float, default=value)
    c = p.parse_args()
    c.device = "cuda" if torch.cuda.is_available() else "cpu"
    return c


def main():
    c = options()
    torch.manual_seed(c.seed)
    torch.set_float32_matmul_precision("high")
    data, held_out = split(read_texts(c.texts).to(c.device))
    model = Model(c).to(c.device)
    print("%d parameters, %d characters to learn, %d held out"
          % (sum(p.numel() for p in model.parameters()), len(data), len(held_out)), flush=True)
    steps, best = train(model, data, held_out, c)
    model.eval()
    with torch.no_grad():
        for tensor in model.tensors():
            tensor.copy_(tensor.half().float())
    write_model(c.out, model, c)
    print("%d steps, held out %.4f nats a character, %.4f as written"
          % (steps, best, held_out_loss(model, held_out, c)), flush=True)
    model.eval()
    torch.set_float32_matmul_precision("highest")
    if c.samples:
        with open(c.samples, "w", encoding="ascii") as f:
            for temperature in (0, 0.5, 0.7, 0.8):
                for prompt in PROMPTS:
                    text = generate(model, prompt, 240, temperature, c)
                    f.write("== temperature %s, prompt %r\n%s\n" % (temperature, prompt, text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
