"""The case about the cold start: with a cache folder the second run of a program is in graphs from its second step on. The first run, and a
run without a cache, need longer. A cache of another program, and a file of nonsense, change nothing.
"""

import os
import shutil
import struct

STEPS = "first_step_in_graphs"  # of the stats file: the first step of which 95 of 100 launches went out in graphs


def case_cold(lab):
    """Steps until 95 % of ops are in graphs: without a cache, in the first run with one, in the second."""
    shared = fresh(lab, "shared")
    quick = lab.quick
    programs = [("host loop, 1000 launches a step", *built(lab, "hostloop", "--steps", 60, "--warmup", 20)),
                ("driver API, 1000 launches a step", *built(lab, "growth", "--nodes", 1000, "--steps", 60, "--warmup", 20)),
                ("driver API, 10000 launches a step", *built(lab, "growth", "--nodes", 10000, "--steps", 20, "--warmup", 20)),
                ("decode host", *built(lab, "decode", "--tokens", 60, "--prompt", "A"))]
    if not lab.lacks("torch"):
        programs.append(("1000 x nn.Linear(32,32)", *script(lab, "linear1000.py", "--steps", "20", "--warmup", "10")))
        if not quick and not lab.lacks("transformers"):
            programs.append(("Hugging Face Llama, static cache", *script(lab, "hf_llama.py", "--cache", "static", "--runs", "2")))
    for name, start, key in programs:
        if start and not lab.plain_only:
            three(lab, name, start, key, shared)


def built(lab, name, *args):
    """How to run one of our programs, and what of a run must be equal."""
    program = lab.runner.program(name)
    if not program:
        lab.skip(f"{name} is not built")
        return None, None
    key = (lambda d: d.stdout.strip()) if name == "decode" else (lambda d: d.result["checksum"])
    return lambda env: lab.runner.run([program, *args], variant="preload", env=env, limit=90), key


def script(lab, name, *args):
    return lambda env: lab.runner.script(name, *args, variant="preload", env=env), lambda d: d.result["hash"]


def fresh(lab, name):
    folder = os.path.join(lab.runner.scratch, f"cache-{name}")
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def three(lab, name, start, key, shared):
    folder = fresh(lab, "own")
    runs = {"without a cache": start({}), "first run": start({"CUSPLICE_CACHE_DIR": folder}), "second run": start({"CUSPLICE_CACHE_DIR": folder})}
    # What other programs have left, then what this one leaves as well.
    runs["beside others, first run"] = start({"CUSPLICE_CACHE_DIR": shared})
    runs["beside others, second run"] = start({"CUSPLICE_CACHE_DIR": shared})
    scramble(os.path.join(folder, "cusplice.cache"))
    runs["a broken file"] = start({"CUSPLICE_CACHE_DIR": folder})
    for variant, done in runs.items():
        if not done.ok or done.stats is None:
            lab.fail(done)
            return
        lab.see(f"{name}, {variant}", done)
    lab.same(f"{name}: result", {variant: [done] for variant, done in runs.items()}, key, issue=True)
    steps = {variant: done.stats[STEPS] for variant, done in runs.items()}
    lab.check(f"{name}: steps until 95 % of ops are in graphs, second run", 1 <= steps["second run"] <= 2, steps["second run"], "<= 2", issue=True)
    lab.check(f"{name}: the same, first run", steps["first run"] >= 1, steps["first run"], "", issue=True)
    lab.check(f"{name}: the same, second run beside other programs", 1 <= steps["beside others, second run"] <= 2,
              steps["beside others, second run"], "<= 2")
    lab.check(f"{name}: the broken file was noticed", runs["a broken file"].stats["cache"]["state"] == "corrupt",
              runs["a broken file"].stats["cache"]["state"], "corrupt")
    second, first = runs["second run"].stats, runs["first run"].stats
    lab.check(f"{name}: graphs built, second run over first", second["built"] <= first["built"] * 1.1 + 2, f"{second['built']} / {first['built']}",
              "<= 1.1, and 2")
    lab.notes.append(f"{name}: " + "; ".join(f"{variant}: step {steps[variant]}, {done.stats['issued']['eager']} ops one by one, {done.stats['built']} graphs "
                                             f"built in {done.stats['build_us'] / 1000:.1f} ms" for variant, done in runs.items())
                     + f"; entries {second['cache']['entries']}, met {second['cache']['met']}, used {second['cache']['used']}")


def scramble(path):
    """One bit of the file's middle."""
    with open(path, "r+b") as f:
        size = os.path.getsize(path)
        f.seek(size // 2)
        (byte,) = struct.unpack("B", f.read(1))
        f.seek(size // 2)
        f.write(bytes([byte ^ 16]))
