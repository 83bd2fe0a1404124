"""vLLM, offline, a small Llama with random weights, greedy, eight requests of different lengths.
TRIAL_FLAG, words joined by '-': eager (default: enforce_eager), graphs (vLLM's own: torch.compile and FULL_AND_PIECEWISE), piecewise (PIECEWISE graphs,
by torch.compile), full (with piecewise: FULL_DECODE_ONLY, no torch.compile), mp (the engine in a process of its own, as it is by default), triton (Triton attention; else FlashAttention 3 where that library was
carried), one (one request), b32 (32 requests)."""
import json
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


def main():
    trial.begin()
    if not os.path.exists(os.path.join(HOME, 'config.json')):
        make()
    more = {}
    if 'graphs' in FLAGS:
        more['enforce_eager'] = False
    elif 'piecewise' in FLAGS:
        more['enforce_eager'] = False
        more['compilation_config'] = {'mode': 0, 'cudagraph_mode': 'FULL_DECODE_ONLY'} if 'full' in FLAGS else {'cudagraph_mode': 'PIECEWISE'}
    else:
        more['enforce_eager'] = True
    if 'triton' in FLAGS:
        more['attention_backend'] = 'TRITON_ATTN'
    begun = time.time()
    engine = LLM(model=HOME, skip_tokenizer_init=True, dtype='bfloat16', max_model_len=512, max_num_seqs=32, gpu_memory_utilization=0.3,
                 num_gpu_blocks_override=1024, seed=0, enable_prefix_caching=False, disable_log_stats=True, **more)
    started = time.time() - begun
    free, total = torch.cuda.mem_get_info()
    count = 1 if 'one' in FLAGS else 32 if 'b32' in FLAGS else 8
    prompts = [[{'prompt_token_ids': [(7 * k + 31 * j + 11 * r) % 3900 + 3 for j in range(12 + 5 * r)]} for r in range(count)] for k in range(4)]
    want = SamplingParams(temperature=0, max_tokens=TOKENS, min_tokens=TOKENS, ignore_eos=True, detokenize=False, logprobs=1)

    def step(i, h):
        for out in engine.generate(prompts[i % 4], want, use_tqdm=False):
            one = out.outputs[0]
            h.add([int(t) for t in one.token_ids])
            h.add([sorted((int(t), round(p.logprob, 4)) for t, p in at.items()) for at in one.logprobs])

    trial.run(step, 16, warmup=3, sync=lambda: None, per_step=TOKENS,
              extra={'version': vllm.__version__, 'start_s': round(started, 1), 'used_mib': (total - free) >> 20, 'flags': FLAGS, 'requests': count, 'env': {k: v for k, v in os.environ.items() if k.startswith('VLLM_')}})


if __name__ == '__main__':
    main()
