"""The programs that try_all.py runs, in groups, and the variants of each.

A variant is words with + between them: `own` or `own-...` is the program with graphs of its own, `pre` is preloaded, `cfg` preloaded with the program's
preset, `steps` with a file beside this one that has a [step] section too, and a word of MODES is preloaded in that mode. `plain` is none of these.
`floor` is preloaded with the library for ablation, and no kernel is launched: the results are wrong, and the time is what the program takes beside its launches."""

from child import Settled

MODES = ('eager', 'observe', 'piecewise', 'full', 'full_and_piecewise', 'full_decode_only', 'verify')
VLLM = ['vllm', 'vllmdeps', 'vllmfa3']
NO_NET = {'VLLM_LOGGING_LEVEL': 'ERROR'}


def entry(script, flag='', what='', site=(), preset=None, own=None, variants=None, env=None, libs=False, timeout=90, takes=30, turn=0.3, parts=False, steps=None, cpus=Settled.CPUS):
    """own: {word: (flag, environment)}. takes: seconds for all variants, about: it does not begin with less left. turn: seconds of a turn; of programs with long steps
    several steps. parts: it times several things one behind the other. cpus: so many of the fastest are its own in a turn; each thread that
    never sleeps needs one. stats_every: its processes may be killed before they write."""
    own = {word: (given, {}) if isinstance(given, str) else given for word, given in (own or {}).items()}
    usual = ['plain', 'pre'] + [w for word in own for w in (word, word + '+pre')]
    return dict(script=script, flag=flag, what=what, site=list(site), preset=preset, own=own, variants=variants or usual, env=env or {}, libs=libs, timeout=timeout, takes=takes,
                turn=turn, parts=parts, steps=steps, cpus=cpus, stats_every=script == 'vllm_llama')


def vllm(flag, what, variants, own=None, fa3=True, takes=200, **more):
    return entry('vllm_llama', flag, what, VLLM if fa3 else VLLM[:2], preset='vllm', own=own, variants=variants, env=NO_NET, timeout=240, takes=takes, turn=0.5, parts=True,
                 steps='vllm_steps.conf', **more)


