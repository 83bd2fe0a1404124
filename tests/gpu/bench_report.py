"""Writes BENCH.md, bench.json and the plots of the bench suite again after each case; merges the results of several runs."""

import json
import os
import statistics

import bench_plot
from bench_cases import BOUNDS, CASES, GRAPH, SEGMENTS, PLAIN, PRELOADED
from report import cell, table

FILE = "bench.json"


def load(folder):
    with open(os.path.join(folder, FILE)) as f:
        return json.load(f)


def merge(results):
    """One result of several: each case as the last of them has it that measured any of it, with the run that it is from."""
    runs, cases = [], {}
    for one in results:
        first = len(runs)
        runs += one["runs"]
        for case in one["cases"]:
            if not case["points"] and case["name"] in cases:
                continue
            cases[case["name"]] = dict(case, run=case["run"] + first)
    used = sorted({case["run"] for case in cases.values()})
    ordered = sorted(cases.values(), key=lambda c: list(CASES).index(c["name"]) if c["name"] in CASES else len(CASES))
    return {"runs": [runs[n] for n in used], "cases": [dict(case, run=used.index(case["run"])) for case in ordered]}


# Figures


def values(point, variant, figure):
    of = point["variants"].get(variant)
    return [run[figure] for run in of["runs"] if figure in run] if of else []


def ratio(point, over, under):
    """(ratio of the medians, least and greatest of the repetitions' own ratios), or None where one was not measured."""
    a = values(point, *over)
    b = values(point, *under) if under else [1] * len(a)
    if not a or not b or not all(b):
        return None
    each = [x / y for x, y in zip(a, b)]
    return statistics.median(a) / statistics.median(b), min(each), max(each)


def find(result, case, label):
    for one in result["cases"]:
        for point in one["points"] if one["name"] == case else ():
            if point["label"] == label:
                return point
    return None


def same(point, *variants):
    """All runs of these variants had one result."""
    each = [point["results"].get(name, []) for name in variants]
    return all(each) and len({value for of in each for value in of}) == 1


def judge(result):
    """The rows of the table of bounds: what, figure, range, bound, and whether it holds (None: not measured)."""
    rows = []
    for bound in BOUNDS:
        point = find(result, bound.case, bound.label)
        found = ratio(point, bound.over, bound.under) if point else None
        row = {"what": bound.what, "case": bound.case, "bound": bound.bound, "least": bound.least, "ok": None}
        if found:
            row.update(value=found[0], low=found[1], high=found[2], equal=same(point, bound.over[0], (bound.under or (PLAIN,))[0]))
            row["ok"] = row["equal"] and (found[0] >= bound.bound if bound.least else found[0] <= bound.bound)
        rows.append(row)
    return rows


# Markdown


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def noise(runs):
    """Half the distance of the least and the greatest, in percent of the median."""
    return 50 * (max(runs) - min(runs)) / abs(statistics.median(runs) or 1)


def shown(point, variant):
    runs = values(point, variant, point["figure"])
    if not runs:
        return ""
    return number(statistics.median(runs)) + (f" ± {noise(runs):.1f} %" if len(runs) > 1 else "")


def against(point, variant, other):
    """How many times as much time `variant` takes as `other`, so that less is better whatever the figure is."""
    pair = (variant, point["figure"]), (other, point["figure"])
    found = ratio(point, *(pair if not point["more_is_better"] else reversed(pair)))
    return f"{found[0]:.3f}" if found else ""


def bounds_table(rows):
    verdicts = {True: "pass", False: "**FAIL**", None: "not measured"}
    out = []
    for row in rows:
        verdict = verdicts[row["ok"]] if row.get("equal", True) else "**FAIL**: results differ"
        measured = [f"{row['value']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}"] if "value" in row else ["", ""]
        out.append([row["what"], *measured, f"{'>=' if row['least'] else '<='} {row['bound']:g}", verdict])
    return table(["case", "measured", "single repetitions", "bound", ""], out)


def curve(library):
    """The learning curve of the last run, by the stats file: the first ten steps, of ten plain ones as the library estimates them, and the first step with the gain."""
    learning = (library or {}).get("learning") or {}
    if not learning:
        return ["", ""]
    percent, step = learning.get("first_ten_percent_of_plain"), learning.get("gain_at_step")
    return [f"{percent} %" if percent else "-", step or "-"]


