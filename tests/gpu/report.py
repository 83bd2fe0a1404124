"""Writes results.json and RESULTS.md again after each case, so that an interrupted run keeps its results."""

import json
import os


def verdict(check):
    return {True: "pass", False: "**FAIL**", None: "skipped"}[check["ok"]]


def cell(value):
    return str(value).replace("|", "\\|").replace("\n", " ")


def counts(cases):
    checks = [c for case in cases for c in case["checks"]]
    return tuple(sum(c["ok"] is want for c in checks) for want in (True, False, None))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return lines + ["| " + " | ".join(cell(v) for v in row) + " |" for row in rows] + [""]


def stats_row(case, name, s):
    eager = ", ".join(f"{k} {v}" for k, v in s.get("eager_by", {}).items() if v)
    signatures = s.get("signatures", {})
    fallbacks = ", ".join(f"{k} {v}" for k, v in s.get("fallbacks", {}).items() if v and k != "withholding_off")
    ops = sum(s["ops"].values())
    share = f"{100 * s['issued']['in_graphs'] / ops:.1f} %" if ops else ""
    return [case, name, s["ops"].get("launches"), ops, share, eager, s.get("graph_launches"),
            "/".join(str(signatures.get(k, "")) for k in ("exact", "patched", "missed")), s.get("patched_nodes"),
            f"{s.get('build_us', 0) / 1000:.1f}", fallbacks]


def markdown(facts, cases):
    passed, failed, skipped = counts(cases)
    out = ["# Results on a GPU", "", f"{passed} passed, {failed} failed, {skipped} skipped.", ""]
    out += table(["fact", "value"], facts.items())
    out += ["`a / b` divides the median of `a` by the median of `b`; both alternated in one run. For a time less is better, for tokens/s more.",
            "Absolute times are facts about one machine and one hour.", ""]
    checks = [c for case in cases for c in case["checks"]]
    shown = [c for c in checks if c["issue"]]
    if shown:
        out += ["## Bounds", ""]
        out += table(["case", "measured", "bound", ""], [[c["what"], c["value"], c["bound"], verdict(c)] for c in shown])
    figures = [[case["name"], name, f["key"], f"{f['median']:.4g}", f"{min(f['all']):.4g} to {max(f['all']):.4g}", len(f["all"])]
               for case in cases for name, f in case["figures"].items()]
    if figures:
        out += ["## Figures", "", "`wall_ns` is nanoseconds per kernel, synchronisation included.", ""]
        out += table(["case", "variant", "figure", "median", "range", "runs"], figures)
    rest = [c for c in checks if not c["issue"]]
    if rest:
        out += ["## Other checks", ""]
        out += table(["case", "check", "measured", "wanted", ""],
                     [[c["case"], c["what"], c["value"], c["bound"], verdict(c)] for c in rest])
    rows = [stats_row(case["name"], name, s) for case in cases for name, s in case["stats"].items()]
    if rows:
        out += ["## What the library did", ""]
        out += table(["case", "run", "launches", "ops", "in graphs", "eager by", "graph launches", "exact/patched/missed",
                      "patched nodes", "build ms", "fallbacks"], rows)
    notes = [f"- {case['name']}: {cell(note)}" for case in cases for note in case["notes"]]
    if notes:
        out += ["## Notes", ""] + notes + [""]
    commands = [f"- {case['name']} ({case['seconds']:.0f} s): `{c}`" for case in cases for c in case["commands"][:6]]
    return "\n".join(out + ["## Commands", ""] + commands) + "\n"


def write(folder, facts, cases):
    os.makedirs(folder, exist_ok=True)
    for name, text in (("results.json", json.dumps({"facts": facts, "cases": cases}, indent=1)),
                       ("RESULTS.md", markdown(facts, cases))):
        path = os.path.join(folder, name)
        with open(path + ".partial", "w") as f:
            f.write(text)
        os.replace(path + ".partial", path)
