#!/usr/bin/env python3
"""Fails if a command of tools/docs, or an example of a manual page, does not do what is written there: each runs on the simulator, in a
folder with ./your-program, which is the demo. A line that stands in several places runs at the first. A line that ends in
"# not run: WHAT" needs what no test has. It is counted, and its options are looked up in the help. "# exit status N" says how a line ends.

Run by //tests/docs:commands_docs_test and commands_pages_test with "docs" or "pages".
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path.cwd()  # the root of the runfiles
DOCS = HERE / "tools/docs"
# Examples of pages that wait for somebody, or that measure the machine for long.
NOT_RUN = {"cusplice top": "a program that runs", "cusplice calibrate": "a GPU to measure", "cusplice demo": "a package"}


class Folder:
    """What a user has: the program, and the launcher on PATH. HOME is empty."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        program = self.path / "your-program"
        program.write_text(f'#!/bin/sh\nexec {HERE}/harness/decode/decode --prompt It_is --tokens 16 "$@"\n')
        program.chmod(0o755)
        (self.path / "run").mkdir(mode=0o700)
        (self.path / "bazel-bin").symlink_to(HERE)
        self.environment = {
            "PATH": f"{HERE}/tools:/usr/local/bin:/usr/bin:/bin", "HOME": path, "TERM": "dumb", "XDG_RUNTIME_DIR": f"{path}/run",
            "LD_LIBRARY_PATH": f"{HERE}/harness/sim/lib", "COLUMNS": "120"}

    def run(self, command):
        return subprocess.run(["bash", "-c", command], cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=250)


def order():
    """The files in the order in which their index names them."""
    index = (DOCS / "README.md").read_text()
    names = ["README.md"] + re.findall(r"^\| \[(\S+\.md)\]", index, re.M)
    there = {path.name for path in DOCS.glob("*.md")}
    assert set(names) == there, f"tools/docs/README.md names {names}, and there are {sorted(there)}"
    return names


def of_docs():
    """(file and line, command) of each block marked sh."""
    for name in order():
        lines = (DOCS / name).read_text().splitlines()
        inside = False
        for number, line in enumerate(lines, 1):
            if line.strip() in ("```sh", "```"):
                inside = line.strip() == "```sh"
            elif inside and line.strip():
                yield f"{name}:{number}", line.strip()


def of_pages(folder):
    """(page, command) of each example, in the order of the verbs."""
    for name in ("A.cst", "B.cst"):  # what an earlier day left
        folder.run(f"cusplice record -o {name} -- ./your-program")
    (folder.path / "mine.conf").write_text("[rules]\neager = attention_decode\n")
    for verb in re.findall(r"^  ([a-z]+) +\S", folder.run("cusplice --help").stdout, re.M):
        page = folder.run(f"cusplice help --man {verb}").stdout.partition(".SH EXAMPLES")[2]
        for command in re.findall(r"^\.nf\n(.*?)\n\.fi", page, re.M | re.S):
            command = command.replace(r"\-", "-").replace(r"\(aq", "'").replace(r"\(ti", "~")
            needs = next((what for begin, what in NOT_RUN.items() if command.startswith(begin)), None)
            yield f"cusplice-{verb}.1", command + (f"  # not run: {needs}" if needs else "")


def unknown_options(folder, command):
    """Of a line that is not run: the options of cusplice that its help does not have."""
    found = re.search(r"cusplice (?!help\b)(\w+)((?: (?!-- )(?!\|)\S+)*)", command)
    if not found:
        return []
    help_ = folder.run(f"cusplice {found.group(1)} --help")
    if help_.returncode:
        return [f"there is no verb {found.group(1)}"]
    given = [word.partition("=")[0] for word in found.group(2).split() if word.startswith("-")]
    return [f"no option {word}" for word in given if not re.search(rf"(?<![\w-]){word}\b", help_.stdout)]


def main():
    if os.environ.get("CUS_TEST_SANITIZER"):
        print("SKIPPED: shells do not run under a sanitizer's runtime")
        return 0
    wrong, ran, needed = [], set(), {}
    scratch = tempfile.mkdtemp()
    folder = Folder(scratch)
    for where, line in of_docs() if sys.argv[1] == "docs" else of_pages(folder):
        command, _, note = line.partition("  # ")
        not_run, status = re.match(r"not run: (.*)", note), re.match(r"exit status (\d+)", note)
        if not_run:
            needed[not_run.group(1)] = needed.get(not_run.group(1), 0) + 1
            wrong += [f"{where}: {command.strip()}: {what}" for what in unknown_options(folder, command)]
            continue
        if command.strip() in ran:
            continue
        ran.add(command.strip())
        begin = time.monotonic()
        result = folder.run(command)
        if time.monotonic() - begin > 5:
            print(f"{where}: {command.strip()}: {time.monotonic() - begin:.0f} s")
        expected = int(status.group(1) if status else 0)
        # qemu lacks a system call that doctor asks for, and its shell is a program for another processor.
        if os.environ.get("CUS_TEST_EMULATED") and command.startswith("cusplice doctor"):
            expected = 1
        if result.returncode != expected:
            wrong.append(f"{where}: {command.strip()}: status {result.returncode}\n{result.stdout[-1500:]}")
    shutil.rmtree(scratch)
    print("\n".join(wrong) if wrong else f"{len(ran)} commands run")
    print("not run: " + (", ".join(f"{n} need {what}" for what, n in needed.items()) or "none"))
    return 1 if wrong or len(ran) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
