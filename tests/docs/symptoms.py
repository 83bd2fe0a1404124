#!/usr/bin/env python3
"""Fails if tools/docs/troubleshooting.md quotes a message that no source has, so that each is one that the program really prints; or if
tools/CHANGELOG.md does not begin with the version and date of shim/base/version.h.

Run by //tests/docs:symptoms_test, and by hand without arguments.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("troubleshooting.md", "limits.md")


def sources():
    """All literals of library and launcher; those that stand side by side are one."""
    texts = []
    for folder in ("shim", "tools/cli"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".def"):
                texts.append(re.sub(r'"\s*\n?\s*"', "", path.read_text()))
    # What that test expects is printed, too: the words of a message with a word in its middle.
    return "\n".join(texts + [(ROOT / "tests/launcher/first_hour").read_text()])


def quoted(text):
    """The messages: in the first column of tables with symptoms, and behind "says" or "names" elsewhere."""
    found = []
    for row in re.findall(r"^\| (.*?) \|", text, re.M):
        found += re.findall(r"^`([^`]+)`", row)
    return found + re.findall(r"(?:says|names) `([^`]+)`", text)


def main():
    code, wrong, n = sources(), [], 0
    for name in PAGES:
        for message in quoted((ROOT / "tools/docs" / name).read_text()):
            n += 1
            pieces = [piece.strip() for piece in message.split("...")]
            wrong += [f"tools/docs/{name}: no source has '{piece}'" for piece in pieces if piece and piece not in code]
    version = (ROOT / "shim/base/version.h").read_text()
    want = tuple(re.search(rf'{name} "(.*)"', version).group(1) for name in ("CUSPLICE_VERSION", "CUSPLICE_DATE"))
    heads = re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)", (ROOT / "tools/CHANGELOG.md").read_text(), re.M)
    if not heads or heads[0] != want:
        wrong.append(f"tools/CHANGELOG.md begins with {heads[:1]}, and shim/base/version.h has {want}")
    print("\n".join(wrong) if wrong else f"{n} messages, version {want[0]}")
    return 1 if wrong or n < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
