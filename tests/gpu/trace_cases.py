"""Cases about traces: the cost of recording, equal results of a recorded program, whole traces, and the accuracy of cusplice whatif
in counts and times.
"""

import gzip
import json
import os
import re
import shutil
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


# What-if's times


def case_predict(lab):
    """cusplice calibrate, then what whatif says that a step takes with other settings, against the same program run with them.

    Everything that the prediction was made from is kept beside the results: predict.json, measured.cost and the traces, packed.
    """
    tool = lab.runner.program("cusplice")
    if not tool or lab.plain_only:
        lab.skip("nothing to predict, or the launcher is not built")
        return
    os.makedirs(lab.runner.results, exist_ok=True)
    kept = {"cost": "", "calibrate": [], "programs": {}}
    cost = calibrate(lab, kept)
    if not cost:
        return
    decode = lab.runner.program("decode")
    if decode:
        predict(lab, kept, cost, "decode host", Decode(lab, 1500 if lab.quick else 3000), eager="attention_decode")
    if not lab.lacks("torch"):
        predict(lab, kept, cost, "1000 x nn.Linear", Script(lab, "linear1000.py", "--steps", "60", "--warmup", "30"), share=0.3)
        if not lab.lacks("transformers"):
            program = Script(lab, "hf_llama.py", "--cache", "static", "--runs", "2", "--tokens", "128")
            predict(lab, kept, cost, "Llama, static cache", program, share=0.12)
    save(lab, kept)


def save(lab, kept):
    with open(os.path.join(lab.runner.results, "predict.json"), "w") as f:
        json.dump(kept, f, indent=1)


class Script:
    """A PyTorch program whose steps are timed."""

    stops = True  # where it is ready

    def __init__(self, lab, name, *args):
        self.words = lab.runner.python_script(name, *args)

    def argv(self):
        return self.words

    def step_us(self, done):
        """What the fastest tenth of the steps keep."""
        return done.result["p10_ms"] * 1e3


class Decode:
    """The decode host, with a report of its own for each run."""

    stops = False

    def __init__(self, lab, tokens):
        self.words, self.scratch, self.runs = [lab.runner.program("decode"), "--tokens", str(tokens), "--report"], lab.runner.scratch, 0

    def argv(self):
        self.runs += 1
        return [*self.words, os.path.join(self.scratch, f"decode-{self.runs}.json")]

    def step_us(self, done):
        with open(done.argv[-1]) as f:
            return json.load(f)["step_p10_us"]


def in_turn(lab, program, jobs, limit):
    """The program once for each of `jobs` (variant, environment, words before its own), in turns."""
    return lab.runner.in_turn([([*before, *program.argv()], variant, env) for variant, env, before in jobs], limit, program.stops)


def calibrate(lab, kept):
    """The path of the file that is used; of three, unless it is to go fast, to see how far they are apart."""
    path = os.path.join(lab.runner.results, "measured.cost")
    values = []
    for _ in range(1 if lab.quick else 2):
        done = lab.runner.run([lab.runner.program("cusplice"), "calibrate", "--force", "-o", path], limit=90, settled=True)
        kept["calibrate"].append({"seconds": round(done.seconds, 1), "rc": done.rc, "stderr": done.stderr})
        if not done.ok:
            lab.fail(done)
            save(lab, kept)
            return None
        with open(path) as f:
            text = f.read()
        kept["calibrate"][-1]["text"] = text
        values.append(dict(re.findall(r"^(\w+) = (\S+)$", text, re.M)))
    lab.commands.append("cusplice calibrate -o measured.cost")
    seconds = max(one["seconds"] for one in kept["calibrate"])
    lab.check("calibrate: seconds", seconds < 20, seconds, "< 20", issue=True)
    lab.check("calibrate: GPU times found", "CUPTI was not found" not in text, "")
    kept["cost"] = text
    for key in values[0]:
        lab.notes.append(f"calibrate: {key} = {', '.join(v.get(key, '?') for v in values)}")
    return path


def rare_kernel(lab, trace, share):
    """The kernel that is launched most among those that are at most this share of all ops."""
    report = read(lab, "report", "kernels", "--format", "json", "--names", "mangled", "--sort", "calls", trace)
    rows = [r for r in (report or {"rows": []})["rows"] if r["op"] == "launch" and r["calls"] <= share * report["about"]["ops"]]
    return "mangled:" + rows[0]["name"] if rows else None


def keep(lab, trace):
    """A packed copy beside the results."""
    to = os.path.join(lab.runner.results, os.path.basename(trace) + ".gz")
    with open(trace, "rb") as f, gzip.open(to, "wb", compresslevel=6) as out:
        shutil.copyfileobj(f, out)


NEAREST = "host trace, GPU times of the other"  # the way whose word counts; the others are told beside it


