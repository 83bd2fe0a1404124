"""The order in which the GPU did things, by CUPTI's times (history/): of programs with streams, events and the legacy stream."""

import os

# Of harness/scenario: forks and joins, events, the legacy stream, copies, waits of the host, graphs that change.
SCENARIOS = ("steady", "two_streams", "streams_interleaved", "legacy_blocking", "legacy_aliases", "fork_layers", "fork_two", "fork_nested",
             "fork_legacy", "event_loop", "event_recreate", "copies", "memsets", "tokens", "diverge_replace", "batch_sizes", "pool_loop",
             "threads", "decode_loop")
PROGRAMS = {"cupy_prog.py": "cupy", "cupy_streams.py": "cupy", "triton_prog.py": "triton", "train_loop.py": "torch"}   # and what they need
# CUPTI's times of two nodes of one graph. In a graph of PyTorch's own, of 1000 kernels one behind the other, 44 of 499,500 pairs overlapped, by 1152 ns at most.
# So about one pair in 200,000 is above SLACK_NS, and programs have as many.
SLACK_NS, PROGRAM_SLACK_NS = 1000, 2000


def check(lab, name, argv, slack_ns, native, limit):
    """One program is recorded with GPU times, and these are compared."""
    cusplice, history = (lab.runner.program(each) for each in ("cusplice", "history"))
    trace = os.path.join(lab.runner.scratch, f"history-{name}.cst")
    done = lab.runner.run([cusplice, "record", "-o", trace, "--gpu-times", "--", *argv], limit=limit, native=native)
    if not done.ok or not os.path.exists(trace):
        lab.fail(done)
        return
    if "no GPU times" in done.stderr:
        lab.skip(f"history of {name}: {[line for line in done.stderr.splitlines() if 'no GPU times' in line][0][:120]}")
        return
    said = lab.runner.run([history, "--slack", slack_ns, trace], limit=60)
    if said.rc not in (0, 1):
        lab.fail(said)
        return
    lab.check(f"history of {name}: nothing ran too early", said.rc == 0, said.stdout[:600].strip(), "too early: 0")


def case_history(lab):
    """Nothing begins before what its program put before it has ended."""
    programs = [lab.runner.program(name) for name in ("cusplice", "history", "scenario")]
    if not all(programs):
        lab.skip("cusplice, history or scenario is not built")
        return
    if lab.plain_only:
        lab.skip("needs the library")
        return
    scenario = programs[-1]
    listed = [line.split()[0] for line in lab.runner.run([scenario, "--list"]).stdout.splitlines() if line.strip()]
    for name in [name for name in SCENARIOS if name in listed]:
        check(lab, name, [scenario, name], SLACK_NS, True, 60)
    for name, module in PROGRAMS.items():
        if not lab.lacks(module):
            check(lab, name, lab.runner.python_script(name), PROGRAM_SLACK_NS, False, 150)
