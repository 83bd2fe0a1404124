#!/usr/bin/env python3
"""Fails if a file of shim/ includes a header of a folder that its own folder may not use, if a folder no longer needs a folder
that it may use, or if folders use each other in a circle.

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
    above = []
    for folder, allowed in MAP.items():
        wrong += [f"{folder} does not use {to} any more: take it out of the map" for to in allowed if to not in used[folder]]
        wrong += [f"{folder} stands above {to}, which it may use" for to in allowed if to not in above]
        above.append(folder)
    print("\n".join(wrong) if wrong else f"{len(MAP)} folders, all includes go one way")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
