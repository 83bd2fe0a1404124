#!/usr/bin/env python3
"""Measures what each mechanism of shim/base/pays.def gains: programs run in turn with all mechanisms, and without one.

Runs on a machine with a GPU from the root of the tree, with the files that `tools/gpu-check --ablation --build-only` put into .carry/. In a turn
each program runs twice with everything, and once without each mechanism. A cell of the table is the median without the mechanism divided by the
median with everything: above 1 the mechanism gains. The spread is the largest difference of the two equal runs of a turn.
With --against the other runs are those of other libraries, or of none, in place of .carry/libcusplice.so: above 1 that one is slower.
ablation.md and ablation.json are written again after each turn. Exit status: 0 if all results were equal, 1 otherwise, 2 if nothing was measured.
"""

import argparse
import importlib
import json
import os
import re
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_all  # noqa: E402
from cases import BATCHES, tokens_per_second  # noqa: E402
from child import Runner  # noqa: E402

WITH = ("all", "all again")  # the variants without nothing
PLAIN = "plain"  # the variant without a library
LOST = 0.02  # of a program's time, beyond the spread: what a mechanism has to gain
TABLE = os.path.join(run_all.ROOT, "shim", "base", "pays.def")
ENGINES = ("unet", "hf-whisper", "ct2-gpt2")


def rows():
    """The rows of pays.def, and the same with one word for those that begin with it."""
    with open(TABLE) as f:
        names = re.findall(r'^PAYS\(\w+, "(\w+)"', f.read(), re.M)
    names.remove("launches")  # without them results are wrong: try_all.py has them as variant `floor`
    first = [name.split("_")[0] for name in names]
    return names, list(dict.fromkeys(word if first.count(word) > 1 else name for name, word in zip(names, first)))


def environment_of(variant):
    """What is set for a run: a mechanism to leave out, or another library, whose name has a slash."""
    if variant in WITH or variant == PLAIN:
        return {}
    return {"LD_PRELOAD": os.path.abspath(variant)} if "/" in variant else {"CUSPLICE_WITHOUT": variant}


# The programs


class Program:
    """How a program is run and what counts of it: less is better. `way`: turns; meet: it stops before each phase, too; alone:
    one behind the other on the fastest CPUs; free: on all of them."""

    def __init__(self, argv, way, figure, result="checksum", env=None, native=True, limit=60):
        self.argv, self.way, self.figure, self.result, self.env, self.native, self.limit = argv, way, figure, result, env, native, limit

    def call(self, runner, variants):
        """One turn: what became of each variant, in their order."""
        jobs = [(self.argv, PLAIN if name == PLAIN else "preload", {**(self.env or {}), **environment_of(name)}) for name in variants]
        if self.way in ("alone", "free"):
            return [runner.run(*job, limit=self.limit, native=self.native, settled=self.way == "alone") for job in jobs]
        return runner.in_turn(jobs, self.limit, native=self.native, meet=self.way == "meet", turn=0.1 if self.native else 0.3)


def of_phases(done):
    """ns of a launch over all phases."""
    phases = done.result["phases"]
    return sum(p["wall_ns"] * p["ops"] for p in phases) / sum(p["ops"] for p in phases)


