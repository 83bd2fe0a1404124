"""The case about replay: the player leaves the recorded memory with every strategy, and gains by graphs what the program gains. The
case about bench checks the same for sizes of graphs and break lists.
"""

import json
import os
import xml.etree.ElementTree

from trace_cases import Decode, Script, fastest, in_turn, said_of_host


def case_replay(lab):
    """cusplice record --replayable, then cusplice replay: sums of memory, and the ratio of times against the live program's."""
    tool, decode = lab.runner.program("cusplice"), lab.runner.program("decode")
    if not tool or not decode or lab.plain_only:
        lab.skip("nothing to replay, or the launcher or decode is not built")
        return
    kept = {}
    part = () if lab.quick else ("--steps", "200-900")
    replay(lab, kept, "decode host", Decode(lab, 12 if lab.quick else 3000), *part)
    if not lab.lacks("torch"):
        replay(lab, kept, "1000 x nn.Linear", Script(lab, "linear1000.py", "--steps", "60", "--warmup", "30"), "--steps", "80-140")
        if not lab.quick and not lab.lacks("transformers"):
            program = Script(lab, "hf_llama.py", "--cache", "static", "--runs", "3", "--tokens", "128")
            replay(lab, kept, "Llama, static cache", program, "--steps", "20-90")


def replay(lab, kept, name, program, *options):
    """In each round the program is recorded, and run live, plain and preloaded, in turns, since the speed of a shared host drifts; then it
    is played. The first round plays all strategies. What is compared is what nothing disturbs: the fastest tenth of the live program's steps, and of
    replays that all take the host's time of the fastest recorded step; of the rounds the fastest."""
    if not lab.wants(name):
        return
    here = kept[name] = {"rounds": []}
    for number in range(1 if lab.quick else 3):
        one = replay_round(lab, name, program, options, number == 0)
        here["rounds"].append(one)
        print(f"    {name}: {json.dumps({k: v for k, v in one.items() if k not in ('said', 'recorded')})}", flush=True)
        os.makedirs(lab.runner.results, exist_ok=True)
        with open(os.path.join(lab.runner.results, "replay.json"), "w") as f:
            json.dump(kept, f, indent=1)
        if "live" not in one:
            return
    rounds = here["rounds"]
    live = fastest(rounds, lambda one: one["live"]["preload"]) / fastest(rounds, lambda one: one["live"]["plain"])
    again = fastest(rounds, lambda one: one["rows"]["as-recorded"]["p10_ns"]) / fastest(rounds, lambda one: one["rows"]["eager"]["p10_ns"])
    lab.check(f"{name}: preloaded / plain, replayed over live", abs(again / live - 1) <= 0.1, f"{again:.3f} / {live:.3f}", "0.9 to 1.1", issue=True)
    for one in rounds:
        lab.notes.append(f"{name}: " + "; ".join(f"{s} {r['step_ns'] / 1e3:.1f} us a step (noise {r['noise_ns'] / 1e3:.1f}, in graphs {r['in_graphs']:.1f} %)"
                                                 for s, r in one["rows"].items())
                         + "".join(f"; live {variant} {us:.1f}" for variant, us in one["live"].items())
                         + f"; while recorded {one['recorded_us']:.1f}; {said_of_host(one)}; the trace has {one['trace_bytes'] / 2**20:.1f} MiB")


def replay_round(lab, name, program, options, every_strategy):
    """What was recorded, played and run; without "live" where something failed, which is told."""
    tool, trace = lab.runner.program("cusplice"), os.path.join(lab.runner.scratch, "replay.cst")
    recorder = [tool, "record", "--replayable", *options, "-o", trace, "--"]
    done, *runs = in_turn(lab, program, [("plain", {}, recorder), ("plain", {}, ()), ("preload", {}, ())], limit=150)
    if not done.ok or not os.path.exists(trace):
        lab.fail(done)
        return {}
    host_ms = [*done.host_ms]
    one = {"trace_bytes": os.path.getsize(trace), "recorded_us": program.step_us(done), "recorded": done.stderr[-800:]}
    strategies = () if every_strategy else ("--strategy", "eager", "--strategy", "as-recorded")
    played = lab.runner.run([tool, "replay", "--pace", "fastest", "--format", "json", "--repeat", "2" if lab.quick else "5", *strategies, trace], limit=300, settled=True)
    host_ms += played.host_ms
    os.unlink(trace)
    one["said"] = played.stderr[-4000:]
    command = " ".join(["cusplice record --replayable", *options, "--", *done.argv[len(recorder):]]).replace(lab.runner.root + os.sep, "")
    if command not in lab.commands:
        lab.commands.append(command)
    lab.check(f"{name}: can be replayed, and memory at the end is equal", played.ok, "" if played.ok else played.stderr[:300], issue=True)
    try:
        said = json.loads(played.stdout)
    except ValueError:
        return one
    one["rows"] = {row["strategy"]: row for row in said["rows"]}
    for strategy, row in one["rows"].items():
        lab.check(f"{name}, {strategy}: sums of memory that differ", row["wrong_sums"] == 0 and said["about"]["sums"] > 0,
                  f"{row['wrong_sums']} of {said['about']['sums']}", "0")
    live = {}
    for run in runs:
        if not run.ok:
            lab.fail(run)
            return one
        live[run.variant] = program.step_us(run)
        lab.see(f"{name}: {run.variant}", run)
    one.update(live=live, host_ms=[round(ms, 3) for ms in host_ms])
    return one


