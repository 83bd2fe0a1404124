"""The training step of ../../jax_train.py, timed; TRIAL_FLAG=nograph: without XLA's command buffers."""
import os
import sys

import jaxprep
import trial

sys.argv[1:] = []
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
import jax_train  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402

trial.begin()
rng = numpy.random.default_rng(23)
draw = lambda *shape: jnp.asarray(rng.standard_normal(shape, dtype=numpy.float32))
weights = [(draw(64, 64) / 8, draw(64)) for _ in range(8)]
moments = (jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights))
state = [weights, moments]
inputs = [rng.standard_normal((32, 64), dtype=numpy.float32) for _ in range(8)]


def step(i, h):
    x = jax.device_put(inputs[i % 8])
    state[0], state[1], loss = jax_train.step(state[0], state[1], jnp.float32(i + 1), x, jnp.roll(x, 1, axis=1))
    h.add(numpy.asarray(loss))   # it waits for the step


trial.run(step, 1500, sync=lambda: None, final=lambda h: h.add([numpy.asarray(leaf) for leaf in jax.tree.leaves(state[0])]),
          extra={'jax': jax.__version__, 'device': str(jax.devices()[0])})
