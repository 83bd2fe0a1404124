"""The case about size: a launch costs the same with any number of launches in a step, different steps, streams and threads. Also: many
steps under a small budget.
"""

import importlib.util
import json
import os
import pathlib
import statistics

# Axis: arguments of a point, points, and those with --quick.
AXES = {
    "nodes": (lambda n: ["--nodes", n, "--warmup", 40 if n < 100000 else 28, "--steps", max(200000 // n, 6)],
              (10, 100, 1000, 10000, 100000), (10, 1000)),
    "signatures, alike but for the beginning": (lambda n: ["--nodes", 100, "--signatures", n, "--warmup", 24 * n + 100, "--steps", max(n, 1000)],
                                                (1, 10, 100, 1000), (1, 100)),
    "signatures, each in an order of its own": (lambda n: ["--nodes", 100, "--signatures", n, "--differ", "order", "--warmup", 24 * n + 100,
                                                           "--steps", max(n, 1000)], (1, 10, 100, 1000), (1, 100)),
    "signatures, 20 launches each": (lambda n: ["--nodes", 20, "--signatures", n, "--differ", "order", "--warmup", 16 * n + 100,
                                                "--steps", max(n, 5000)], (1, 10000), (1, 100)),
    "signatures by grid": (lambda n: ["--nodes", 100, "--signatures", n, "--differ", "grid", "--warmup", 24 * n + 100, "--steps", max(n, 1000)],
                           (1, 10, 1000), (1, 10)),  # shapes that came 12 times have a graph of their own
    "streams": (lambda n: ["--nodes", 100, "--streams", n, "--warmup", 40 * n, "--steps", max(2 * n, 1000)], (1, 10, 100, 1000), (1, 10)),
    "threads": (lambda n: ["--nodes", 1000, "--threads", n, "--warmup", 200, "--steps", 200], (1, 2, 4, 8, 16), (1, 2)),
    # Many learn in turns, each beside the others: not yet done behind 200 steps.
    "threads that have learned": (lambda n: ["--nodes", 1000, "--threads", n, "--warmup", 800, "--steps", 200], (1, 8, 16), ()),
}
BUDGET_MB = 256


def case_growth(lab):
    """Wall time of a launch over sizes, preloaded and plain; 1000 steps of 1000 launches under 256 MB."""
    program = lab.runner.program("growth")
    if not program:
        lab.skip("growth is not built")
        return
    table = {}
    for axis, (arguments, points, few) in AXES.items():
        if not lab.wants(axis):
            continue
        for n in few if lab.quick else points:
            if axis.startswith("threads") and n > (os.cpu_count() or 1):
                lab.skip(f"{n} threads: this machine has {os.cpu_count()} processors")
                continue
            table.setdefault(axis, {})[n] = point(lab, f"{axis}: {n}", [program, *arguments(n)])
        judge(lab, axis, table.get(axis, {}))
        write(lab, table)
    for differ in ("prefix", "order") if lab.wants("budget") else ():
        budget(lab, program, differ)
    if not lab.quick and lab.wants("memory"):
        whole_memory(lab, program)


def write(lab, table):
    """growth.json, the table of harness/bench/growth.py as growth.md, its plot as growth.svg: beside the results."""
    source = pathlib.Path(__file__).resolve().parents[2] / "harness/bench/growth.py"
    spec = importlib.util.spec_from_file_location("growth_table", source)
    growth = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(growth)
    results = pathlib.Path(lab.runner.results)
    results.mkdir(parents=True, exist_ok=True)
    (results / "growth.json").write_text(json.dumps(table, indent=1))
    known = {axis: {n: p for n, p in points.items() if p} for axis, points in table.items()}
    known = {axis: points for axis, points in known.items() if points}
    hosts = {axis: {n: {"value": p["host_ns"], "plain": p["plain_host_ns"], "wall": p["wall_ns"], "plain_wall": p["plain_wall_ns"], "run": p}
                    for n, p in points.items()} for axis, points in known.items()}
    walls = {axis: {n: {"value": p["wall_ns"]} for n, p in points.items()} for axis, points in known.items()}
    if hosts:
        (results / "growth.md").write_text(growth.markdown("time", hosts))
        (results / "growth.svg").write_text(growth.svg("time on the wall", walls))


def point(lab, name, argv, env=None, reps=None, hand_size=None):
    """Plain once, preloaded some times, results compared, and graphs by hand, of hand_size launches or as many as the preloaded one's have.
    Returns the medians, or None."""
    runs = {"plain": [], "preload": []}
    for variant in ["plain"] + ["preload"] * (1 if lab.plain_only else reps or (1 if lab.quick else 2)):
        if lab.plain_only and variant != "plain":
            continue
        done = lab.runner.run(argv, variant=variant, env=env if variant == "preload" else None, limit=90)
        if not done.ok or done.result is None:
            lab.fail(done)
            return None
        runs[variant].append(done)
        lab.see(name, done)
    if not runs["preload"]:
        return None
    hand = by_hand(lab, name, argv, hand_size or launches_of(runs["preload"][-1].result))
    if hand:
        runs["by hand"] = [hand]
    lab.same(f"{name}: result", runs, lambda d: d.result["checksum"])
    keys = ("wall_ns", "host_ns", "in_graphs", "patched", "graph_launches", "rss_kb", "worst_step_us")
    result = {key: statistics.median(d.result[key] for d in runs["preload"]) for key in keys}
    result.update(plain_wall_ns=runs["plain"][0].result["wall_ns"], plain_host_ns=runs["plain"][0].result["host_ns"],
                  plain_worst_step_us=runs["plain"][0].result["worst_step_us"], built=runs["preload"][-1].stats["built"],
                  graph_bytes=runs["preload"][-1].stats["graph_bytes"], device_kb=runs["preload"][-1].result["device_kb"],
                  plain_device_kb=runs["plain"][0].result["device_kb"],
                  filled_mb=runs["preload"][-1].result["filled_mb"], plain_filled_mb=runs["plain"][0].result["filled_mb"],
                  host_memory=runs["preload"][-1].stats["host_memory"],
                  host_bytes_per_node=runs["preload"][-1].stats["host_memory"]["bytes_per_node"],
                  graph_bytes_per_op=runs["preload"][-1].stats["graph_memory"]["bytes_per_op"],
                  fallbacks={k: v for k, v in runs["preload"][-1].stats["fallbacks"].items() if v and k != "withholding_off"})
    if hand:
        result.update(hand_wall_ns=hand.result["wall_ns"], hand_host_ns=hand.result["host_ns"], hand_filled_mb=hand.result["filled_mb"],
                      hand_graphs=int(hand.argv[-1]))
    return result


def launches_of(preloaded):
    """Of a graph; None where hardly any were launched."""
    return max(2, round(preloaded["in_graphs"] / preloaded["graph_launches"])) if preloaded["in_graphs"] >= 0.5 else None


def by_hand(lab, name, argv, size):
    """The same program with graphs of its own, of as many launches; None where size is."""
    if not size:
        return None
    done = lab.runner.run([*argv, "--graphs", size], limit=90)
    if not done.ok or done.result is None:
        lab.fail(done)
        return None
    lab.see(f"{name}, by hand", done)
    return done


def judge(lab, axis, points):
    """No size costs more than 1.10 of what a smaller one does, or of what graphs of that size made by hand do: the driver's own growth is
    not the library's. A small step costs more by its wait, which is not growth."""
    known = {n: p for n, p in points.items() if p}
    if len(known) < 2:
        return
    least, most, where = None, 0, None
    for n, p in sorted(known.items()):
        if least and p["wall_ns"] / least > most:
            most, where = p["wall_ns"] / least, n
        least = min(least or p["wall_ns"], p["wall_ns"])
    lab.check(f"{axis}: ns of a launch, to any smaller size", most <= 1.10, f"{most:.3f} at {where}", "<= 1.10", issue=True)
    beside = {n: p["wall_ns"] / p["hand_wall_ns"] for n, p in known.items() if "hand_wall_ns" in p}
    if beside:
        where = max(beside, key=beside.get)
        lab.check(f"{axis}: ns of a launch, to graphs by hand of as many launches", beside[where] <= 1.10, f"{beside[where]:.3f} at {where}", "<= 1.10")
    lab.notes.append(f"{axis}: " + "; ".join(
        f"{n}: {p['wall_ns']:.0f} ns (plain {p['plain_wall_ns']:.0f}" + (f", graphs of {p['hand_graphs']} by hand {p['hand_wall_ns']:.0f}" if "hand_wall_ns" in p else "")
        + f"), host {p['host_ns']:.0f} (plain {p['plain_host_ns']:.0f}" + (f", by hand {p['hand_host_ns']:.0f}" if "hand_wall_ns" in p else "")
        + f"), in graphs {100 * p['in_graphs']:.1f} %, patched {100 * p['patched']:.0f} %" for n, p in sorted(known.items())))


def budget(lab, program, differ):
    """More steps than graphs have room for: nothing fails, the budget holds, a launch costs what it costs plain at most."""
    small = ["--nodes", 200, "--signatures", 200] if lab.quick else ["--nodes", 1000, "--signatures", 1000]
    argv = [program, *small, "--differ", differ, "--warmup", 1000 if lab.quick else 2000, "--steps", 1000]
    name = f"{small[3]} steps of {small[1]} launches ({differ}), {BUDGET_MB} MB"
    p = point(lab, name, argv, {"CUSPLICE_GRAPH_MB": str(BUDGET_MB)}, 1)
    if not p:
        return
    lab.check(f"{name}: memory of graphs, an estimate", p["graph_bytes"] <= BUDGET_MB << 20, p["graph_bytes"], f"<= {BUDGET_MB << 20}", issue=True)
    more_kb = p["device_kb"] - p["plain_device_kb"]
    lab.check(f"{name}: memory of graphs, as the GPU has it", more_kb <= BUDGET_MB << 10, f"{more_kb} KiB", f"<= {BUDGET_MB << 10}", issue=True)
    lab.check(f"{name}: time over plain", p["wall_ns"] <= 1.02 * p["plain_wall_ns"], f"{p['wall_ns'] / p['plain_wall_ns']:.3f}", "<= 1.02", issue=True)
    lab.notes.append(f"{name}: {p['built']} graphs built, device memory {p['device_kb']} KiB, in graphs {100 * p['in_graphs']:.1f} %, longest step "
                     f"{p['worst_step_us']:.0f} us (plain {p['plain_worst_step_us']:.0f}), host memory {p['host_memory']}")


def whole_memory(lab, program):
    """A program that takes all memory there is gets what it gets plain, although graphs had some of it, and goes on."""
    name = "all memory is the program's"
    p = point(lab, name, [program, "--nodes", 1000, "--signatures", 100, "--differ", "order", "--warmup", 1500, "--steps", 500, "--fill"], reps=1,
              hand_size=125)
    if p:
        short = p["plain_filled_mb"] - p["filled_mb"]
        lab.check(f"{name}: MiB fewer than plain", short <= 64, short, "<= 64", issue=True)
        if "hand_filled_mb" in p:
            short = p["hand_filled_mb"] - p["filled_mb"]
            lab.check(f"{name}: MiB fewer than where graphs were made by hand", short <= 64, short, "<= 64")
        lab.notes.append(f"{name}: {p['filled_mb']} MiB (plain {p['plain_filled_mb']}, by hand {p.get('hand_filled_mb')}), graphs had {p['graph_bytes'] >> 20} MiB by the estimate")
