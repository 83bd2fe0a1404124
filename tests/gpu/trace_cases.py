"""Cases about traces: what recording costs, that a recorded program does what it does plain, that its trace is whole, and how
near cusplice whatif comes.
"""

import json
import os
import statistics


def case_record(lab):
    """cusplice record: the cost of a launch, the same results, whole traces, GPU times of every op; what-if against them."""
    tool, decode = lab.runner.program("cusplice"), lab.runner.program("decode")
    if not tool or not decode or lab.plain_only:
        lab.skip("nothing to record, or the launcher or decode is not built")
        return
    cost(lab)
    preset = ["-c", os.path.join(lab.runner.root, "config", "presets", "decode.conf")]
    recorded(lab, "decode host", [decode, "--tokens", "60" if lab.quick else "200"], preset)
    late(lab, "decode host", [decode, "--tokens", "60"], preset)
    if not lab.lacks("torch"):
        script = lab.runner.python_script("linear1000.py", "--steps", "5", "--warmup", "5")
        recorded(lab, "1000 x nn.Linear", script)
        if not lab.quick and not lab.lacks("transformers"):
            recorded(lab, "Llama, static cache",
                     lab.runner.python_script("hf_llama.py", "--cache", "static", "--runs", "1", "--tokens", "24"))


def cost(lab):
    """The host loop, recorded and not, in turn: 150 ns more a launch at most, 5 % of its time."""
    program = lab.runner.program("hostloop")
    if not program:
        lab.skip("hostloop is not built")
        return

    def call(name, _):
        trace = os.path.join(lab.runner.scratch, f"cost-{name}-{len(os.listdir(lab.runner.scratch))}.cst")
        env = {"CUSPLICE_RECORD": trace} if name == "recorded" else None
        return lab.runner.run([program, "--steps", "100", "--warmup", "50"], variant="preload", env=env, limit=60)

    runs = lab.measure({"not recorded": "preload", "recorded": "preload"}, call, "wall_ns", 3 if lab.quick else 7)
    lab.same("result, recorded and not", runs, lambda d: d.result["checksum"])
    lab.compare("host loop, recorded / not", "recorded", "not recorded", 1.05)
    if all(runs.values()):
        host = {name: statistics.median(d.result["host_ns"] for d in all_of) for name, all_of in runs.items()}
        more = host["recorded"] - host["not recorded"]
        lab.check("recording: ns of the host more a launch", more <= 150, round(more, 1), "<= 150", issue=True)


def read(lab, *argv):
    """What a verb says as JSON, or None."""
    done = lab.runner.run([lab.runner.program("cusplice"), *argv], limit=120)
    if not done.ok:
        lab.fail(done)
        return None
    return json.loads(done.stdout)


def late(lab, name, argv, options=()):
    """Steps 20 to 39 alone, with GPU times: the GPU still runs step 19 when the recording begins, and no op may be given a time of
    before it was asked for. What runs when the recording has ended, of the last step, is not known."""
    trace = os.path.join(lab.runner.scratch, "late.cst")
    done = lab.runner.run([lab.runner.program("cusplice"), "record", "-o", trace, "--gpu-times", "--steps", "20-39", *options, "--", *argv],
                          limit=150)
    if not done.ok or not os.path.exists(trace):
        lab.fail(done)
        return
    if "no GPU times" in done.stderr:
        lab.skip(f"{name}, steps 20 to 39: {[line for line in done.stderr.splitlines() if 'no GPU times' in line][0][:120]}")
        return
    dumped = lab.runner.run([lab.runner.program("cusplice"), "dump", trace], limit=120)
    if not dumped.ok:
        lab.fail(dumped)
        return
    ops = [event for event in map(json.loads, dumped.stdout.splitlines()) if event["type"] == "op"]
    known = [op for op in ops if "gpu_ns" in op]
    early = [op for op in known if op["gpu_begin_ns"] < op["ns"] - 5000]  # two clocks, compared to some microseconds
    lab.check(f"{name}, steps 20 to 39: ops whose GPU time is known", ops and len(known) >= 0.9 * len(ops), f"{len(known)} of {len(ops)}",
              ">= 90 %")
    lab.check(f"{name}, steps 20 to 39: ops that ran before they were asked for", not early, len(early), "0")


def recorded(lab, name, argv, options=()):
    """One program, plain, recorded, and recorded with GPU times."""
    plain = lab.runner.run(argv, limit=120)
    if not plain.ok:
        lab.fail(plain)
        return
    word = "".join(c if c.isalnum() else "-" for c in name)
    for more in ((), ("--gpu-times",)):
        trace = os.path.join(lab.runner.scratch, f"{word}{len(more)}.cst")
        stats = trace + ".stats"
        done = lab.runner.run([lab.runner.program("cusplice"), "record", "-o", trace, "--stats", stats, *more, *options, "--", *argv],
                              limit=150)
        counted = lab.runner.read_stats(stats)
        if not done.ok or not counted or not os.path.exists(trace):
            lab.fail(done)
            return
        what = f"{name}, with GPU times" if more else name
        lab.commands.append(" ".join(["cusplice record", *more, *options, "--", *argv]).replace(lab.runner.root + os.sep, ""))
        outputs = [(d.result or {}).get("hash") or [line for line in d.stdout.splitlines() if "tokens/s" not in line]
                   for d in (plain, done)]
        lab.check(f"{what}: results", outputs[0] == outputs[1], "", "equal")
        info = read(lab, "info", "--json", trace)
        if not info:
            return
        ops, in_graphs = sum(counted["ops"].values()), counted["issued"]["in_graphs"]
        lab.check(f"{what}: the trace is whole", info["closed"] and info["lost_records"] == 0 and info["ops"] == ops
                  and info["in_graphs"] == in_graphs, f"{info['ops']} of {ops} ops, {info['in_graphs']} of {in_graphs} in graphs")
        if more and "no GPU times" in done.stderr:
            lab.skip(f"{what}: {[line for line in done.stderr.splitlines() if 'no GPU times' in line][0][:120]}")
        elif more:
            lab.check(f"{what}: ops whose GPU time is known", info["gpu_known"] >= 0.99 * info["ops"],
                      f"{info['gpu_known']} of {info['ops']}", ">= 99 %", issue=True)
        played = read(lab, "whatif", "--format", "json", trace)
        if played:
            base, was = played["baseline"], played["recorded"]
            near = base["issued"]["in_graphs"] / max(was["issued"]["in_graphs"], 1)
            lab.check(f"{what}: what-if of the same settings, ops in graphs / recorded", 0.97 <= near <= 1.03, round(near, 4), "0.97 to 1.03")
            lab.notes.append(f"{what}: predicted {base['predicted']}, {os.path.getsize(trace) / info['ops']:.0f} bytes an op")
        for out, flag in (("json", "--perfetto"), ("sqlite", "--sqlite")):
            target = f"{trace}.{out}"
            exported = lab.runner.run([lab.runner.program("cusplice"), "export", flag, target, trace], limit=120)
            lab.check(f"{what}: export {flag}", exported.ok and os.path.getsize(target) > 0, "" if exported.ok else exported.why())
