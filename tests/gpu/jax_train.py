"""JAX trains a small network: one jitted step with gradients and Adam, its buffers donated, called 150 times.

An ordinary JAX program that knows nothing of cusplice; XLA is told to compute the same bits in every run, as in jax_prog.py.
`--launches` keeps XLA from recording the step as graphs of its own. Prints one JSON line with a hash of all losses and weights.
"""

import argparse
import os

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--launches", action="store_true")
parser.add_argument("--steps", type=int, default=150)
ARGS = parser.parse_args()
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0" +
                      (" --xla_gpu_enable_command_buffer=" if ARGS.launches else ""))

import functools
import hashlib
import json

import jax
import jax.numpy as jnp
import numpy


def forward(weights, x):
    for w, b in weights[:-1]:
        x = jax.nn.gelu(x @ w + b)
        x = x - x.mean(-1, keepdims=True)
    w, b = weights[-1]
    return x @ w + b


def loss_of(weights, x, y):
    return jnp.mean((forward(weights, x) - y) ** 2)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(weights, moments, t, x, y):
    loss, grads = jax.value_and_grad(loss_of)(weights, x, y)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], grads)
    rate = 1e-3 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
    weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), weights, first, second)
    return weights, (first, second), loss


def main():
    rng = numpy.random.default_rng(23)
    draw = lambda *shape: jnp.asarray(rng.standard_normal(shape, dtype=numpy.float32))
    weights = [(draw(64, 64) / 8, draw(64)) for _ in range(8)]
    moments = (jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights))
    losses = []
    for t in range(ARGS.steps):
        x = jax.device_put(rng.standard_normal((32, 64), dtype=numpy.float32))
        weights, moments, loss = step(weights, moments, jnp.float32(t + 1), x, jnp.roll(x, 1, axis=1))
        losses.append(loss if t % 3 else float(loss))  # read at once now and then, else later
    digest = hashlib.sha256(numpy.asarray([float(v) for v in losses], numpy.float64).tobytes())
    for leaf in jax.tree.leaves(weights):
        digest.update(numpy.asarray(leaf).tobytes())
    print(json.dumps({"program": "jax_train", "device": jax.devices()[0].platform, "last": float(losses[-1]),
                      "hash": digest.hexdigest()[:32]}))


if __name__ == "__main__":
    main()
