"""Runs one program, plain or preloaded, and records everything about it.

Standard library only. A child has its own session and its own time limit. If a child hangs, its threads (and Python stacks)
are recorded, the child is ended, and its check fails; the other results stay.
"""

import concurrent.futures
import contextlib
import ctypes
import glob
import json
import os
import signal
import subprocess
import sys
import threading
import time


class Finished:
    """What is known about a child after it has ended."""

    def __init__(self, argv, variant, env):
        self.argv, self.variant, self.env = argv, variant, env
        self.rc, self.seconds, self.hung = None, 0.0, False
        self.unready = False  # it ended before its turns began, for it never stopped where it is ready
        self.stdout, self.stderr = "", ""
        self.stats, self.result = None, None
        self.host_ms = ()  # with `settled`, or in turns: the yardstick before and after

    @property
    def ok(self):
        return self.rc == 0 and not self.hung and not self.unready

    def why(self):
        """One line on what went wrong, the end of stderr included."""
        head = "hung" if self.hung else f"exit status {self.rc}"
        if self.rc == 0 and self.unready:
            head = "ended before its turn: it does not say where it is ready"
        tail = " | ".join(self.stderr.strip().splitlines()[-4:])
        return f"{self.variant}: {os.path.basename(self.argv[0])} {' '.join(self.argv[1:4])}: {head}: {tail}"[:700]


def library_folders():
    """Folders in which this machine keeps libcudart.so.13 and libcublas.so.13, in the order of trust."""
    found = []
    for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda", "/usr/local/cuda-13.0"):
        if root:
            found += [os.path.join(root, "lib64"), os.path.join(root, "targets/x86_64-linux/lib")]
    for base in sys.path:
        found += sorted(glob.glob(os.path.join(base, "nvidia", "*", "lib")))
    wanted = ("libcudart.so.13", "libcublas.so.13")
    return list(dict.fromkeys(d for d in found if any(os.path.exists(os.path.join(d, w)) for w in wanted)))


def describe_threads(pid):
    """Name and kernel wait channel of each thread: enough to tell a wait in the driver from a spinning host."""
    lines = []
    for task in sorted(glob.glob(f"/proc/{pid}/task/*"))[:40]:
        words = []
        for name in ("comm", "wchan", "syscall"):
            try:
                with open(os.path.join(task, name)) as f:
                    words.append(f.read().strip()[:60])
            except OSError:
                words.append("?")
        lines.append(f"thread {os.path.basename(task)}: {', '.join(words)}")
    return "\n".join(lines)


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def end_with_parent():
    """In a child: one that outlives a run that was killed would have the GPU beside whatever is measured next."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def yardstick(cpus):
    """Milliseconds of a fixed loop on each of these CPUs, by CPU: what the host is worth now. The best of three, 0.5 ms or so each."""
    took = {}
    for cpu in cpus:
        os.sched_setaffinity(0, {cpu})
        tries = []
        for _ in range(3):
            begin, x = time.perf_counter(), 0
            for i in range(8000):
                x += i
            tries.append((time.perf_counter() - begin) * 1e3)
        took[cpu] = min(tries)
    return took


SETTLING = 8  # steps at the beginning of a turn that do not count: others had the caches meanwhile, and its threads may be on other CPUs
over = threading.Event()  # of a program that takes turns: the others wait for theirs
met = threading.Event()  # of one that waits for the others at the beginning of a part
settling = 0  # steps that do not count, from now on


def stop():
    """Until its next turn."""
    global settling
    os.kill(0, signal.SIGSTOP)
    settling = SETTLING


def ready(steps=False):
    """For a program, right before what it times: one that takes turns with others (Turns) stops here until they have come as far.
    `steps`: it will say where each of its steps has ended."""
    if os.environ.get(Turns.ASKED):
        if steps:
            for number, event in ((Turns.OVER, over), (Turns.MET, met)):
                signal.signal(number, lambda *_, event=event: event.set())
                signal.siginterrupt(number, False)
        stop()


def meet():
    """For a program that was `ready` with `steps`, before each further part that it times: it waits until the others have come as far."""
    if os.environ.get(Turns.ASKED):
        met.clear()
        signal.pthread_sigmask(signal.SIG_BLOCK, {Turns.OVER})  # a stop with it blocked is no end of a step
        while not met.is_set():
            stop()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {Turns.OVER})


def step_ended():
    """For a program that was `ready` so, by one thread of it between two steps that it times: one whose turn is over stops here.
    Returns whether the step that has ended counts; of a program that takes no turns each does."""
    global settling
    counts = settling == 0
    settling -= not counts
    if over.is_set():
        over.clear()
        stop()
    return counts


def state(pid):
    """The letter of a process in ps, and its group; None where it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            letter, _, group = f.read().rsplit(")", 1)[1].split()[:3]
    except OSError:
        return None, None
    return letter, int(group)


