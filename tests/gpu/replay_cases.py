"""The case about replay: a recorded program, played again without the program, leaves the same in memory by every strategy, and
gains by graphs what the program gains.
"""

import json
import os
import statistics

from trace_cases import decode_us


def case_replay(lab):
    """cusplice record --replayable, then cusplice replay: sums of memory, and the ratio of times against the live program's."""
    tool, decode = lab.runner.program("cusplice"), lab.runner.program("decode")
    if not tool or not decode or lab.plain_only:
        lab.skip("nothing to replay, or the launcher or decode is not built")
        return
    kept = {}
    replay(lab, kept, "decode host", [decode, "--tokens", "12" if lab.quick else "400"], decode_us)
    if not lab.lacks("torch"):
        argv = lab.runner.python_script("linear1000.py", "--steps", "12", "--warmup", "10")
        replay(lab, kept, "1000 x nn.Linear", argv, lambda d: d.result["median_ms"] * 1e3)
        if not lab.quick and not lab.lacks("transformers"):
            argv = lab.runner.python_script("hf_llama.py", "--cache", "static", "--runs", "1", "--tokens", "48")
            replay(lab, kept, "Llama, static cache", argv, lambda d: 1e6 / d.result["tokens_per_s"])
    os.makedirs(lab.runner.results, exist_ok=True)
    with open(os.path.join(lab.runner.results, "replay.json"), "w") as f:
        json.dump(kept, f, indent=1)


def replay(lab, kept, name, argv, step_us):
    """One program: recorded, played by four strategies, run live plain and preloaded."""
    word = "".join(c if c.isalnum() else "-" for c in name)
    trace = os.path.join(lab.runner.scratch, f"replay-{word}.cst")
    done = lab.runner.run([lab.runner.program("cusplice"), "record", "--replayable", "-o", trace, "--", *argv], limit=200)
    if not done.ok or not os.path.exists(trace):
        lab.fail(done)
        return
    here = kept[name] = {"trace_bytes": os.path.getsize(trace), "recorded": done.stderr[-800:]}
    played = lab.runner.run([lab.runner.program("cusplice"), "replay", "--format", "json", "--repeat", "2" if lab.quick else "10", trace], limit=300)
    here["said"] = played.stderr[-4000:]
    lab.commands.append(" ".join(["cusplice record --replayable", "--", *argv]).replace(lab.runner.root + os.sep, ""))
    lab.check(f"{name}: can be replayed, and memory at the end is equal", played.ok, "" if played.ok else played.stderr[:300], issue=True)
    try:
        said = here["replay"] = json.loads(played.stdout)
    except ValueError:
        return
    rows = {row["strategy"]: row for row in said["rows"]}
    for strategy, row in rows.items():
        lab.check(f"{name}, {strategy}: sums of memory that differ", row["wrong_sums"] == 0 and said["about"]["sums"] > 0,
                  f"{row['wrong_sums']} of {said['about']['sums']}", "0")

    def call(_, variant):
        live = lab.runner.run(argv, variant=variant, limit=150)
        if live.ok:
            live.result = dict(live.result or {}, step_us=step_us(live))
        return live

    runs = lab.measure({f"{name}: plain": "plain", f"{name}: preload": "preload"}, call, "step_us", 3 if lab.quick else 5)
    medians = {key: statistics.median(d.result["step_us"] for d in all_of) for key, all_of in runs.items() if all_of}
    if len(medians) == 2 and "as-recorded" in rows and "eager" in rows:
        live = medians[f"{name}: preload"] / medians[f"{name}: plain"]
        again = rows["as-recorded"]["step_ns"] / rows["eager"]["step_ns"]
        here["live"] = {"us": medians, "ratio": live, "replayed_ratio": again}
        lab.check(f"{name}: preloaded / plain, replayed over live", abs(again / live - 1) <= 0.1, f"{again:.3f} / {live:.3f}", "0.9 to 1.1", issue=True)
    lab.notes.append(f"{name}: " + "; ".join(f"{s} {r['step_ns'] / 1e3:.1f} us a step (noise {r['noise_ns'] / 1e3:.1f}, in graphs {r['in_graphs']:.1f} %)"
                                             for s, r in rows.items()) + f"; the trace has {here['trace_bytes'] / 2**20:.1f} MiB")
