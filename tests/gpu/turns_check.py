"""turns_check.py SCRATCH: checks child.py with small programs that take turns and record when they ran."""

import os
import subprocess
import sys
import time

import child
from child import Runner, Settled, Turns, state

PROGRAM = """import json, os, sys, time
sys.path.insert(0, sys.argv[1])
from child import ready
time.sleep(float(sys.argv[2]))
prepared = time.monotonic()
ready()
cpus = len(os.sched_getaffinity(0))
runs, last, ran = [[time.monotonic()] * 2], time.monotonic(), 0
while ran < 0.9:
    now = time.monotonic()
    if now - last < 0.002:
        ran += now - last
    else:
        runs.append([now, now])
    runs[-1][1] = last = now
print(json.dumps({'prepared': prepared, 'runs': runs, 'cpus': cpus}))
"""
HERE = os.path.dirname(os.path.abspath(__file__))
runner = Runner(HERE, HERE, sys.argv[1])

jobs = [([sys.executable, "-c", PROGRAM, HERE, str(wait)], "plain", None) for wait in (0, 0.6, 0)]
jobs.append((["/nowhere/to/be/found"], "plain", None))
jobs.append(([sys.executable, "-c", "raise SystemExit(3)"], "plain", None))
found = runner.in_turn(jobs, 20)
all_cpus = len(os.sched_getaffinity(0))
assert [done.rc for done in found] == [0, 0, 0, 127, 3], [(done.rc, done.stderr) for done in found]
results = [done.result for done in found[:3]]
ready = max(result["prepared"] for result in results)
assert all(len(result["runs"]) >= 3 and result["runs"][0][0] >= ready for result in results), results
runs = sorted(run for result in results for run in result["runs"])
assert all(a[1] <= b[0] for a, b in zip(runs, runs[1:])), runs
assert found[0].host_ms
assert [result["cpus"] for result in results] == [min(Settled.CPUS, all_cpus)] * 3, results

# On so many CPUs as is said.
result = runner.in_turn(jobs[:1], 20, cpus=1)[0].result
assert result["cpus"] == 1, result

# Those that do not stop by themselves.
jobs = [([sys.executable, "-c", PROGRAM, HERE, "0"], "plain", {Turns.ASKED: ""})] * 2
results = [done.result for done in runner.in_turn(jobs, 20, ready=False)]
runs = sorted(run for result in results for run in result["runs"])
assert all(a[1] <= b[0] for a, b in zip(runs, runs[1:])) and len(runs) >= 6, runs

# One that never says that it is ready has run beside the others: what it says is not taken.
found = runner.in_turn([([sys.executable, "-c", "print('{}')"], "plain", None), (jobs[0][0], "plain", None)], 20)
assert (found[0].rc, found[0].ok, found[1].ok) == (0, False, True), [(done.rc, done.ok) for done in found]
assert "does not say where it is ready" in found[0].why(), found[0].why()

# Those that say where their steps end are stopped nowhere else, and go on; at the end of its time one is that has no more of them.
STEPS = """import json, signal, sys, time
continued = []
signal.signal(signal.SIGCONT, lambda *_: continued.append(time.monotonic()))
sys.path.insert(0, sys.argv[1])
import child
from child import ready, step_ended
child.SETTLING = 2
ready(steps=True)
steps = []
for n in range(int(sys.argv[2])):
    begin = now = time.monotonic()
    while now - begin < 0.06:
        now = time.monotonic()
    steps.append([begin, now, step_ended()])
ran, last, behind = 0, time.monotonic(), []
while ran < 0.6:
    now = time.monotonic()
    if now - last > 0.002 or not behind:
        behind.append([now, now])
    ran, last, behind[-1][1] = ran + min(now - last, 0.002), now, now
print(json.dumps({'steps': steps, 'behind': behind, 'continued': continued}))
"""
stepping = [([sys.executable, "-c", STEPS, HERE, str(n)], "plain", None) for n in (16, 24, 24)]
results = [done.result for done in runner.in_turn(stepping, 30)]
ran = [sorted([one[:2] for one in result["steps"]] + result["behind"]) for result in results]
for at, result in enumerate(results):
    mine = result["steps"]
    others = [run for one in ran[:at] + ran[at + 1:] for run in one]

    def stopped(begin, end):
        """Did another one run meanwhile?"""
        return any(a < end and b > begin for a, b in others)

    assert not any(stopped(begin, end) for begin, end, _ in mine), (mine, others)
    between = [any(a[1] < moment < b[0] for moment in result["continued"]) for a, b in zip(mine, mine[1:])]
    assert all(was or not stopped(a[1], b[0]) for was, a, b in zip(between, mine, mine[1:])), (mine, result["continued"], others)
    assert 2 <= sum(between) <= len(mine) / 2, (mine, others)
    settled, wanted = 0, []
    for gone_on in [False, *(not one for one in between)]:
        settled = settled + 1 if gone_on else 0
        wanted.append(settled >= 2)
    assert [counts for *_, counts in mine] == wanted, mine  # the first two of a turn do not

