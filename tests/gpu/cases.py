"""The cases on a real GPU: which programs run, in which variants, and what must hold.

A case is a function that takes a Lab, files checks, and returns nothing. If the outputs of two variants differ, the case
has failed, but their times are still reported. Times are compared only as ratios within one run: the variants of a case
alternate (in the order A B C, then C B A), and medians are taken over the repetitions.
"""

import concurrent.futures
import os
import re
import shutil
import statistics
import time

import op_db_judge
from cold_cases import case_cold  # noqa: F401
from growth_cases import case_growth  # noqa: F401
from history_cases import case_history  # noqa: F401
from phases_cases import case_phases  # noqa: F401
from replay_cases import case_bench, case_replay  # noqa: F401
from runtime_cases import case_runtime  # noqa: F401
from slots_cases import case_slots  # noqa: F401
from trace_cases import case_predict, case_record  # noqa: F401  (found by its name, below)
from two_gpus_cases import case_two_gpus  # noqa: F401

LINE_PLAIN = {"steps": 300, "warmup": 50}
PROGRAMS = ("scenarios", "history", "slots", "launcher", "rules-by-library", "cupy", "triton", "jax", "numba", "own-graphs", "training-threads", "profiler", "sanitizer",
            "large-params", "stream-attributes", "tensor-maps", "virtual-memory", "two-gpus")
TIMED = ("decode", "variants", "hostloop", "runtime", "eager", "patched", "fork", "loop", "random", "threads", "device-printf", "linear1000", "modes", "verify", "record", "predict", "replay", "bench", "growth", "cold", "phases",
         "llama-static", "llama-dynamic", "training")  # device-printf: how many lines come through follows the pace
LONG = ("op-db",)  # with --full or by name only: minutes, on every core
GROUPS = {"programs": ("cupy", "triton", "jax", "numba", "own-graphs", "training-threads", "profiler", "sanitizer", "large-params",
                       "stream-attributes", "tensor-maps", "device-printf", "two-gpus", "training", "op-db")}


# The host-bound loop


def hostloop(lab, variants, bounds, args=(), reps=5, env=None, limit=60):
    """`variants`: name -> (variant, more arguments). Files equality of results, launches seen, and the ratios."""
    program = lab.runner.program("hostloop")
    if not program:
        lab.skip("hostloop is not built")
        return {}
    common = list(args)
    if "--loop" not in common:
        common += ["--steps", 100 if lab.quick else LINE_PLAIN["steps"], "--warmup", LINE_PLAIN["warmup"]]

    def call(name, variant):
        more = variants[name][1]
        return lab.runner.run([program, *common, *more], variant=variant, env=env if variant == "preload" else None,
                              limit=limit)

    runs = lab.measure({n: v[0] for n, v in variants.items()}, call, "wall_ns", reps)
    lab.same("result", runs, lambda d: d.result["checksum"])
    for done in runs.get("cusplice", []):
        seen = done.stats["ops"]["launches"] if done.stats else None
        if seen != done.result["issued"]:
            lab.check("launches seen", False, f"{seen} of {done.result['issued']}")
            break
    for what, figure, over, bound in bounds:
        lab.compare(what, figure, over, bound)
    return runs


def case_hostloop(lab):
    hostloop(lab, {"plain": ("plain", []), "cusplice": ("preload", []), "graph": ("plain", ["--graph"]),
                   "off": ("off", [])},
             [("1000 small launches a step, cusplice / plain", "cusplice", "plain", 0.36),
              ("the same, cusplice / one whole hand-written graph", "cusplice", "graph", 1.00),
              ("CUSPLICE=off / plain", "off", "plain", 1.02)], reps=3 if lab.quick else 7)


