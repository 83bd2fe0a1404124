"""Counts the tests of one `bazel test` from its build event file: GoogleTest's cases, or targets where there are none.

Usage: count_tests.py EVENTS.json    (tools/check calls it; it never runs a test)
Prints "PASSED FAILED SKIPPED" on the first line and the name of each failure on a line of its own.
"""
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ET


def says_skipped(suite):
    """True of a script that says that it was skipped, and nothing else. What it printed stands below Bazel's line of dashes."""
    printed = (suite.findtext("system-out") or "").partition("-----\n")[2].split("\n")
    lines = [line for line in printed if line.strip()]
    return bool(lines) and all(line.startswith("SKIPPED") for line in lines)


def cases_of(xml_path):
    """Yields (name, "passed" | "failed" | "skipped") for each test case that ran."""
    for suite in ET.parse(xml_path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
            if case.find("failure") is not None or case.find("error") is not None:
                yield name, "failed"
            elif case.find("skipped") is not None or case.get("result") == "skipped" or says_skipped(suite):
                yield name, "skipped"
            elif case.get("status") != "notrun":
                yield name, "passed"


def results_of(events):
    """Yields (name, outcome) for each case of each target in the event file."""
    for event in events:
        key = event.get("id", {})
        if "targetCompleted" in key and event.get("aborted", {}).get("reason") == "SKIPPED":
            yield key["targetCompleted"]["label"] + " (not for this platform)", "skipped"
        elif "targetCompleted" in key and event.get("completed", {}).get("success") is not True:
            yield key["targetCompleted"]["label"] + " (does not build)", "failed"
        if "testResult" not in key or "testResult" not in event:
            continue
        label, result = key["testResult"]["label"], event["testResult"]
        xml = [out["uri"] for out in result.get("testActionOutput", []) if out["name"] == "test.xml"]
        try:
            cases = list(cases_of(urllib.parse.unquote(urllib.parse.urlparse(xml[0]).path)))
        except (IndexError, OSError, ET.ParseError):
            cases = []
        passed = result.get("status") == "PASSED"
        for name, outcome in cases:
            yield label + " " + name, outcome
        if passed and not cases:
            yield label, "passed"
        # A program that crashed or ran out of time leaves no failed case behind.
        if not passed and not any(outcome == "failed" for _, outcome in cases):
            yield "%s (%s)" % (label, result.get("status", "no status").lower()), "failed"


def main():
    with open(sys.argv[1], encoding="utf-8") as lines:
        results = list(results_of(json.loads(line) for line in lines))
    print(*(sum(outcome == wanted for _, outcome in results) for wanted in ("passed", "failed", "skipped")))
    for name, outcome in results:
        if outcome == "failed":
            print(name)


main()
