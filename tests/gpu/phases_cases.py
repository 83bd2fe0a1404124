"""The case about phases: a phase that does not repeat loses next to nothing, a phase that repeats gains the same in any place, and no step
waits long while the library learns.

Two processes of one program, also plain ones, differ by up to 7 % in the same turns, more than three times the bound for bad phases. So the
case also runs one process with half of its steps past the library (phases --past). Only two processes show what slows both halves down.
"""

import json
import os
import statistics

# Phases of harness/bench/phases by themselves: steps, and those with --quick. The first second of them is not judged.
ALONE = {"none": (4000, 2500), "three": (6000, 3000), "runs": (8000, 6000), "shapes": (8000, 6000), "short": (150000, 100000), "good": (8000, 6000)}
BAD_KINDS = ("none", "three")
CLOSE = ("none", "three", "good")  # those whose figure is near what it is held against: three repetitions
TURNS = ["good", "none", "good", "three", "good", "none", "good"]
GOOD, BAD = 4000, 2500  # steps of a phase where they take turns: about a second each, preloaded
LEARNED = 64  # steps of 1000 launches


def case_phases(lab):
    """Time of good and bad phases over plain, alone and in turn; the longest step while steps of 1000 launches are learned."""
    program = lab.runner.program("phases")
    if not program:
        lab.skip("phases is not built")
        return
    kept = {}
    reps = 1 if lab.quick else 3
    if lab.wants("past"):
        for kind in BAD_KINDS:
            past(lab, kept, f"{kind}, past", [program, "--past", f"{kind}:{ALONE[kind][lab.quick]}"], [kind], reps)
        past(lab, kept, "in turn, past", [program, "--past", *[f"{kind}:{BAD}" for kind in TURNS]], TURNS, reps)
    for kind, steps in ALONE.items():
        if lab.wants(kind):
            alone(lab, kept, kind, [program, "--meet", f"{kind}:{steps[lab.quick]}"], reps if kind in CLOSE else 1)
    if lab.wants("good"):
        in_turn(lab, program, kept, reps)
    if lab.wants("learning"):
        learning(lab, program, kept)
    os.makedirs(lab.runner.results, exist_ok=True)
    with open(os.path.join(lab.runner.results, "phases.json"), "w") as f:
        json.dump(kept, f, indent=1)


def alone(lab, kept, kind, argv, reps):
    """No phase is slower than plain, which runs beside it."""
    runs = beside(lab, kind, argv, reps)
    kept[kind] = {variant: [over(d, "late_wall_ns")[0] for d in all_of] for variant, all_of in runs.items()}
    if runs.get("preload") and all(map(all, kept[kind].values())):
        ratio = middle(ratios(kept[kind]))
        lab.check(f"{kind}: time over plain, after the first second", ratio <= 1.02, f"{ratio:.4f}", "<= 1.02", issue=True)
        note(lab, kind, runs, [kind])
    elif runs.get("preload"):
        lab.skip(f"{kind}: it was over within its first second")


def past(lab, kept, name, argv, kinds, reps):
    """Bad phases cost no more than 1.02 of what they cost past the library, in the same process; what the method itself says is that of a
    plain process, in which both ways are one. By the median of some thirty steps at a time, the two ways in turns of eight, and of the runs."""
    runs = play(lab, name, argv, reps)
    if not runs.get("preload"):
        return
    lab.check(f"{name}: in a plain process both ways are one", all(d.result["one_way"] for d in runs["plain"]), "")
    for at, kind in enumerate(kinds):
        if kind not in BAD_KINDS:
            continue
        where = f"in turn, phase {at + 1} ({kind})" if len(kinds) > 1 else kind
        if not all(all(rounds[at] for rounds in (over(d, "rounds") for d in all_of)) for all_of in runs.values()):
            lab.skip(f"{where}: it was over within its first second")
            continue
        # The median does not see what a few rounds cost alone, the mean what the system did in one of them.
        for figure, what in (("over_past", "median of rounds"), ("over_past_mean", "whole time")):
            ratio = kept[f"{where}, past, {what}"] = {variant: [d.result["phases"][at][figure] for d in all_of] for variant, all_of in runs.items()}
            of_all = middle(ratio["preload"])
            lab.check(f"{where}: time over that of steps that go past the library, after the first second, {what}", of_all <= 1.02, f"{of_all:.4f}", "<= 1.02", issue=True)
            last = runs["preload"][-1].result["phases"][at]
            lab.notes.append(f"{where}: {what}, over that of steps that go past the library: {', '.join(f'{r:.4f}' for r in ratio['preload'])}; in a plain process: "
                             f"{', '.join(f'{r:.4f}' for r in ratio['plain'])}; {last['rounds']} rounds in the last run, of which the middle half is {last['over_past_quarters']}")


