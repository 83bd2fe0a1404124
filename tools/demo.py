"""Runs the decode host plain and under cusplice, compares both texts and prints the figures. tools/demo calls it after set-up and build,
`cusplice demo` where packages installed it. It never builds anything.
"""

import argparse
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOKENS = {"sim": 200, "gpu": 1000}
# On a GPU speed means something, so plain and preloaded take turns and the median counts.
ROUNDS = {"sim": 1, "gpu": 3}


def fill(text, first="", others=""):
    """The text in lines that fit the terminal."""
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=others, break_long_words=False)


class Failure(Exception):
    """What the user is told instead of a traceback."""


class Places:
    """Where things are: in a build, with the presets of the tree; else as tools/package lays them out."""

    def __init__(self, bin_dir):
        if bin_dir:
            bin_dir = bin_dir.absolute()
            self.decode, self.launcher = bin_dir / "harness/decode/decode", bin_dir / "tools/cusplice"
            self.config, self.simulator = HERE.parent / "config/presets/decode.conf", bin_dir / "harness/sim/lib"
        else:
            prefix = HERE.parents[2]
            self.decode, self.launcher = HERE / "decode", prefix / "bin/cusplice"
            self.config, self.simulator = prefix / "share/cusplice/presets/decode.conf", HERE / "sim"


def why_simulator():
    """Why the demo cannot run on a GPU here; nothing where it can."""
    try:
        found = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    except OSError:
        return "nvidia-smi is not here"
    if not found.startswith(b"GPU"):
        return "nvidia-smi shows no GPU"
    for name in ("libcudart.so.13", "libcublas.so.13"):
        try:
            ctypes.CDLL(name)
        except OSError:
            return "the demo needs %s of CUDA 13, which is not found" % name
    return None


class Host:
    """The decode host on one device."""

    def __init__(self, device, places, tokens, scratch):
        self.device, self.places, self.tokens, self.scratch = device, places, tokens, scratch
        self.program = [str(places.decode), "--tokens", str(tokens)]
        # The demo shows its own settings, whatever the shell has; CUSIM_DELAY_US and its like stay.
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("CUSPLICE")}
        self.env["XDG_CONFIG_HOME"] = str(scratch)
        self.env["CUSPLICE_CACHE_DIR"] = ""  # none: each demo shows a first run
        if device == "sim":
            folder = Path(self.env.get("CUSIM_LIB", str(places.simulator))).absolute()
            if not (folder / "libcuda.so.1").exists():
                raise Failure("the simulator is not in %s (bazel build //harness/sim:dist)" % folder)
            before = self.env.get("LD_LIBRARY_PATH")
            self.env["LD_LIBRARY_PATH"] = str(folder) + (":" + before if before else "")

    def name(self):
        if self.device == "sim":
            return "simulator"
        found = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, universal_newlines=True, check=False).stdout.splitlines()
        return found[0].strip() if found else "GPU"

    def run(self, before=()):
        """Runs the host behind the words of `before`; returns (text, tokens per second)."""
        report = self.scratch / "report.json"
        forget(report)
        command = list(before) + self.program + ["--report", str(report)]
        done = subprocess.run(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise Failure("this ended with status %d:\n  %s\n%s" %
                          (done.returncode, " ".join(command), done.stderr.decode(errors="replace")))
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if "cusplice" in line]
        for line in said:
            print(line, file=sys.stderr)
        return done.stdout, json.loads(report.read_text())["tokens_per_s"]

    def run_preloaded(self):
        """The same under cusplice; returns (text, tokens per second, statistics)."""
        stats = self.scratch / "stats.json"
        forget(stats)
        text, speed = self.run([str(self.places.launcher), "run", "-c", str(self.places.config), "--stats", str(stats), "--"])
        if not stats.exists():
            raise Failure("the library wrote no statistics: it never came up in the decode host")
        return text, speed, json.loads(stats.read_text())


def forget(path):
    if path.exists():
        path.unlink()


