"""Runs the decode host plain and under cusplice, compares both texts and prints the figures. tools/demo calls it after set-up and build.
It never builds anything.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "config" / "presets" / "decode.conf"
TOKENS = {"sim": 200, "gpu": 1000}
# On a GPU speed means something, so plain and preloaded take turns and the median counts.
ROUNDS = {"sim": 1, "gpu": 3}


class Failure(Exception):
    """What the user is told instead of a traceback."""


class Host:
    """The decode host on one device."""

    def __init__(self, device, bin_dir, tokens, scratch):
        self.device, self.bin, self.tokens, self.scratch = device, bin_dir, tokens, scratch
        self.program = [str(bin_dir / "harness/decode/decode"), "--tokens", str(tokens)]
        # The demo shows its own settings, whatever the shell has; CUSIM_DELAY_US and its like stay.
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("CUSPLICE")}
        self.env["XDG_CONFIG_HOME"] = str(scratch)
        self.env["CUSPLICE_CACHE_DIR"] = ""  # none: each demo shows a first run
        self.env.setdefault("CUSIM_LIB", str(bin_dir / "harness/sim/lib"))

    def name(self):
        if self.device == "sim":
            return "simulator"
        found = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
                               capture_output=True, text=True, check=False).stdout.splitlines()
        return found[0].strip() if found else "GPU"

    def run(self, before=()):
        """Runs the host behind the words of `before`; returns (text, tokens per second)."""
        report = self.scratch / "report.json"
        report.unlink(missing_ok=True)
        simulator = [str(ROOT / "tools/sim-run"), "--"] if self.device == "sim" else []
        command = simulator + list(before) + self.program + ["--report", str(report)]
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
        stats.unlink(missing_ok=True)
        text, speed = self.run([str(self.bin / "tools/cusplice"), "run", "-c", str(CONFIG), "--stats", str(stats), "--"])
        if not stats.exists():
            raise Failure("the library wrote no statistics: it never came up in the decode host")
        return text, speed, json.loads(stats.read_text())


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
        print(textwrap.fill(text, 100, initial_indent="  {:<22}".format(name), subsequent_indent=" " * 24))
    if result["device"] == "simulator":
        print("\n  (tokens/s say nothing here: the simulator runs kernels on the CPU and charges nothing for a launch)")


def print_result(result, plain, preloaded):
    print("device: %s, %d tokens\n" % (result["device"], result["tokens"]))
    for line in result["text"].splitlines():
        print(textwrap.fill(line, 100, initial_indent="  | ", subsequent_indent="  | ") or "  |")
    print()
    if result["outputs_equal"]:
        print("outputs equal: plain and preloaded wrote the same text, byte for byte")
    else:
        same = len(os.path.commonprefix([plain, preloaded]))
        print("OUTPUTS DIFFER from byte %d on: plain %r, preloaded %r" %
              (same, plain[same:same + 40], preloaded[same:same + 40]))
    segments = result["preloaded"]["stats"].get("segment_list") or []
    print("\na decode step:")
    shown = "[" + ", ".join(segments) + "]" if segments else "(no whole step went through graphs)"
    print(textwrap.fill(shown, 100, initial_indent="  ", subsequent_indent="   ", break_long_words=False) + "\n")
    print_table(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["sim", "gpu"], default="sim")
    parser.add_argument("--bin", type=Path, required=True, help="bazel-bin")
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cusplice-demo-") as scratch:
        host = Host(args.device, args.bin.absolute(), args.tokens or TOKENS[args.device], Path(scratch))
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