def host_loops(built, short):
    """Forms of the host loop. None warms up before its turn comes: all would do it at once."""
    def steps(launches):
        return ["--launches", str(launches), "--warmup", "0", "--steps", str((20000 if short else 600000) // launches), "--stops"]

    loop = built("hostloop")
    yield "hostloop 240 launches", Program([loop, *steps(240)], "turns", "wall_ns")
    forms = {"1000 launches": [], "patched": ["--scalar-every", "4", "--grid-every", "10"],
             "memsets and copies": ["--memset-every", "10", "--copy-every", "10"], "4 streams": ["--streams", "4", "--run", "10"], "random": ["--random", "50"]}
    for name, more in forms.items():
        yield f"hostloop {name}", Program([loop, *steps(1000), *more], "turns", "wall_ns")
    yield "hostloop eager", Program([loop, *steps(1000), "--eager-every", "10"], "turns", "wall_ns", env={"CUSPLICE_EAGER": "bench_eager"})
    yield "hostloop endless", Program([loop, "--loop", "37", "--turns", "200" if short else "10000"], "alone", "wall_ns")
    yield "hostloop threads", Program([loop, "--threads", "2" if short else "8", "--warmup", "4" if short else "200", "--steps", "4" if short else "60"],
                                      "free", "wall_ns")


def decodes(built, short):
    forms = (("decode host", ["--tokens", "8" if short else "200"], "decode"),
             ("decode host batches", ["--prompt", "A", "--batches", BATCHES, "--tokens", "4" if short else "60"], "decode-modes"))
    for name, more, preset in forms:
        yield name, Program([built("decode"), *more], "alone", lambda done: 1e3 / tokens_per_second(done), lambda done: done.stdout.strip(),
                            {"CUSPLICE_CONFIG": os.path.join(run_all.ROOT, "config", "presets", f"{preset}.conf")})


def several_phases(built, short):
    sizes = {"good": 4000, "none": 2500, "three": 3000, "runs": 6000, "shapes": 6000, "short": 100000}
    for name, kinds in {**{kind: [kind] for kind in sizes}, "in turn": ["good", "none", "good", "three", "good", "runs", "good", "shapes"]}.items():
        phases = [f"{kind}:{20 if short else sizes[kind] // (2 if len(kinds) > 1 else 1)}" for kind in kinds]
        yield f"phases {name}", Program([built("phases"), "--meet", *phases], "meet", of_phases)


def growths(built, short):
    small = {"CUSPLICE_GRAPH_MB": "32"}  # room for a third of the nodes
    for name, nodes, steps, differ, warmup, env in (("grids 8", 100, 8, "grid", 300, None), ("grids 200", 100, 200, "grid", 5000, None), ("orders 100", 100, 100, "order", 2500, None),
                                                    ("no room orders", 200, 200, "order", 1000, small), ("no room prefixes", 200, 200, "prefix", 1000, small)):
        yield f"growth {name}", Program([built("growth"), "--nodes", str(nodes), "--signatures", str(steps), "--differ", differ, "--warmup", "10" if short else str(warmup),
                                         "--steps", "10" if short else "1000"], "alone", "wall_ns", env=env)
    yield "growth streams 100", Program([built("growth"), "--nodes", "100", "--streams", "100", "--warmup", "10" if short else "4000", "--steps", "10" if short else "1000"],
                                         "alone", "wall_ns")


def pytorch(runner):
    yield "nn.Linear 1000", Program(runner.python_script("linear1000.py", "--steps", "60"), "turns", "median_ms", "hash", native=False, limit=90)
    for cache in ("static", "dynamic"):
        yield f"Llama {cache}", Program(runner.python_script("hf_llama.py", "--cache", cache, "--runs", "2"), "turns", "median_ms", "hash", native=False, limit=120)


def programs(runner, short):
    """By name. One that is not built is found out when it is run."""
    def built(name):
        return os.path.join(runner.carry, name)

    return {name: program for some in (host_loops(built, short), decodes(built, short), several_phases(built, short), growths(built, short), pytorch(runner))
            for name, program in some}


# What was measured


def kept_of(done, program):
    """Of a run: its time, its result and what the library says of it; or why there is none."""
    if not done.ok:
        return {"why": done.why()}
    complaint = next((line for line in done.stderr.splitlines() if "CUSPLICE_WITHOUT" in line), None)
    if complaint:
        return {"why": complaint}
    try:
        value = program.figure(done) if callable(program.figure) else done.result[program.figure]
        result = program.result(done) if callable(program.result) else done.result[program.result]
    except (KeyError, TypeError, ZeroDivisionError):
        return {"why": f"it does not say what counts: {done.stdout[-200:]}"}
    return {"value": value, "result": result, "host_ms": [min(done.host_ms), max(done.host_ms)] if done.host_ms else None, "stats": of_stats(done.stats)}


def of_stats(stats):
    stats = stats or {}
    return {**{key: stats.get(key) for key in ("issued", "built", "graph_launches", "patched_nodes", "build_us", "signatures")},
            "fallbacks": {key: n for key, n in stats.get("fallbacks", {}).items() if n and key != "withholding_off"}}


class Book:
    """All that was measured, by program and variant, and the file that has it."""

    def __init__(self, folder, facts, names):
        self.folder, self.facts, self.names, self.runs = folder, facts, names, {}

    def take(self, program, variant, run):
        self.runs.setdefault(program, {}).setdefault(variant, []).append(run)

    def write(self):
        os.makedirs(self.folder, exist_ok=True)
        for name, text in (("ablation.json", json.dumps({"facts": self.facts, "names": self.names, "runs": self.runs}, indent=1)), ("ablation.md", self.table())):
            path = os.path.join(self.folder, name)
            with open(path + ".part", "w") as f:
                f.write(text)
            os.replace(path + ".part", path)

    def values(self, program, variants):
        return [run["value"] for name in variants for run in self.runs[program].get(name, []) if "value" in run]

    def spread(self, program):
        """The most by which two equal runs of a turn differ; None where there are no two."""
        pairs = zip(*(self.runs[program].get(name, []) for name in WITH))
        return max((abs(a["value"] / b["value"] - 1) for a, b in pairs if "value" in a and "value" in b), default=None)

    def wrong(self):
        """Of each program that failed or had two results: what."""
        for program, of in self.runs.items():
            for name, runs in of.items():
                for why in dict.fromkeys(run["why"] for run in runs if "why" in run):
                    yield f"{program}, {name}: {why}"
            results = {name: sorted({str(run["result"])[:40] for run in runs if "value" in run}) for name, runs in of.items()}
            if len({result for some in results.values() for result in some}) > 1:
                yield f"{program}: results differ: {results}"

    def cell(self, program, name, spread):
        with_all, without = self.values(program, WITH), self.values(program, [name])
        if not with_all or not without:
            return "-"
        ratio = statistics.median(without) / statistics.median(with_all)
        gains = spread is not None and abs(ratio - 1) >= LOST + spread
        return f"{'**' if gains else ''}{ratio:.3f}{'** ' + ('gains' if ratio > 1 else 'costs') if gains else ''}"

    def row(self, program):
        spread = self.spread(program)
        cells = [str(len(self.runs[program].get(WITH[0], []))), "-" if spread is None else f"{spread:.3f}", *(self.cell(program, name, spread) for name in self.names)]
        return f"| {program} | " + " | ".join(cells) + " |"

    def table(self):
        lines = ["# What each mechanism gains", "", ", ".join(f"{key} {value}" for key, value in self.facts.items()) + ".", "",
                 "Time without the mechanism over time with all of them, medians. Bold: it differs by 2 % beyond the spread of equal runs.", "",
                 "| program | turns | spread | " + " | ".join(self.names) + " |", "| --- |" + " --- |" * (2 + len(self.names))]
        lines += [self.row(program) for program in self.runs]
        return "\n".join([*lines, "", *(f"- {line}" for line in self.wrong()), ""])


def merged(folders, out):
    """One book of those in the folders: turns of the same program on the same GPU with the same commit are added up."""
    book = None
    for folder in folders:
        with open(os.path.join(folder, "ablation.json")) as f:
            one = json.load(f)
        book = book or Book(out, one["facts"], [])
        if any(book.facts[key] != one["facts"][key] for key in ("GPU", "commit")):
            sys.exit(f"ablation: {folder} is of another GPU or commit than {folders[0]}")
        book.names += [name for name in one["names"] if name not in book.names]
        for program, of in one["runs"].items():
            for variant, runs in of.items():
                for run in runs:
                    book.take(program, variant, run)
    return book


# Measuring


def measure(book, runner, program, name, variants, turns, left):
    """Some turns, there and back, of which each is written; the next one begins if there is time for one as long as the last."""
    took = 0
    for turn in range(turns):
        if left() <= max(took, 5):
            print(f"{name}: {turn} of {turns} turns: no time for more", flush=True)
            break
        begin, order = time.monotonic(), variants if turn % 2 == 0 else variants[::-1]
        runner.most = max(5, left() + 20)
        for variant, done in zip(order, program.call(runner, order)):
            book.take(name, variant, kept_of(done, program))
        took = time.monotonic() - begin
        book.write()


def engine(book, folder, library, name, variants, turns, left):
    """A program of engines/, by its own try_all.py: while one has the GPU the next ones import."""
    sys.path.insert(0, os.path.abspath(folder))
    try_all = importlib.import_module("try_all")
    named = {re.sub("[,/]", "+", variant): variant for variant in variants}  # try_all.py makes lists and file names of them

    class Trial(try_all.Trial):
        def environment(self, run, base):
            return {**super().environment(run, base), **environment_of(named[run.variant])}

        def write(self):
            book.runs[name] = {}
            for result in self.results.get(name, []):
                book.take(name, named[result["variant"]], of_engine(result))
            book.write()

    trial = Trial(try_all.arguments().parse_args([name, "--one-by-one", "--ahead", "3", "--no-diagnose", "--deadline", str(max(10, left())), "--rounds", str(turns),
                                                  "--variants", ",".join(named), "--lib", library, "--name", name, "--out", book.folder]))
    trial.main()
    if not trial.results.get(name):
        raise FileNotFoundError("one of its packs is not there")


def of_engine(result):
    complaint = next((line for line in result.get("said", []) if "CUSPLICE_WITHOUT" in line), None)
    if result.get("rc") != 0 or "line" not in result or complaint:
        return {"why": complaint or result.get("why") or (result.get("stderr") or ["it failed"])[-1]}
    return {"value": result["line"]["ms_per_step"], "result": result["line"]["hash"], "stats": of_stats(result.get("stats"))}


def arguments():
    names, words = rows()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=f"mechanisms: {', '.join(names)}; or the first word of several")
    parser.add_argument("--only", metavar="WORD,...", help="programs with one of these words in their name (--list)")
    parser.add_argument("--without", metavar="NAME,...", default=",".join(words), help=f"these mechanisms ({','.join(words)}); several at once with + between them")
    parser.add_argument("--against", metavar="LIBRARY,...", help=f"compare with these libraries, or with {PLAIN}, in place of leaving mechanisms out")
    parser.add_argument("--turns", type=int, default=3, help="of each program (3)")
    parser.add_argument("--deadline", type=int, default=540, help="seconds after which nothing begins that would not be over by then (540)")
    parser.add_argument("--engines", metavar="DIR", help=f"engines/ or a copy of it, with its packs: {', '.join(ENGINES)} as well")
    parser.add_argument("--short", action="store_true", help="a few steps of each, to try the programs")
    parser.add_argument("--list", action="store_true", help="the names of the programs")
    parser.add_argument("--merge", metavar="DIR", nargs="+", help="run nothing: one table of what these folders hold")
    parser.add_argument("--out", metavar="DIR", default=os.path.join(run_all.ROOT, ".carry", "ablation"), help="where the table goes (.carry/ablation)")
    parser.add_argument("--carry", default=os.path.join(run_all.ROOT, ".carry"), help="folder of the built programs")
    parser.add_argument("--python", help="the Python that has the frameworks (this one by default)")
    args = parser.parse_args()
    if args.against:
        args.without = args.against.split(",")
        for library in args.without:
            if library != PLAIN and not ("/" in library and os.path.exists(library)):
                parser.error(f"--against {library}: there is no such file; a library in this folder is ./{library}")
        return args
    args.without = [name.replace("+", ",") for name in args.without.split(",")]
    for word in ",".join(args.without).split(","):
        if not any(name == word or name.startswith(word + "_") for name in names):
            parser.error(f"no mechanism {word}; there are {', '.join(names)}")
    return args


class Ablated(Runner):
    library = property(lambda self: os.path.join(self.carry, "libcusplice-ablation.so"))


class Compared(Runner):
    """The library as it is used."""


def main():
    args, begin = arguments(), time.monotonic()
    if args.merge:
        book = merged(args.merge, args.out)
        return conclude(book)
    runner = (Compared if args.against else Ablated)(run_all.ROOT, os.path.abspath(args.carry), tempfile.mkdtemp(prefix="cusplice-ablation-"), args.python)
    known = programs(runner, args.short)
    names = [name for name in [*known, *ENGINES] if not args.only or any(word in name for word in args.only.split(","))]
    if args.list or not names:
        print("\n".join([*known, *ENGINES]))
        return 0 if args.list else 2
    found = run_all.gpu()
    if not found or not os.path.exists(runner.library):
        print(f"ablation: {'no GPU on this machine' if not found else runner.library + ' is missing; tools/gpu-check --ablation --build-only makes both'}", file=sys.stderr)
        return 2
    facts = run_all.facts_of(found, runner, "tests/gpu/ablation.py")
    book = Book(args.out, facts, args.without)
    print(", ".join(f"{key} {value}" for key, value in facts.items()), flush=True)
    for name in names:
        variants = [*WITH, *args.without]
        how = (name, variants, args.turns, lambda: args.deadline - (time.monotonic() - begin))
        try:
            if name in known:
                measure(book, runner, known[name], *how)
            elif args.engines:
                engine(book, args.engines, runner.library, *how)
            elif args.only:
                raise FileNotFoundError("--engines does not say where it is")
        except Exception as error:  # a program that breaks has failed; the others still run
            book.take(name, WITH[0], {"why": f"{type(error).__name__}: {error}"})
        if name in book.runs:
            print(f"{time.monotonic() - begin:4.0f} s  {book.row(name)}", flush=True)
    return conclude(book)


def conclude(book):
    if not any(book.values(program, WITH) for program in book.runs):
        print("ablation: nothing was measured", file=sys.stderr)
        print("\n".join(book.wrong()), file=sys.stderr)
        return 2
    book.write()
    print(book.table())
    return 1 if any(book.wrong()) else 0


if __name__ == "__main__":
    sys.exit(main())
