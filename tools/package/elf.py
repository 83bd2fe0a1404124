#!/usr/bin/env python3
"""Refuses an ELF file that needs more than glibc 2.28: a newer version of a symbol, or another library than those of glibc. Also one that
has a search path of the machine that built it.

elf.py FILE...          status 1 and a line for each fault; a file that is named PATH=LIBRARY may need that one library too
"""
import re
import subprocess
import sys

GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
NEWEST = (2, 28)


def is_old(name):
    version = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", name)
    return version is not None and tuple(map(int, version.groups())) <= NEWEST


def faults(path, more=()):
    """What is wrong with the file, as lines."""
    text = subprocess.run(["readelf", "-dVW", path], stdout=subprocess.PIPE, universal_newlines=True, check=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout
    if "Dynamic section" not in text:
        return [f"{path}: not a dynamic ELF file"]
    wrong = [f"{path}: needs {library}" for library in re.findall(r"\(NEEDED\).*\[(.*)\]", text) if library not in GLIBC | set(more)]
    wrong += [f"{path}: has a search path of its own" for _ in re.findall(r"\((?:RPATH|RUNPATH)\)", text)]
    # What a file needs stands under the file it needs it of.
    for part in text.partition("Version needs section")[2].split("File: ")[1:]:
        if part.split()[0] not in more:
            wrong += [f"{path}: needs {name}" for name in sorted(set(re.findall(r"Name: (\S+)\s+Flags", part))) if not is_old(name)]
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