def has_signal(pid, where, number):
    """Does the process catch this signal (`where`: SigCgt) or block it (SigBlk)?"""
    try:
        with open(f"/proc/{pid}/status") as f:
            numbers = next(line.split()[1] for line in f if line.startswith(f"{where}:"))
    except (OSError, StopIteration):
        return False
    return bool(int(numbers, 16) >> number - 1 & 1)


def group(leader):
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and state(name)[1] == leader]


def move(pids, cpus):
    """All threads of these processes to these CPUs."""
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(task), cpus)


class Settled:
    """The CPUs that are fastest now, for this thread and the children that it starts; behind it, all that there were.

    A virtual machine shares its cores: one CPU may take twice the time of another for as long as a neighbour works.
    """

    CPUS = 4  # so many, where nothing else is said

    def __init__(self, done, count=CPUS):
        self.done, self.count = done, count

    def __enter__(self):
        self.all = os.sched_getaffinity(0)
        took = yardstick(self.all)
        self.cpus = sorted(self.all, key=took.get)[:self.count]
        self.before = max(took[cpu] for cpu in self.cpus)
        os.sched_setaffinity(0, self.cpus)
        return self

    def __exit__(self, *_):
        self.done.host_ms = (self.before, max(yardstick(self.cpus).values()))
        os.sched_setaffinity(0, self.all)


