#!/usr/bin/env python3
"""Fails if a verb has no manual page or an option no line in it, if a page lacks a section, if mandoc finds a fault, or if a key of
config/cusplice.conf is missing in cusplice.conf(5).

Run by //tests/docs:pages_test. Arguments: the launcher, and the files of //tools:man.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO")


def printed(launcher, *words):
    return subprocess.run([launcher, *words], capture_output=True, text=True, check=True, env={"COLUMNS": "120"}).stdout


def plain(text):
    """A page without fonts and escapes."""
    for mark, char in ((r"\-", "-"), (r"\(aq", "'"), (r"\(ga", "`"), (r"\(ti", "~"), (r"\(ha", "^"), (r"\&", "")):
        text = text.replace(mark, char)
    return re.sub(r"\\f[BIR]", "", text).replace(r"\e", "\\")


def of_verb(launcher, verb, text):
    """What the page of a verb lacks."""
    wrong = [f"no section {name}" for name in SECTIONS if f".SH {name}\n" not in text]
    help_ = printed(launcher, verb, "--help")
    page = plain(text)
    words = page.split()
    for option in re.findall(r"^  (?:-\w,|   ) (--[\w-]+)", help_, re.M):
        if not re.search(rf"^\.TP\n(-\w, )?{option}\b", page, re.M):
            wrong.append(f"no item for {option}")
    # Every sentence of the help is in the page, whatever the lines are.
    for word in help_.partition("\n\n")[2].replace("Exit status: ", "").split():
        if word.strip("'") not in words and word not in page:
            wrong.append(f"lacks the help's '{word}'")
    example = page.partition(".SH EXAMPLES")[2].partition(".SH")[0]
    if f"cusplice {verb} " not in example and not example.rstrip().endswith(f"cusplice {verb}"):
        wrong.append("has no example of its own")
    return [f"cusplice-{verb}.1: {what}" for what in wrong]


def of_conf(text):
    page = plain(text)
    conf = (ROOT / "config/cusplice.conf").read_text()
    keys = re.findall(r"^#(\w+) =", conf.partition("[rules]")[0], re.M)
    return [f"cusplice.conf.5: no item for {key}" for key in keys if not re.search(rf"^\.TP\n{key} = ", page, re.M)] + (
        [] if len(keys) > 20 else ["config/cusplice.conf: its keys are not found"])


def main():
    launcher, *files = sys.argv[1:]
    pages = {pathlib.Path(file).name: pathlib.Path(file) for file in files}
    verbs = re.findall(r"^  ([a-z]+) +\S", printed(launcher, "--help"), re.M)
    verbs = [verb for verb in verbs if verb != "cusplice"]
    wanted = {"cusplice.1", "cusplice.conf.5"} | {f"cusplice-{verb}.1" for verb in verbs}
    wrong = [f"VERBS of tools/BUILD lacks {name}" for name in sorted(wanted - set(pages))]
    wrong += [f"VERBS of tools/BUILD has {name}, which is no verb" for name in sorted(set(pages) - wanted)]
    for verb in verbs:
        if f"cusplice-{verb}.1" in pages:
            wrong += of_verb(launcher, verb, pages[f"cusplice-{verb}.1"].read_text())
    wrong += of_conf(pages["cusplice.conf.5"].read_text())
    for name, path in pages.items():
        for see in re.findall(r"^\.BR (\S+) \((\d)\)", path.read_text(), re.M):
            if plain(see[0]) + "." + see[1] not in wanted:
                wrong.append(f"{name}: SEE ALSO names {plain(see[0])}({see[1]}), which is no page")
    if shutil.which("mandoc"):
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *map(str, pages.values())], capture_output=True, text=True)
        wrong += (lint.stdout + lint.stderr).splitlines()
    else:
        print("SKIPPED: mandoc is not installed, so no page was checked with it")
    print("\n".join(wrong) if wrong else f"{len(pages)} pages of {len(verbs)} verbs")
    return 1 if wrong or len(verbs) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
