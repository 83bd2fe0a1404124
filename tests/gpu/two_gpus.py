"""Two GPUs through PyTorch: peer copies in one process (`--mode peer`), or one of two ranks of NCCL all-reduces and of
training with DistributedDataParallel (`--mode rank`; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as PyTorch wants them).

An ordinary PyTorch program that knows nothing of cusplice. Prints one JSON line with a hash of its results.
"""

import argparse
import hashlib
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn


def peer(digest):
    """Work on both GPUs, copies between them, on default and side streams, with events across the devices."""
    torch.manual_seed(1)
    a, b = torch.randn(300, 300, device="cuda:0"), torch.randn(300, 300, device="cuda:1")
    side = [torch.cuda.Stream(device=d) for d in (0, 1)]
    for step in range(80):
        a = torch.tanh(a @ a.T * 0.01 + step * 0.01)
        b = torch.sin(b * 1.1) + 0.1
        c = a.to("cuda:1", non_blocking=True)
        b = b * 0.5 + c
        side[1].wait_stream(torch.cuda.current_stream(1))
        with torch.cuda.stream(side[1]):
            d = (b.square() + 1).sqrt()
            e = d.to("cuda:0", non_blocking=True)  # ordered after the copy by PyTorch, on the current streams of both
        torch.cuda.current_stream(1).wait_stream(side[1])
        torch.cuda.current_stream(0).wait_stream(side[1])
        e.record_stream(torch.cuda.current_stream(0))
        a = a + 0.01 * e
        if step % 10 == 9:
            digest.update(a.cpu().numpy().tobytes())
            digest.update(b.cpu().numpy().tobytes())
    return {}


def rank(digest):
    me = int(os.environ["RANK"])
    torch.cuda.set_device(me)
    dist.init_process_group("nccl", device_id=torch.device("cuda", me))
    torch.manual_seed(100 + me)
    x = torch.randn(5000, device="cuda")
    for step in range(100):
        x = torch.tanh(x * 0.7 + step * 0.001)
        if step % 3 == 0:
            dist.all_reduce(x)
        else:
            work = dist.all_reduce(x, async_op=True)
            z = torch.ones(2000, device="cuda").cumsum(0)  # beside the reduction
            work.wait()
            x = x + z.mean() * 1e-4
        x = x / 2
        if step % 20 == 19:
            digest.update(x.cpu().numpy().tobytes())
    torch.manual_seed(7)
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU())]).cuda()
    ddp = nn.parallel.DistributedDataParallel(model, device_ids=[me], bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-3, foreach=False)
    generator = torch.Generator().manual_seed(50 + me)
    times = []
    for _ in range(500):
        begin = time.perf_counter()
        data = torch.randn(32, 256, generator=generator).cuda(non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = (ddp(data) - data.flip(1)).square().mean()
        loss.backward()
        optimizer.step()
        digest.update(repr(loss.item()).encode())
        times.append((time.perf_counter() - begin) * 1e3)
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    dist.barrier()
    dist.destroy_process_group()
    return {"rank": me, "median_ms": statistics.median(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["peer", "rank"], required=True)
    args = parser.parse_args()
    digest = hashlib.sha256()
    more = peer(digest) if args.mode == "peer" else rank(digest)
    print(json.dumps({"program": "two_gpus", "mode": args.mode, "hash": digest.hexdigest()[:32], **more}))


if __name__ == "__main__":
    main()
