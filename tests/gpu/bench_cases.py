"""The catalogue of the bench suite: what is measured, in which variants, and the table of bounds.

A case is a function that takes a Bench and measures points. A point is one program at one setting, in up to four variants that
alternate: plain, preloaded, with one whole graph made by hand (graph), and with graphs of segments made by hand (segments).
They run one after another. If the result depends mostly on the host's pace, all of them start at once and take turns.
Important cases come first: those of the bounds, then the sweeps, then frameworks of others, then large models.
"""

import hashlib
import os
import statistics

from cases import tokens_per_second
from lab import Lab

PLAIN, PRELOADED, GRAPH, SEGMENTS = "plain", "preloaded", "graph", "segments"
OTHER = f"{PRELOADED}, the other library"
# Seconds of a turn, where programs take turns: a dozen and more of each come in a repetition, and the pace of a host may be another one in the next.
# The first steps of each do not count (child.SETTLING).
TURN = 0.3
EAGER_RULE = {"CUSPLICE_EAGER": "bench_eager"}


class OutOfTime(Exception):
    """The run has no time left for another point."""


class Bench(Lab):
    """A Lab that keeps points: the figures of each run by variant, and whether all variants came to the same result."""

    def __init__(self, runner, name, quick, plain_only, left, most, against=None):
        super().__init__(runner, name, quick, plain_only)
        self.points, self.left, self.most, self.optional, self.against = [], left, most, (), against

    def fail(self, done):
        """A variant that may be missing (a framework may refuse the capture) is a note, anything else a failed check."""
        if done.variant == "plain" and self.running in self.optional:
            self.notes.append(f"{self.running}: {done.why()}")
        else:
            super().fail(done)

    def point(self, label, variants, figure, unit, reps=5, x=None, more_is_better=False, result="checksum", apart=(), optional=(),
              read=None, series="", settled=True, turns=False):
        """Measures one point. `variants`: name -> (argv, environment, native program, limit). `figure` is what counts of a run's JSON line,
        `result` its checksum; variants in `apart` compute something else on purpose, those in `optional` may fail. `read` makes that
        of a run whose program prints none, or another figure. `settled`: each run is on the four CPUs that are fastest when it begins.
        `turns`: the variants of a repetition run at once, each for TURN while the others are stopped (child.Turns), for `figure` is
        that of a median step, which a stop does not touch; the programs stop by themselves where they are ready."""
        if self.left() <= 0:
            raise OutOfTime(label)
        self.optional = optional
        if self.against and PRELOADED in variants:
            argv, env, native, limit = variants[PRELOADED]
            variants = {**variants, OTHER: (argv, {**(env or {}), "LD_PRELOAD": self.against}, native, limit)}

        how = {name: "preload" if name.startswith(PRELOADED) else "plain" for name in variants}

        def call(names):
            jobs = [(variants[name][0], how[name], variants[name][1] if how[name] == "preload" else None) for name in names]
            native, limit = variants[names[0]][2], max(variants[name][3] for name in names)
            found = (self.runner.in_turn(jobs, limit, native=native, turn=TURN) if turns
                     else [self.runner.run(*job, limit, native, settled) for job in jobs])
            for done in found:
                if read and done.ok:
                    done.result = read(done)
            return found

        runs = {name: of for name, of in self.repeat(how, call, turns, min(reps, self.most)).items() if of}
        results = {name: sorted({str(d.result.get(result)) for d in of}) for name, of in runs.items() if name not in apart}
        distinct = {value for of in results.values() for value in of}
        equal = (len(distinct) == 1 and "None" not in distinct) if results else None
        if equal is False:
            self.check(f"{label}: results", False, "; ".join(f"{k}: {', '.join(v)}" for k, v in results.items())[:300], "equal")
        self.points.append({
            "label": label, "x": x, "series": series, "figure": figure, "unit": unit, "more_is_better": more_is_better, "equal": equal,
            "results": results, "apart": [name for name in apart if name in runs], "turns": turns,
            "variants": {name: variant_of(of, figure) for name, of in runs.items()}})

    def repeat(self, variants, call, at_once, reps):
        """The runs by variant: there, then back; `call` takes one name, or all of a repetition `at_once`. Another begins only while there is time."""
        names = [name for name, how in variants.items() if how == "plain" or not self.plain_only]
        runs = {name: [] for name in names}
        for rep in range(reps):
            if rep and self.left() <= 0:
                self.notes.append(f"{rep} of {reps} repetitions: no time for more")
                break
            order = names if rep % 2 == 0 else names[::-1]
            for some in [order] if at_once and order else [[name] for name in order]:
                for name, done in zip(some, call(some)):
                    self.running = name
                    if done.ok and done.result is not None:
                        runs[name].append(done)
                        self.see(name, done)
                    else:
                        self.fail(done)
                        names = [n for n in names if n != name]
        return runs