assert child.step_ended()  # of a program that takes no turns each counts

# One that hangs, and does not hold the other.
slow = ([sys.executable, "-c", "import time; time.sleep(60)"], "plain", None)
found = runner.in_turn([slow, jobs[0]], 10, ready=False)  # the other one runs for a second
assert found[0].hung and found[1].rc == 0, [(done.rc, done.hung) for done in found]

# Those that meet more than once: nobody begins the second part before both are through with the first.
MEETING = """import json, os, signal, sys, time
parts, released = [], []
signal.signal(signal.SIGUSR1, lambda *_: released.append(1))
for seconds in sys.argv[1:]:
    while not released:
        os.kill(os.getpid(), signal.SIGSTOP)
    released.clear()
    begin = time.monotonic()
    while time.process_time() < (len(parts) + 1) * float(seconds):
        pass
    parts.append([begin, time.monotonic()])
print(json.dumps({'parts': parts}))
"""
jobs = [([sys.executable, "-c", MEETING, part, part], "plain", None) for part in ("0.2", "0.8")]
first, second = (done.result["parts"] for done in runner.in_turn(jobs, 20, meet=True))
assert min(first[1][0], second[1][0]) >= max(first[0][1], second[0][1]), (first, second)

# The same by child.py itself, of programs that have children of their own: those end of no signal.
PARTS = """import json, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from child import meet, ready, step_ended
beside = subprocess.Popen(['sleep', '60'])
ready(steps=True)
parts = []
for part in range(2):
    if part:
        meet()
    begin = time.monotonic()
    for _ in range(int(sys.argv[2])):
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        step_ended()
    parts.append([begin, time.monotonic()])
alive = beside.poll() is None
beside.kill()
print(json.dumps({'parts': parts, 'alive': alive}))
"""
jobs = [([sys.executable, "-c", PARTS, HERE, count], "plain", None) for count in ("10", "40")]
found = [done.result for done in runner.in_turn(jobs, 30, meet=True)]
first, second = (result["parts"] for result in found)
assert min(first[1][0], second[1][0]) >= max(first[0][1], second[0][1]), (first, second)
assert all(result["alive"] for result in found), found

# One whose first step outlasts its turn stops behind it, which is no meeting: the other one waits for the end of its part.
LONG = PARTS.replace("        step_ended()", "        time.sleep(float(sys.argv[3]) if _ == 0 else 0)\n        step_ended()")
jobs = [([sys.executable, "-c", LONG, HERE, "10", first], "plain", None) for first in ("0", "1.6")]
first, second = (done.result["parts"] for done in runner.in_turn(jobs, 30, meet=True))
assert min(first[1][0], second[1][0]) >= max(first[0][1], second[0][1]), (first, second)

# One that is told to stop once too often stops behind a step of its next turn, which is no meeting either.
TOLD = PARTS.replace("import json,", "import json, os, signal,").replace(
    "        step_ended()", "        if part == 0 and _ == int(sys.argv[3]):\n            os.kill(os.getpid(), signal.SIGUSR2)\n        step_ended()")
jobs = [([sys.executable, "-c", TOLD, HERE, *more], "plain", None) for more in (("10", "-1"), ("40", "5"))]
first, second = (done.result["parts"] for done in runner.in_turn(jobs, 30, meet=True))
assert min(first[1][0], second[1][0]) >= max(first[0][1], second[0][1]), (first, second)

# Whoever is killed takes the program that it runs along.
ORPHAN = "import os, time; open(os.path.join(r'{0}', 'pid.new'), 'w').write(str(os.getpid())); os.rename(r'{0}/pid.new', r'{0}/pid'); time.sleep(60)"
RUN = "import sys; sys.path.insert(0, r'{0}'); from child import Runner; Runner(r'{0}', r'{0}', r'{1}').run([sys.executable, '-c', {2!r}])"
killed = subprocess.Popen([sys.executable, "-c", RUN.format(HERE, sys.argv[1], ORPHAN.format(sys.argv[1]))])
pid = os.path.join(sys.argv[1], "pid")
for _ in range(400):
    if os.path.exists(pid):
        break
    time.sleep(0.05)
with open(pid) as f:
    orphan = int(f.read())
killed.kill()
killed.wait()
for _ in range(400):
    if state(orphan)[0] in (None, "Z"):
        break
    time.sleep(0.05)
assert state(orphan)[0] in (None, "Z"), state(orphan)
