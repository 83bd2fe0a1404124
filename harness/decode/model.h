/*
 * The weights file of a character-level Llama-style model, read into memory. README.md has the
 * format. No CUDA here.
 */
#ifndef HARNESS_DECODE_MODEL_H
#define HARNESS_DECODE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes of the model; the head size is dim / heads. The reader checks all against each other. */
struct decode_shape {
    int dim, layers, heads, kv_heads, hidden, vocab;
    /* The most positions that attention reads, as in training. */
    int context;
    float rope_base, norm_eps;
};

struct decode_model {
    struct decode_shape shape;
    /* The byte that each token writes, and the reverse (-1: no token writes the byte). */
    unsigned char byte_of[256];
    int token_of[256];
    /* All weights in the order of the file, owned by this struct. */
    float *weights;
    size_t n_weights;
};

/* The number of weights of each kind of matrix, in elements. */
size_t decode_kv_dim(const struct decode_shape *shape);
size_t decode_count_weights(const struct decode_shape *shape);

/* Half precision to single; every half has an exact single. */
float decode_half_to_float(uint16_t half);

/* Reads and checks a weights file. Returns 0, or -1 with a terminated sentence in `why`; the
 * model is then empty. */
int decode_model_read(const char *path, struct decode_model *model, char *why, size_t why_size);

/* Frees the weights; the model may be empty. */
void decode_model_free(struct decode_model *model);

#ifdef __cplusplus
}
#endif

#endif