def predict(lab, kept, cost, name, program, eager=None, share=0.1):
    """In each round the program is recorded anew and runs with each setting, in turns: the speed of a shared host drifts, and what is
    predicted from a recording can only hold for the time at which it was made. What counts is what the fastest tenth of the steps keep, as
    the fastest recording predicts it, and the fastest run."""
    word = "".join(c if c.isalnum() else "-" for c in name)
    if not lab.wants(name):
        return
    here = kept["programs"][name] = {"rounds": [], "ways": {}}
    gpu, done = record(lab, f"predict-{word}-gpu.cst", program, "--gpu-times")
    info = read(lab, "info", "--json", gpu) if gpu else None
    if not info or not info["gpu_records"]:
        lab.check(f"{name}: GPU times recorded", False, done.stderr[-200:])
        return
    here["recorded_with_gpu_times_us"] = program.step_us(done)
    eager = eager or rare_kernel(lab, gpu, share)
    settings = {
        "default": ("preload", {}, ()),
        "mode=eager": ("preload", {"CUSPLICE_MODE": "eager"}, ("--mode", "eager")),
        "off": ("plain", {}, ("--mode", "off")),
    }
    if eager:
        settings[f"eager={eager[:60]}"] = ("preload", {"CUSPLICE_EAGER": eager}, ("--eager", eager))

    for number in range(2 if lab.quick else 3):
        one = predict_round(lab, here, name, program, settings, cost, gpu, number)
        if not one:
            return
        here["rounds"].append(one)
        save(lab, kept)
        print(f"    {name}, round {number}: {json.dumps(one)}", flush=True)
    for setting in settings:
        say_predicted(lab, name, setting, here)


def predict_round(lab, here, name, program, settings, cost, gpu, number):
    """Recorded and run with each setting, predicted for each; None where something failed, which is told."""
    word = "".join(c if c.isalnum() else "-" for c in name)
    host = os.path.join(lab.runner.scratch, f"predict-{word}-{number}.cst")
    recorder = [lab.runner.program("cusplice"), "record", "-o", host, "--"]
    jobs = [("plain", {}, recorder), *((variant, env, ()) for variant, env, _ in settings.values())]
    recorded, *runs = in_turn(lab, program, jobs, limit=150)
    for done in (recorded, *runs):
        if not done.ok:
            lab.fail(done)
            return None
    if number == 0:
        keep(lab, host)
    one = {"recorded_us": program.step_us(recorded), "measured": {}, "predicted": {}, "host_ms": [round(ms, 3) for ms in recorded.host_ms]}
    for (setting, (_, _, words)), done in zip(settings.items(), runs):
        one["measured"][setting] = program.step_us(done)
        lab.see(f"{name}, {setting}", done)
        said = read(lab, "whatif", "--format", "json", "--cost", cost, *words, "--gpu-times", gpu, host)
        one["predicted"][setting] = of_whatif(said).get("step_p10_us", 0)
        if number == 0:
            here["ways"][setting] = {
                NEAREST: said,
                "GPU trace": read(lab, "whatif", "--format", "json", "--cost", cost, *words, gpu),
                "host trace": read(lab, "whatif", "--format", "json", "--cost", cost, *words, host),
                "h200.cost": read(lab, "whatif", "--format", "json", *words, "--gpu-times", gpu, host)}
    os.unlink(host)
    return one


def fastest(rounds, what):
    """The least that any round has: a neighbour makes a shared host slower by half for seconds, nothing makes it faster."""
    return min(what(one) for one in rounds)


def said_of_host(one):
    return f"the host's yardstick took {min(one['host_ms']):.2f} to {max(one['host_ms']):.2f} ms"


def record(lab, file, program, *options):
    """The trace, a copy of which is kept, or None; and the run."""
    trace = os.path.join(lab.runner.scratch, file)
    done = lab.runner.run([lab.runner.program("cusplice"), "record", "-o", trace, *options, "--", *program.argv()], limit=150, settled=True)
    if not done.ok or not os.path.exists(trace):
        lab.fail(done)
        return None, done
    keep(lab, trace)
    return trace, done


def of_whatif(said):
    return (said.get("whatif") or said["baseline"])["predicted"] if said else {}


def say_predicted(lab, name, setting, here):
    ratio = fastest(here["rounds"], lambda one: one["predicted"][setting]) / fastest(here["rounds"], lambda one: one["measured"][setting])
    middle = statistics.median(one["predicted"][setting] / one["measured"][setting] for one in here["rounds"])
    lab.check(f"{name}, {setting}: predicted / measured time of a step", abs(ratio - 1) <= 0.15, f"{ratio:.3f} (median of the rounds {middle:.3f})",
              "0.85 to 1.15", issue=True)
    for one in here["rounds"]:
        lab.notes.append(f"{name}, {setting}: predicted {one['predicted'][setting]:.0f} us, measured {one['measured'][setting]:.0f}, while recorded "
                         f"{one['recorded_us']:.0f}; {said_of_host(one)}")
    parts = of_whatif(here["ways"][setting][NEAREST])
    lab.notes.append(f"{name}, {setting}: first round: "
                     + "; ".join(f"{way}: {of_whatif(said).get('step_p10_us', 0):.1f}" for way, said in here["ways"][setting].items())
                     + f"; own {parts.get('step_own_us', 0):.1f}, calls {parts.get('step_calls_us', 0):.1f}, waits "
                     f"{parts.get('step_waits_us', 0):.1f}, GPU busy {parts.get('step_gpu_us', 0):.1f}")
