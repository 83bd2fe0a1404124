"""Compares what op_db.py wrote: two runs as the program is, one preloaded. Standard library only, and no process started.

An operator is equal if every execution of every sample gave the same bytes, or raised the same error, in all three runs. It
varies if the plain runs do not agree with each other, or with their own repetition; then the preloaded values have to lie
as near to the plain ones as rounding and the plain runs' own distance explain. Anything else is a difference.
"""

import array
import glob
import json
import math
import os

NEAR = {"float32": 1e-4, "bfloat16": 4e-2, "float16": 1e-2, "float64": 1e-9, "complex64": 1e-4, "complex128": 1e-9}
WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8, "complex64": 8, "complex128": 16, "int64": 8, "int32": 4,
         "int16": 2, "int8": 1, "uint8": 1, "bool": 1, "uint16": 2, "uint32": 4, "uint64": 8}


def load(folder):
    """Everything that the shards of one run wrote: (operator, type) -> record, and what each began and did not end."""
    records, begun = {}, {}
    for path in sorted(glob.glob(os.path.join(folder, "*.jsonl"))):
        with open(path) as f:
            for line in f:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # the line at which a process ended
                key = (record["op"], record["dtype"])
                if "begins" in record:
                    begun[key] = path
                else:
                    record["file"] = path + ".bin"
                    records[key] = record
    return records, sorted(set(begun) - set(records))


def outcome(one):
    return one.get("error") or one["hash"]


def outcomes(sample):
    return [outcome(r) for r in sample["runs"]]


def repeats(sample):
    """Whether the third and fourth execution gave what the first and second did."""
    seen = outcomes(sample)
    return all(seen[i] == seen[i + 2] for i in range(len(seen) - 2))


def floats(data, dtype):
    if dtype == "bfloat16":
        words = array.array("H", data)
        wide = array.array("I", [w << 16 for w in words])
        return array.array("f", wide.tobytes())
    code = {"float32": "f", "complex64": "f", "float64": "d", "complex128": "d"}.get(dtype)
    return array.array(code, data) if code else None


def read(record, one):
    if one.get("at") is None or "error" in one:
        return None
    with open(record["file"], "rb") as f:
        f.seek(one["at"])
        return f.read(one["bytes"])


def distance(a, b):
    """Largest difference of two lists of numbers, and the largest finite magnitude; infinite where one alone is not finite."""
    far = size = 0.0
    for x, y in zip(a, b):
        if x == y or (x != x and y != y):
            size = max(size, abs(y)) if math.isfinite(y) else size
            continue
        if not (math.isfinite(x) and math.isfinite(y)):
            return math.inf, size
        far, size = max(far, abs(x - y)), max(size, abs(y))
    return far, size


def near(mine, plain, other, parts):
    """Says "" where the bytes `mine` are explained by `plain` and `other`, else the first part that is not."""
    if mine is None or plain is None or len(mine) != len(plain):
        return "nothing to compare"
    at = 0
    for part in parts:
        if part[0] == "text":
            continue
        what, dtype, shape = part
        end = at + math.prod(shape) * WIDTH.get(dtype, 1)
        a, b = mine[at:end], plain[at:end]
        c = other[at:end] if other is not None and len(other) == len(plain) else b
        at = end
        if a in (b, c):
            continue
        x, y, z = floats(a, dtype), floats(b, dtype), floats(c, dtype)
        if x is None:
            if b == c:
                return f"{what} {dtype}{shape} differs, and only preloaded"
            continue  # integers that vary as it is
        allowed, size = distance(z, y)
        far, _ = distance(x, y)
        if far > 4 * allowed + NEAR[dtype] * max(size, 1e-3):
            return f"{what} {dtype}{shape} is off by {far:.3g}, plain by {allowed:.3g}, largest {size:.3g}"
    return ""


