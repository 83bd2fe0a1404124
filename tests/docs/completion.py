#!/usr/bin/env python3
"""Fails if a shell does not complete what it should: bash, zsh and fish run for real, the first two on a terminal, where the keys of
a line and Tab are typed. A shell that is not installed is skipped, which is said.

Run by //tests/docs:completion_test. Arguments: the launcher, and the files of //tools:completion.
"""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# What is typed; words that are offered or put there; words that are not.
CASES = (
    ("cusplice ver", ["verify"], ["run"]),
    ("cusplice re", ["record", "repair", "replay", "report"], ["rules", "verify"]),
    ("cusplice help ca", ["cache", "calibrate"], ["config"]),
    ("cusplice run --wh", ["--why"], ["--mode"]),
    ("cusplice record --re", ["--replayable"], ["--why"]),
    ("cusplice run --mode full_d", ["full_decode_only"], ["piecewise"]),
    ("cusplice verify --plant ", ["dropped", "swapped", "unpatched"], ["piecewise"]),
    ("cusplice info --format ", ["json", "table"], ["csv"]),
    ("cusplice run --set hold", ["hold_us="], ["mode"]),
    ("cusplice run --set mode=full_d", ["mode=full_decode_only"], ["piecewise"]),
    ("cusplice run --set why=y", ["why=yes"], ["why=no"]),
    ("cusplice run -c llama", ["llama_cpp"], ["vllm"]),
    ("cusplice report seg", ["segments"], ["kernels"]),
    ("cusplice info one", ["one.cst"], ["one.txt"]),
    ("cusplice import one", ["one.sqlite"], ["one.cst"]),
    ("cusplice run --stats one.t", ["one.txt"], ["one.cst"]),
    ("cusplice run -c vllm --why -- my-prog", ["my-program"], ["--mode"]),
    ("cusplice run -c vllm -- my-program one.t", ["one.txt"], ["one.cst"]),
    ("cusplice d", ["demo", "diff", "doctor", "dump"], ["run"]),
    ("cusplice demo --s", ["--sim"], ["--why"]),
    ("cusplice doctor my-prog", [], ["my-program"]),
    ("cusplice doctor -- my-prog", ["my-program"], []),
)

# Ctrl-T prints the line as it is, so that what was completed is seen whatever the screen does.
BASH = """PS1='ready> '; bind 'set bell-style none'; bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0'
bind 'set page-completions off'; show() { echo; echo "<<$READLINE_LINE>>"; }; bind -x '"\\C-t": show'; source %s; echo be''gin
"""
ZSH = """PS1='ready> '; autoload -Uz compinit; fpath=(%s $fpath); compinit -u -D; unsetopt list_beep; setopt auto_list list_rows_first
LISTMAX=0; zstyle ':completion:*' menu no; show() { zle -I; print -r -- "<<$BUFFER>>" }; zle -N show; bindkey "^T" show; echo be''gin
"""


def read_until(fd, mark, seconds=8):
    seen, end = "", time.monotonic() + seconds
    while not re.search(mark, seen, re.S) and time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            seen += os.read(fd, 65536).decode(errors="replace")
    return seen


def on_terminal(argv, begin, folder, environment):
    """Each case's text, as a shell on a terminal shows it."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(argv[0], argv, environment)
    os.write(fd, begin.encode())
    read_until(fd, r"[\r\n]begin")
    shown = []
    for typed, _, _ in CASES:
        os.write(fd, (typed + "\t").encode())
        time.sleep(0.1)
        os.write(fd, b"\x14")
        text = read_until(fd, r">>.*ready> ")  # behind it the terminal is the shell's again
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x07|\r", "", text)
        shown.append(text.replace(typed, " ", 1) if "<<" + typed not in text else text)
        os.write(fd, b"\x15")  # empties the line
    os.write(fd, b"exit\n")
    os.close(fd)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return shown


def by_fish(script, folder, environment):
    lines = "; ".join(f"complete -C '{typed}'; echo '<<>>'" for typed, _, _ in CASES)
    run = subprocess.run(["fish", "--no-config", "-c", f"source {script}; {lines}"], cwd=folder, env=environment, capture_output=True, text=True)
    parts = run.stdout.split("<<>>\n")[:-1]
    return [run.stderr + "\n".join(line.partition("\t")[0] for line in part.splitlines()) for part in parts]


def offers(text, word):
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def judge(shell, shown):
    wrong = [] if len(shown) == len(CASES) else [f"{shell}: it ended early"]
    for (typed, there, absent), text in zip(CASES, shown):
        line = re.search(r"<<(.*?)>>", text)
        for word in there:
            if not offers(text, word):
                wrong.append(f"{shell}: '{typed}' does not offer {word}: {text!r}")
        if shell == "fish":  # its own function for endings has all other files behind
            absent = [word for word in absent if not word.startswith("one.")]
        wrong += [f"{shell}: '{typed}' offers {word}: {text!r}" for word in absent if offers(text.replace(typed, ""), word)]
        if line and len(there) == 1 and not line.group(1).rstrip().endswith(there[0]):
            wrong.append(f"{shell}: '{typed}' became '{line.group(1)}'")
        if line and not there and line.group(1).rstrip() != typed:
            wrong.append(f"{shell}: '{typed}' became '{line.group(1)}', and nothing fits")
    return wrong


def main():
    launcher, *files = map(os.path.abspath, sys.argv[1:])
    scripts = {pathlib.Path(file).parent.name: file for file in files}
    wrong, ran = [], []
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": f"{folder}:{os.path.dirname(launcher)}:/usr/bin:/bin", "HOME": folder, "TERM": "dumb", "LC_ALL": "C.UTF-8",
                       "COLUMNS": "200", "LINES": "100"}
        for name in ("one.cst", "one.txt", "one.sqlite", "my-program"):
            pathlib.Path(folder, name).touch(mode=0o755)
        how = {
            "bash": lambda: on_terminal(["bash", "--norc", "--noprofile", "-i"], BASH % scripts["bash"], folder, environment),
            "zsh": lambda: on_terminal(["zsh", "-f", "-i"], ZSH % os.path.dirname(scripts["zsh"]), folder, environment),
            "fish": lambda: by_fish(scripts["fish"], folder, environment),
        }
        for shell, run in how.items():
            if not shutil.which(shell):
                print(f"SKIPPED: {shell} is not installed")
                continue
            ran.append(shell)
            wrong += judge(shell, run())
    print("\n".join(wrong) if wrong else f"{len(CASES)} lines completed by {', '.join(ran)}")
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