class Turns:
    """Children of which one runs at a time, while the others are stopped, on the CPUs that are fastest then.

    The host of a virtual machine keeps its speed for seconds, and then has another. Programs that are compared have to meet the
    same of it, and those that run one after the other do not. One that says where its steps end is stopped there: in the midst
    of one the library would issue what it defers, as for a program that has gone to sleep, and learn from that.
    """

    ASKED = "TESTS_TURNS"  # in the environment of children that stop where they are `ready`
    OVER = signal.SIGUSR2  # to such a one: it is to stop behind its step
    MET = signal.SIGUSR1  # with `meet`: the others have come as far
    TURN = 0.3  # seconds, where nothing else is said: many of the steps that are timed
    STEP = 1  # seconds that one of them may take; two turns, where that is longer

    def __init__(self, n, ready, meet, turn=TURN, cpus=Settled.CPUS):
        self.ready, self.meet, self.seconds, self.cpus, self.left, self.leaders = ready, meet, turn, cpus, n, []
        self.host_ms, self.seen = (), []
        self.begun = False  # each has stopped where it is ready
        self.late = set()  # who was stopped in the midst of a step, and will stop at its end too
        self.changed = threading.Condition()

    def began(self, leader):
        with self.changed:
            self.leaders.append(leader)
            self.changed.notify()
        if not self.ready:
            self.tell(leader, signal.SIGSTOP)

    def ended(self, leader):
        with self.changed:
            self.left -= 1
            self.leaders = [other for other in self.leaders if other != leader]
            self.changed.notify()

    def give(self):
        """Until all have ended. The yardsticks of all that while are in `seen`.

        With `meet` a child that stops by itself has no turn until all have. It stops again and again until SIGUSR1 tells it that they have.
        Its own children do not hear of it: most would end of the signal."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.leaders) == self.left)
        while not all(state(leader)[0] == "T" for leader in self.leaders):
            time.sleep(0.05)
        self.begun = True
        waiting = set()
        while self.left:
            groups = {leader: group(leader) for leader in self.leaders}
            if waiting.issuperset(groups):
                for leader in waiting:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(leader, self.MET)
                waiting.clear()
            with Settled(self, self.cpus) as best:
                for leader, pids in groups.items():
                    if leader not in waiting:
                        move(pids, best.cpus)
                        waiting |= self.turn(leader)
            self.seen += self.host_ms

    def meets(self, leader):
        """Has it stopped to wait for the others? One that is told to stop behind a step may also do that in its next turn."""
        return not has_signal(leader, "SigCgt", self.OVER) or has_signal(leader, "SigBlk", self.OVER)

    def turn(self, leader):
        """The leader if it stopped to wait for the others."""
        late = leader in self.late
        self.late.discard(leader)
        self.tell(leader, signal.SIGCONT)
        stopped = self.wait(leader, self.seconds, self.meet or late)
        if not stopped and state(leader)[0] != "T" and has_signal(leader, "SigCgt", self.OVER):
            with contextlib.suppress(ProcessLookupError):
                os.kill(leader, self.OVER)
            if not self.wait(leader, max(self.STEP, 2 * self.seconds), True) and leader in self.leaders:
                self.late.add(leader)
        self.tell(leader, signal.SIGSTOP)
        return {leader} if self.meet and stopped and self.meets(leader) else set()

    def wait(self, leader, seconds, stops):
        """Until then, or its end, or (`stops`) until it stops. True: it has stopped."""
        end, stopped = time.monotonic() + seconds, False
        while leader in self.leaders and not stopped and time.monotonic() < end:
            with self.changed:
                self.changed.wait_for(lambda: leader not in self.leaders, timeout=0.01)
            stopped = stops and state(leader)[0] == "T"
        return stopped

    def tell(self, leader, number):
        with contextlib.suppress(ProcessLookupError):
            if leader in self.leaders:
                os.killpg(leader, number)


class Runner:
    def __init__(self, root, carry, scratch, python=None, most=None):
        self.most = most  # seconds that no child may exceed, whatever its own limit is
        self.root, self.carry, self.scratch = root, carry, scratch
        self.python = python or sys.executable
        self.folders = library_folders()
        self.count = 0
        self.lock = threading.Lock()
        os.makedirs(scratch, exist_ok=True)

    def program(self, name):
        """The path of a built program, or None where it is not built."""
        path = os.path.join(self.carry, name)
        return path if os.access(path, os.X_OK) else None

    @property
    def library(self):
        return os.path.join(self.carry, "libcusplice.so")

    def environment(self, variant, extra, stats):
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUSPLICE")}
        env["PYTHONFAULTHANDLER"] = "1"
        env["TOKENIZERS_PARALLELISM"] = "false"
        if variant in ("preload", "off"):
            env["LD_PRELOAD"] = self.library
            env["CUSPLICE_STATS"] = stats
        if variant == "off":
            env["CUSPLICE"] = "off"
        env.update(extra or {})
        return env

    def run(self, argv, variant="plain", env=None, limit=60, native=True, settled=False, turns=None):
        """Runs argv to its end. `variant`: plain, preload, off (preloaded with the kill switch). `settled`: on the fastest CPUs."""
        with self.lock:
            self.count += 1
            stats = os.path.join(self.scratch, f"stats-{self.count}.json")
        done = Finished([str(a) for a in argv], variant, env or {})
        environment = self.environment(variant, env, stats)
        if native and self.folders:
            path = self.folders + [p for p in environment.get("LD_LIBRARY_PATH", "").split(":") if p]
            environment["LD_LIBRARY_PATH"] = ":".join(path)
        with Settled(done) if settled else contextlib.nullcontext():
            self.finish(done, environment, min(limit, self.most or limit), turns)
        done.stats = self.read_stats(stats)
        done.result = last_json(done.stdout)
        return done

    def in_turn(self, jobs, limit=60, ready=True, meet=False, native=True, turn=Turns.TURN, cpus=Settled.CPUS):
        """Runs all of (argv, variant, env), in turns: Turns. `ready`: they stop by themselves before what is timed; `meet`: and before each part of it."""
        turns = Turns(len(jobs), ready, meet, turn, cpus)
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
            runs = [pool.submit(self.run, argv, variant, {**(env or {}), **({Turns.ASKED: "1"} if ready else {})}, limit * len(jobs), native, turns=turns)
                    for argv, variant, env in jobs]
            turns.give()
        found = [run.result() for run in runs]
        for done in found:
            done.host_ms = tuple(turns.seen)
        return found

    def finish(self, done, environment, limit, turns):
        begin = time.monotonic()
        try:
            process = subprocess.Popen(done.argv, cwd=self.root, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                       start_new_session=True, preexec_fn=end_with_parent)
        except OSError as error:
            done.rc, done.stderr = 127, str(error)
            if turns:
                turns.ended(None)
            return
        if turns:
            turns.began(process.pid)
        try:
            done.stdout, done.stderr = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            done.hung = True
            threads = describe_threads(process.pid)
            for number in (signal.SIGABRT, signal.SIGKILL):  # the first makes Python print its stacks
                try:
                    os.killpg(process.pid, number)
                except ProcessLookupError:
                    pass
                try:
                    done.stdout, done.stderr = process.communicate(timeout=5)
                    break
                except subprocess.TimeoutExpired:
                    continue
            done.stderr = f"{done.stderr or ''}\nno end after {limit} s\n{threads}"
        if turns:
            turns.ended(process.pid)
            done.unready = turns.ready and not turns.begun
        done.rc = process.returncode
        done.seconds = time.monotonic() - begin

    def python_script(self, name, *args):
        return [self.python, os.path.join(self.root, "tests", "gpu", name), *args]

    def script(self, name, *args, variant="plain", env=None, limit=120):
        """Runs one of the Python programs of this folder."""
        return self.run(self.python_script(name, *args), variant=variant, env=env, limit=limit, native=False)

    @staticmethod
    def read_stats(path):
        try:
            with open(path) as f:
                return json.load(f)
        except (OSError, ValueError):
            return None


def last_json(text):
    """The last line of stdout that is a JSON object, or None."""
    for line in reversed(text.strip().splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None
