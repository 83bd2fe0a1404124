#!/usr/bin/env python3
"""The bench suite: each case plain, preloaded, as one hand-written graph and as hand-written segments, alternating, medians with noise.

Runs on a machine with a GPU from the root of the tree, with the programs that tools/gpu-check has put into .carry/. Writes BENCH.md, bench.json and
plots, again after each case. Exit status: 0 if all results were equal and no bound was missed, 1 otherwise, 2 if nothing could be run.
"""

import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bench_cases as catalogue  # noqa: E402
import bench_report  # noqa: E402
import run_all  # noqa: E402
from child import Runner  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NAME,...", help="these cases: " + ", ".join(catalogue.CASES) + "; or the groups "
                        + ", ".join(catalogue.GROUPS))
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and points")
    parser.add_argument("--reps", type=int, metavar="N", help="repetitions of a point at most (2 with --quick, else what its case says, 2 to 5)")
    parser.add_argument("--plain", action="store_true", help="without the variant preloaded, to try the programs and the machine")
    parser.add_argument("--against", metavar="FILE", help="another libcusplice.so (of an earlier commit), which each point is measured under as well")
    parser.add_argument("--merge", metavar="DIR", nargs="+", help="run nothing: one report of what these folders hold; of a case that several measured, "
                        "the last one's")
    parser.add_argument("--out", metavar="DIR", default=os.path.join(run_all.ROOT, ".carry", "bench"), help="where the report goes (.carry/bench)")
    parser.add_argument("--carry", default=os.path.join(run_all.ROOT, ".carry"), help="folder of the built programs")
    parser.add_argument("--python", help="the Python that has the frameworks (this one by default)")
    parser.add_argument("--limit", type=float, help="seconds that no single program may exceed")
    parser.add_argument("--deadline", type=int, default=480, help="seconds after which no further point or repetition begins (480)")
    args = parser.parse_args()
    if args.against and not os.path.isfile(args.against):
        parser.error(f"--against {args.against}: there is no such file")
    args.against = args.against and os.path.abspath(args.against)
    args.names = list(catalogue.CASES)
    if args.only:
        args.names = list(dict.fromkeys(one for n in args.only.split(",") for one in catalogue.GROUPS.get(n, (n,))))
        unknown = [n for n in args.names if n not in catalogue.CASES]
        if unknown:
            parser.error(f"no case {', '.join(unknown)}; there are {', '.join([*catalogue.CASES, *catalogue.GROUPS])}")
    return args


def run_case(name, args, runner, left):
    bench = catalogue.Bench(runner, name, args.quick, args.plain, left, args.reps or (2 if args.quick else 9), args.against)
    started = time.monotonic()
    try:
        catalogue.CASES[name](bench)
    except catalogue.OutOfTime as error:
        bench.skip(f"no time left for {error} and what follows")
    except Exception as error:  # a case that breaks is a failed case; the others still run
        bench.check("the case itself", False, f"{type(error).__name__}: {error}")
    title = " ".join(catalogue.CASES[name].__doc__.split())
    return {"name": name, "title": title, "run": 0, "seconds": round(time.monotonic() - started, 1), "points": bench.points, "checks": bench.checks,
            "notes": bench.notes, "commands": bench.commands}


def say(case):
    print(f"{case['name']} ({case['seconds']:.0f} s)", flush=True)
    for point in case["points"]:
        figures = ", ".join(f"{name} {bench_report.shown(point, name)}" for name in point["variants"])
        print(f"    {point['label']}: {figures} {point['unit']}" + ("; RESULTS DIFFER" if point["equal"] is False else ""), flush=True)
    for check in case["checks"]:
        if check["ok"] is not True:
            print(f"    {'skipped' if check['ok'] is None else 'FAIL'}: {check['what']}: {check['value']}", flush=True)


def conclude(result, folder, plain):
    for row in bench_report.judge(result):
        if row["ok"] is not None:
            print(f"{'pass' if row['ok'] else 'FAIL'}  {row['value']:8.3f} {'>=' if row['least'] else '<='} {row['bound']:<5g} {row['what']}")
    print(f"{folder}/BENCH.md", flush=True)
    wrong = [c for case in result["cases"] for c in case["checks"] if c["ok"] is False]
    missed = [row for row in bench_report.judge(result) if row["ok"] is False]
    if not wrong and not any(point["variants"] for case in result["cases"] for point in case["points"]):
        return 2
    return 1 if wrong or missed and not plain else 0


def main():
    args = arguments()
    if args.merge:
        result = bench_report.merge([bench_report.load(folder) for folder in args.merge])
        bench_report.write(args.out, result)
        return conclude(result, args.out, args.plain)
    found = run_all.gpu()
    if not found:
        print("bench: no GPU on this machine", file=sys.stderr)
        return 2
    runner = Runner(run_all.ROOT, os.path.abspath(args.carry), tempfile.mkdtemp(prefix="cusplice-bench-"), args.python, args.limit)
    if not args.plain and not os.path.exists(runner.library):
        print(f"bench: {runner.library} is missing; tools/gpu-check --build-only makes it", file=sys.stderr)
        return 2
    facts = run_all.facts_of(found, runner, "tests/gpu/bench.py")
    print(f"{found[0]}, driver {found[1]}, commit {facts['commit']}", flush=True)
    begin = time.monotonic()
    result = {"runs": [facts], "cases": []}
    for name in args.names:
        case = run_case(name, args, runner, lambda: args.deadline - (time.monotonic() - begin))
        result["cases"].append(case)
        facts["seconds"] = round(time.monotonic() - begin)
        bench_report.write(args.out, result)
        say(case)
    return conclude(result, args.out, args.plain)


if __name__ == "__main__":
    sys.exit(main())