BREAKS = ("none", "every:10")


def case_bench(lab):
    """cusplice bench of the decode host: each cell is there, with the recorded memory at its end. Tables and plot are kept."""
    tool, decode = lab.runner.program("cusplice"), lab.runner.program("decode")
    if not tool or not decode or lab.plain_only:
        lab.skip("nothing to measure, or the launcher or decode is not built")
        return
    segments = (4, 64) if lab.quick else (4, 16, 64, 1024)
    os.makedirs(lab.runner.results, exist_ok=True)
    kept = {end: os.path.join(lab.runner.results, f"bench.{end}") for end in ("md", "csv", "json", "svg")}
    files = [word for end in ("md", "csv", "json") for word in ("-o", kept[end])] + ["--svg", kept["svg"]]
    breaks = [word for name in BREAKS for word in ("--break", name)]
    argv = ["bench", "--force", "--segments", ",".join(map(str, segments)), *breaks, *(["--strategy", "piecewise", "--rounds", "1"] if lab.quick else []), *files,
            "--", decode, "--tokens", "4" if lab.quick else "200"]
    done = lab.runner.run([tool, *argv], limit=500)
    lab.commands.append(" ".join(["cusplice", *argv]).replace(lab.runner.root + os.sep, ""))
    lab.check("decode host: each cell is measured, and memory at the end is equal", done.ok, "" if done.ok else (done.stderr or "")[-300:], issue=True)
    try:
        with open(kept["json"]) as f:
            rows = json.load(f)["rows"]
        with open(kept["csv"]) as f:
            lines = f.read().splitlines()
        plot = xml.etree.ElementTree.parse(kept["svg"]).getroot()
    except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
        lab.check("decode host: tables and plot can be read", False, str(error)[:200])
        return
    wanted = [("eager", 0, "")] + [("piecewise", p, b) for b in BREAKS for p in segments]
    if not lab.quick:
        wanted += [("full", p, "") for p in segments] + [("as-recorded", 0, "")]
    cells = {(row["strategy"], row["segment_max"], row["breaks"]): row for row in rows}
    lab.check("decode host: cells", list(cells) == wanted, len(cells), len(wanted))
    points = sum(element.get("class") == "point" for element in plot.iter())
    lab.check("decode host: rows of the CSV, points of the plot", len(lines) - 1 == points == len(rows), f"{len(lines) - 1}, {points}", len(rows))
    lab.check("decode host: sums of memory that differ", all(row["wrong_sums"] == 0 for row in rows), sum(row["wrong_sums"] for row in rows), "0")
    lab.check("decode host: ratios to the plain driver", all(row["of_eager"] > 0 for row in rows),
              f"{min(row['of_eager'] for row in rows):.1f} to {max(row['of_eager'] for row in rows):.1f} %")
    for segment in segments:
        whole, cut = cells.get(("piecewise", segment, "none")), cells.get(("piecewise", segment, "every:10"))
        if whole and cut:
            lab.check(f"decode host, segments of {segment}: in graphs with every tenth launch a break", cut["in_graphs"] < whole["in_graphs"],
                      f"{cut['in_graphs']:.1f} %", f"< {whole['in_graphs']:.1f} %")
    lab.notes += [f"{row['strategy']} {row['segment_max'] or ''} {row['breaks']}: {row['step_ns'] / 1e3:.1f} us a step (noise {row['noise_ns'] / 1e3:.1f}), "
                  f"{row['of_eager']:.1f} % of eager, {row['in_graphs']:.1f} % in graphs, {row['graphs']:.1f} graphs a step" for row in rows]
