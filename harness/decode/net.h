/* The model on the device: weights, key-value caches, and one step. */
#ifndef HARNESS_DECODE_NET_H
#define HARNESS_DECODE_NET_H

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "harness/decode/model.h"
#include "harness/decode/schedule.h"

/* The matrices of a layer, on the device; each is [out][in]. */
struct decode_layer {
    const float *attn_norm, *wq, *wk, *wv, *wo, *mlp_norm, *gate, *up, *down;
    /* [batch][max_len][kv_dim] */
    float *k_cache, *v_cache;
};

struct decode_net {
    struct decode_shape shape;
    int batch, max_len, max_rows;
    cudaStream_t stream;
    cublasHandle_t cublas;

    /* Device memory of this struct: all weights, caches and intermediate rows. */
    float *weights, *caches, *rows;
    /* The tokens of a step. If the batch is out of step, each row's sequence and then each row's
     * position follow. */
    int *tokens_dev;
    /* Pinned: the input of the next step, with room for sequences and positions, and the tokens
     * that the last step chose. */
    int *tokens_in, *tokens_out;

    /* Addresses inside weights and rows. */
    const float *embedding, *final_norm;
    struct decode_layer *layers;
    float *x, *y, *q, *k, *v, *partial, *attended, *gate, *up, *logits;
};

/* Puts the model on the current device, with room for max_len positions of batch sequences and
 * for steps of max_rows rows. The steps run on stream, which the caller keeps. The model must
 * live until the first step is done. Returns 0, or -1 with the reason on stderr;
 * decode_net_destroy cleans up in both cases. */
int decode_net_create(struct decode_net *net, const struct decode_model *model, int batch,
                      int max_len, int max_rows, cudaStream_t stream);

/* Runs one step. It reads tokens_in, one token for each row, writes each row's next token to
 * tokens_out, and waits. The positions that a row reads must be in earlier steps or this one.
 * Temperature 0 takes the likeliest token. Returns 0, or -1 with the reason on stderr. */
int decode_net_step(struct decode_net *net, const struct decode_step *step, float temperature,
                    unsigned long long seed);

/* Frees everything that decode_net_create made. Returns 0, or -1 with the reason on stderr. */
int decode_net_destroy(struct decode_net *net);

#endif