def case_eager(lab):
    runs = hostloop(lab, {"plain": ("plain", []), "cusplice": ("preload", [])},
                    [("every 10th kernel on the eager list, cusplice / plain", "cusplice", "plain", 0.42)],
                    args=["--eager-every", 10], env={"CUSPLICE_EAGER": "bench_eager"}, reps=2 if lab.quick else 5)
    for done in runs.get("cusplice", [])[:1]:
        steps = done.result["issued"] - 51  # 51 launches outside the steps, one of them of the eager kernel
        named = done.stats["eager_by"].get("rule") if done.stats else None
        lab.check("launches left eager by the rule", named == steps // 10 + 1, named, str(steps // 10 + 1))


def case_patched(lab):
    hostloop(lab, {"plain": ("plain", []), "cusplice": ("preload", [])},
             [("every 4th kernel a new scalar, every 10th a new grid, cusplice / plain", "cusplice", "plain", 0.42)],
             args=["--scalar-every", 4, "--grid-every", 10], reps=2 if lab.quick else 5)


def case_fork(lab):
    """60 layers of 4 launches on each of two streams, forked and joined by events; the graph by hand has the same fork and join."""
    hostloop(lab, {"plain": ("plain", []), "cusplice": ("preload", []), "graph": ("plain", ["--graph"])},
             [("60 layers of 4 launches on each of two streams, cusplice / plain", "cusplice", "plain", 0.40),
              ("the same, cusplice / one graph by hand with the same fork and join", "cusplice", "graph", 1.05)],
             args=["--fork", 60], reps=2 if lab.quick else 7)


def case_loop(lab):
    runs = hostloop(lab, {"plain": ("plain", []), "cusplice": ("preload", [])},
                    [("never synchronising loop of 37 launches, 10,000 turns, cusplice / plain", "cusplice", "plain",
                      0.42)], args=["--loop", 37, "--turns", 10000], reps=2 if lab.quick else 5)
    if runs.get("plain") and runs.get("cusplice"):
        plain, mine = runs["plain"][0].result, [d.result for d in runs["cusplice"]]
        growth = max(r["rss_end_kb"] - r["rss_quarter_kb"] for r in mine)
        most = max(r["rss_max_kb"] for r in mine) - plain["rss_max_kb"]
        device = max(r["device_kb"] for r in mine) - plain["device_kb"]
        lab.check("host memory grows after the first quarter of the loop", growth <= 4096, f"{growth} KB", "<= 4096 KB",
                  issue=True)
        lab.check("host memory more than plain", most <= 65536, f"{most} KB", "<= 65536 KB", issue=True)
        lab.check("device memory more than plain", device <= 131072, f"{device} KB", "<= 131072 KB", issue=True)


def case_random(lab):
    hostloop(lab, {"plain": ("plain", []), "cusplice": ("preload", [])},
             [("random order of 50 kernels, cusplice / plain", "cusplice", "plain", 1.03)], args=["--random", 50],
             reps=3 if lab.quick else 7)


def case_threads(lab):
    """Eight threads with a stream each: no lock of the library may cost them what it saves one."""
    program = lab.runner.program("hostloop")
    if not program:
        lab.skip("hostloop is not built")
        return
    # Threads build in turns, each beside seven that launch: it takes them some hundred steps.
    steps = ["--steps", 30 if lab.quick else 100, "--warmup", 50 if lab.quick else 400]
    variants = {f"{name}, {n} thread{'s' if n > 1 else ''}": (variant, n) for n in (1, 8)
                for name, variant in (("plain", "plain"), ("cusplice", "preload"))}
    runs = lab.measure({name: v[0] for name, v in variants.items()},
                       lambda name, variant: lab.runner.run([program, "--threads", variants[name][1], *steps], variant=variant,
                                                            limit=90), "wall_ns", 2 if lab.quick else 3)
    for n in (1, 8):
        lab.same(f"result, threads: {n}", {name: runs.get(name) for name, v in variants.items() if v[1] == n},
                 lambda d: d.result["checksum"])
    for name, of in runs.items():
        seen = [(d.stats["ops"]["launches"], d.result["issued"]) for d in of if d.stats]
        if any(a != b for a, b in seen):
            lab.check(f"launches seen ({name})", False, seen[:2])
    lab.compare("ns per kernel of 8 threads together, cusplice / plain", "cusplice, 8 threads", "plain, 8 threads", 1.00,
                issue=False)
    for name in ("plain", "cusplice"):
        one, eight = (lab.figures.get(f"{name}, {n}") for n in ("1 thread", "8 threads"))
        if one and eight:
            lab.notes.append(f"{name}: 8 threads together launch {one['median'] / eight['median']:.2f} times as fast as one "
                             f"({eight['median']:.0f} and {one['median']:.0f} ns per kernel)")


# What only a GPU can answer about launches that become nodes (shim/base/hazards.def)


def hazards(lab, args, variant="plain", env=None):
    """One run of the program; None where it is not built or failed, which is filed."""
    program = lab.runner.program("hazards")
    if not program:
        lab.skip("hazards is not built")
        return None
    done = lab.runner.run([program, *args], variant=variant, env=env, limit=60)
    if not done.ok or not done.result:
        lab.fail(done)
        return None
    return done


def hazards_same(lab, label, args, good):
    """Plain and preloaded: the same result, right by `good`, and graphs were launched."""
    plain = hazards(lab, args)
    if not plain:
        return
    lab.see(f"{label}, plain", plain)
    lab.check(f"{label}, plain: what it should be", good(plain.result), plain.result)
    mine = None if lab.plain_only else hazards(lab, args, "preload")
    if not mine:
        return
    lab.see(label, mine)
    lab.check(f"{label}: results", mine.result == plain.result and good(mine.result), mine.result, plain.result)
    stats = mine.stats or {}
    lab.check(f"{label}: graphs launched", stats.get("graph_launches", 0) > 0, stats.get("graph_launches"), "> 0")
    refused = {k: v for k, v in stats.get("fallbacks", {}).items() if v and k != "withholding_off"}
    if refused:
        lab.notes.append(f"{label}: fallbacks {refused}")


def case_large_params(lab):
    """A26: parameters of 4,096, 4,097 and 32,764 bytes, other bytes at each launch; the program knows the sums."""
    hazards_same(lab, "large parameters", ["--params"], lambda result: result["wrong"] == 0)


def case_stream_attributes(lab):
    """A7: a stream with a priority and an access policy window that changes half-way."""
    hazards_same(lab, "stream attributes", ["--attributes"], lambda result: result["window"] > 0 and 0.4 < result["ratio"] < 0.6)


def case_tensor_maps(lab):
    """G8: a kernel writes a tensor map that the next one uses. With fences all is right. Without, launches are right, and verify finds the graphs that are not."""
    program = lab.runner.program("tensor_maps")
    if not program:
        lab.skip("tensor_maps is not built")
        return
    plain = {mode: lab.runner.run([program, f"--{mode}"], limit=90) for mode in ("fenced", "bare")}
    for mode, done in plain.items():
        if not done.ok or not done.result:
            lab.fail(done)
            return
        if done.result["major"] < 9:
            lab.skip("no tensor maps: compute capability below 9.0")
            return
        lab.see(f"{mode}, plain", done)
        lab.check(f"tensor maps, {mode}, plain: wrong words", done.result["wrong"] == 0, done.result["wrong"], "0")
    if lab.plain_only:
        return
    mine = {mode: lab.runner.run([program, f"--{mode}"], variant="preload", limit=90) for mode in plain}
    for mode, done in mine.items():
        if not done.ok or not done.result:
            lab.fail(done)
            return
        lab.see(mode, done)
    lab.check("tensor maps, fenced: results", mine["fenced"].result == plain["fenced"].result, mine["fenced"].result, plain["fenced"].result)
    graphs = (mine["fenced"].stats or {}).get("graph_launches", 0)
    lab.check("tensor maps, fenced: graphs launched", graphs > 0, graphs, "> 0")
    eager = lab.runner.run([program, "--bare"], variant="preload", env={"CUSPLICE_EAGER": "use_map"}, limit=90)
    lab.see("bare, eager rule", eager)
    lab.check("tensor maps, bare, an eager rule for use_map: wrong words", eager.ok and eager.result and eager.result["wrong"] == 0,
              (eager.result or {}).get("wrong", eager.why()), "0")
    wrong = mine["bare"].result["wrong"]
    lab.notes.append(f"tensor maps, bare, preloaded: {wrong} of 512 words wrong")
    if lab.runner.program("cusplice"):
        verify(lab, "tensor maps, fenced", [], [program, "--fenced"])
        # What goes wrong preloaded must be found; where graphs do it right, there is nothing to find.
        verify(lab, "tensor maps, bare", [], [program, "--bare"], planted=wrong > 0)


def printed(done):
    """The lines that kernels printed, and those of them that are not as they should be or came before."""
    lines = [line for line in done.stdout.splitlines() if not line.startswith("{")]
    seen, bad = set(), []
    for line in lines:
        if line in seen or not as_printed(line):
            bad.append(line)
        seen.add(line)
    return lines, bad


def as_printed(line):
    words = re.fullmatch(r"L(\d{6,})\.([0-3]) (\d{28})", line)
    if not words:
        return False
    first = int(words[1]) * 31 + int(words[2]) * 7
    return words[3] == "".join(str((first + i) % 10) for i in range(28))


def case_device_printf(lab):
    """A22: lines that kernels print. Where the buffer holds a step none is lost; without a synchronisation no more than plain."""
    variants = {"plain": ("plain", None)}
    if not lab.plain_only:
        variants["cusplice"] = ("preload", None)
        variants["eager rule"] = ("preload", {"CUSPLICE_EAGER": "hazard_print"})
    for label, args, reps in (("a synchronisation behind every 50 launches", ["--print", "--sync-every", "50"], 1),
                              ("one synchronisation at the end", ["--print"], 3)):
        came, wrong = {name: [] for name in variants}, {name: [] for name in variants}
        for name, (variant, env) in [one for _ in range(reps) for one in variants.items()]:
            done = hazards(lab, args, variant, env)
            if not done:
                return
            lab.see(f"{label}, {name}", done)
            found, bad = printed(done)
            came[name].append(len(found))
            wrong[name] += bad
            wanted, buffer = done.result["lines"], done.result["fifo"]
        for name, counts in came.items():
            lab.notes.append(f"{label}, {name}: lines that came: {', '.join(map(str, counts))} of {wanted}, buffer {buffer} bytes")
            allowed = 0 if "--sync-every" in args else len(wrong["plain"])  # where a buffer overflows, lines may be torn
            lab.check(f"{label}, {name}: lines that are wrong or came twice", len(wrong[name]) <= allowed,
                      f"{len(wrong[name])} {' / '.join(wrong[name][:2])}".strip(), f"<= {allowed}")
            if "--sync-every" in args:
                lab.check(f"{label}, {name}: lines", min(counts) == wanted, min(counts), str(wanted))
        if lab.plain_only:
            continue
        in_graphs = (lab.stats.get(f"{label}, cusplice") or {"issued": {"in_graphs": 0}})["issued"]["in_graphs"]
        lab.check(f"{label}: launches in graphs", in_graphs > 0, in_graphs, "> 0")
        lab.check(f"{label}: lines, the fewest of {reps} run{'s' if reps > 1 else ''}", min(came["cusplice"]) >= min(came["plain"]),
                  min(came["cusplice"]), f">= {min(came['plain'])}, the fewest plain")


# PyTorch and Hugging Face


def case_linear1000(lab):
    if lab.lacks("torch"):
        return
    steps = ["--steps", "30" if lab.quick else "60"]
    runs = lab.measure({"plain": "plain", "cusplice": "preload", "graph": "plain"},
                       lambda name, variant: lab.runner.script("linear1000.py", *steps,
                                                               *(["--graph"] if name == "graph" else []),
                                                               variant=variant), "median_ms", 1 if lab.quick else 3)
    lab.same("1000 x nn.Linear(32,32), results bit-equal", runs, lambda d: d.result["hash"], issue=True)
    counted = lab.runner.script("linear1000.py", "--count")
    if counted.ok and counted.result:
        lab.notes += [f"a layer at batch {batch}: {names}" for batch, names in counted.result["by_batch"].items()]
    lab.compare("1000 x nn.Linear(32,32), eager + cusplice / torch.cuda.graph", "cusplice", "graph", 1.10)


def llama(lab, cache, bound):
    if lab.lacks("torch", "transformers"):
        return
    runs = lab.measure({"plain": "plain", "cusplice": "preload"},
                       lambda name, variant: lab.runner.script("hf_llama.py", "--cache", cache, "--runs",
                                                               "2" if lab.quick else "3", variant=variant),
                       "tokens_per_s", 1 if lab.quick else 7)
    lab.same(f"Hugging Face Llama, {cache} cache: tokens", runs, lambda d: d.result["hash"], issue=True)
    lab.compare(f"Hugging Face Llama, {cache} cache: tokens/s, cusplice / plain", "cusplice", "plain", bound,
                at_least=True)
    bits = {d.result["logits_hash"] for all_of in runs.values() for d in all_of}
    if bits:
        lab.notes.append(f"logits of the last token bit-equal in all runs: {'yes' if len(bits) == 1 else 'no'}")


def case_llama_static(lab):
    llama(lab, "static", 1.35)


def case_llama_dynamic(lab):
    llama(lab, "dynamic", 1.15)


# Programs of other frameworks: the same results


def same_script(lab, module, name, *args, env=None, label=None, limit=120):
    """One program, plain and preloaded. `label` tells several programs of a case apart."""
    if lab.lacks(*module.split()):
        return
    names = {variant: f"{label}, {variant}" if label else variant for variant in ("plain", "cusplice")}
    runs = lab.measure({names["plain"]: "plain", names["cusplice"]: "preload"},
                       lambda _, variant: lab.runner.script(name, *args, variant=variant, limit=limit,
                                                            env=env if variant == "preload" else None), None, 1)
    lab.same(f"{module.split()[-1]} program{f' ({label})' if label else ''}: results", runs, lambda d: d.result["hash"],
             issue=True)


def case_cupy(lab):
    same_script(lab, "cupy", "cupy_prog.py")
    same_script(lab, "cupy", "cupy_streams.py", label="streams, pools, events")


def case_triton(lab):
    same_script(lab, "triton", "triton_prog.py")


def case_jax(lab):
    same_script(lab, "jax", "jax_prog.py")
    same_script(lab, "jax", "jax_train.py", label="training")
    same_script(lab, "jax", "jax_train.py", "--launches", label="training without XLA's own graphs")


def case_numba(lab):
    same_script(lab, "numba numba_cuda", "numba_prog.py", label="streams, shared memory, reduction")


def case_own_graphs(lab):
    """Programs that capture: their graphs are theirs, and what they launch beside them stays right."""
    same_script(lab, "torch", "own_graphs.py", "--mode", "capture", label="torch.cuda.graph")
    same_script(lab, "triton torch", "own_graphs.py", "--mode", "compile", label="torch.compile, reduce-overhead", limit=180)


def case_profiler(lab):
    """Launches that the library saw against kernels that CUPTI recorded, with and without deferring under a profiler."""
    if lab.lacks("torch"):
        return
    plain = lab.runner.script("profiler_count.py")
    if not plain.ok or plain.result is None:
        lab.fail(plain)
        return
    lab.see("plain", plain)
    lab.check("CUPTI's records are complete", plain.result["complete"], plain.result["kernels"])
    lab.figures["plain"] = {"key": "kernels", "median": plain.result["kernels"], "all": [plain.result["kernels"]]}
    for profile in () if lab.plain_only else ("eager", "ignore"):
        done = lab.runner.script("profiler_count.py", variant="preload", env={"CUSPLICE_PROFILE": profile})
        if not done.ok or done.result is None:
            lab.fail(done)
            continue
        lab.see(f"profile={profile}", done)
        seen = done.stats["ops"]["launches"] if done.stats else None
        kernels = done.result["kernels"]
        lab.check(f"launches seen / kernels that CUPTI reports (profile={profile})",
                  seen == kernels and kernels == plain.result["kernels"] and done.result["complete"],
                  f"{seen} / {kernels}", f"equal, {plain.result['kernels']} plain", issue=profile == "eager")
        lab.check(f"result under the profiler (profile={profile})", done.result["hash"] == plain.result["hash"],
                  done.result["loss"], str(plain.result["loss"]))
        lab.check(f"kernel list under torch.profiler, names in the order of execution (profile={profile})",
                  done.result["list"] == plain.result["list"], done.result["list"], plain.result["list"],
                  issue=profile == "eager")


# A training loop


def case_training(lab):
    """Losses and weights bit-equal, with autograd's threads and a loader on a side stream; the time of a step."""
    if lab.lacks("torch"):
        return
    steps = ["--steps", "200"]
    for label, more in (("", []), (" (foreach)", ["--foreach"])):
        runs = lab.measure({f"plain{label}": "plain", f"cusplice{label}": "preload"},
                           lambda _, variant: lab.runner.script("train_loop.py", *steps, *more, variant=variant), "median_ms",
                           1 if lab.quick else 3)
        lab.same(f"training loop{label}, {steps[1]} steps: losses and weights bit-equal", runs, lambda d: d.result["hash"],
                 issue=True)
    lab.compare("training loop, time of a step, cusplice / plain", "cusplice", "plain", 0.90)
    lab.compare("the same with the optimizer's lists, cusplice / plain", "cusplice (foreach)", "plain (foreach)", 1.00)


def case_training_threads(lab):
    """Two models at a time, each with a thread and a stream of its own and a loader thread on a side stream."""
    same_script(lab, "torch", "train_loop.py", "--models", "2", "--steps", "100", label="two models on two threads and streams")


# compute-sanitizer


def case_sanitizer(lab):
    """memcheck over the decode host: no report that it does not make of the plain program, with and without deferring."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    program = lab.runner.program("decode_static")
    if not os.access(tool, os.X_OK) or not program:
        lab.skip("compute-sanitizer or decode_static is not there")
        return
    preset = os.path.join(lab.runner.root, "config", "presets", "decode.conf")
    argv = [tool, "--tool", "memcheck", "--leak-check", "no", program, "--tokens", "8"]
    plain = lab.runner.run(argv, limit=150)
    if "Device not supported" in plain.stdout + plain.stderr:
        lab.skip("compute-sanitizer does not support this machine")
        return
    if not plain.ok:
        lab.fail(plain)
        return
    for profile in () if lab.plain_only else ("eager", "ignore"):
        done = lab.runner.run(argv, variant="preload", env={"CUSPLICE_CONFIG": preset, "CUSPLICE_PROFILE": profile}, limit=150)
        if not done.ok:
            lab.fail(done)
            continue
        lab.see(f"memcheck, profile={profile}", done)
        mine, theirs = reports(done), reports(plain)
        lab.check(f"memcheck on the decode host (profile={profile}): reports", mine == theirs, " ".join(mine)[:200],
                  " ".join(theirs)[:200], issue=True)
        lab.check(f"text under memcheck (profile={profile})", text(done) == text(plain), text(done)[-60:], text(plain)[-60:])


def reports(done):
    """What memcheck said, less addresses and the process id."""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("=========")]
    return [re.sub(r"0x[0-9a-f]+", "0x", line.strip("= ")) for line in lines if "ERROR SUMMARY" in line or "Error" in line
            or "Invalid" in line]


def text(done):
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("=========")).strip()


# PyTorch's own list of operators

OP_DB_SHARDS = 14
# Graphs as early as can be: every sample is executed four times only.
OP_DB_SETTINGS = {"CUSPLICE_WARMUP": "1", "CUSPLICE_SEGMENT_FIRST": "2", "CUSPLICE_DEMOTE": "no", "CUSPLICE_HOLD_US": "20000"}


def op_db_shard(lab, variant, folder, shard, shards, more):
    """One shard to its end, begun anew behind an operator that took the process or the context with it."""
    first, ended = 0, []
    path = os.path.join(folder, f"{shard}.jsonl")
    while len(ended) < 30:
        done = lab.runner.script("op_db.py", "--out", path, "--shard", f"{shard}/{shards}", "--first", str(first), *more,
                                 variant=variant, limit=240,
                                 env={"PYTHONHASHSEED": "0", **(OP_DB_SETTINGS if variant == "preload" else {})})
        ended.append(done)
        if done.ok:
            break
        at = op_db_judge.last_begun(path)
        if at is None:
            break
        first = at + 1
    return ended


def op_db_run(lab, variant, name, more, shards=OP_DB_SHARDS):
    """All shards of one run side by side; returns the folder of what they wrote, and all processes."""
    folder = os.path.join(lab.runner.scratch, f"{lab.name}-{name}")
    os.makedirs(folder, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(shards, os.cpu_count() or 1)) as pool:
        all_of = list(pool.map(lambda s: op_db_shard(lab, variant, folder, s, shards, more), range(shards)))
    return folder, [done for of in all_of for done in of]


def case_op_db(lab):
    """Every operator, four executions a sample, twice plain and once preloaded: the same bits, the same errors."""
    if lab.lacks("torch", "numpy"):
        return
    samples = lab.words.get("samples")
    more = ["--samples", str((8 if lab.quick else 100) if samples is None else samples)]
    more += ["--only", lab.words["ops"]] if lab.words.get("ops") else []
    folders, processes = [], []
    for name, variant in (("plain", "plain"), ("again", "plain"), ("preload", "preload")):
        if lab.plain_only and variant != "plain":
            return
        begin = time.monotonic()
        folder, done = op_db_run(lab, variant, name, more)
        folders.append(folder)
        processes.append(done)
        seconds = time.monotonic() - begin
        lab.figures[name] = {"key": "seconds", "median": seconds, "all": [seconds]}
    for done in processes[2]:
        if done.ok and done.stats is None:
            lab.check("stats file written", False, done.why())
    lab.see("all processes", total(processes[2]))
    found = op_db_judge.judge(folders)
    open_ = {name: why for name, why in found["why"].items() if name in found["different"]}
    if open_:  # which of them vary as they are, though two runs agreed by chance
        ops = sorted({name.split(" ")[0] for name in open_})[:40]
        repeats = [op_db_run(lab, "plain", f"repeat-{n}", [*more, "--only", ",".join(ops)], min(len(ops), 7))[0] for n in range(3)]
        again = op_db_run(lab, "preload", "repeat-preload", [*more, "--only", ",".join(ops)], min(len(ops), 7))[0]
        for name in list(open_):
            verdict, why = op_db_judge.judge_one(name, [*folders[:2], *repeats], folders[2])
            if verdict == "different":
                once_more = " ".join(op_db_judge.judge_one(name, [*folders[:2], *repeats], again))
                lab.notes.append(f"{name}: DIFFERENT: {why}; preloaded once more: {once_more}")
                continue
            found["different"].remove(name)
            found["varies"].append(name)
            found["why"][name] = why
            lab.notes.append(f"{name}: varies as it is, in more runs; first seen as: {open_[name]}")
    lab.check("operators of PyTorch (op_db): operators and types that differ", not found["different"],
              f"{len(found['different'])} of {sum(len(found[v]) for v in ('equal', 'varies', 'different'))}", "0", issue=True)
    lab.check("operators and types compared", found["equal"] or found["varies"],
              f"{len(found['equal'])} bit-equal, {len(found['varies'])} with tolerance", "some")
    lab.notes += [f"{found['executions']} executions of {found['samples']} samples, {found['backward']} operators and types with "
                  f"gradients; {found['raised']} executions raised an error, the same in all runs",
                  f"vary as they are, compared with tolerance ({len(found['varies'])}): "
                  + "; ".join(f"{name}: {found['why'].get(name, '')}" for name in found["varies"])]
    if found["lost"]:
        lab.notes.append(f"ended the process as it is: {', '.join(found['lost'])}")


def total(processes):
    """One account of many processes: counters added up, under the first one's command."""
    first, sums = processes[0], None
    for done in processes:
        sums = add(sums, done.stats) if done.stats else sums
    first.stats = sums
    first.stderr = "\n".join(line for done in processes for line in done.stderr.splitlines() if line.startswith("cusplice["))
    return first


def add(a, b):
    if isinstance(b, dict):
        return {k: add((a or {}).get(k), v) for k, v in b.items()}
    if isinstance(b, (int, float)) and not isinstance(b, bool):
        return (a or 0) + b
    return b


# The project's own programs


def case_decode(lab):
    """The decode host, both linkages, through its preset: the same text; tokens/s for information."""
    preset = os.path.join(lab.runner.root, "config", "presets", "decode.conf")
    for name in ("decode", "decode_static"):
        program = lab.runner.program(name)
        if not program:
            lab.skip(f"{name} is not built")
            continue
        runs, rates = {}, {}
        for rep in range(2 if lab.quick else 3):
            for variant in ("plain",) if lab.plain_only else ("plain", "preload"):
                done = lab.runner.run([program, "--tokens", "200"], variant=variant, env={"CUSPLICE_CONFIG": preset},
                                      limit=60)
                if not done.ok or not done.stdout.strip():
                    lab.fail(done)
                    return
                runs.setdefault(variant, []).append(done)
                lab.see(f"{name} {variant}", done)
                rates.setdefault(variant, []).append(tokens_per_second(done))
        lab.same(f"{name}: text", runs, lambda d: d.stdout.strip())
        for variant, values in rates.items():
            if all(values):
                lab.figures[f"{name} {variant}"] = {"key": "tokens_per_s", "median": statistics.median(values),
                                                    "all": values}


BATCHES = "1,2,4,8,16"


def case_variants(lab):
    """Batch sizes in turn, 100 rounds and a line end: the same text, and faster than plain with a variant for each size and with
    too few, where graphs are patched. With one for each size nothing is missed after the third round, but for what a step may not build: that
    is counted where it may build all."""
    program = lab.runner.program("decode")
    if not program:
        lab.skip("decode is not built")
        return
    preset = os.path.join(lab.runner.root, "config", "presets", "decode-modes.conf")
    command = [program, "--prompt", "A", "--batches", BATCHES, "--tokens"]
    rounds = "10" if lab.quick else "100"
    variants = {"plain": None, "variants 8": "8", "variants 2": "2"}

    def call(name, many, rounds=rounds, **more):
        env = {"CUSPLICE_CONFIG": preset, "CUSPLICE_VARIANTS": many, **more} if many else None
        done = lab.runner.run(command + [rounds], variant="preload" if many else "plain", env=env, limit=120)
        rate = tokens_per_second(done)
        done.result = {"s_per_token": 1 / rate} if rate else None
        return done

    runs = lab.measure({n: v or "plain" for n, v in variants.items()}, lambda n, _: call(n, variants[n]), "s_per_token",
                       1 if lab.quick else 5)
    lab.same("text", runs, lambda d: d.stdout.strip())
    for name in ("variants 8", "variants 2"):
        lab.compare(f"{name}: time over plain", name, "plain", 0.98)
        stats = lab.stats.get(name)
        if stats:
            seen = stats["signatures"]
            share = seen["missed"] / max(1, sum(seen.values()))
            bound = 0.5 if lab.quick else 0.1  # the first rounds miss
            lab.check(f"{name}: share of segments missed", share <= bound, round(share, 4), f"<= {bound:.2f}")
            limit = 1024 << 20
            lab.check(f"{name}: memory of graphs", 0 < stats["graph_bytes"] <= limit, stats["graph_bytes"], f"<= {limit}")
            lab.notes.append(f"{name}: {seen}, {stats['patched_nodes']} nodes patched")
    # Runs of three rounds beside whole ones: how many a step may build is a matter of what that takes here and now, so that by themselves they say
    # how soon it is done, and with room for all in a step what comes later still.
    for text, room in (("", {}), (", a step may build all", {"CUSPLICE_BUILD_US": "0", "CUSPLICE_BUILD_NODES": "100000"})):
        missed = {"3": [], rounds: []}
        for many in ["3", rounds] * (1 if lab.quick else 3):
            done = call("variants 8", "8", many, **room)
            if done.ok and done.stats:
                missed[many].append(done.stats["signatures"]["missed"])
        if not all(missed.values()):
            continue
        late = statistics.median(missed[rounds]) - statistics.median(missed["3"])
        lab.notes.append(f"variants 8{text}: segments missed, of three rounds {missed['3']}, of {rounds} {missed[rounds]}")
        if room:
            lab.check("variants 8: segments missed after the third round", lab.quick or late <= 0, late, "0")


def case_modes(lab):
    """Prefill, mixed and uniform decode steps under each mode: the same text; a mode that does more is no slower."""
    program = lab.runner.program("decode")
    if not program:
        lab.skip("decode is not built")
        return
    preset = os.path.join(lab.runner.root, "config", "presets", "decode-modes.conf")
    argv = [program, "--batch", "4", "--mixed", "--prefill", "7", "--tokens", "200" if lab.quick else "1000"]
    modes = ("off",) if lab.plain_only else ("off", "eager", "piecewise", "full_decode_only", "full_and_piecewise", "full")
    runs, rates = {}, {mode: [] for mode in modes}
    for rep in range(3 if lab.quick else 7):
        for mode in modes if rep % 2 == 0 else reversed(modes):
            variant = "plain" if mode == "off" else "preload"
            done = lab.runner.run(argv, variant=variant, env={"CUSPLICE_CONFIG": preset, "CUSPLICE_MODE": mode})
            if not done.ok or not tokens_per_second(done):
                lab.fail(done)
                return
            runs.setdefault(mode, []).append(done)
            lab.see(mode, done)
            rates[mode].append(tokens_per_second(done))
    lab.same("text in every mode", runs, lambda d: d.stdout.strip(), issue=True)
    for mode in modes:
        lab.figures[mode] = {"key": "tokens_per_s", "median": statistics.median(rates[mode]), "all": rates[mode]}
    lab.compare("tokens/s, full_and_piecewise / piecewise", "full_and_piecewise", "piecewise", 1.0, at_least=True)
    lab.compare("tokens/s, piecewise / plain", "piecewise", "off", 1.0, at_least=True)


def case_verify(lab):
    """Mode verify: no graph differs from its launches, planted faults are found, and what it costs."""
    launcher, decode = lab.runner.program("cusplice"), lab.runner.program("decode")
    if not launcher or not decode or lab.plain_only:
        lab.skip("nothing to verify, or the launcher or decode is not built")
        return
    presets = os.path.join(lab.runner.root, "config", "presets")
    short = ["--prompt", "A", "--tokens", "40"]
    verify(lab, "decode host", ["-c", os.path.join(presets, "decode.conf")], [decode, "--tokens", "100"])
    verify(lab, "decode host, mixed steps", ["-c", os.path.join(presets, "decode-modes.conf"), "--mode", "full_and_piecewise"],
           [decode, "--batch", "4", "--mixed", "--prefill", "7", "--tokens", "60"])
    for fault in ("unpatched", "dropped", "swapped"):
        verify(lab, f"decode host, {fault} planted", ["--plant", fault], [decode, *short], planted=True)
    if not lab.lacks("torch"):
        verify(lab, "1000 x nn.Linear", [], lab.runner.python_script("linear1000.py", "--steps", "5", "--warmup", "5"))
    if not lab.lacks("torch", "transformers"):
        for cache in ("static", "dynamic"):
            verify(lab, f"Llama, {cache} cache", ["--every", "4"],
                   lab.runner.python_script("hf_llama.py", "--cache", cache, "--runs", "1", "--tokens", "24"))


def verify(lab, name, options, argv, planted=False):
    """One program, plain and by `cusplice verify`."""
    report = os.path.join(lab.runner.scratch, f"verify-{len(lab.figures)}.json")
    plain = lab.runner.run(argv)
    done = lab.runner.run([lab.runner.program("cusplice"), "verify", *options, "--report", report, "--", *argv], limit=150)
    found = lab.runner.read_stats(report)
    if not plain.ok or not found or done.hung:
        lab.fail(done if plain.ok else plain)
        return
    lab.commands.append(" ".join(["cusplice verify", *options, "--", *argv]).replace(lab.runner.root + os.sep, ""))
    what = f"{found['different']} of {found['verified']} verified ({found['graph_launches']} launched, {found['ops']} launches)"
    if planted:
        lab.check(f"{name}: found", found["different"] > 0 and done.rc == 1 and found["differences"][0].get("op") is not None,
                  f"{what}; {found['planted']} planted; first {found['differences'][0]['kernel'] if found['differences'] else '-'}")
    else:
        lab.check(f"{name}: graphs that differ", found["different"] == 0 and found["verified"] > 0 and done.rc == 0, what, "0",
                  issue=True)
    text = [(d.result or {}).get("hash") or text_of(d) for d in (plain, done)]
    lab.check(f"{name}: the program's results", text[0] == text[1], "", "equal")
    lab.figures[name] = {"key": "spent_s", "median": found["spent_us"] / 1e6, "all": [found["spent_us"] / 1e6]}
    skipped = {k: v for k, v in found["not_verified"].items() if v}
    lab.notes.append(f"{name}: {done.seconds:.1f} s, plain {plain.seconds:.1f} s; {found['spent_us'] / max(found['verified'], 1):.0f} us a "
                     f"verified launch of {found['ops'] / max(found['verified'], 1):.0f} ops, "
                     f"{found['saved_bytes'] / max(found['verified'], 1) / 2**20:.0f} MiB saved each; all memory "
                     f"{found['with_all_memory']}, by pointers {found['with_memory_of_pointers']}, not the same twice "
                     f"{found['not_the_same_twice']} {found['kernels_not_the_same_twice'][:4]}, not verified {skipped}")
    if found["different"] and not planted:
        lab.notes.append(f"{name}: {found['differences'][:3]}")


def text_of(done):
    """Output without the line of times."""
    return [line for line in done.stdout.splitlines() if "tokens/s" not in line]


def tokens_per_second(done):
    """The number in front of 'tokens/s' in what the decode host says, or None."""
    for line in (done.stderr + "\n" + done.stdout).splitlines():
        words = line.replace(",", " ").split()
        for at, word in enumerate(words):
            if word.startswith("tokens/s") and at:
                try:
                    return float(words[at - 1])
                except ValueError:
                    pass
    return None


ROUTES = ("dlsym", "getproc", "getproc11", "export", "runtime")


# Graphs are launched by the library's thread, whether that pays or not.
HANDED = {"CUSPLICE_SUBMIT_NS": "1", "CUSPLICE_DEMOTE": "no"}


def case_scenarios(lab):
    """The scenario programs: the same standard output with and without the library, and by every way to the driver."""
    program, unlinked = lab.runner.program("scenario"), lab.runner.program("scenario_dl")
    if not program:
        lab.skip("scenario is not built")
        return
    listed = lab.runner.run([program, "--list"])
    names = [line.split()[0] for line in listed.stdout.splitlines() if line.strip()]
    if not listed.ok or not names:
        lab.fail(listed)
        return
    todo = [(name, [program, name]) for name in names]
    if "decode" in names:
        todo += [(f"decode by {route}", [program, "decode", "--route", route]) for route in ROUTES]
        todo += [("decode, not linked to libcuda", [unlinked, "decode"])] if unlinked else []
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(lambda one: scenario(lab, *one), todo))