def measure(host):
    """The document that --json writes."""
    plain_speeds, preloaded_speeds = [], []
    texts = set()
    for _ in range(ROUNDS[host.device]):
        text, speed = host.run()
        texts.add(text)
        plain_speeds.append(speed)
        other, speed, stats = host.run_preloaded()
        texts.add(other)
        preloaded_speeds.append(speed)
    ops = sum(stats["ops"].values())
    return {
        "device": host.name(),
        "tokens": host.tokens,
        "outputs_equal": len(texts) == 1,
        "text": text.decode(errors="replace"),
        "plain": {"tokens_per_s": statistics.median(plain_speeds), "driver_launches": ops},
        "preloaded": {
            "tokens_per_s": statistics.median(preloaded_speeds),
            "driver_launches": stats["graph_launches"] + stats["issued"]["eager"],
            "stats": stats,
        },
    }, text, other


def number(value):
    return "{:,}".format(value) if isinstance(value, int) else "{:,.1f}".format(value)


def print_table(result):
    plain, preloaded = result["plain"], result["preloaded"]
    stats = preloaded["stats"]
    signatures, eager_by = stats["signatures"], stats["eager_by"]
    other = {k: v for k, v in eager_by.items() if k != "rule" and v}
    rows = [("", "plain", "preloaded"),
            ("driver launches", number(plain["driver_launches"]), number(preloaded["driver_launches"])),
            ("tokens/s", number(float(plain["tokens_per_s"])), number(float(preloaded["tokens_per_s"])))]
    for name, left, right in rows:
        print("  {:<22}{:>12}{:>12}".format(name, left, right))
    if result["device"] != "simulator":
        print("  {:<22}{:>24}".format("", "%.2f times as fast" % (preloaded["tokens_per_s"] / plain["tokens_per_s"])))
    print()
    details = [
        ("operations", ", ".join("%s %s" % (number(v), k) for k, v in stats["ops"].items() if v)),
        ("in graphs", "%s, by %s graph launches" % (number(stats["issued"]["in_graphs"]), number(stats["graph_launches"]))),
        ("eager by rule", number(eager_by["rule"])),
        ("eager otherwise", ", ".join("%s %s" % (number(v), k) for k, v in other.items()) or "none"),
        ("signatures", ", ".join("%s %s" % (number(v), k) for k, v in signatures.items())),
        ("patched nodes", number(stats["patched_nodes"])),
        ("flushes by cause", ", ".join("%s %s" % (number(v), k) for k, v in stats["flushes"].items()) or "none"),
    ]
    for name, text in details:
        print(fill(text, "  {:<22}".format(name), " " * 24))
    if result["device"] == "simulator":
        print("\n" + fill("(tokens/s say nothing here: the simulator runs kernels on the CPU and charges nothing for a launch)", "  ", "   "))


def print_result(result, plain, preloaded):
    print("device: %s, %d tokens\n" % (result["device"], result["tokens"]))
    for line in result["text"].splitlines():
        print(fill(line, "  | ", "  | ") or "  |")
    print()
    if result["outputs_equal"]:
        print(fill("outputs equal: plain and preloaded wrote the same text, byte for byte"))
    else:
        same = len(os.path.commonprefix([plain, preloaded]))
        print("OUTPUTS DIFFER from byte %d on: plain %r, preloaded %r" %
              (same, plain[same:same + 40], preloaded[same:same + 40]))
    segments = result["preloaded"]["stats"].get("segment_list") or []
    print("\na decode step:")
    shown = "[" + ", ".join(segments) + "]" if segments else "(no whole step went through graphs)"
    print(fill(shown, "  ", "   ") + "\n")
    print_table(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["sim", "gpu"])
    parser.add_argument("--bin", type=Path, help="bazel-bin")
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    device = args.device
    if not device:
        why = why_simulator()
        device = "sim" if why else "gpu"
        if why:
            print(fill("no run on a GPU: %s; this is the simulator, which runs kernels on the CPU" % why))
    with tempfile.TemporaryDirectory(prefix="cusplice-demo-") as scratch:
        host = Host(device, Places(args.bin), args.tokens or TOKENS[device], Path(scratch))
        result, plain, preloaded = measure(host)
    print_result(result, plain, preloaded)
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if result["outputs_equal"] else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print("demo: %s" % failure, file=sys.stderr)
        sys.exit(1)
    except (OSError, KeyError, ValueError) as failure:
        print("demo: %s: %s" % (type(failure).__name__, failure), file=sys.stderr)
        sys.exit(1)
