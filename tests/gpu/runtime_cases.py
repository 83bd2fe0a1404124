"""The case about programs with a shared CUDA runtime: the host's cost of a launch that the library intercepts before the runtime, and in
the driver alone; and the runtime's answer about the thread's device.
"""

# Seconds: the pace of a host may be another one in the next.
TURN = 0.1

# Short patterns of the host loop, each with the same results whichever way its launches are met.
PATTERNS = {"1000 small launches a step": [], "every 4th kernel a new scalar": ["--scalar-every", 4], "the legacy stream": ["--stream", "legacy"]}


def device(lab):
    program = lab.runner.program("device")
    if not program:
        lab.skip("device is not built")
        return
    runs = lab.measure({"plain": "plain", "preload": "preload"}, lambda name, variant: lab.runner.run([program], variant=variant, limit=60), "ns",
                       2 if lab.quick else 5)
    lab.same("cudaGetDevice, in all that a context can be: what it says and leaves", runs, lambda d: d.result["said"])
    lab.compare("ns of cudaGetDevice, preloaded / plain", "preload", "plain", 0.7)


def case_runtime(lab):
    """hostloop_shared: plain; with runtime_fast_path and without, in turns; cudaGetDevice, plain and preloaded."""
    device(lab)
    program = lab.runner.program("hostloop_shared")
    if not program:
        lab.skip("hostloop_shared is not built")
        return
    common = [program, "--steps", 800 if lab.quick else 2000, "--warmup", 50]
    env = {"met": {"CUSPLICE_RUNTIME_FAST_PATH": "yes"}, "in the driver": {"CUSPLICE_RUNTIME_FAST_PATH": "no"}}
    for pattern, more in PATTERNS.items():

        def plain(_, variant, more=more):
            return lab.runner.run([*common, *more], variant=variant, limit=60)

        runs = lab.measure({"plain": "plain"}, plain, "host_ns", 1)
        jobs = {name: ([*common, "--stops", *more], "preload", settings) for name, settings in env.items()}
        runs |= lab.beside(jobs, "host_ns", 1 if lab.quick else 3, turn=TURN)
        lab.same(f"{pattern}: result", runs, lambda d: d.result["checksum"])
        first = pattern == next(iter(PATTERNS))
        lab.compare(f"shared runtime, {pattern}: ns of the host for a launch, met before it / in the driver", "met", "in the driver", 0.5, issue=first)
        met = lab.figures.get("met")
        if first and met:
            lab.check("shared runtime: ns of the host for a launch", met["median"] <= 100, round(met["median"], 1), "<= 100", issue=True)
        for name, done in [(name, d) for name in env for d in runs.get(name, [])]:
            counted = done.stats["answered_before_runtime"] if done.stats else None
            share = counted / done.result["issued"] if counted is not None else 0
            if (name == "met") != (share > 0.5):
                lab.check(f"{pattern}, {name}: share of launches met before the runtime", False, share, "> 0.5" if name == "met" else "0")
                break
        lab.notes.append(f"{pattern}: ns of the host for a launch: " + ", ".join(f"{name} {lab.figures[name]['median']:.0f}" for name in runs if name in lab.figures))
