"""llama.cpp through its C interface: greedy decoding with one sequence, and with eight at once. The model file of random f16 weights is written first.
TRIAL_FLAG: llama (default; 12 layers, two heads to one of keys and values) or gpt2 (12 layers). A step is a token of each sequence, the first one is the prompt.
GGML_CUDA_DISABLE_GRAPHS=1: without ggml's own graphs."""
import os
import sys
import tempfile

import numpy
import llama_cpp as lib
import trial

KIND = trial.FLAG or 'llama'
LAYERS, WIDTH, HEADS, WORDS, CONTEXT = 12, 768, 12, 4000, 1024
PROMPT, TOKENS = 32, 96
HOME = os.path.join(os.environ.get('TRIAL_CACHE', os.path.join(tempfile.gettempdir(), 'engines-cache')), 'llamacpp')
MODEL = os.path.join(HOME, KIND + '.gguf')


def shapes():
    """Names and shapes of the tensors, as numpy has them: the other way round than ggml."""
    kv, ffn = (6 * 64, 2048) if KIND == 'llama' else (WIDTH, 4 * WIDTH)
    found = {'token_embd.weight': (WORDS, WIDTH), 'output_norm.weight': (WIDTH,), 'output.weight': (WORDS, WIDTH)}
    if KIND == 'gpt2':
        found.update({'position_embd.weight': (CONTEXT, WIDTH), 'output_norm.bias': (WIDTH,)})
    for i in range(LAYERS):
        if KIND == 'llama':
            layer = {'attn_norm.weight': (WIDTH,), 'attn_q.weight': (WIDTH, WIDTH), 'attn_k.weight': (kv, WIDTH), 'attn_v.weight': (kv, WIDTH),
                     'attn_output.weight': (WIDTH, WIDTH), 'ffn_norm.weight': (WIDTH,), 'ffn_gate.weight': (ffn, WIDTH), 'ffn_up.weight': (ffn, WIDTH),
                     'ffn_down.weight': (WIDTH, ffn)}
        else:
            layer = {'attn_norm.weight': (WIDTH,), 'attn_norm.bias': (WIDTH,), 'attn_qkv.weight': (3 * WIDTH, WIDTH), 'attn_qkv.bias': (3 * WIDTH,),
                     'attn_output.weight': (WIDTH, WIDTH), 'attn_output.bias': (WIDTH,), 'ffn_norm.weight': (WIDTH,), 'ffn_norm.bias': (WIDTH,),
                     'ffn_up.weight': (ffn, WIDTH), 'ffn_up.bias': (ffn,), 'ffn_down.weight': (WIDTH, ffn), 'ffn_down.bias': (WIDTH,)}
        found.update({'blk.%d.%s' % (i, name): shape for name, shape in layer.items()})
    return found, ffn


def make():
    import gguf
    os.makedirs(HOME, exist_ok=True)
    tensors, ffn = shapes()
    writer = gguf.GGUFWriter(MODEL + '.part', KIND)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(HEADS)
    writer.add_vocab_size(WORDS)
    writer.add_tokenizer_model('no_vocab')
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    if KIND == 'llama':
        writer.add_head_count_kv(HEADS // 2)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_dimension_count(WIDTH // HEADS)
    else:
        writer.add_layer_norm_eps(1e-5)
    rng = numpy.random.default_rng(5)
    for name, shape in tensors.items():
        values = rng.standard_normal(shape, dtype=numpy.float32)
        if len(shape) == 1:
            values = numpy.ones(shape, numpy.float32) if name.endswith('norm.weight') else 0.02 * values
        else:
            values = (0.05 * values).astype(numpy.float16)
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(MODEL + '.part', MODEL)


def fill(batch, tokens, at, last):
    """tokens[s] of each sequence, from position `at` on; the logits of the last one of each are wanted."""
    n = 0
    for s, mine in enumerate(tokens):
        for k, token in enumerate(mine):
            batch.token[n], batch.pos[n], batch.n_seq_id[n], batch.seq_id[n][0] = int(token), at + k, 1, s
            batch.logits[n] = k == len(mine) - 1
            if batch.logits[n]:
                last[s] = n
            n += 1
    batch.n_tokens = n


@lib.llama_log_callback
def say(level, text, _):
    if level >= 4:   # errors
        sys.stderr.write(text.decode(errors='replace'))


def main():
    trial.begin()
    if not os.path.exists(MODEL):
        make()
    lib.llama_log_set(say, None)
    lib.llama_backend_init()
    asked = lib.llama_model_default_params()
    asked.n_gpu_layers = 0 if trial.CPU else 99
    model = lib.llama_model_load_from_file(MODEL.encode(), asked)
    if not model:
        sys.exit('the model was not loaded')
    for count in (1, 8):
        wanted = lib.llama_context_default_params()
        wanted.n_ctx, wanted.n_batch, wanted.n_ubatch, wanted.n_seq_max, wanted.n_threads, wanted.n_threads_batch = 2048, 512, 512, count, 4, 4
        context = lib.llama_init_from_model(model, wanted)
        if not context:
            sys.exit('there is no context')
        batch, last = lib.llama_batch_init(512, 0, 1), [0] * count
        state = {}

        def step(i, h):
            k = i % TOKENS
            if k == 0:
                lib.llama_memory_clear(lib.llama_get_memory(context), True)
                state['next'], state['at'] = [[(7 * i + 31 * j + 11 * s) % 3900 + 3 for j in range(PROMPT)] for s in range(count)], 0
            fill(batch, state['next'], state['at'], last)
            rc = lib.llama_decode(context, batch)
            if rc:
                sys.exit('llama_decode: %d' % rc)
            state['at'] += len(state['next'][0])
            rows = [numpy.ctypeslib.as_array(lib.llama_get_logits_ith(context, n), (WORDS,)) for n in last]
            state['next'] = [[row.argmax()] for row in rows]
            h.add([[int(row.argmax()), row.tobytes()] for row in rows])

        trial.run(step, 4 * TOKENS, warmup=TOKENS, sync=lambda: None, part='b%d' % count,
                  extra=lambda: {'flash': wanted.flash_attn_type, 'graphs': 'GGML_CUDA_DISABLE_GRAPHS' not in os.environ})
        lib.llama_batch_free(batch)
        lib.llama_free(context)


if __name__ == '__main__':
    main()
