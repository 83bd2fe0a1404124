"""Greedy decoding with a Hugging Face Llama of random weights (16 layers, hidden size 1024), eager PyTorch.

An ordinary transformers program that knows nothing of cusplice. `--cache static` keeps one key-value buffer of fixed
size; `--cache dynamic` grows it by concatenation, so that sizes, grids and addresses change with every token. Each token is
read back before the next one is computed, as a program that streams its text does. `--graph` captures the step of a token once, with
torch.cuda.graph over a static cache, and replays it, the hand-written way to the same end. Prints one JSON line with the
tokens per second of each generation and a hash of all token ids.
"""

import argparse
import hashlib
import json
import statistics
import time

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache

from child import ready, step_ended


def build(args):
    config = LlamaConfig(
        vocab_size=args.vocab,
        hidden_size=args.hidden,
        intermediate_size=args.ffn or args.hidden * 11 // 4,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        num_key_value_heads=args.kv_heads or args.heads,
        max_position_embeddings=2048,
        attn_implementation="sdpa",
    )
    torch.manual_seed(11)
    with torch.device(args.device):
        return LlamaForCausalLM(config).to(torch.bfloat16).eval()


def new_cache(args, model):
    if args.cache == "static":
        return StaticCache(config=model.config, max_cache_len=args.prompt + args.tokens)
    return DynamicCache()


def step(model, cache, token):
    """The token behind `token`, and the logits that it comes from."""
    logits = model(input_ids=token, past_key_values=cache, use_cache=True).logits
    return logits[:, -1].argmax(dim=-1, keepdim=True), logits


class Captured:
    """The step as one graph. It reads and writes `token` and the cache where they are, so both are kept for all generations."""

    def __init__(self, model, cache, token):
        self.cache, self.token = cache, token.clone()
        lengths = [layer.cumulative_length.clone() for layer in cache.layers]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step(model, cache, self.token)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            chosen, self.logits = step(model, cache, self.token)
            self.token.copy_(chosen)
        for layer, length in zip(cache.layers, lengths):  # the steps for warming up have not been
            layer.cumulative_length.copy_(length)

    def __call__(self, token):
        self.token.copy_(token)
        self.graph.replay()
        return self.token, self.logits


def generate(args, model, prompt, captured):
    """Prefill, then one token at a time. Returns the ids, the last logits, when each token was there and whether its step counts, and the
    graph if there is one."""
    cache = captured.cache if captured else new_cache(args, model)
    if captured:
        cache.reset()
    ids = []
    token = prompt
    times = []
    for _ in range(args.tokens):
        token, logits = captured(token) if captured and ids else step(model, cache, token)
        ids.append(int(token.item()))
        now = time.perf_counter()
        times.append((now, step_ended()))
        if args.graph and not captured:
            captured = Captured(model, cache, token)
    return ids, logits[:, -1], times, captured


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", choices=["static", "dynamic"], default="static")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--prompt", type=int, default=16, help="length of the prompt")
    parser.add_argument("--runs", type=int, default=3, help="timed generations, after a first one that is not timed")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--kv-heads", type=int, help="heads of keys and values (as many as heads)")
    parser.add_argument("--ffn", type=int, help="width of the feed-forward (11/4 of hidden)")
    parser.add_argument("--vocab", type=int, default=32000)
    parser.add_argument("--graph", action="store_true", help="capture the step of a token once, then replay it (static cache)")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    if args.graph and args.cache != "static":
        parser.error("--graph needs a static cache")

    torch.backends.cuda.enable_cudnn_sdp(False)
    model = build(args)
    generator = torch.Generator().manual_seed(3)
    prompt = torch.randint(0, 32000, (1, args.prompt), generator=generator).to(args.device)
    digest, bits = hashlib.sha256(), hashlib.sha256()
    rates, steps = [], []
    captured = None
    with torch.inference_mode():
        ready(steps=True)
        for run in range(1 + args.runs):
            ids, logits, times, captured = generate(args, model, prompt, captured)
            digest.update(json.dumps(ids).encode())
            bits.update(logits.float().cpu().numpy().tobytes())
            if run > 0:
                rates.append((args.tokens - 1) / (times[-1][0] - times[0][0]))
                steps += [(b - a, counts) for (a, _), (b, counts) in zip(times, times[1:])]

    counting = [s for s, counts in steps if counts] or [s for s, _ in steps]
    print(json.dumps({
        "program": "hf_llama",
        "cache": args.cache,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens": args.tokens,
        "tokens_per_s": statistics.median(rates),
        "median_ms": statistics.median(counting) * 1e3,
        "p10_ms": sorted(counting)[len(counting) // 10] * 1e3,
        "median_of_all_ms": statistics.median(s for s, _ in steps) * 1e3,
        "all_tokens_per_s": [round(r, 2) for r in rates],
        "distinct": len(set(ids)),
        "first_ids": ids[:8],
        "hash": digest.hexdigest()[:32],
        "logits_hash": bits.hexdigest()[:32],
    }))


if __name__ == "__main__":
    main()
