#!/usr/bin/env python3
"""Fails if a file of shim/ includes a header of a folder that its own folder may not use, if a folder no longer needs a folder
that it may use, if folders use each other in a circle, if another folder than plan sees the plan's private state, if a file of
shim/plan or shim/stream calls a file that stands below it in ORDER, or if a file of shim/stream has variables that cus_engine_end does
not set back.

Run by //tests/docs:layers_test, and by hand without arguments.
"""
import pathlib
import re
import sys

SHIM = pathlib.Path(__file__).resolve().parents[2] / "shim"

# A folder, and those whose headers it may include. Each line uses only lines above it.
MAP = {
    "base": (),
    "include": (),
    "stats": ("base",),
    "cache": ("base",),
    "trace": ("base",),
    "api": ("stats",),
    "plan": ("api", "base", "cache", "stats"),
    "graph": ("api", "base", "plan"),
    "verify": ("api", "base", "graph", "plan"),
    "stream": ("api", "base", "cache", "graph", "plan", "stats", "trace", "verify"),
    "keep": ("api", "base", "stream", "trace"),
    "hook": ("api", "base", "cache", "include", "keep", "plan", "stats", "stream", "trace", "verify"),
}

# The files of these folders: each calls functions of files above it alone. A parser whose two files call each other has one place.
ORDER = {"plan": """advice branches calls loop op merges name+name_types name_shown pattern pattern_doubt ramp repeat segment segment_list step step_read rules trial preset_choice tree variants choose learn ends
sizes prefix loops cursor plan""".split(), "stream": """access fallback passed building origins func streams events advice kinds trace ranges why unmet live news call priority room pools check_launch lost graphs submit branches
deferred demotion evict reserve flush rest pass hangs registry realtime watchdog offer engine start invalidate pool_calls event_calls end""".split()}


def code_of(path):
    """The text of a file without comments and strings."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', text)


def calls_up(folder, order):
    """What calls against the order of the files of a folder."""
    codes = {path.stem: code_of(path) for path in sorted((SHIM / folder).glob("*.c"))}
    order = {name: place for place, names in enumerate(order) for name in names.split("+")}
    wrong = [f"shim/{folder}/{name}.c has no place in ORDER of tests/docs/layers.py" for name in codes if name not in order]
    wrong += [f"ORDER of tests/docs/layers.py names shim/{folder}/{name}.c, which is not there" for name in order if name not in codes]
    of = {}
    for name, code in codes.items():
        for found in re.findall(r"^(?!static)[A-Za-z_][\w \*]*?\b(cus_\w+)\s*\([^;{]*\)\s*\{", code, re.M):
            of[found] = name
    for name, code in codes.items():
        for used in sorted(set(re.findall(r"\bcus_\w+", code))):
            to = of.get(used, name)
            if to != name and name in order and to in order and order[to] > order[name]:
                wrong.append(f"shim/{folder}/{name}.c calls {used} of {to}.c, which stands below it")
    return wrong, len(of)


def kept(folder):
    """The files with variables of which no function is called by cus_engine_end (end.c). A lock is free then, and a thread has ended."""
    codes = {path.stem: code_of(path) for path in sorted((SHIM / folder).glob("*.c"))}
    ends = re.findall(r"^    (cus_\w+)\(", codes["end"].partition("void cus_engine_end(void)")[2], re.M)
    wrong = []
    for name, code in codes.items():
        variables = re.findall(r"^static (?!const\b|struct cus_lock\b|struct cus_own_thread\b)[^(){}]*?(?:;|=|\{$)", code, re.M)
        if variables and not any(re.search(rf"^[\w \*]+\b{end}\([^;{{]*\) \{{", code, re.M) for end in ends):
            wrong.append(f"shim/{folder}/{name}.c has variables, and cus_engine_end calls none of its functions: {variables[0]}")
    return wrong


def main():
    used = {folder: set() for folder in MAP}
    wrong = []
    for path in sorted(SHIM.glob("*/*")):
        folder = path.parent.name
        if path.suffix not in (".c", ".h", ".S", ".def"):
            continue
        if folder not in MAP:
            wrong.append(f"shim/{folder}: not in the map of tests/docs/layers.py")
            continue
        for to in re.findall(r'^\s*#\s*include "shim/(\w+)/', path.read_text(), re.M):
            if to != folder:
                used[folder].add(to)
                if to not in MAP[folder]:
                    wrong.append(f"shim/{folder}/{path.name} includes a header of shim/{to}: {folder} may use {', '.join(MAP[folder]) or 'no other folder'}")
        if folder != "plan" and '"shim/plan/state.h"' in path.read_text():
            wrong.append(f"shim/{folder}/{path.name} includes shim/plan/state.h, which is private to shim/plan: read struct cus_plan_view instead")
    above = []
    for folder, allowed in MAP.items():
        wrong += [f"{folder} does not use {to} any more: take it out of the map" for to in allowed if to not in used[folder]]
        wrong += [f"{folder} stands above {to}, which it may use" for to in allowed if to not in above]
        above.append(folder)
    for folder, order in ORDER.items():
        up, functions = calls_up(folder, order)
        wrong += up
        if functions < 100:
            wrong.append(f"only {functions} functions were found in shim/{folder}: the pattern of calls_up does not fit any more")
    wrong += kept("stream")
    ordered = " and ".join(f"{len(order)} files of {folder}" for folder, order in ORDER.items())
    print("\n".join(wrong) if wrong else f"{len(MAP)} folders, all includes go one way; so do the calls of {ordered}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
