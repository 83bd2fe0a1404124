#!/usr/bin/env python3
"""Measures whether an op costs the same however large the program is: runs harness/bench/growth over a grid of sizes.

usage: harness/bench/growth.py [--time | --instructions] [--axis NAME]... [--quick | --check] [--out DIR] [--reps N]
  --instructions  (default) the library's instructions for one launch, with those of the C library that it calls, without the
                  driver's. Runs on the simulator under valgrind's callgrind, so a busy machine does not change the result
  --time          host time of a launch by the clock (medians), plain and preloaded in turn, on the libcuda that is found
  --axis NAME     nodes, prefix, order, short, grid, streams, calls or threads (default: all)
  --quick         fewer points
  --check         two points of most axes; fails if the larger one costs more than 1.10 of the smaller one
  --out DIR       writes growth-MODE.json, .md and .svg there (default: prints Markdown alone)
  --reps N        repetitions of --time (default 5)

Environment: GROWTH_BIN (folder in place of bazel-bin). Status 77 if valgrind is missing.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "harness/bench"))
import plot
BIN = pathlib.Path(os.environ.get("GROWTH_BIN", ROOT / "bazel-bin"))
# Axis: what a point is, its points, its quick points, those of --check, and the arguments of a point. A segment is timed at its 4th, 8th,
# 16th ... launch, op by op: so many steps come before the measured ones that none of these falls among them where there are few.
WARM = 40


def signatures(nodes, differ):
    return lambda n: ["--nodes", nodes, "--signatures", n, "--differ", differ, "--warmup", WARM * n + 24]


AXES = {
    "nodes": ("launches in a step", [10, 100, 1000, 10000, 100000], [10, 1000, 100000], [100, 2000],
              lambda n: ["--nodes", n, "--warmup", 52] + (["--steps", 4] if n > 10000 else [])),
    "prefix": ("steps of 100 launches in turn that differ in their first two", [1, 10, 100, 1000], [1, 100], [1, 20], signatures(100, "prefix")),
    "order": ("steps of 100 launches in turn that differ in all", [1, 10, 100, 1000], [1, 100], [1, 20], signatures(100, "order")),
    "short": ("steps of 20 launches in turn that differ in all", [1, 10, 100, 1000, 10000], [1, 100, 10000], [], signatures(20, "order")),
    "grid": ("steps of 20 launches in turn that differ in their grids", [1, 10, 100, 1000, 10000], [1, 100, 1000], [1, 20], signatures(20, "grid")),
    "streams": ("streams in turn, a step of 100 launches each", [1, 10, 100, 1000], [1, 100, 1000], [],
                lambda n: ["--nodes", 100, "--streams", n, "--warmup", WARM * n + 24]),
    "calls": ("the same, with two calls in each step that cover all streams", [1, 10, 100, 1000], [1, 100, 1000], [1, 60],
              lambda n: ["--nodes", 100, "--streams", n, "--allocate", "--warmup", WARM * n + 24]),
    "threads": ("threads, a stream and steps of 100 launches each", [1, 2, 4, 8, 16], [1, 4], [],
                lambda n: ["--nodes", 100, "--threads", n, "--steps", 1000 // n]),
}
FLAT = 1.10
SEGMENT = 64  # launches of a graph where instructions are counted


def counted(path):
    """Of one callgrind file: the library's own instructions and those of what it calls in the C library."""
    names, sums = {}, collections.Counter()
    library = libc = ob = cob = None
    call = False

    def name(text):
        number, _, said = text.partition(" ")
        if said:
            names[number] = said
        return names.get(number, number)

    for line in open(path, encoding="utf-8", errors="replace"):
        if line.startswith("ob="):
            ob = cob = name(line[3:].rstrip("\n"))
            library = "libcusplice" in ob
        elif line.startswith("cob="):
            cob = name(line[4:].rstrip("\n"))
        elif line.startswith("fn="):
            cob = ob
        elif line.startswith("calls="):
            call = True
        elif re.match(r"[0-9+*-]", line):
            cost = int(line.split()[1])
            if library and not call:
                sums["own"] += cost
            elif library and cob != ob and re.search(r"/lib(c|pthread)[.-]", cob or ""):
                sums["libc"] += cost
            if call:
                call, cob = False, ob
    return sums


def run(arguments, preload, scratch, callgrind):
    env = dict(os.environ)
    command = [str(BIN / "harness/bench/growth"), *map(str, arguments)]
    if preload:
        env["LD_PRELOAD"] = str(BIN / "shim/libcusplice.so")
        env.setdefault("CUSPLICE_LOG", "error")
        env["CUSPLICE_STATS"] = str(scratch / "stats.json")
    if callgrind:
        env["CUSIM_DELAY_US"] = "0"
        env["LD_LIBRARY_PATH"] = str(BIN / "harness/sim/lib")
        # A thread that is starved under valgrind is no host that pauses; and its pace, which is another one each time, is not to
        # decide how large segments are, nor how many are built in a step, nor which thread launches them.
        for key, value in (("HOLD_US", 1000000), ("SUBMIT_NS", 0), ("SEGMENT_FIRST", SEGMENT), ("SEGMENT_MAX", SEGMENT), ("BUILD_US", 0)):
            env.setdefault(f"CUSPLICE_{key}", str(value))
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--toggle-collect=measured*", "--fair-sched=yes", "--max-threads=3000",
                   f"--callgrind-out-file={scratch}/callgrind.out", *command]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"growth.py: {' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
    result = json.loads(done.stdout)
    if preload:
        stats = json.loads((scratch / "stats.json").read_text())
        result["built"] = stats["built"]
        result["fallbacks"] = {k: v for k, v in stats["fallbacks"].items() if v and k != "withholding_off"}
        result["graph_bytes_per_op"] = stats["graph_memory"]["bytes_per_op"]
        result["host_bytes_per_node"] = stats["host_memory"]["bytes_per_node"]
    if callgrind:
        sums = counted(scratch / "callgrind.out")
        result["own"] = sums["own"] / result["launches"]
        result["instructions"] = (sums["own"] + sums["libc"]) / result["launches"]
    return result


