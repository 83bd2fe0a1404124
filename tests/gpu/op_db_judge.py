"""Compares what op_db.py wrote: runs as the program is, and one preloaded. Standard library only, and no process started.

An operator is equal if every execution of every sample gave the same bytes, or raised the same error, in all runs. It varies
if plain runs do not agree with each other or with their own repetition. Then it is known which of its results vary (its
gradient for the first input, say); only those may differ preloaded, and by no more than rounding and the distance of the plain
runs explain. Anything else is a difference.
"""

import array
import glob
import json
import math
import os

MOST_NUMBERS = 20000  # as in op_db.py
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


def floats(data, dtype):
    """The numbers in these bytes; None for whole numbers and truth values."""
    code = {"float32": "f", "complex64": "f", "float64": "d", "complex128": "d", "bfloat16": "H"}.get(dtype)
    if not code:
        return None
    words = array.array(code, data)
    return array.array("f", array.array("I", [w << 16 for w in words]).tobytes()) if code == "H" else words


def results(record, one, parts):
    """The results of one execution: label (grad 0, out 1) -> (type, hash, the numbers that were kept)."""
    with open(record["file"], "rb") as f:
        f.seek(one["at"])
        data = f.read(one["bytes"])
    found, at, count = {}, 0, {}
    for (what, dtype, shape), digest in zip((part for part in parts if part[0] != "text"), one["each"]):
        size = math.prod(shape)
        end = at + -(-size // max(1, size // MOST_NUMBERS)) * WIDTH.get(dtype, 1)
        number = count[what] = count.get(what, -1) + 1
        found[f"{what} {number}"] = (dtype, digest, data[at:end])
        at = end
    return found


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


def alike(records, at, turn):
    """What the plain runs gave for the inputs of this execution: outcome -> (record, run)."""
    found = {}
    for record in records:
        if at < len(record["samples"]):
            for one in record["samples"][at]["runs"][turn % 2 :: 2]:
                found.setdefault(outcome(one), (record, one))
    return found


def vary(plains):
    """Which results of an operator vary as it is: label -> largest distance, as a part of the largest magnitude. And in how
    many samples."""
    loose, samples = {}, set()
    for at, sample in enumerate(plains[0]["samples"]):
        for turn in range(min(2, len(sample["runs"]))):
            seen = alike(plains, at, turn)
            if len(seen) < 2:
                continue
            samples.add(at)
            if any("error" in run for _, run in seen.values()):
                continue
            first, *others = [results(*pair, sample["parts"][turn]) for pair in seen.values()]
            for label, (dtype, digest, data) in first.items():
                for other in others:
                    if other[label][1] != digest:
                        numbers = floats(data, dtype)
                        far, size = distance(floats(other[label][2], dtype), numbers) if numbers is not None else (0.0, 1.0)
                        loose[label] = max(loose.get(label, 0.0), far / size if size else 0.0)
    return loose, len(samples)


def excess(mine, plain, loose):
    """Says "" where the results `mine` are explained by the results `plain` and by what varies, else the first that is not."""
    for label, (dtype, digest, data) in mine.items():
        if digest == plain[label][1]:
            continue
        if label not in loose:
            return f"{label} ({dtype}) differs, and never does as it is"
        numbers = floats(data, dtype)
        if numbers is None:
            continue  # whole numbers that vary as they are
        far, size = distance(numbers, floats(plain[label][2], dtype))
        if far > (4 * loose[label] + NEAR[dtype]) * max(size, 1e-3):
            return f"{label} ({dtype}) is off by {far:.3g} of {size:.3g}; as it is by {loose[label]:.3g} of 1"
    return ""


def compare(plains, mine):
    """Records of one operator, plain ones and the preloaded one. Returns (verdict, why, samples that vary)."""
    first = plains[0]
    if first.get("error") or mine.get("error"):
        same = first.get("error") == mine.get("error")
        return ("equal", "", 0) if same else ("different", f"samples: {first.get('error')} / {mine.get('error')}", 0)
    if [s["i"] for s in first["samples"]] != [s["i"] for s in mine["samples"]]:
        return "different", f"{len(first['samples'])} samples / {len(mine['samples'])}", 0
    loose, varying = vary(plains)
    for at, sample in enumerate(mine["samples"]):
        for turn, one in enumerate(sample["runs"]):
            seen = alike(plains, at, turn)
            if outcome(one) in seen:
                continue
            where = f"sample {sample['i']}, execution {turn + 1}: "
            if not loose or "error" in one or any("error" in run for _, run in seen.values()):
                return "different", f"{where}{outcome(one)}, plain {', '.join(seen)}", varying
            parts = sample["parts"][turn % 2]
            ours, theirs = results(mine, one, parts), [results(*pair, parts) for pair in seen.values()]
            if any(set(ours) != set(other) or [len(v[2]) for v in ours.values()] != [len(v[2]) for v in other.values()]
                   for other in theirs):
                return "different", f"{where}other shapes", varying
            off = [excess(ours, other, loose) for other in theirs]
            if all(off):
                return "different", where + off[0], varying
    return ("varies", ", ".join(sorted(loose)), varying) if varying else ("equal", "", 0)


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
        verdict, why, varying = compare([r for r in (record, second.get(key)) if r], mine[key])
        found[verdict].append(name)
        found["unsteady"] += varying
        if why:
            found["why"][name] = why
    found["lost"] = [" ".join(key) for key in lost]  # not finished as it is: nothing to compare with
    return found


def judge_one(name, plain, preloaded):
    """The verdict of one operator over any number of plain runs (folders) and a preloaded one."""
    key = tuple(name.rsplit(" ", 1))
    records = [r for r in (load(folder)[0].get(key) for folder in plain) if r]
    mine = load(preloaded)[0].get(key)
    return compare(records, mine)[:2] if records and mine else ("different", "no record")


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
