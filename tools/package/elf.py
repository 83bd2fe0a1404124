#!/usr/bin/env python3
"""Refuses an ELF file that needs more than glibc 2.28: a newer version of a symbol, or another library than those of glibc.

elf.py FILE...          status 1 and a line for each fault; a file that is named PATH=LIBRARY may need that one library too
"""
import re
import subprocess
import sys

GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}
NEWEST = (2, 28)


def faults(path, more=()):
    """What is wrong with the file, as lines."""
    text = subprocess.run(["readelf", "-dVW", path], capture_output=True, text=True, check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout
    if "Dynamic section" not in text:
        return [f"{path}: not a dynamic ELF file"]
    wrong = [f"{path}: needs {library}" for library in re.findall(r"\(NEEDED\).*\[(.*)\]", text) if library not in GLIBC | set(more)]
    wrong += [f"{path}: has a search path of its own" for _ in re.findall(r"\((?:RPATH|RUNPATH)\)", text)]
    # What a file needs stands under the file it needs it of; what it defines itself has no "File:" above.
    needs = text.partition("Version needs section")[2]
    for name in sorted(set(re.findall(r"Name: (\S+)\s+Flags", needs))):
        version = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", name)
        if not version or tuple(map(int, version.groups())) > NEWEST:
            wrong.append(f"{path}: needs {name}")
    return wrong


def main():
    wrong = []
    for word in sys.argv[1:]:
        path, _, library = word.partition("=")
        wrong += faults(path, [library] if library else [])
    print("\n".join(wrong) if wrong else f"{len(sys.argv) - 1} files need glibc {NEWEST[0]}.{NEWEST[1]} and nothing else")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