def case_table(case):
    """One row a point; the columns are those variants that some point has."""
    names = list(dict.fromkeys(name for point in case["points"] for name in point["variants"]))
    others = [name for name in (PLAIN, GRAPH, SEGMENTS) if name in names]
    mine = [name for name in names if name.startswith(PRELOADED)]
    head = ["", "figure", *names, *(f"{name} / {other}" for name in mine for other in others), "in graphs", "patched nodes", "first ten steps", "gain at step", "results"]
    rows = []
    for point in case["points"]:
        library = point["variants"].get(PRELOADED, {}).get("library")
        equal = {True: "equal", False: "**differ**", None: "not measured"}[point["equal"]]
        rows.append([point["label"], point["unit"], *(shown(point, name) for name in names), *(against(point, name, other) for name in mine for other in others),
                     f"{100 * library['in_graphs']:.1f} %" if library else "", library["patched_nodes"] if library else "", *curve(library),
                     equal + (f" (not asked of {', '.join(point['apart'])})" if point["apart"] else "")])
    return table(head, rows)


VARIANTS = (("plain", "the program as it is"), ("preloaded", "the program under cusplice"), ("graph", "one graph of the whole step, made by hand"),
            ("segments", "several graphs of a step, made by hand"), ("preloaded, the other library", "the program under the library that `--against` names"))


def runs_table(runs):
    """One row a run. What is the same in all of them stands in one line behind the table."""
    facts = list(dict.fromkeys(fact for run in runs for fact in run))
    shared = [fact for fact in facts if len(runs) > 1 and len({run.get(fact) for run in runs}) == 1]
    own = [fact for fact in facts if fact not in shared]
    lines = table(["run", *own], [[n + 1, *(run.get(fact, "") for fact in own)] for n, run in enumerate(runs)])
    return lines + ["In all of them: " + "; ".join(f"{fact} {cell(runs[0][fact])}" for fact in shared) + ".", ""] if shared else lines


def command(commands):
    """The command of the first point under the library, else the first command; other variants have other options."""
    return next((one for one in commands if one.startswith("preload: ")), commands[0])


def markdown(result, plots):
    rows = judge(result)
    held = sum(row["ok"] is True for row in rows)
    out = ["# Bench", "", f"{held} of {len(rows)} bounds hold, {sum(row['ok'] is None for row in rows)} not measured.", ""]
    out += ["## Bounds", "", *bounds_table(rows)]
    out += ["A row with `<=` holds if the figure is at most the bound, a row with `>=` if the figure is at least the bound.", "", "## Runs", ""]
    out += runs_table(result["runs"])
    out += ["## How to read the tables", "", *table(["variant", "what runs"], VARIANTS),
            "The variants of a row alternate within one run. A figure is the median over the repetitions. The figure behind `±` is half the distance",
            "between the least and the greatest repetition. A column `a / b` divides the time of `a` by the time of `b`. For tokens a second it divides the",
            "rate of `b` by the rate of `a`, so less is better in all of these columns. Absolute times are facts about one machine and one hour.",
            "*First ten steps*: their time, of ten plain ones as the library estimates these (`learning` of the stats file). *Gain at step*: the first",
            "step with nine tenths of the final gain. `-`: there is none.", ""]
    for case in result["cases"]:
        out += [f"## {case['name']}", "", f"{case['title']} (Run {case['run'] + 1}, {case['seconds']:.0f} s.)", ""]
        out += case_table(case) if case["points"] else []
        out += [f"![{name}]({name})\n" for name, about in plots.items() if about["cases"][0] == case["name"]]
        wrong = [f"- {'skipped' if c['ok'] is None else '**FAIL**'}: {cell(c['what'])}: {cell(c['value'])}" for c in case["checks"] if c["ok"] is not True]
        out += wrong + [""] if wrong else []
        notes = [note for note in case["notes"] if "no eager rule" not in note]
        out += [f"- {cell(note)}" for note in notes] + ([""] if notes else [])
        out += ["```", command(case["commands"]), "```", ""] if case["commands"] else []
    return "\n".join(out).rstrip() + "\n"


def write(folder, result):
    """BENCH.md, bench.json and one .svg for each plot of which there are points."""
    os.makedirs(folder, exist_ok=True)
    result = dict(result, bounds=judge(result))
    drawn = {name: bench_plot.draw(result, about) for name, about in bench_plot.PLOTS.items()}
    drawn = {name: text for name, text in drawn.items() if text}
    files = {FILE: json.dumps(result, indent=1) + "\n", "BENCH.md": markdown(result, {name: bench_plot.PLOTS[name] for name in drawn}), **drawn}
    for name, text in files.items():
        path = os.path.join(folder, name)
        with open(path + ".partial", "w") as f:
            f.write(text)
        os.replace(path + ".partial", path)