KEPT = ("wall_ns", "host_ns", "host_p10_ns", "host_p90_ns", "steps_alone", "host_alone_ns", "steps_beside", "host_beside_ns", "gpu_us", "median_ms",
        "median_of_all_ms", "p10_ms", "p90_ms", "min_ms", "max_ms", "tokens_per_s", "graphs")


def yardsticks(seen):
    """Those before and behind a run; of one that took turns the least and the greatest."""
    return [round(ms, 3) for ms in (seen if len(seen) <= 2 else (min(seen), max(seen)))]


def variant_of(runs, figure):
    """What is kept of a variant's runs: figures, and the last run's account of the library."""
    numbers = [{**{k: d.result[k] for k in KEPT if k in d.result}, "host_ms": yardsticks(d.host_ms)} for d in runs]
    kept = {"median": statistics.median(n[figure] for n in numbers), "runs": numbers}
    stats = runs[-1].stats
    if stats:
        issued = stats["issued"]
        kept["library"] = {
            "in_graphs": issued["in_graphs"] / max(1, issued["in_graphs"] + issued["eager"]), "built": stats.get("built"),
            "graph_launches": stats.get("graph_launches"), "patched_nodes": stats.get("patched_nodes"), "build_us": stats.get("build_us"),
            "signatures": stats.get("signatures"), "breaks": {k: v for k, v in stats.get("breaks", {}).items() if v},
            "fallbacks": {k: v for k, v in stats.get("fallbacks", {}).items() if v and k != "withholding_off"}}
        if len(runs[-1].host_ms) <= 2:  # steps of one that takes turns have the others' time in them
            kept["library"]["learning"] = stats.get("learning", {})
    return kept


# The host-bound loop


