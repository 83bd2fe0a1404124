"""The case about work past the library: plugins that a running program opens, and other interposers (HAZARDS G1 to G3)."""

import re

# Plugin, what the host is told, and whether nothing may be deferred from then on.
PLUGINS = (
    ("plain", (), False),
    ("plain", ("deep",), False),
    ("plain", ("deep", "lazy"), False),
    ("plain", ("deep", "thread"), False),
    ("plain", ("deep", "opener"), False),
    ("now", ("deep",), False),
    ("copies", ("deep",), True),
    ("at_load", ("deep",), False),
    ("at_load", ("deep", "thread"), False),
    ("at_load", ("deep", "busy"), False),
    ("looks_up", ("deep",), False),
    ("table", ("deep",), True),
)
# Interposer, plugin, whether it stands in front, trust_interposers; what it counts must be plain's, and whether anything may be in graphs.
INTERPOSERS = (
    ("launches", "looks_up", True, "no", True, False),
    ("memory", "looks_up", True, "no", True, False),
    ("exports", "plain", True, "no", True, False),
    ("exports", "plain", True, "yes", True, True),
    ("exports", "plain", False, "no", True, False),
    ("exports", "plain", False, "yes", False, True),
    ("memory", "plain", False, "no", False, True),
    ("exports_sysv", "plain", True, "no", True, False),
    ("exports_sysv", "plain", False, "no", True, False),
)


def count(done):
    words = re.search(r"interposer: (\d+) launches", done.stderr)
    return int(words[1]) if words else None


def judge(lab, what, plain, mine, off):
    if plain.rc != 0 or plain.hung or mine.rc != 0 or mine.hung:
        lab.fail(plain if plain.rc != 0 or plain.hung else mine)
        return False
    lab.see(what, mine)
    lab.check(f"{what}: same output", mine.stdout == plain.stdout, "" if mine.stdout == plain.stdout else mine.stdout[-120:], "equal")
    stopped = mine.stats["fallbacks"]["deferring_off"] if mine.stats else None
    lab.check(f"{what}: deferring {'stops' if off else 'goes on'}", stopped == (1 if off else 0), stopped)
    return True


def plugins(lab, host):
    for name, how, off in PLUGINS:
        plugin, opener = lab.runner.program(f"libplugin_{name}.so"), lab.runner.program("libplugin_opener.so")
        argv = [host, plugin, *(f"opener={opener}" if word == "opener" else word for word in how)]
        plain = lab.runner.run(argv)
        mine = plain if lab.plain_only else lab.runner.run(argv, variant="preload")
        if not lab.plain_only:
            judge(lab, f"plugin {' '.join((name, *how))}", plain, mine, off)


def interposers(lab, host):
    for name, plugin, front, trust, counts, graphs in INTERPOSERS:
        other = lab.runner.program(f"libinterposer_{name}.so")
        argv = [host, lab.runner.program(f"libplugin_{plugin}.so")]
        plain = lab.runner.run(argv, env={"LD_PRELOAD": other})
        if lab.plain_only:
            continue
        order = [other, lab.runner.library] if front else [lab.runner.library, other]
        mine = lab.runner.run(argv, variant="preload", env={"LD_PRELOAD": ":".join(order), "CUSPLICE_TRUST_INTERPOSERS": trust})
        what = f"interposer {name} {'in front' if front else 'behind'}, {'trusted' if trust == 'yes' else 'not trusted'}"
        if judge(lab, what, plain, mine, not graphs) and counts:
            lab.check(f"{what}: launches that it counts", count(mine) == count(plain), count(mine), count(plain))


def linked(lab):
    """A program that is linked to an interposer before libcuda."""
    argv = [lab.runner.program("plugin_host_linked"), lab.runner.program("libplugin_plain.so")]
    plain = lab.runner.run(argv)
    if lab.plain_only:
        return
    mine = lab.runner.run(argv, variant="preload")
    what = "interposer that the program needs"
    if judge(lab, what, plain, mine, True):
        lab.check(f"{what}: launches that it counts", count(mine) == count(plain), count(mine), count(plain))


def case_slots(lab):
    host = lab.runner.program("plugin_host")
    if not host:
        lab.skip("plugin_host is not built")
        return
    plugins(lab, host)
    interposers(lab, host)
    linked(lab)