def instructions(axis, n, more=()):
    with tempfile.TemporaryDirectory() as folder:
        result = run([*AXES[axis][4](n), *more], True, pathlib.Path(folder), True)
    return {"value": result["instructions"], "run": result}


def check():
    """Two points of each axis that has them, few steps, two runs at a time. 1 where the larger one costs more."""
    points = [(axis, n) for axis in AXES for n in AXES[axis][3]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda p: instructions(*p, ["--steps", 15 if p[1] > 1000 else max(300, 6 * p[1])]), points))
    table = collections.defaultdict(dict)
    for (axis, n), result in zip(points, found):
        table[axis][n] = result
    high = 0
    for axis, ratios in ((axis, growth_of(points)) for axis, points in table.items()):
        for n, ratio in ratios.items():
            high += ratio > FLAT
            print(f"{axis:8} {n:6}: {table[axis][n]['value']:7.1f} instructions a launch" + (f", {ratio:.2f} of a smaller one" if ratio != 1 else "")
                  + (f": more than {FLAT}" if ratio > FLAT else ""))
    print("growth.py: " + ("some cost grows" if high else "no cost grows"))
    return 1 if high else 0


def clock(axis, n, scratch, reps):
    plain, loaded = [], []
    for rep in range(reps):
        for preload in (False, True) if rep % 2 == 0 else (True, False):
            (loaded if preload else plain).append(run(AXES[axis][4](n), preload, scratch, False))
    if len({r["checksum"] for r in plain + loaded}) != 1:
        sys.exit(f"growth.py: {axis} {n}: plain and preloaded give different results")
    result = sorted(loaded, key=lambda r: r["host_ns"])[len(loaded) // 2]
    return {"value": result["host_ns"], "plain": statistics.median(r["host_ns"] for r in plain),
            "wall": statistics.median(r["wall_ns"] for r in loaded), "plain_wall": statistics.median(r["wall_ns"] for r in plain),
            "run": result}


def growth_of(points):
    """Of each point: its cost, to the least of any smaller size."""
    least, ratios = None, {}
    for n in sorted(points):
        value = points[n]["value"]
        ratios[n] = value / least if least else 1
        least = min(least or value, value)
    return ratios


def markdown(mode, table):
    unit = "instructions a launch" if mode == "instructions" else "host ns a launch"
    lines = []
    for axis, points in table.items():
        by_clock = mode == "time"
        lines += ["", f"{axis}: {AXES[axis][0] if axis in AXES else axis}", "", f"| {axis} | {unit} | to any smaller |" + (" plain | wall, to plain |" if by_clock else "")
                  + " in graphs | patched | graphs a launch | built | bytes a node, GPU | host | graph MB | resident MB | said |",
                  "| --- " * (13 if by_clock else 11) + "| --- |"]
        ratios = growth_of(points)
        for n, p in points.items():
            r = p["run"]
            lines.append(f"| {n} | {p['value']:.1f} | {ratios[n]:.2f} |"
                         + (f" {p['plain']:.0f} | {p['wall'] / p['plain_wall']:.2f} |" if by_clock else "")
                         + f" {100 * r['in_graphs']:.1f} % | {100 * r['patched']:.1f} % | {r['graph_launches']:.4f} | {r['built']} |"
                         f" {r['graph_bytes_per_op']} | {r['host_bytes_per_node']} |"
                         f" {r['graph_bytes'] / 2**20:.1f} | {r['rss_kb'] / 1024:.0f} |"
                         f" {', '.join(f'{k} {v}' for k, v in r['fallbacks'].items())} |")
    return "\n".join(lines).strip() + "\n"


def svg(mode, table):
    """Each axis a line: cost by size, both by their logarithm; the least of each line is 1. What falls was the cost of a small step."""
    least = {axis: min(p["value"] for p in points.values()) for axis, points in table.items()}
    lines = {(axis, ""): [(n, *[p["value"] / least[axis]] * 3) for n, p in sorted(points.items())] for axis, points in table.items()}
    return plot.draw(lines, f"{mode} a launch", "size", "to the least of the same line", (True, True), level=FLAT)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1], add_help=True)
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--axis", action="append", choices=list(AXES))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--reps", type=int, default=5)
    options = parser.parse_args()
    mode = "time" if options.time else "instructions"
    if mode == "instructions" and not shutil.which("valgrind"):
        print("growth.py: there is no valgrind", file=sys.stderr)
        return 77
    if options.check:
        return check()
    table = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for axis in options.axis or AXES:
            table[axis] = {}
            for n in AXES[axis][2 if options.quick else 1]:
                table[axis][n] = instructions(axis, n) if mode == "instructions" else clock(axis, n, scratch, options.reps)
                print(f"{axis} {n}: {table[axis][n]['value']:.1f}", file=sys.stderr)
    text = markdown(mode, table)
    print(text, end="")
    if options.out:
        out = pathlib.Path(options.out)
        out.mkdir(parents=True, exist_ok=True)
        for suffix, content in (("json", json.dumps(table, indent=1) + "\n"), ("md", text), ("svg", svg(mode, table))):
            (out / f"growth-{mode}.{suffix}").write_text(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