def compare(plain, second, mine):
    """Three records of one operator. Returns (verdict, why, samples that vary)."""
    if plain.get("error") or mine.get("error"):
        same = plain.get("error") == mine.get("error")
        return ("equal", "", 0) if same else ("different", f"samples: {plain.get('error')} / {mine.get('error')}", 0)
    if [s["i"] for s in plain["samples"]] != [s["i"] for s in mine["samples"]]:
        return "different", f"{len(plain['samples'])} samples / {len(mine['samples'])}", 0
    varying = 0
    for at, a in enumerate(plain["samples"]):
        b = second["samples"][at] if second and at < len(second["samples"]) else a
        c = mine["samples"][at]
        if outcomes(a) == outcomes(c) == outcomes(b):
            continue
        unsteady = outcomes(a) != outcomes(b) or not repeats(a) or not repeats(b)
        for turn, (x, y, z) in enumerate(zip(a["runs"], b["runs"], c["runs"])):
            if outcome(z) in (outcome(x), outcome(y)):
                continue
            where = f"sample {a['i']}, execution {turn + 1}: "
            if "error" in x or "error" in z or not unsteady:
                return "different", f"{where}{outcome(x)} / {outcome(z)}", varying
            parts = a["parts"][turn % 2]
            repeat = plain["file"] and read(plain, a["runs"][(turn + 2) % len(a["runs"])])
            other = read(second, y) if outcome(y) != outcome(x) else repeat
            off = near(read(mine, z), read(plain, x), other, parts)
            if off:
                return "different", where + off, varying
        varying += unsteady
    return ("varies", "", varying) if varying else ("equal", "", 0)


def judge(folders):
    """`folders`: of the first plain run, the second, the preloaded. Returns a summary with lists of operators by verdict."""
    (plain, lost), (second, _), (mine, mine_lost) = [load(f) for f in folders]
    found = {"equal": [], "varies": [], "different": [], "lost": [], "unsteady": 0, "executions": 0, "samples": 0, "raised": 0,
             "backward": 0, "why": {}}
    for key in sorted(plain):
        name = f"{key[0]} {key[1]}"
        record = plain[key]
        found["samples"] += len(record["samples"])
        found["backward"] += bool(record.get("backward"))
        for sample in record["samples"]:
            found["executions"] += len(sample["runs"])
            found["raised"] += sum("error" in r for r in sample["runs"])
        if key not in mine:
            found["different"].append(name)
            found["why"][name] = "ended the preloaded process" if key in mine_lost else "no preloaded record"
            continue
        verdict, why, varying = compare(record, second.get(key), mine[key])
        found[verdict].append(name)
        found["unsteady"] += varying
        if why:
            found["why"][name] = why
    found["lost"] = [" ".join(key) for key in lost]  # not finished as it is: nothing to compare with
    return found


def settle(name, plain, mine):
    """Whether more plain runs (folders) explain what the preloaded one (folder) gave, where two did not: the operator has to vary
    by itself in these samples, and the preloaded values to be among the plain ones or near to them."""
    key = tuple(name.rsplit(" ", 1))
    records = [r for r in (load(folder)[0].get(key) for folder in plain) if r]
    kept = load(mine)[0].get(key)
    if not records or not kept or any(len(r["samples"]) != len(kept["samples"]) for r in records):
        return False
    for at, sample in enumerate(kept["samples"]):
        for turn, one in enumerate(sample["runs"]):
            plain_ones = [(r, r["samples"][at]["runs"][i]) for r in records for i in range(turn % 2, len(sample["runs"]), 2)]
            seen = {outcome(p) for _, p in plain_ones}
            if outcome(one) in seen:
                continue
            if len(seen) < 2 or "error" in one or any("error" in p for _, p in plain_ones):
                return False
            distinct = list({outcome(p): read(r, p) for r, p in plain_ones}.values())
            parts = records[0]["samples"][at]["parts"][turn % 2]
            data = read(kept, one)
            if all(near(data, p, q, parts) for p in distinct for q in distinct if p is not q):
                return False
    return True


def judge_one(name, folders):
    """The verdict of one operator over the same three kinds of folders, as one line."""
    op, dtype = name.rsplit(" ", 1)
    plain, second, mine = [load(f)[0].get((op, dtype)) for f in folders]
    if not plain or not mine:
        return "no record"
    verdict, why, _ = compare(plain, second, mine)
    return f"{verdict} {why}".strip()


def last_begun(path):
    """Position of the last operator that a shard began, or None."""
    at = None
    try:
        with open(path) as f:
            for line in f:
                if line.startswith('{"begins"'):
                    at = json.loads(line)["begins"]
    except (OSError, ValueError):
        pass
    return at
