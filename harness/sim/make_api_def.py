#!/usr/bin/env python3
"""Writes api.def: one row for each cu* symbol that a toolkit's headers declare.

Run by hand when there is a newer toolkit (tools/toolkits fetches it): make_api_def.py INCLUDE_FOLDER > api.def
A row is CUSIM_API(exported symbol, base name, version that introduced it, 1 for a per-thread twin).
Versions come from cudaTypedefs.h, which has them by base name. The n-th version of a base name belongs to its n-th
symbol (name, name_v2, ...); this script checks that both have the same number.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]

# Symbols that the header of typedefs leaves out.
EXTRA = {"cuProfilerInitialize": 4000, "cuProfilerStart": 4000, "cuProfilerStop": 4000}
# Entry points of the simulator alone; nobody's table knows them.
OWN = [
    ("cuSimActivity", 13000),
    ("cuSimBeginCaptureX", 13000),
    ("cuSimBeginCaptureX_ptsz", 13000),
    ("cuSimFillX", 13000),
    ("cuSimKernelRegister", 13000),
    ("cuSimLogTake", 13000),
    ("cuSimSetDelay", 13000),
    ("cuSimSetFault", 13000),
    ("cuSimSetSeed", 13000),
    # A driver that nobody has seen: newer forms of known functions (cusim_next.h).
    ("cuGetProcAddress_v3", 14000),
    ("cuLaunchKernel_v2", 14000),
]
# Not exported: cuGetProcAddress alone hands it out, by the second name.
HIDDEN = [("cusim_hidden_fill", "cuSimHiddenFill", 13000, 0)]


def split(symbol):
    m = re.match(r"^(cu\w+?)(?:_v(\d))?(_ptsz|_ptds)?$", symbol)
    return m.group(1), int(m.group(2) or 1), 1 if m.group(3) else 0


def main():
    include = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/local/cuda/include")
    with tempfile.TemporaryDirectory() as folder:
        stub = folder + "/libcuda.so"
        subprocess.run([TOP / "tools/bazel/cuda_stub.sh", include, stub], check=True)
        nm = subprocess.run(["nm", "-D", "--defined-only", stub], capture_output=True, text=True, check=True).stdout
    symbols = [line.split()[-1] for line in nm.splitlines() if re.search(r" T cu[A-Z]", line)]
    versions = collections.defaultdict(set)
    text = (include / "cudaTypedefs.h").read_text()
    for base, version, pt in re.findall(r"PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", text):
        versions[base, 1 if pt else 0].add(int(version))
    groups = collections.defaultdict(list)
    for symbol in symbols:
        base, number, pt = split(symbol)
        groups[base, pt].append((number, symbol))
    rows = []
    for (base, pt), members in groups.items():
        known = sorted(versions[base, pt]) or [EXTRA[base]]
        if len(known) != len(members):
            sys.exit("%s: %d versions for %d symbols" % (base, len(known), len(members)))
        rows += [(symbol, base, v, pt) for v, (_, symbol) in zip(known, sorted(members))]
    rows += [(s, split(s)[0], v, split(s)[2]) for s, v in OWN] + HIDDEN
    print("/* Made by make_api_def.py from the toolkit's headers; the script describes the columns. */")
    for row in sorted(rows):
        print('CUSIM_API(%s, "%s", %d, %d)' % row)


main()
