"""No GPU at all: numbers are added up. What preloading and the machine itself do to a ratio.
TRIAL_BUSY=differs or fails: preloaded it does, for the test of try_all.py."""
import os
import sys

import trial

trial.begin()
ODD = os.environ.get('TRIAL_BUSY') if os.environ.get('LD_PRELOAD') else None


def step(i, h):
    x = i
    for k in range(60000):
        x = (x * 31 + k) % 1000003
    if i % 100 == 0:
        h.add(x + (ODD == 'differs'))
    if i == 10 and ODD == 'fails':
        sys.exit(3)


trial.run(step, 600, sync=lambda: None)