def hostloop(bench, label, args=(), figure="wall_ns", unit="ns a kernel", program="hostloop", segment=64, only=None, env=None, steps=(200, 60), **more):
    """A point of harness/bench/hostloop. `segment`: launches in a graph of the variant segments."""
    path = bench.runner.program(program)
    if not path:
        bench.skip(f"{program} is not built")
        return
    argv = [path, *args] + ([] if "--loop" in args else ["--steps", steps[0] // (2 if bench.quick else 1), "--warmup", steps[1]])
    variants = {PLAIN: (argv, None, True, 90), PRELOADED: (argv, env, True, 90), GRAPH: ([*argv, "--graph"], None, True, 90),
                SEGMENTS: ([*argv, "--graph", "--segment", segment], None, True, 90)}
    bench.point(label, {k: v for k, v in variants.items() if only is None or k in only}, figure, unit, **more)


def case_loop_whole(bench):
    """Host loop: 1000 small launches a step, then a synchronisation. The program has cudart linked in."""
    hostloop(bench, "1000 launches a step", reps=5)


def case_loop_eager(bench):
    """Host loop with every 10th kernel on the eager list. The graphs by hand (segments) are cut at the same kernels."""
    hostloop(bench, "1 in 10 eager", ["--eager-every", 10], segment=1000, env=EAGER_RULE, reps=5)


def case_host_time(bench):
    """Host time of a launch: the time of the loop that launches, divided by its launches. Launches of graphs are counted, the synchronisation behind the
    loop is not. Graphs of 128 launches by hand show what launching graphs takes. Each step asks whether another program used its core."""
    for program, label in (("hostloop_driver", "driver API"), ("hostloop_shared", "shared cudart"), ("hostloop", "static cudart")):
        hostloop(bench, label, ["--core"], figure="host_ns", unit="ns of the host a launch", program=program, only=(PLAIN, PRELOADED, SEGMENTS), segment=128,
                 steps=(300, 100), reps=5)
        bench.notes += core_notes(bench.points[-1]) if bench.points and bench.points[-1]["label"] == label else []


def core_notes(point):
    """A line for each variant: what a launch takes on a core alone and beside a busy hyperthread, medians over the runs that had such steps."""
    for name, of in point["variants"].items():
        said = []
        for where, words in (("alone", "on a core alone"), ("beside", "beside a busy hyperthread")):
            runs = [run[f"host_{where}_ns"] for run in of["runs"] if f"host_{where}_ns" in run]
            steps = sum(run.get(f"steps_{where}", 0) for run in of["runs"])
            said.append(f"{statistics.median(runs):.1f} ns {words} ({steps} steps)" if runs else f"not known {words} ({steps} steps)")
        yield f"{point['label']}, {name}: {', '.join(said)}"


STEPS_OF_240 = (("hostloop_driver", ", driver API"), ("hostloop_shared", ", shared cudart"), ("hostloop", ""))


def steps_of_240(bench, warmup):
    for program, which in STEPS_OF_240:
        hostloop(bench, "240 launches a step" + which, ["--launches", 240, "--events"], figure="gpu_us", unit="us a step on the GPU", program=program, segment=32,
                 steps=(800, warmup), reps=5)


def case_step_240(bench):
    """Steps of 240 launches, each with a synchronisation. The figure is the GPU's time from an event before the first launch to an event behind the last.
    The program launches in three ways: a host that is faster at a launch needs fewer graphs to keep the GPU busy."""
    steps_of_240(bench, 200)


def case_step_240_late(bench):
    """The same after the program's first 2400 steps, half a second. The host is warm by then, and the library has built larger graphs where that pays."""
    steps_of_240(bench, 2400)


# The decode host


def decode(bench, batch, reps, only=(PLAIN, PRELOADED), x=None):
    path = bench.runner.program("decode")
    if not path:
        bench.skip("decode is not built")
        return
    argv = [path, "--batch", batch, "--tokens", 300 if bench.quick else 1000]
    preset = {"CUSPLICE_CONFIG": os.path.join(bench.runner.root, "config", "presets", "decode.conf")}
    variants = {PLAIN: (argv, None, True, 90), PRELOADED: (argv, None, True, 90), "preloaded, attention eager": (argv, preset, True, 90)}

    def read(done):
        rate = tokens_per_second(done)
        return {"tokens_per_s": rate, "checksum": hashlib.sha256(done.stdout.encode()).hexdigest()[:32]} if rate else None

    bench.point(f"batch {batch}", {k: v for k, v in variants.items() if k in only}, "tokens_per_s", "tokens/s", reps=reps, x=x, more_is_better=True, read=read)


def case_decode(bench):
    """The decode host makes one sequence, without a configuration and with attention on the eager list."""
    decode(bench, 1, 5, (PLAIN, PRELOADED, "preloaded, attention eager"))


# PyTorch


def script(bench, name, *args, limit=200):
    return (bench.runner.python_script(name, *args), None, False, limit)


def linear(bench, layers, steps, warmup, reps, only=(PLAIN, PRELOADED, GRAPH)):
    if bench.lacks("torch"):
        return
    args = ["--layers", layers, "--steps", steps, "--warmup", warmup]
    variants = {PLAIN: script(bench, "linear1000.py", *args), PRELOADED: script(bench, "linear1000.py", *args),
                GRAPH: script(bench, "linear1000.py", *args, "--graph"), SEGMENTS: script(bench, "linear1000.py", *args, "--segments", 100)}
    bench.point(f"{layers} x nn.Linear(32, 32)", {k: v for k, v in variants.items() if k in only}, "median_ms", "ms a step", reps=reps, x=layers, result="hash")


def case_linear_10000(bench):
    """Eager PyTorch runs 10,000 linear layers one after another. The graph by hand is a torch.cuda.graph. The library builds its graphs over many steps."""
    linear(bench, 10000, 20, 30, 2)


# hidden, layers, heads, heads of keys, width of the feed-forward, words
LLAMAS = {
    "50m": (512, 6, 8, 8, 1408, 32000),
    "270m": (1024, 16, 16, 16, 2816, 32000),
    "1b": (2048, 22, 32, 4, 5632, 32000),
    "3b": (3200, 26, 32, 32, 8640, 32000),
    "8b": (4096, 32, 32, 8, 14336, 128256),
}


def by_median_token(done):
    """Tokens per second by the median token: of a program that takes turns, those of a whole generation count the time of the others."""
    return {**done.result, "tokens_per_s": 1e3 / done.result["median_ms"]}


def llama(bench, size, cache, tokens, runs, reps, graph=False, turns=False):
    if bench.lacks("torch", "transformers"):
        return
    names = ("--hidden", "--layers", "--heads", "--kv-heads", "--ffn", "--vocab")
    args = [word for pair in zip(names, LLAMAS[size]) for word in pair]
    args += ["--cache", cache, "--tokens", tokens, "--runs", runs]
    one = script(bench, "hf_llama.py", *args)
    variants = {PLAIN: one, PRELOADED: one}
    if graph:
        variants[GRAPH] = script(bench, "hf_llama.py", *args, "--graph")
    hidden, layers = LLAMAS[size][:2]
    bench.point(f"{size}, {layers} layers, hidden {hidden}, {cache} cache", variants, "tokens_per_s", "tokens/s", reps=reps, more_is_better=True, result="hash",
                x=round(parameters(*LLAMAS[size]) / 1e6), series=f"{cache} cache", optional=(GRAPH,), turns=turns, read=by_median_token if turns else None)


def parameters(hidden, layers, heads, kv_heads, ffn, words):
    """Of a Llama, norms left out."""
    return 2 * words * hidden + layers * (2 * hidden * hidden + 2 * hidden * hidden * kv_heads // heads + 3 * hidden * ffn)


def case_llama_static(bench):
    """Hugging Face Llama in eager PyTorch: 16 layers, hidden size 1024, bf16, static cache. The variants take turns; the figure is by the median token."""
    llama(bench, "270m", "static", 128, 3 if bench.quick else 8, 3, graph=True, turns=True)


def case_llama_dynamic(bench):
    """The same with a cache that grows with each token."""
    llama(bench, "270m", "dynamic", 128, 3 if bench.quick else 8, 3, turns=True)


def case_training(bench):
    """A training step in eager PyTorch: a transformer encoder of 4 layers, forward, backward, AdamW without foreach. The graph by hand holds the
    whole step; its optimizer has capturable=True, which rounds in another way. The variants take turns."""
    if bench.lacks("torch"):
        return
    args = ["--steps", 100 if bench.quick else 400]
    bench.point("4 layers, width 256", {PLAIN: script(bench, "train_loop.py", *args), PRELOADED: script(bench, "train_loop.py", *args),
                                        GRAPH: script(bench, "train_loop.py", *args, "--graph")},
                "median_ms", "ms a step", reps=3, result="hash", apart=(GRAPH,), optional=(GRAPH,), turns=True)


# Sweeps of the host loop


def few(bench, all_of, *some):
    return some if bench.quick else all_of


def case_segments(bench):
    """Host loop, 1000 launches a step. The rows differ in the most launches that one graph has, by hand and by the setting segment_max."""
    for n in few(bench, (4, 8, 16, 64, 256, 1000), 8, 64):
        hostloop(bench, f"{n} launches in a graph", segment=n, env={"CUSPLICE_SEGMENT_FIRST": str(min(n, 4)), "CUSPLICE_SEGMENT_MAX": str(n)}, reps=3, x=n)


def case_eager_share(bench):
    """Host loop, 1000 launches a step. The rows differ in how many launches are on the eager list. The graphs by hand (segments) are cut at these kernels;
    the whole graph holds them."""
    for percent, every in few(bench, ((0, 0), (1, 100), (5, 20), (10, 10), (20, 5), (50, 2)), (0, 0), (20, 5)):
        hostloop(bench, f"{percent} % eager", ["--eager-every", every] if every else [], segment=1000, env=EAGER_RULE, reps=3, x=percent)


def case_patched(bench):
    """Host loop, 1000 launches a step. Some launches have a new scalar or a new grid in each step; the graphs by hand are patched."""
    for what in ("scalar", "grid"):
        for every in few(bench, (10, 4, 1), 4):
            hostloop(bench, f"1 in {every} a new {what}", [f"--{what}-every", every], reps=3)
    hostloop(bench, "1 in 4 more shared memory, 1 in 10 a new block", ["--shared-every", 4, "--block-every", 10], reps=3)
    hostloop(bench, "1 in 4 a new scalar, 1 in 10 a new grid", ["--scalar-every", 4, "--grid-every", 10], reps=3)


def case_memsets_copies(bench):
    """Host loop, 1000 operations a step. Some are memsets and copies of 8 bytes on the device."""
    for label, args in few(bench, (("1 in 10 a memset", ["--memset-every", 10]), ("1 in 10 a copy", ["--copy-every", 10]),
                                   ("1 in 4 a memset, 1 in 5 a copy", ["--memset-every", 4, "--copy-every", 5])),
                           ("1 in 4 a memset, 1 in 5 a copy", ["--memset-every", 4, "--copy-every", 5])):
        hostloop(bench, label, args, reps=3, unit="ns an operation")


def case_streams(bench):
    """Host loop: one thread makes 1000 launches a step on several streams, 50 in a row on each stream, or one on each stream in turn. The whole graph has
    a branch for each stream. The graphs by hand (segments) end where the stream changes."""
    for n in few(bench, (1, 2, 4, 8, 16), 1, 4):
        hostloop(bench, f"streams: {n}, 50 in a row", ["--streams", n, "--run", 50], reps=3, x=n, series="50 in a row", steps=(200, 120))
    for n in few(bench, (4, 16), 4):
        hostloop(bench, f"streams: {n}, in turn", ["--streams", n], reps=3, x=n, series="in turn", steps=(200, 120))


def case_threads(bench):
    """Host loop: several threads make 250 launches a step, each on its own stream. The figure divides the time by the kernels of all threads."""
    for n in few(bench, (1, 2, 4, 8, 16), 1, 4):
        if n > (os.cpu_count() or 1):
            bench.skip(f"{n} threads: this machine has {os.cpu_count()} processors")
            continue
        hostloop(bench, f"threads: {n}", ["--threads", n, "--launches", 250], reps=3, x=n, steps=(200, 400), settled=False)


def case_hosts(bench):
    """Host loop, 1000 launches a step, through the driver API and through a shared cudart. Case loop-whole has the static cudart."""
    hostloop(bench, "driver API", program="hostloop_driver", reps=3)
    hostloop(bench, "shared cudart", program="hostloop_shared", reps=3)


def case_step_sizes(bench):
    """Host loop with a synchronisation behind each step. The rows differ in the launches of a step."""
    for n in few(bench, (10, 100, 3000, 10000), 10, 300):
        hostloop(bench, f"{n} launches a step", ["--launches", n], reps=3, x=n, steps=(max(20, 200000 // n), max(40, 20000 // n)))


def case_endless(bench):
    """Host loop: 37 launches again and again, with one synchronisation at the end."""
    hostloop(bench, "37 launches, 10,000 turns", ["--loop", 37, "--turns", 1000 if bench.quick else 10000], segment=16, reps=3)


def case_batches(bench):
    """The decode host makes several sequences side by side. The figure counts the tokens of all sequences."""
    for n in few(bench, (1, 2, 4, 8, 16, 32, 64), 1, 4):
        decode(bench, n, 3, x=n)


# Other people's frameworks


def case_linear_1000(bench):
    """Eager PyTorch runs 1,000 linear layers one after another. The graphs by hand are torch.cuda.graph."""
    linear(bench, 1000, 60, 15, 3, (PLAIN, PRELOADED, GRAPH, SEGMENTS))


def launch_bound(bench, name, label):
    one = script(bench, name)
    bench.point(label, {PLAIN: one, PRELOADED: one, GRAPH: script(bench, name, "--graph"), SEGMENTS: script(bench, name, "--segments", 10)},
                "median_ms", "ms a step", reps=3, result="hash", optional=(GRAPH, SEGMENTS))


def case_cupy(bench):
    """CuPy launches 300 small kernels a step. The graphs by hand are captured on CuPy's stream."""
    if not bench.lacks("cupy"):
        launch_bound(bench, "cupy_loop.py", "300 kernels a step")


def case_triton(bench):
    """Triton launches 300 small kernels a step. The graphs by hand are torch.cuda.graph."""
    if not bench.lacks("torch", "triton"):
        launch_bound(bench, "triton_loop.py", "300 kernels a step")


def model_case(size, doc):
    def case(bench):
        llama(bench, size, "static", 64, 2, 2, graph=True)
        llama(bench, size, "dynamic", 64, 2, 2)

    case.__doc__ = doc
    return case


CASES = {
    "loop-whole": case_loop_whole,
    "loop-eager": case_loop_eager,
    "host-time": case_host_time,
    "step-240": case_step_240,
    "step-240-late": case_step_240_late,
    "decode": case_decode,
    "linear-10000": case_linear_10000,
    "llama-static": case_llama_static,
    "llama-dynamic": case_llama_dynamic,
    "training": case_training,
    "segments": case_segments,
    "eager-share": case_eager_share,
    "patched": case_patched,
    "memsets-copies": case_memsets_copies,
    "streams": case_streams,
    "threads": case_threads,
    "hosts": case_hosts,
    "step-sizes": case_step_sizes,
    "endless": case_endless,
    "batches": case_batches,
    "linear-1000": case_linear_1000,
    "cupy": case_cupy,
    "triton": case_triton,
    "models-50m": model_case("50m", "Hugging Face Llama, eager, bf16, random weights, 52 million parameters."),
    "models-1b": model_case("1b", "The same, 1.1 billion parameters."),
    "models-3b": model_case("3b", "The same, 3.4 billion parameters."),
    "models-8b": model_case("8b", "The same, 8.0 billion parameters."),
}
GROUPS = {
    "bounds": ("loop-whole", "loop-eager", "host-time", "step-240", "step-240-late", "decode", "linear-10000", "llama-static", "llama-dynamic", "training"),
    "sweeps": ("segments", "eager-share", "patched", "memsets-copies", "streams", "threads", "hosts", "step-sizes", "endless", "batches"),
    "frameworks": ("linear-1000", "cupy", "triton"),
    "models": ("models-50m", "models-1b", "models-3b", "models-8b"),
}


# The table of bounds: what is asked, the case and the label of its point, the variant and figure over the variant and figure below
# (None: the figure itself), and the bound, which is a least where `least` is set. Where neighbours on the machine slow a program down from one
# moment to the next, the same is asked of its undisturbed part as well: of steps on a core alone, or of the fastest tenth of all.


class Bound:
    def __init__(self, what, case, label, over, under, bound, least=False):
        self.what, self.case, self.label, self.over, self.under, self.bound, self.least = what, case, label, over, under, bound, least


def _llama_label(size, cache):
    hidden, layers = LLAMAS[size][:2]
    return f"{size}, {layers} layers, hidden {hidden}, {cache} cache"


BOUNDS = (
    Bound("host loop, preloaded / whole hand-written graph", "loop-whole", "1000 launches a step", (PRELOADED, "wall_ns"), (GRAPH, "wall_ns"), 0.92),
    Bound("the same with 1 in 10 eager, preloaded / hand-written segments with the same breaks", "loop-eager", "1 in 10 eager",
          (PRELOADED, "wall_ns"), (SEGMENTS, "wall_ns"), 1.00),
    Bound("PyTorch linear chain, 10,000 layers, as written preloaded / torch.cuda.graph", "linear-10000", "10000 x nn.Linear(32, 32)",
          (PRELOADED, "median_ms"), (GRAPH, "median_ms"), 1.00),
    Bound("the chain by the fastest tenth of the steps", "linear-10000", "10000 x nn.Linear(32, 32)", (PRELOADED, "p10_ms"), (GRAPH, "p10_ms"), 1.00),
    Bound("Hugging Face Llama (16 layers, hidden 1024), static cache, tokens/s, preloaded / plain", "llama-static", _llama_label("270m", "static"),
          (PRELOADED, "tokens_per_s"), (PLAIN, "tokens_per_s"), 1.5, True),
    Bound("the same with a dynamic cache", "llama-dynamic", _llama_label("270m", "dynamic"), (PRELOADED, "tokens_per_s"), (PLAIN, "tokens_per_s"), 1.5, True),
    Bound("static cache by the fastest tenth of the tokens", "llama-static", _llama_label("270m", "static"), (PLAIN, "p10_ms"), (PRELOADED, "p10_ms"), 1.5, True),
    Bound("dynamic cache by the fastest tenth of the tokens", "llama-dynamic", _llama_label("270m", "dynamic"), (PLAIN, "p10_ms"), (PRELOADED, "p10_ms"), 1.5, True),
    Bound("eager PyTorch training step, plain / preloaded", "training", "4 layers, width 256", (PLAIN, "median_ms"), (PRELOADED, "median_ms"), 1.4, True),
    Bound("decode host, batch 1, tokens/s, preloaded / plain", "decode", "batch 1", (PRELOADED, "tokens_per_s"), (PLAIN, "tokens_per_s"), 1.5, True),
    Bound("host time of a matched launch, driver API (ns)", "host-time", "driver API", (PRELOADED, "host_ns"), None, 50),
    Bound("host time of a matched launch, shared cudart (ns)", "host-time", "shared cudart", (PRELOADED, "host_ns"), None, 100),
    Bound("the same on a core alone, driver API (ns)", "host-time", "driver API", (PRELOADED, "host_alone_ns"), None, 50),
    Bound("the same on a core alone, shared cudart (ns)", "host-time", "shared cudart", (PRELOADED, "host_alone_ns"), None, 100),
    Bound("240 launches with a synchronisation, driver API, GPU time, preloaded / whole hand-written graph", "step-240", "240 launches a step, driver API",
          (PRELOADED, "gpu_us"), (GRAPH, "gpu_us"), 1.02),
    Bound("the same, shared cudart", "step-240", "240 launches a step, shared cudart", (PRELOADED, "gpu_us"), (GRAPH, "gpu_us"), 1.02),
    Bound("the same, static cudart", "step-240", "240 launches a step", (PRELOADED, "gpu_us"), (GRAPH, "gpu_us"), 1.02),
    Bound("240 launches behind 2400 such steps, driver API", "step-240-late", "240 launches a step, driver API", (PRELOADED, "gpu_us"), (GRAPH, "gpu_us"), 1.02),
    Bound("the same, shared cudart", "step-240-late", "240 launches a step, shared cudart", (PRELOADED, "gpu_us"), (GRAPH, "gpu_us"), 1.02),
    Bound("the same, static cudart", "step-240-late", "240 launches a step", (PRELOADED, "gpu_us"), (GRAPH, "gpu_us"), 1.02),
)
