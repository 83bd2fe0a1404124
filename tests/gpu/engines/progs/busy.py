"""No GPU at all: numbers are added up. What preloading and the machine itself do to a ratio.
What it does when it is preloaded, for tests: TRIAL_BUSY, or the setting `busy` of cusplice. differs, fails, hangs. other: differs with another library.
For soak.py: says what it counted and why, as the library would; miscounts; grows, and holds more at the end."""
import json
import os
import sys
import time

import trial

trial.begin()
ODD = os.environ.get('CUSPLICE_BUSY', os.environ.get('TRIAL_BUSY')) if os.environ.get('LD_PRELOAD') else None
kept = []


def step(i, h):
    x = i
    for k in range(60000):
        x = (x * 31 + k) % 1000003
    if i % 100 == 0:
        h.add(x + (ODD == 'differs' or ODD == 'other' and 'other' in os.environ['LD_PRELOAD']))
    if i == 10 and ODD == 'fails':
        sys.exit(3)
    if i == 10 and ODD == 'hangs':
        time.sleep(1000)
    if i > 25 and ODD == 'grows':
        kept.append(os.urandom(4 << 20))


def speak(h):
    if ODD in ('says', 'miscounts', 'grows'):
        with open(os.environ['CUSPLICE_STATS'].replace('%p', str(os.getpid())), 'w') as file:
            json.dump({'ops': {'launches': 9, 'copies': 1}, 'issued': {'in_graphs': 8, 'eager': 2}, 'eager_by': {'rule': 1, 'size': ODD != 'miscounts'}}, file)
        print('cusplice: why (mode piecewise)', file=sys.stderr)   # as shim/stats/report.c has it


trial.run(step, 600, sync=lambda: None, final=speak)
