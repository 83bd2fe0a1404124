"""Counts the kernels of a PyTorch program with torch.profiler, that is, with CUPTI.

The count is to be compared with `ops.launches` in the stats file that the library writes for this process. Both sides
must count the same period. The profiler is therefore started before the process has touched CUDA at all (asserted), and
stopped after the last launch, behind a synchronisation; nothing is launched later. So CUPTI's period is the life of the
process, as the library's is, and no snapshot has to be subtracted. CUPTI reports one record per executed kernel, also for
kernels inside graphs; memsets and copies have records of their own and are not in the count. Part of the program launches
a number of kernels that is known beforehand, so that records which CUPTI lost would show as well.
"""

import argparse
import hashlib
import json
import os
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile

KNOWN = 600


def workload(steps):
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 256)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(32, 256).cuda()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(data) - data).square().mean()
        loss.backward()
        optimizer.step()
    counter = torch.zeros(64, device="cuda")
    for _ in range(KNOWN):
        counter.add_(1.0)
    torch.cuda.synchronize()
    return float(loss), float(counter[0])


def kernel_records(prof):
    """Counts by category, and the kernels' names in the order of execution. The trace file does not merge records of one name."""
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        prof.export_chrome_trace(path)
        with open(path) as trace:
            events = json.load(trace)["traceEvents"]
    finally:
        os.unlink(path)
    counts = {}
    kernels = []
    for event in events:
        category = event.get("cat", "")
        if category in ("kernel", "gpu_memset", "gpu_memcpy"):
            counts[category] = counts.get(category, 0) + 1
        if category == "kernel":
            kernels.append((event["ts"], event["name"]))
    names = [name for _, name in sorted(kernels, key=lambda kernel: kernel[0])]  # one stream: no two begin at a time
    return counts, names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    assert not torch.cuda.is_initialized(), "CUDA was touched before the profiler began"
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        loss, counted = workload(args.steps)
    counts, names = kernel_records(prof)
    known = sum("add" in name.lower() for name in names)
    print(json.dumps({
        "program": "profiler_count",
        "kernels": counts.get("kernel", 0),
        "memsets": counts.get("gpu_memset", 0),
        "copies": counts.get("gpu_memcpy", 0),
        "complete": known >= KNOWN and counted == KNOWN,
        "loss": loss,
        "list": f"{len(names)} kernels, {len(set(names))} names, {hashlib.sha256(chr(10).join(names).encode()).hexdigest()[:16]}",
        "hash": loss.hex(),
    }))


if __name__ == "__main__":
    main()