def scenario(lab, name, argv):
    """Some end with a status of their own on purpose; 3 is what a scenario says when a call failed that should not."""
    plain = lab.runner.run(argv)
    if plain.hung or plain.rc == 3 or plain.rc < 0:
        lab.fail(plain)
        return
    if "a driver without it" in plain.stdout:
        lab.skip(f"{name}: needs the simulator's driver")
        return
    if lab.plain_only:
        lab.check(f"{name}: runs as it is", True)
        return
    mine = lab.runner.run(argv, variant="preload")
    if mine.hung or mine.rc != plain.rc:
        lab.fail(mine)
        return
    lab.see(name, mine)
    handed = lab.runner.run(argv, variant="preload", env=HANDED)
    for how, run in (("same output", mine), ("the same, submitted", handed)):
        same = run.stdout == plain.stdout and run.rc == plain.rc
        lab.check(f"{name}: {how}", same, "" if same else f"{plain.stdout[-120:]!r} / {run.stdout[-120:]!r}", "equal")


def case_virtual_memory(lab):
    """Memory that is mapped into a reserved range, as PyTorch's expandable segments are: its memsets and copies become nodes, across
    mappings too, none is refused, and what is not mapped fails at its call as without the library."""
    program = lab.runner.program("scenario")
    if program:
        scenario(lab, "virtual_memory", [program, "virtual_memory"])
    else:
        lab.skip("scenario is not built")
    stats = lab.stats.get("virtual_memory")
    if stats:
        launches, issued, refused = stats["ops"]["launches"], stats["issued"]["in_graphs"], stats["fallbacks"]["setparams_refused"]
        lab.check("virtual_memory: memsets and copies in graphs", issued > launches, issued, f"> {launches}, the launches")
        lab.check("virtual_memory: no change of a node is refused", refused == 0, refused, "0")
    if lab.lacks("torch"):
        return
    runs = lab.measure({"plain": "plain", "cusplice": "preload"},
                       lambda _, variant: lab.runner.script("train_loop.py", "--steps", "100", variant=variant,
                                                            env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}), None, 1)
    lab.same("training loop in expandable segments: losses and weights bit-equal", runs, lambda d: d.result["hash"])
    stats = lab.stats.get("cusplice")
    if stats:
        refused = stats["fallbacks"]["setparams_refused"]
        lab.check("training loop in expandable segments: no change of a node is refused", refused == 0, refused, "0")


