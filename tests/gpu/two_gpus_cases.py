"""Cases that need two GPUs."""

import concurrent.futures
import glob
import os

from trace_cases import read


def two_ranks(lab, variant, port, env):
    """Both ranks at the same time; returns what became of them."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        both = [pool.submit(lab.runner.script, "two_gpus.py", "--mode", "rank", variant=variant, limit=100,
                            env={"RANK": str(r), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                                 "NCCL_NVLS_ENABLE": "0", **env}) for r in (0, 1)]
        return [one.result() for one in both]


COUNT_GPUS = """
import ctypes
cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
print('{"gpus": %d}' % count.value)
"""


def case_two_gpus(lab):
    """Peer copies in one process, all-reduces and data-parallel training in two."""
    if lab.lacks("torch"):
        return
    found = lab.runner.run([lab.runner.python, "-c", COUNT_GPUS], native=False)
    if not found.ok or not found.result or found.result["gpus"] < 2:
        lab.skip("one GPU: needs two")
        return
    variants = ("plain",) if lab.plain_only else ("plain", "preload")
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        peers = list(pool.map(lambda v: lab.runner.script("two_gpus.py", "--mode", "peer", variant=v), variants))
    for variant, done in zip(variants, peers):
        if done.ok and done.result:
            lab.see(f"peer copies, {variant}", done)
        else:
            lab.fail(done)
    lab.same("peer copies between two GPUs: results", {v: [d] for v, d in zip(variants, peers) if d.ok and d.result},
             lambda d: d.result["hash"], issue=True)
    plain = two_ranks(lab, "plain", 29511, {})
    for done in plain:
        if not done.ok or not done.result:
            lab.fail(done)
            return
    traces = os.path.join(lab.runner.scratch, "two-gpus-%p.cst")
    settings = {} if lab.plain_only else {
        "": {},
        ", nccl kernels never deferred": {"CUSPLICE_CONFIG": os.path.join(lab.runner.root, "config", "presets", "nccl.conf"), "CUSPLICE_RECORD": traces},
    }
    for at, (label, env) in enumerate(settings.items()):
        mine = two_ranks(lab, "preload", 29512 + at, env)
        for rank, done in enumerate(mine):
            if not done.ok or not done.result:
                lab.fail(done)
                continue
            lab.see(f"rank {rank}{label}", done)
            lab.check(f"NCCL all-reduce and DDP steps, rank {rank}{label}: results", done.result["hash"] == plain[rank].result["hash"],
                      done.result["hash"], plain[rank].result["hash"], issue=True)
            lab.notes.append(f"rank {rank}{label}: {done.result['median_ms']:.2f} ms a DDP step, plain "
                             f"{plain[rank].result['median_ms']:.2f}")
    if not lab.plain_only:
        nccl_kernels(lab, glob.glob(traces.replace("%p", "*")))


def nccl_kernels(lab, traces):
    """Each kernel of NCCL was issued by the program's own call, and other kernels are in graphs."""
    if not lab.runner.program("cusplice"):
        lab.skip("cusplice is not built: whether NCCL's kernels were deferred")
        return
    lab.check("two ranks were recorded", len(traces) == 2, len(traces), 2)
    for trace in traces:
        report = read(lab, "report", "kernels", "--format", "json", trace)
        rows = [r for r in report["rows"] if r["op"] == "launch"] if report else []
        nccl = [r for r in rows if r["name"].startswith("nccl")]
        calls, withheld = (sum(sum(r[k] for k in keys) for r in nccl) for keys in (("calls",), ("in_graphs", "flushed", "open")))
        lab.check("kernels of NCCL that were deferred", calls > 500 and withheld == 0, f"{withheld} of {calls}", "0 of more than 500")
        lab.check("other kernels in graphs", sum(r["in_graphs"] for r in rows) > 1000, sum(r["in_graphs"] for r in rows), "> 1000")
