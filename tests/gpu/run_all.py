#!/usr/bin/env python3
"""Runs all checks on a real GPU: equal outputs first, then times, plain and preloaded in turn.

Runs from the root of the tree with the programs that tools/gpu-check put into .carry/. It needs only Python's standard
library. The programs need PyTorch, transformers, CuPy, Triton and JAX; programs without their framework are skipped. Exit
status: 0 if every check held, 1 if one failed, 2 if nothing could be run.
"""

import argparse
import concurrent.futures
import ctypes
import datetime
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cases as catalogue  # noqa: E402
import report  # noqa: E402
from child import Runner  # noqa: E402
from lab import Lab  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def first_line(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=20).stdout.strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return ""


def gpu():
    """Name and driver version of the first GPU, or None. Asked of nvidia-smi, else of the driver itself."""
    line = first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    if line and "," in line:
        name, driver = line.rsplit(",", 1)
        return name.strip(), driver.strip()
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, name, version = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return None
    cuda.cuDeviceGetName(name, 128, device)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    return name.value.decode(), f"CUDA {version.value}"


def gate_table(found, carry, folder):
    """The table of which calls wait for the GPU, as gate-DRIVER.csv in folder; gate_test compares it with the classes."""
    path = os.path.join(folder, f"gate-{found[1].replace(' ', '-')}.csv")
    day = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    label = f"{found[0]}; driver {found[1]}; {day}; commit {commit(carry)}"
    argv = [os.path.join(carry, "gate"), "--out", path + ".part", "--label", label]
    try:
        os.makedirs(folder, exist_ok=True)
        rc = subprocess.run(argv, timeout=540).returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"run_all: {error}", file=sys.stderr)
        return 2
    if rc == 0:
        os.replace(path + ".part", path)
        print(path)
    return rc


def commit(carry):
    try:
        with open(os.path.join(carry, "commit")) as f:
            return f.read().strip()
    except OSError:
        return first_line(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"]) or "unknown"


def facts_of(found, runner, program):
    return {
        "GPU": found[0],
        "driver": found[1],
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(runner.carry),
        "command": " ".join([program, *sys.argv[1:]]),
        "frameworks": versions(runner),
    }


def run_case(name, args, runner, begin):
    lab = Lab(runner, name, args.quick, args.plain, {"ops": args.ops, "samples": args.samples, "programs": args.programs})
    started = time.monotonic()
    if started - begin > args.deadline:
        lab.check("run before the deadline", False, f"not begun after {args.deadline} s")
    else:
        try:
            catalogue.CASES[name](lab)
        except Exception as error:  # a case that breaks is a failed case; the others still run
            lab.check("the case itself", False, f"{type(error).__name__}: {error}")
    seconds = time.monotonic() - started
    return {"name": name, "seconds": round(seconds, 1), "checks": lab.checks, "figures": lab.figures,
            "stats": lab.stats, "notes": lab.notes, "commands": lab.commands}


def say(case):
    passed, failed, skipped = report.counts([case])
    print(f"{case['name']}: {passed} passed, {failed} failed, {skipped} skipped ({case['seconds']:.0f} s)", flush=True)
    for name, figure in case["figures"].items():
        print(f"    {name}: {figure['key']} {figure['median']:.5g}")
    for check in case["checks"]:
        if check["issue"] or check["ok"] is not True:
            print(f"    {report.verdict(check)}: {check['what']}: {check['value']} ({check['bound']})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NAME,...", help="these cases: " + ", ".join(catalogue.CASES) + "; or "
                        + ", ".join(catalogue.GROUPS))
    parser.add_argument("--full", action="store_true", help="the long cases as well: " + ", ".join(catalogue.LONG))
    parser.add_argument("--ops", metavar="NAME,...", help="these operators alone in op-db")
    parser.add_argument("--programs", metavar="WORD,...", help="predict, replay, growth and phases: those parts alone with such a word in their name (decode, Linear, "
                        "Llama; threads, streams, budget, memory; past, good, learning)")
    parser.add_argument("--samples", type=int, help="samples of an operator at most (100; 8 with --quick; 0: all)")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--timed", action="store_true", help="the timed cases alone")
    parser.add_argument("--gate", action="store_true", help="nothing but the gate table")
    parser.add_argument("--plain", action="store_true", help="programs as they are, to try them and the machine")
    parser.add_argument("--out", metavar="DIR", help="where RESULTS.md and results.json go (.carry/results); with --gate: where gate-DRIVER.csv goes "
                        "(tests/gpu)")
    parser.add_argument("--carry", default=os.path.join(ROOT, ".carry"), help="folder of the built programs")
    parser.add_argument("--python", help="the Python that has the frameworks (this one by default)")
    parser.add_argument("--limit", type=float, help="seconds that no single program may exceed")
    parser.add_argument("--deadline", type=int, help="seconds after which no further case begins (540; 1200 with --full)")
    args = parser.parse_args()

    args.deadline = args.deadline or (1200 if args.full else 540)
    names = list(catalogue.TIMED if args.timed else catalogue.CASES)
    if not args.full:
        names = [n for n in names if n not in catalogue.LONG]
    if args.only:
        names = [one for n in args.only.split(",") for one in catalogue.GROUPS.get(n, (n,))]
        unknown = [n for n in names if n not in catalogue.CASES]
        if unknown:
            parser.error(f"no case {', '.join(unknown)}; there are {', '.join([*catalogue.CASES, *catalogue.GROUPS])}")
    found = gpu()
    runner = Runner(ROOT, os.path.abspath(args.carry), tempfile.mkdtemp(prefix="cusplice-gpu-"), args.python,
                    args.limit)
    if not found:
        print("run_all: no GPU on this machine", file=sys.stderr)
        return 2
    if args.gate:
        return gate_table(found, runner.carry, args.out or os.path.join(ROOT, "tests", "gpu"))
    if not args.plain and not os.path.exists(runner.library):
        print(f"run_all: {runner.library} is missing; tools/gpu-check --build-only makes it", file=sys.stderr)
        return 2
    folder = args.out or os.path.join(ROOT, ".carry", "results")
    runner.results = folder
    facts = facts_of(found, runner, "tests/gpu/run_all.py")
    print(f"{found[0]}, driver {found[1]}, commit {facts['commit']}", flush=True)

    begin = time.monotonic()
    done = []

    def finish(case):
        done.append(case)
        done.sort(key=lambda c: list(catalogue.CASES).index(c["name"]))
        facts["seconds"] = round(time.monotonic() - begin)
        report.write(folder, facts, done)
        say(case)

    # Programs whose output alone counts run side by side; nothing else runs while times are taken.
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        waiting = [pool.submit(run_case, n, args, runner, begin) for n in names if n in catalogue.PROGRAMS]
        for future in concurrent.futures.as_completed(waiting):
            finish(future.result())
    for name in names:
        if name in catalogue.TIMED + catalogue.LONG:
            finish(run_case(name, args, runner, begin))

    passed, failed, skipped = report.counts(done)
    print(f"{folder}/RESULTS.md\n{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0 if passed or args.plain else 2


def versions(runner):
    code = ("import importlib.metadata as m\n"
            "for n in ('torch','transformers','triton','cupy-cuda13x','jax','numba-cuda'):\n"
            "    try: print(n, m.version(n), end=', ')\n"
            "    except m.PackageNotFoundError: pass\n")
    return first_line([runner.python, "-c", code]).rstrip(", ")


if __name__ == "__main__":
    sys.exit(main())