LIBRARY_RULES = (
    # Program, arguments, rule; whether every kernel is named by it, or none, or some.
    ("hostloop", ["--steps", 20, "--warmup", 5], "lib:hostloop", "all"),  # static cudart
    ("hostloop", ["--steps", 20, "--warmup", 5], "lib:libcuda*", "none"),
    ("hostloop_shared", ["--steps", 20, "--warmup", 5], "lib:hostloop_shared", "all"),
    ("decode", ["--tokens", 40], "lib:libcublas*", "some"),
    ("decode", ["--tokens", 40], "lib:decode", "some"),
)


def case_rules_by_library(lab):
    """Which file kernels are from, by the runtime's own loading of them: of a program with static and with shared cudart, and of
    cuBLAS, which brings a runtime of its own. Where the stream of a program is demoted, its launches are no longer asked for rules."""
    for name, args, rule, share in LIBRARY_RULES:
        program = lab.runner.program(name)
        if not program:
            lab.skip(f"{name} is not built")
            continue
        plain = lab.runner.run([program, *args], limit=60)
        if lab.plain_only or not plain.ok:
            lab.check(f"{name}: runs as it is", plain.ok, "" if plain.ok else plain.why())
            continue
        done = lab.runner.run([program, *args], variant="preload", env={"CUSPLICE_EAGER": rule}, limit=60)
        if not done.ok or done.stats is None:
            lab.fail(done)
            continue
        lab.see(f"{name}, {rule}", done)
        launches, by_rule = done.stats["ops"]["launches"], done.stats["eager_by"]["rule"]
        demoted = sum(row["launches"] for row in done.stats["breaks_by_kernel"] if row["reason"] == "demoted")
        ok = {"all": 0 < by_rule == launches - demoted, "none": by_rule == 0, "some": 0 < by_rule < launches}[share]
        lab.check(f"{name}, {rule}: launches by themselves", ok, f"{by_rule} of {launches}, {demoted} demoted", share)
        if name == "decode":
            lab.check(f"{name}, {rule}: same text", done.stdout == plain.stdout, "", "equal")


