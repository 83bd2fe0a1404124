"""Greedy decoding with a Hugging Face Llama of random weights (16 layers, hidden size 1024), eager PyTorch.

An ordinary transformers program that knows nothing of cusplice. `--cache static` keeps one key-value buffer of fixed
size; `--cache dynamic` grows it by concatenation, so that sizes, grids and addresses change with every token. Each token is
read back before the next one is computed, as a program that streams its text does. Prints one JSON line with the
tokens per second of each generation and a hash of all token ids.
"""

import argparse
import hashlib
import json
import statistics
import time

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache


def build(args):
    config = LlamaConfig(
        vocab_size=32000,
        hidden_size=args.hidden,
        intermediate_size=args.hidden * 11 // 4,
        num_hidden_layers=args.layers,
        num_attention_heads=16,
        num_key_value_heads=16,
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


def generate(args, model, prompt):
    """Prefill, then one token at a time. Returns the ids, the last logits, and when each token was there."""
    cache = new_cache(args, model)
    ids = []
    token = prompt
    times = []
    for _ in range(args.tokens):
        logits = model(input_ids=token, past_key_values=cache, use_cache=True).logits
        token = logits[:, -1].argmax(dim=-1, keepdim=True)
        ids.append(int(token.item()))
        times.append(time.perf_counter())
    return ids, logits[:, -1], times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", choices=["static", "dynamic"], default="static")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--prompt", type=int, default=16, help="length of the prompt")
    parser.add_argument("--runs", type=int, default=3, help="timed generations, after a first one that is not timed")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()

    torch.backends.cuda.enable_cudnn_sdp(False)
    model = build(args)
    generator = torch.Generator().manual_seed(3)
    prompt = torch.randint(0, 32000, (1, args.prompt), generator=generator).to(args.device)
    digest, bits = hashlib.sha256(), hashlib.sha256()
    rates, steps = [], []
    with torch.inference_mode():
        for run in range(1 + args.runs):
            ids, logits, times = generate(args, model, prompt)
            digest.update(json.dumps(ids).encode())
            bits.update(logits.float().cpu().numpy().tobytes())
            if run > 0:
                rates.append((args.tokens - 1) / (times[-1] - times[0]))
                steps += [b - a for a, b in zip(times, times[1:])]

    print(json.dumps({
        "program": "hf_llama",
        "cache": args.cache,
        "tokens": args.tokens,
        "tokens_per_s": statistics.median(rates),
        "median_ms": statistics.median(steps) * 1e3,
        "all_tokens_per_s": [round(r, 2) for r in rates],
        "distinct": len(set(ids)),
        "first_ids": ids[:8],
        "hash": digest.hexdigest()[:32],
        "logits_hash": bits.hexdigest()[:32],
    }))


if __name__ == "__main__":
    main()
