"""The order in which the GPU did things, by CUPTI's times (history/): of programs with streams, events and the legacy stream."""

import os

# Of harness/scenario: forks and joins, events, the legacy stream, copies, waits of the host, graphs that change.
SCENARIOS = ("steady", "two_streams", "streams_interleaved", "legacy_blocking", "legacy_aliases", "fork_layers", "fork_two", "fork_nested",
             "fork_legacy", "event_loop", "event_recreate", "copies", "memsets", "tokens", "diverge_replace", "batch_sizes", "pool_loop",
             "threads", "decode_loop")
SLACK_NS = 1000  # CUPTI's times of two records


def case_history(lab):
    """Nothing begins before what its program put before it has ended."""
    programs = [lab.runner.program(name) for name in ("cusplice", "history", "scenario")]
    if not all(programs):
        lab.skip("cusplice, history or scenario is not built")
        return
    if lab.plain_only:
        lab.skip("needs the library")
        return
    cusplice, history, scenario = programs
    listed = [line.split()[0] for line in lab.runner.run([scenario, "--list"]).stdout.splitlines() if line.strip()]
    for name in [name for name in SCENARIOS if name in listed]:
        trace = os.path.join(lab.runner.scratch, f"history-{name}.cst")
        done = lab.runner.run([cusplice, "record", "-o", trace, "--gpu-times", "--", scenario, name], limit=60)
        if not done.ok or not os.path.exists(trace):
            lab.fail(done)
            continue
        if "no GPU times" in done.stderr:
            lab.skip(f"history of {name}: {[line for line in done.stderr.splitlines() if 'no GPU times' in line][0][:120]}")
            continue
        said = lab.runner.run([history, "--slack", SLACK_NS, trace], limit=60)
        if said.rc not in (0, 1):
            lab.fail(said)
            continue
        lab.check(f"history of {name}: nothing ran too early", said.rc == 0, said.stdout[:600].strip(), "too early: 0")
