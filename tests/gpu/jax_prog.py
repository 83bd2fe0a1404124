"""Some hundred launches from JAX: a jitted step called in a Python loop, eager operations between the steps, a scan.

An ordinary JAX program that knows nothing of cusplice. The two XLA settings below make it compute the same bits in every
run on one machine; without them XLA times several algorithms and may choose another one the next time.
"""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0")

import hashlib
import json

import jax
import jax.numpy as jnp
import numpy


@jax.jit
def step(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
        x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x


@jax.jit
def long_scan(x):
    def body(carry, t):
        carry = jnp.sin(carry * 1.1 + t)
        return carry, jnp.max(carry)

    return jax.lax.scan(body, x, jnp.arange(50, dtype=jnp.float32))


def main():
    rng = numpy.random.default_rng(17)
    draw = lambda *shape: jnp.asarray(rng.standard_normal(shape, dtype=numpy.float32))
    params = [(draw(64, 64) / 8, draw(64)) for _ in range(6)]
    x = draw(16, 64)
    digest = hashlib.sha256()
    for turn in range(60):
        x = step(params, x)
        x = x.at[turn % 16].add(0.01 * turn)  # eager operations, each a program of its own
        x = jnp.where(x > 0, x, 0.9 * x)
        if turn % 10 == 9:
            digest.update(numpy.asarray(x).tobytes())
    carry, peaks = long_scan(x)
    digest.update(numpy.asarray(carry).tobytes())
    digest.update(numpy.asarray(peaks).tobytes())
    print(json.dumps({
        "program": "jax",
        "device": jax.devices()[0].platform,
        "sum": float(carry.sum()),
        "hash": digest.hexdigest()[:32],
    }))


if __name__ == "__main__":
    main()
