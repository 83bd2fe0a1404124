"""vLLM, offline, a small Llama with random weights, greedy: 1, 8 and 32 requests of different lengths, one behind the other in one start.
TRIAL_FLAG, words joined by '-'. eager: enforce_eager; none or compiled, then none, piecewise, full_decode_only or full_and_piecewise: graphs of its own, without and with torch.compile
(without, PIECEWISE wants VLLM_USE_BREAKABLE_CUDAGRAPH=1). mp: the engine in a process of its own, as it is by default. tp2: the model on two GPUs, with mp; nccl: without vLLM's own all-reduce. triton: Triton attention; else FlashAttention 3
where that library was carried. b1, b8, b32: only these."""
import os
import tempfile
import time

FLAGS = (os.environ.get('TRIAL_FLAG') or 'eager').split('-')
os.environ.setdefault('VLLM_USE_FLASHINFER_SAMPLER', '0')
os.environ.setdefault('VLLM_NO_USAGE_STATS', '1')
for _name, _value in (('VLLM_HOST_IP', '127.0.0.1'), ('GLOO_SOCKET_IFNAME', 'lo'), ('NCCL_SOCKET_IFNAME', 'lo')):   # a machine without a network
    os.environ.setdefault(_name, _value)
os.environ.setdefault('VLLM_LOGGING_LEVEL', 'WARNING')
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('VLLM_ENABLE_V1_MULTIPROCESSING', '1' if 'mp' in FLAGS else '0')
os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
import torch
import vllm
from vllm import LLM, SamplingParams
import trial

HOME = os.path.join(os.environ.get('TRIAL_CACHE', os.path.join(tempfile.gettempdir(), 'engines-cache')), 'vllm-llama')
TOKENS = 48
BATCHES = [n for n in (1, 8, 32) if 'b%d' % n in FLAGS] or [1, 8, 32]


def make():
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=4000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16,
                                         num_key_value_heads=8, max_position_embeddings=1024, bos_token_id=1, eos_token_id=2))
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.mul_(2)
    model.to(torch.bfloat16).save_pretrained(HOME)


def graphs():
    """What the flags ask of vLLM."""
    if FLAGS[0] == 'eager':
        return {'enforce_eager': True}
    return {'enforce_eager': False, 'compilation_config': {'mode': 3 if FLAGS[0] == 'compiled' else 0, 'cudagraph_mode': FLAGS[1].upper()}}


def main():
    trial.begin()
    if not os.path.exists(os.path.join(HOME, 'config.json')):
        make()
    more = graphs()
    if 'triton' in FLAGS:
        more['attention_backend'] = 'TRITON_ATTN'
    if 'tp2' in FLAGS:
        more['tensor_parallel_size'] = 2
        more['disable_custom_all_reduce'] = 'nccl' in FLAGS
    begun = time.time()
    # A tenth of the memory: the variants are all there at once, and vLLM looks whether as much is free.
    engine = LLM(model=HOME, skip_tokenizer_init=True, dtype='bfloat16', max_model_len=512, max_num_seqs=32, gpu_memory_utilization=0.1, num_gpu_blocks_override=1280,
                 seed=0, enable_prefix_caching=False, disable_log_stats=True, **more)
    made = time.time() - begun
    asked = engine.llm_engine.vllm_config
    want = SamplingParams(temperature=0, max_tokens=TOKENS, min_tokens=TOKENS, ignore_eos=True, detokenize=False, logprobs=1)
    times = []   # of each step of the engine
    inner = engine.llm_engine.step

    def timed():
        t = time.perf_counter()
        out = inner()
        times.append((time.perf_counter() - t) * 1e3)
        if 1 < len(times) < TOKENS:   # neither the prompts nor what only takes results
            trial.lap(times[-1])
        return out

    engine.llm_engine.step = timed
    for count in BATCHES:
        prompts = [[{'prompt_token_ids': [(7 * k + 31 * j + 11 * r) % 3900 + 3 for j in range(12 + 5 * r)]} for r in range(count)] for k in range(4)]

        def step(i, h):
            first.append(list(times)) if times and not first else None
            del times[:]
            for out in engine.generate(prompts[i % 4], want, use_tqdm=False):
                one = out.outputs[0]
                h.add([int(t) for t in one.token_ids])
                h.add([sorted((int(t), round(p.logprob, 4)) for t, p in at.items()) for at in one.logprobs])

        first = []   # the times of the first step
        del times[:]
        trial.run(step, 12, warmup=2, sync=lambda: None, per_step=TOKENS, part='b%d' % count,
                  extra=lambda: {'version': vllm.__version__, 'made_s': round(made, 1), 'flags': FLAGS, 'requests': count, 'first10_ms': round(sum(first[0][1:11]), 3),
                                 'curve': [round(t, 3) for t in first[0][:60]], 'mode': [str(asked.compilation_config.mode), str(asked.compilation_config.cudagraph_mode)],
                                 'env': {k: v for k, v in os.environ.items() if k.startswith('VLLM_')}})


if __name__ == '__main__':
    main()
