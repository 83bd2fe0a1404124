#!/usr/bin/env python3
"""The decode host's model in NumPy, one position at a time, to check the host against.

    python3 reference.py model/austen.bin --prompt TEXT --tokens N

Prints the greedy text (the prompt and its continuation) as the host does. On stderr it prints the
smallest distance between the two likeliest characters of any step. If that distance is far above
0.01, the last digits of another machine's arithmetic do not change the text. Shares no code with
train.py.
"""

import argparse
import struct
import sys

import numpy as np

HEADER = 256


class Model:
    def __init__(self, path):
        with open(path, "rb") as f:
            header = f.read(HEADER)
            data = np.frombuffer(f.read(), "<f2").astype(np.float32)
        if header[:8] != b"CHARLLM\0":
            raise SystemExit("reference.py: no weights file: " + path)
        (version, self.dim, self.layers, self.heads, self.kv_heads, self.hidden, vocab, self.context,
         self.base, self.eps) = struct.unpack_from("<8I2f", header, 8)
        self.vocabulary = header[48:48 + vocab]
        self.head_dim = self.dim // self.heads
        dim, kv_dim, hidden = self.dim, self.head_dim * self.kv_heads, self.hidden
        shapes = [(vocab, dim)]
        for _ in range(self.layers):
            shapes += [(dim,), (dim, dim), (kv_dim, dim), (kv_dim, dim), (dim, dim), (dim,),
                       (hidden, dim), (hidden, dim), (dim, hidden)]
        shapes.append((dim,))
        self.tensors, at = [], 0
        for shape in shapes:
            size = int(np.prod(shape))
            self.tensors.append(data[at:at + size].reshape(shape))
            at += size
        assert at == len(data), "the file is too long"
        self.keys = [[] for _ in range(self.layers)]
        self.values = [[] for _ in range(self.layers)]

    def norm(self, x, weight):
        return x / np.sqrt(np.mean(x * x) + np.float32(self.eps)) * weight

    def rotate(self, x, pos):
        """Turns the neighbours of each head by pos * base^(-2i / head_dim)."""
        z = x.reshape(-1, self.head_dim // 2, 2)
        angle = pos * self.base ** (-2.0 * np.arange(self.head_dim // 2) / self.head_dim)
        c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        return np.stack((z[..., 0] * c - z[..., 1] * s, z[..., 0] * s + z[..., 1] * c), -1).reshape(-1, self.head_dim)

    def step(self, token, pos):
        """The logits behind one more token."""
        embedding, final_norm = self.tensors[0], self.tensors[-1]
        x = embedding[token]
        for i in range(self.layers):
            attn_norm, wq, wk, wv, wo, mlp_norm, gate, up, down = self.tensors[1 + 9 * i:10 + 9 * i]
            y = self.norm(x, attn_norm)
            q = self.rotate(wq @ y, pos)
            self.keys[i] = (self.keys[i] + [self.rotate(wk @ y, pos)])[-self.context:]
            self.values[i] = (self.values[i] + [(wv @ y).reshape(-1, self.head_dim)])[-self.context:]
            x = x + wo @ self.attend(q, np.array(self.keys[i]), np.array(self.values[i]))
            y = self.norm(x, mlp_norm)
            g = gate @ y
            x = x + down @ (g / (1 + np.exp(-g)) * (up @ y))
        return embedding @ self.norm(x, final_norm)

    def attend(self, q, keys, values):
        out = []
        for h in range(self.heads):
            kv = h // (self.heads // self.kv_heads)
            score = keys[:, kv] @ q[h] / np.float32(np.sqrt(self.head_dim))
            weight = np.exp(score - score.max())
            out.append(weight @ values[:, kv] / weight.sum())
        return np.concatenate(out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model")
    p.add_argument("--prompt", default="It is a truth universally acknowledged, that")
    p.add_argument("--tokens", type=int, default=200)
    p.add_argument("--context", type=int, help="look back over so many positions, not as many as the file says")
    c = p.parse_args()
    model = Model(c.model)
    model.context = c.context or model.context
    tokens = [model.vocabulary.index(byte) for byte in b"\n" + c.prompt.encode()]
    fed, closest = len(tokens), np.inf
    for pos in range(fed - 1 + c.tokens):
        logits = model.step(tokens[pos], pos)
        if pos >= fed - 1:
            second, first = np.sort(logits)[-2:]
            closest = min(closest, first - second)
            tokens.append(int(logits.argmax()))
    print(bytes(model.vocabulary[t] for t in tokens[1:]).decode())
    print("closest choice: %.4f" % closest, file=sys.stderr)


if __name__ == "__main__":
    main()
