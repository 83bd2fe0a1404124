#!/usr/bin/env python3
"""Fails if a line of the library's log has a domain that cus_log_domains (shim/base/log.c) lacks, or if no line has one of these.

Run by //tests/docs:log_domains_test, and by hand without arguments.
"""
import pathlib
import re
import sys

SHIM = pathlib.Path(__file__).resolve().parents[2] / "shim"


def main():
    listed = re.search(r"cus_log_domains\[\] = \{(.*?)NULL\};", (SHIM / "base/log.c").read_text(), re.S).group(1)
    listed = set(re.findall(r'"(\w+)"', listed))
    used = set()
    for path in SHIM.glob("*/*.[ch]"):
        text = path.read_text()
        used |= set(re.findall(r'\b(?:cus_log|cus_log_on|CUS_LOG_ONCE)\(\s*[^";]*?,\s*"(\w+)"', text))
        used |= set(re.findall(r'\bcus_log_asked\(\s*"(\w+)"', text))
        used |= set(re.findall(r'"cusplice\[%d:%d\] \w+ (\w+): ', text))
    wrong = [f'no line has the domain "{name}": take it out of cus_log_domains' for name in sorted(listed - used)]
    wrong += [f'cus_log_domains of shim/base/log.c lacks "{name}"' for name in sorted(used - listed)]
    print("\n".join(wrong) if wrong else f"{len(listed)} domains of the log, each with lines")
    return 1 if wrong or len(used) < 8 else 0


if __name__ == "__main__":
    sys.exit(main())