# What vLLM's graphs are without torch.compile, and with. PIECEWISE without it is what vLLM calls breakable graphs.
BREAKABLE = {'VLLM_USE_BREAKABLE_CUDAGRAPH': '1'}
PROGRAMS = {
    'busy': entry('busy', what='no GPU: what the machine itself does to a ratio', takes=10, cpus=1),
    # PyTorch and JAX, where they are installed
    'timm-effnet': entry('timm_effnet', what='EfficientNet-B0, fp16, batch 1, PyTorch'),
    'st-minilm': entry('st_minilm', what='sentence-transformers, MiniLM size', preset='pytorch'),
    'hf-whisper': entry('hf_whisper', what='transformers Whisper, tiny', preset='pytorch', turn=1.5, takes=45),
    'hf-t5': entry('hf_t5', what='transformers T5, small, generate', preset='pytorch', turn=1.5, takes=45),
    'pyg-gat': entry('pyg_gat', what='graph attention training, PyG'),
    'ode': entry('ode', what='neural ODE and adjoint, torchdiffeq', turn=1.5, takes=45),
    'unet20': entry('unet20', what='20 turns of 16 residual blocks, one wait', turn=1.5),
    'lstm100': entry('lstm100', what='LSTM cell 100 times a call'),
    'numpyro': entry('numpyro_mcmc', 'nograph', 'NUTS, numpyro on JAX', own={'own': ''}, timeout=120, takes=90),
    'jax-train': entry('jax_steps', 'nograph', "JAX trains a network; own graphs: XLA's command buffers", own={'own': ''}, timeout=120, takes=60),
    # packed
    'ct2-gpt2': entry('ct2', 'gpt2', 'CTranslate2, GPT-2, fp16', ['ctranslate2'], env={'CUBLAS12': '1'}, turn=1.5, takes=45),
    'ct2-llama': entry('ct2', 'llama', 'CTranslate2, Llama, fp16', ['ctranslate2'], env={'CUBLAS12': '1'}, turn=1.5, takes=45),
    'ct2-int8': entry('ct2', 'gpt2-int8', 'CTranslate2, GPT-2, int8', ['ctranslate2'], env={'CUBLAS12': '1'}, turn=1.5, takes=45),
    'warp-fluid': entry('warp_ex', 'fluid', 'Warp, fluid, 200 pressure kernels', ['warp'], own={'own': 'fluid-graph'}, takes=45),
    'warp-dem': entry('warp_ex', 'dem', 'Warp, granular DEM', ['warp'], own={'own': 'dem-graph'}, takes=45),
    'warp-fem': entry('warp_ex', 'fem', 'Warp, Navier-Stokes FEM', ['warp'], takes=60),
    'openmm': entry('openmm_water', '', 'OpenMM, water box, PME', ['openmm'], libs=True),
    'unet': entry('unet', '', 'diffusers UNet, 25 DDIM steps', ['small-diffusers'], turn=1.5, takes=45),
    'ort': entry('ort_bert', '', 'ONNX Runtime, small BERT, lengths vary', ['ort'], libs=True),
    'ort-fixed': entry('ort_bert', 'fixed', 'ONNX Runtime, small BERT, one length', ['ort'], libs=True, own={'own': 'graph'}),
    'xgb': entry('xgb', '', 'XGBoost, histogram trees on the GPU', ['xgboost'], takes=45),
    'llamacpp': entry('llamacpp', 'llama', "llama.cpp, Llama, f16, a token; own graphs: ggml's", ['llamacpp'], preset='llama_cpp', libs=True,
                      env={'GGML_CUDA_DISABLE_GRAPHS': '1'}, own={'own': ('llama', {'GGML_CUDA_DISABLE_GRAPHS': None})}, variants=['plain', 'pre', 'cfg', 'own', 'own+pre'], parts=True),
    'llamacpp-gpt2': entry('llamacpp', 'gpt2', "llama.cpp, GPT-2, f16, a token; own graphs: ggml's", ['llamacpp'], preset='llama_cpp', libs=True,
                           env={'GGML_CUDA_DISABLE_GRAPHS': '1'}, own={'own': ('gpt2', {'GGML_CUDA_DISABLE_GRAPHS': None})}, parts=True),
    # vLLM: each start does batch 1, 8 and 32, one behind the other
    'vllm': vllm('eager', 'vLLM Llama, eager, FlashAttention 3', ['plain', 'cfg', 'cfg+full', 'steps+full_and_piecewise', 'steps+full_decode_only', 'own'],
                 own={'own': 'none-full_decode_only'}, takes=240),
    'vllm-auto': vllm('eager', 'vLLM Llama, eager, no preset', ['plain', 'pre', 'pre+full'], takes=130),
    'vllm-own': vllm('eager', "vLLM's own graphs, no torch.compile", ['own', 'own+cfg', 'own-piecewise', 'own-piecewise+cfg', 'own-both', 'own-both+cfg'],
                     own={'own': 'none-full_decode_only', 'own-piecewise': ('none-piecewise', BREAKABLE), 'own-both': ('none-full_and_piecewise', BREAKABLE)}, takes=180),
    'vllm-compiled': vllm('compiled-none', 'vLLM Llama, torch.compile, no graphs', ['plain', 'cfg', 'cfg+full', 'own', 'own-piecewise', 'own-piecewise+cfg', 'own-both', 'own-both+cfg'],
                          own={'own': 'compiled-full_decode_only', 'own-piecewise': 'compiled-piecewise', 'own-both': 'compiled-full_and_piecewise'}, takes=270),
    'vllm-triton': vllm('eager-triton', 'vLLM Llama, eager, Triton attention', ['plain', 'cfg', 'cfg+full', 'own', 'own+cfg'], own={'own': 'none-full_decode_only-triton'},
                        fa3=False, takes=200),
    'vllm-mp': vllm('eager-mp', 'vLLM Llama, eager, engine in a process of its own', ['plain', 'cfg', 'cfg+full', 'own', 'own+cfg'], own={'own': 'none-full_decode_only-mp'},
                    takes=220, cpus=6),
    'vllm-tp2': vllm('eager-mp-tp2-b1-b8', 'vLLM Llama, eager, on two GPUs', ['plain', 'cfg'], takes=160, cpus=12),
    'vllm-tp2-nccl': vllm('eager-mp-tp2-nccl-b1-b8', 'vLLM Llama, eager, on two GPUs by NCCL alone', ['plain', 'cfg'], takes=160, cpus=12),
}
GROUPS = {
    'torch': ['timm-effnet', 'st-minilm', 'hf-whisper', 'hf-t5', 'pyg-gat', 'ode', 'unet20', 'lstm100'],
    'jax': ['jax-train', 'numpyro'],
    'small': ['ct2-gpt2', 'ct2-llama', 'openmm', 'unet', 'xgb'],
    'llamacpp': ['llamacpp', 'llamacpp-gpt2'],
    'warp': ['warp-fluid', 'warp-dem', 'warp-fem'],
    'ort': ['ort', 'ort-fixed'],
    'vllm': ['vllm', 'vllm-auto', 'vllm-own', 'vllm-compiled', 'vllm-triton', 'vllm-mp', 'vllm-tp2', 'vllm-tp2-nccl'],
}
GROUPS['all'] = list(PROGRAMS)


def own_word(variant):
    """The word for graphs of the program's own, or None."""
    return next((w for w in variant.split('+') if w == 'own' or w.startswith('own-')), None)


def preloads(variant):
    """The words for what the library does, or [] where it is not there."""
    return [w for w in variant.split('+') if w not in ('plain', own_word(variant))]


def unknown(name, variant):
    """What is wrong with a variant of a program, or None."""
    program = PROGRAMS[name]
    for word in variant.split('+'):
        if word == 'cfg' and not program['preset'] or word == 'steps' and not program['steps'] or word.startswith('own') and word not in program['own']:
            return f'{name} has no {word}'
        if '=' not in word and word not in ('plain', 'pre', 'cfg', 'steps', 'off', 'floor', 'other', *MODES) and not word.startswith('own'):
            return f'{word} is no variant'
    return None
