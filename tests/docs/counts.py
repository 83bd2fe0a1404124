#!/usr/bin/env python3
"""tools/bazel/count_tests.py (first argument) counts each test of a run once, as what it was, and names those that failed."""
import json
import pathlib
import subprocess
import sys
import tempfile

SUITE = '<testsuites><testsuite name="S">%s</testsuite></testsuites>'
CASE = '<testcase name="%s" classname="S" status="run">%s</testcase>'
SCRIPT = '<testsuites><testsuite name="s"><testcase name="s" status="run"/><system-out>-----\n%s</system-out></testsuite></testsuites>'


def built(label, **how):
    return {"id": {"targetCompleted": {"label": label}}, **how}


def counted(folder, runs, events=()):
    """What it prints for these targets, (label, status, test.xml), and these events."""
    lines = list(events)
    for number, (label, status, text) in enumerate(runs):
        xml = folder / f"{number} .xml"
        xml.write_text(text or "")
        out = [{"name": "test.log", "uri": "file:///none"}] + ([{"name": "test.xml", "uri": xml.as_uri()}] if text is not None else [])
        lines.append({"id": {"testResult": {"label": label}}, "testResult": {"status": status, "testActionOutput": out}})
    file = folder / "events.json"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return subprocess.run([sys.executable, sys.argv[1], file], check=True, capture_output=True, text=True).stdout.splitlines()


CASES = [
    # targets, other events, what is printed
    ([], [], ["0 0 0"]),
    ([("//a", "PASSED", SUITE % (CASE % ("x", "") + CASE % ("y", "<skipped/>")))], [], ["1 0 1"]),
    ([("//a", "FAILED", SUITE % (CASE % ("x", "") + CASE % ("y", "<failure/>")))], [], ["1 1 0", "//a S.y"]),
    ([("//a", "PASSED", SUITE % '<testcase name="x" status="notrun"/>')], [], ["1 0 0"]),
    ([("//a", "PASSED", None)], [], ["1 0 0"]),
    ([("//a", "FAILED", None)], [], ["0 1 0", "//a (failed)"]),
    ([("//a", "TIMEOUT", SUITE % (CASE % ("x", "")))], [], ["1 1 0", "//a (timeout)"]),
    ([("//a", "FAILED", "no XML")], [], ["0 1 0", "//a (failed)"]),
    ([("//a", "PASSED", SCRIPT % "SKIPPED: no clang")], [], ["0 0 1"]),
    ([("//a", "PASSED", SCRIPT % "SKIPPED: no clang\nand more")], [], ["1 0 0"]),
    ([], [built("//a", completed={"success": True})], ["0 0 0"]),
    ([], [built("//a", completed={})], ["0 1 0", "//a (does not build)"]),
    ([], [built("//a", aborted={"reason": "INCOMPLETE"})], ["0 1 0", "//a (does not build)"]),
    ([], [built("//a", aborted={"reason": "SKIPPED"})], ["0 0 1"]),
]

wrong = 0
for runs, events, want in CASES:
    with tempfile.TemporaryDirectory() as folder:
        got = counted(pathlib.Path(folder), runs, events)
        if got != want:
            wrong += 1
            print(f"{runs} {events}: {got} in place of {want}")
sys.exit(wrong != 0)