def compared(lab, name, runs):
    """Runs of the two, results compared, under 'plain' and 'preload'."""
    lab.same(f"{name}: result", runs, lambda d: d.result["checksum"])
    return {which.rsplit(", ", 1)[1].replace("preloaded", "preload"): all_of for which, all_of in runs.items()}


def play(lab, name, argv, reps):
    """Plain and preloaded one behind the other."""
    return compared(lab, name, lab.measure(
        {f"{name}, plain": "plain", f"{name}, preloaded": "preload"}, lambda _, variant: lab.runner.run(argv, variant=variant, limit=60, settled=True), None, reps))


def beside(lab, name, argv, reps):
    """The same in turns of less than a second: both begin each phase together and meet the same of the host. None where one failed."""
    if lab.plain_only:
        return {}
    runs = lab.beside({f"{name}, plain": (argv, "plain", None), f"{name}, preloaded": (argv, "preload", None)}, None, reps, limit=90, meet=True)
    return compared(lab, name, runs) if all(len(of) == reps for of in runs.values()) else {}


def ratios(by_variant):
    """Preloaded over plain, of the two that ran in turns."""
    return [preload / plain for plain, preload in zip(by_variant["plain"], by_variant["preload"])]


def over(done, key):
    return [phase[key] for phase in done.result["phases"]]


def middle(values):
    return statistics.median(values) if values else None


def note(lab, name, runs, kinds):
    for at, kind in enumerate(kinds):
        both = [middle([over(d, "wall_ns")[at] for d in runs[variant]]) for variant in ("plain", "preload")]
        last = runs["preload"][-1].result["phases"][at]
        lab.notes.append(f"{name}, phase {at + 1} ({kind}): {both[1]:.0f} ns a launch, plain {both[0]:.0f}; in graphs {100 * last['in_graphs']:.1f} %, "
                         f"{last['graph_launches']} graphs launched, {last['build_us']} us of building, longest step {last['worst_step_us']:.0f} us")


def in_turn(lab, program, kept, reps):
    """Bad phases cost no more than 1.02 of plain; good ones save the share of plain's time that they save alone, within 5 %."""
    sizes = {"good": GOOD // (2 if lab.quick else 1)}
    runs = beside(lab, "in turn", [program, "--meet", *[f"{kind}:{sizes.get(kind, BAD)}" for kind in TURNS]], reps)
    kept["in turn"] = {variant: [over(d, "wall_ns") for d in all_of] for variant, all_of in runs.items()}
    if not runs:
        return
    note(lab, "in turn", runs, TURNS)
    gain = kept["good"].get("preload") and all(map(all, kept["good"].values())) and 1 - middle(ratios(kept["good"]))
    for at, kind in enumerate(TURNS):
        ratio = middle(ratios({variant: [d[at] for d in all_of] for variant, all_of in kept["in turn"].items()}))
        if kind != "good":
            lab.check(f"in turn, phase {at + 1} ({kind}): time over plain", ratio <= 1.02, f"{ratio:.4f}", "<= 1.02", issue=True)
        elif at and gain:
            lab.check(f"in turn, phase {at + 1} (good): gain over that alone", 1 - ratio >= 0.95 * gain, f"{(1 - ratio) / gain:.3f}", ">= 0.95", issue=True)


def learning(lab, program, kept):
    """By step: the medians of some runs, for a step that the system held up says nothing."""
    reps = 3 if lab.quick else 9
    runs = play(lab, "learning", [program, "--ops", "1000", f"good:{LEARNED}"], reps)
    if not runs.get("plain") or not runs.get("preload"):
        return
    steps = {variant: [statistics.median(of) for of in zip(*(over(d, "step_us")[0] for d in all_of))] for variant, all_of in runs.items()}
    kept["learning"] = {**steps, "in_graphs": over(runs["preload"][-1], "step_in_graphs")[0], "build_us": over(runs["preload"][-1], "step_build_us")[0]}
    usual = statistics.median(steps["plain"])
    extra = [now - max(before, usual) for now, before in zip(steps["preload"], steps["plain"])]
    lab.check("learning steps of 1000 launches: longest step, beyond plain, in us", max(extra) <= 1000, f"{max(extra):.0f} at step {extra.index(max(extra)) + 1}",
              "<= 1000", issue=True)
    first = max(over(d, "first_replay")[0] or LEARNED + 1 for d in runs["preload"])
    lab.check("learning: replay begins with occurrence", first <= 3, first, "<= 3", issue=True)
    lab.notes.append(f"learning: us of the first steps {[round(us) for us in steps['preload'][:16]]}, plain {[round(us) for us in steps['plain'][:16]]}; in graphs "
                     f"{kept['learning']['in_graphs'][:16]}; building {kept['learning']['build_us'][:16]} us; 95 % in graphs from step "
                     f"{sorted(over(d, 'mostly_replayed')[0] for d in runs['preload'])}")