def case_launcher(lab):
    """`cusplice run` brings the library up in the child and passes its exit status and output through."""
    launcher, program = lab.runner.program("cusplice"), lab.runner.program("hostloop_shared")
    if not launcher or not program:
        lab.skip("the launcher or hostloop_shared is not built")
        return
    args = ["--steps", "30", "--warmup", "20"]
    plain = lab.runner.run([program, *args])
    if not plain.ok or not plain.result:
        lab.fail(plain)
        return
    if lab.plain_only:
        return
    stats = os.path.join(lab.runner.scratch, "launcher.json")
    uncached = ["--set", "cache_dir="]  # what earlier runs left is no matter here
    mine = lab.runner.run([launcher, "run", *uncached, "--stats", stats, "--", program, *args])
    if not mine.ok or not mine.result:
        lab.fail(mine)
        return
    lab.check("cusplice run: same result", mine.result["checksum"] == plain.result["checksum"],
              mine.result["checksum"], plain.result["checksum"])
    counted = lab.runner.read_stats(stats)
    lab.check("cusplice run: launches in graphs", bool(counted) and counted["issued"]["in_graphs"] > 0,
              counted["issued"]["in_graphs"] if counted else "no stats file", "> 0")
    bad = lab.runner.run([launcher, "run", *uncached, "--", program, "--no-such-option"])
    lab.check("cusplice run: exit status passed through", bad.rc == 2, bad.rc, "2")


CASES = {name: globals()["case_" + name.replace("-", "_")] for name in PROGRAMS + TIMED + LONG}
