"""Reads a Perfetto export as a viewer does, and prints its faults and counts as one JSON object."""

import collections
import json
import sys


def ns(us):
    return round(us * 1000)


def check_nesting(slices):
    """Slices of one track, in the order of the file: each lies in those that are open, or behind them."""
    problems, open_ends, last = [], [], 0
    for start, end, name in sorted(slices, key=lambda s: s[0]):  # stable: ties as in the file
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if end < start:
            problems.append(f"{name} at {start} ends before it begins")
        if open_ends and end > open_ends[-1]:
            problems.append(f"{name} at {start}..{end} sticks out of one that ends at {open_ends[-1]}")
        open_ends.append(end)
        last = max(last, end)
    return problems


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        trace = json.load(file)
    problems, tracks, names = [], collections.defaultdict(list), {}
    counts, flows = collections.Counter(), {"s": {}, "f": {}}
    calls, executions = {}, {}
    for event in trace["traceEvents"]:
        track = (event["pid"], event["tid"])
        if event["ph"] == "M":
            names[(event["name"], *track)] = event["args"]
        elif event["ph"] == "X":
            start = ns(event["ts"])
            end = start + ns(event["dur"])
            tracks[track].append((start, end, event["name"]))
            counts[event["cat"]] += 1
            at = event["args"].get("correlation")
            if at is not None:
                side = calls if event["cat"] == "cuda_driver" else executions
                if at in side:
                    problems.append(f"correlation {at} twice")
                side[at] = (track, start, end, event)
        elif event["ph"] in flows:
            flows[event["ph"]][event["id"]] = (track, ns(event["ts"]), event)
        elif event["ph"] == "i":
            counts["instant " + event["name"]] += 1
        else:
            problems.append(f"phase {event['ph']}")
    for track, slices in tracks.items():
        problems += [f"{track}: {p}" for p in check_nesting(slices)]
        if ("thread_name", *track) not in names or ("thread_sort_index", *track) not in names:
            problems.append(f"{track} has no name or no place")
        if ("process_name", track[0], 0) not in names or ("process_sort_index", track[0], 0) not in names:
            problems.append(f"process {track[0]} has no name or no place")
    if set(flows["s"]) != set(flows["f"]):
        problems.append("flows have one end")
    for number, (track, at, _) in flows["s"].items():
        call = calls.get(number)
        if not call or call[0] != track or not call[1] <= at <= call[2]:
            problems.append(f"flow {number} does not begin in its call")
    for number, (track, at, event) in flows["f"].items():
        execution = executions.get(number)
        if not execution or execution[0] != track or execution[1] != at or event["bp"] != "e":
            problems.append(f"flow {number} does not end at its execution")
        elif at < calls[number][1]:
            problems.append(f"execution {number} is before its call")
    if not set(executions) <= set(calls):
        problems.append("executions without a call")
    for stream in {e[0] for e in executions.values()}:
        order = [n for n in sorted(executions) if executions[n][0] == stream]
        ends = [executions[n][1:3] for n in order]
        if any(a[1] > b[0] for a, b in zip(ends, ends[1:])):
            problems.append(f"executions of {stream} overlap or are out of order")
    print(json.dumps({
        "problems": problems,
        "base": trace["baseTimeNanoseconds"],
        "gpu_times": trace["otherData"].get("gpu_times"),
        "facts": trace["otherData"].get("facts"),
        "counts": counts,
        "flows": len(flows["s"]),
        "calls": len(calls),
        "eager": {n: [args["eager"], args["why"]] for n, args in ((n, c[3]["args"]) for n, c in calls.items()) if args["outcome"] == "eager"},
        "executions": [
            [n, e[3]["cat"], e[3]["name"], e[0][0], e[0][1], e[1], e[2] - e[1], e[3]["args"].get("grid"),
             e[3]["args"].get("block"), e[3]["args"].get("bytes")] for n, e in sorted(executions.items())
        ],
        "threads": sorted(a["name"] for (w, _, _), a in names.items() if w == "thread_name"),
        "processes": sorted(a["name"] for (w, _, _), a in names.items() if w == "process_name"),
        "labels": [e["args"] for e in trace["traceEvents"] if e.get("name") == "process_labels"],
        "graphs": [e["args"] for e in trace["traceEvents"] if e.get("name") == "graph"],
    }))


main()
