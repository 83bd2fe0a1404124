"""transformers T5 (small size, random weights): encodes 64 tokens, then greedy decoding with a cache."""
from transformers import T5Config, T5ForConditionalGeneration
import transformers
import trial

transformers.logging.set_verbosity_error()
torch = trial.torch_begin()
TOKENS = 48
config = T5Config(vocab_size=5000, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, dropout_rate=0.0, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config).eval().to(trial.DEVICE)
ids = torch.randint(3, 5000, (3, 1, 64))


def step(i, h):
    with torch.no_grad():
        out = model.generate(input_ids=ids[i % 3].to(trial.DEVICE), attention_mask=torch.ones(1, 64, dtype=torch.long, device=trial.DEVICE), max_new_tokens=TOKENS,
                             min_new_tokens=TOKENS, do_sample=False, return_dict_in_generate=True, output_logits=True)
    h.add([out.sequences, torch.stack(out.logits)])


trial.run(step, 15, warmup=3, per_step=TOKENS)
