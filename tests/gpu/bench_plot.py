"""The plots of the bench suite, and their lines from its results; harness/bench/plot.py draws them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "harness/bench"))
import plot

# Which cases make up a plot; x is a point's own, y its figure. `log`: of the axis across, and of the one upwards.
PLOTS = {
    "segments.svg": {"cases": ["segments"], "title": "Host loop, 1000 launches: how large graphs are", "x": "launches in a graph at most", "log": (True, False)},
    "eager.svg": {"cases": ["eager-share"], "title": "Host loop, 1000 launches: how many are on the eager list", "x": "launches on the eager list, %", "log": (False, False)},
    "streams.svg": {"cases": ["streams"], "title": "Host loop, one thread: streams that take turns", "x": "streams", "log": (True, False)},
    "threads.svg": {"cases": ["threads"], "title": "Host loop: threads with a stream each, all together", "x": "threads", "log": (True, False)},
    "batches.svg": {"cases": ["batches"], "title": "Decode host: sequences side by side", "x": "sequences (batch)", "log": (True, True)},
    "models.svg": {"cases": ["models-50m", "llama-static", "llama-dynamic", "models-1b", "models-3b", "models-8b"],
                   "title": "Hugging Face Llama in eager PyTorch, bf16", "x": "parameters, millions", "log": (True, True)},
}

COLOURS = {"plain": 0, "preloaded": 1, "graph": 2, "segments": 3}  # others have what is left
NAMES = {"graph": "one hand-written graph", "segments": "hand-written segments"}


def series_of(result, about):
    """{(variant, series): [(x, median, least, most)]} and the unit."""
    lines, unit = {}, ""
    for case in result["cases"]:
        for point in case["points"] if case["name"] in about["cases"] else ():
            if point["x"] is None:
                continue
            unit = point["unit"]
            for name, variant in point["variants"].items():
                runs = [run[point["figure"]] for run in variant["runs"]]
                lines.setdefault((name, point.get("series") or ""), []).append((point["x"], variant["median"], min(runs), max(runs)))
    return {key: sorted(of) for key, of in lines.items()}, unit


def draw(result, about):
    """The plot as SVG, or None where there are fewer than two places on its axis."""
    lines, unit = series_of(result, about)
    if len({point[0] for of in lines.values() for point in of}) < 2:
        return None
    return plot.draw(lines, about["title"], about["x"], unit, about["log"], COLOURS, NAMES)
