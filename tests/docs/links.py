#!/usr/bin/env python3
"""Fails if a Markdown file of the tree links to a missing file or heading, or if any file names a document outside of the
tree (DESIGN.md, ../shared/...) as if the tree had it.

Run by //tests/docs:links_test, and by hand without arguments.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = {"", ".S", ".bzl", ".c", ".cc", ".conf", ".cu", ".def", ".h", ".md", ".py", ".sh"}


def files():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith((".", "bazel-")) and name != "corpus"]
        for path in (pathlib.Path(folder, name) for name in names if name != ".git"):
            if path.suffix in TEXTS and not path.is_symlink() and path != pathlib.Path(__file__).resolve():
                yield path, path.read_text(errors="replace")


def anchors(text):
    """As GitHub makes them of headings: small letters, no marks, a hyphen for each space."""
    heads = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


def main():
    texts = dict(files())
    documents = {path.name for path in texts if path.suffix == ".md"}
    wrong = []
    for path, text in sorted(texts.items()):
        name = path.relative_to(ROOT)
        wrong += [f"{name}: {outside} is not in the tree" for outside in sorted(set(re.findall(r"\b[A-Z][A-Z-]+\.md\b|\.\./shared\b|/work/\w+", text)))
                  if outside not in documents]
        for target in re.findall(r"\]\(([^)\s]+)\)", text) if path.suffix == ".md" else ():
            file, _, anchor = target.partition("#")
            to = (path.parent / file).resolve() if file else path
            if re.match(r"\w+:", target):
                continue
            if not to.exists():
                wrong.append(f"{name}: {target}: no such file")
            elif anchor and anchor not in anchors(texts.get(to, "")):
                wrong.append(f"{name}: {target}: no such heading")
    print("\n".join(wrong) if wrong else f"{len(documents)} kinds of documents, all links lead somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
