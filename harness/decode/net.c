/*
 * The model on the device, and one step of it: cuBLAS for the projections, the kernels of kernels/
 * for all else. One stream, one thread; the host waits only at the end of a step. Prints failures
 * on stderr; never ends the program.
 */
#include "harness/decode/net.h"

#include <stdlib.h>
#include <string.h>

#include "harness/decode/check.h"
#include "harness/decode/launch.h"

/* Takes the next count elements. */
static float *take(float **at, size_t count) {
    float *taken = *at;
    *at += count;
    return taken;
}

static int upload_weights(struct decode_net *net, const struct decode_model *model) {
    const struct decode_shape *s = &net->shape;
    size_t dim = s->dim, kv_dim = decode_kv_dim(s), hidden = s->hidden;
    size_t bytes = model->n_weights * sizeof(float);
    DECODE_CUDA(cudaMalloc((void **)&net->weights, bytes));
    /* On the stream of the steps: a plain cudaMemcpy of pageable memory may return before the
     * device has the data, and a non-blocking stream does not wait for it. */
    DECODE_CUDA(
        cudaMemcpyAsync(net->weights, model->weights, bytes, cudaMemcpyHostToDevice, net->stream));

    float *at = net->weights;
    net->embedding = take(&at, s->vocab * dim);
    for (int i = 0; i < s->layers; i++) {
        struct decode_layer *layer = &net->layers[i];
        layer->attn_norm = take(&at, dim);
        layer->wq = take(&at, dim * dim);
        layer->wk = take(&at, kv_dim * dim);
        layer->wv = take(&at, kv_dim * dim);
        layer->wo = take(&at, dim * dim);
        layer->mlp_norm = take(&at, dim);
        layer->gate = take(&at, hidden * dim);
        layer->up = take(&at, hidden * dim);
        layer->down = take(&at, dim * hidden);
    }
    net->final_norm = take(&at, dim);
    return 0;
}

static int make_caches(struct decode_net *net) {
    size_t each = (size_t)net->batch * net->max_len * decode_kv_dim(&net->shape);
    DECODE_CUDA(
        cudaMalloc((void **)&net->caches, 2 * net->shape.layers * each * sizeof(*net->caches)));
    float *at = net->caches;
    for (int i = 0; i < net->shape.layers; i++) {
        net->layers[i].k_cache = take(&at, each);
        net->layers[i].v_cache = take(&at, each);
    }
    return 0;
}

static int make_rows(struct decode_net *net) {
    size_t n = net->max_rows;
    const struct decode_shape *s = &net->shape;
    size_t dim = s->dim, kv_dim = decode_kv_dim(s);
    size_t partial = (size_t)s->heads * decode_attention_chunks(s->context) * (dim / s->heads + 2);
    size_t row = 4 * dim + 2 * kv_dim + partial + 2 * (size_t)s->hidden + s->vocab;
    DECODE_CUDA(cudaMalloc((void **)&net->rows, n * row * sizeof(*net->rows)));
    float *at = net->rows;
    net->x = take(&at, n * dim);
    net->y = take(&at, n * dim);
    net->q = take(&at, n * dim);
    net->attended = take(&at, n * dim);
    net->k = take(&at, n * kv_dim);
    net->v = take(&at, n * kv_dim);
    net->gate = take(&at, n * (size_t)s->hidden);
    net->up = take(&at, n * (size_t)s->hidden);
    net->partial = take(&at, n * partial);
    net->logits = take(&at, n * (size_t)s->vocab);

    size_t tokens = n * sizeof(int);
    DECODE_CUDA(cudaMalloc((void **)&net->tokens_dev, 3 * tokens));
    DECODE_CUDA(cudaMallocHost((void **)&net->tokens_in, 3 * tokens));
    DECODE_CUDA(cudaMallocHost((void **)&net->tokens_out, tokens));
    return 0;
}

int decode_net_create(struct decode_net *net, const struct decode_model *model, int batch,
                      int max_len, int max_rows, cudaStream_t stream) {
    memset(net, 0, sizeof(*net));
    net->shape = model->shape;
    net->batch = batch;
    net->max_len = max_len;
    net->max_rows = max_rows;
    net->stream = stream;
    net->layers = calloc((size_t)model->shape.layers, sizeof(*net->layers));
    if (!net->layers) {
        fputs("decode: out of memory\n", stderr);
        return -1;
    }
    if (upload_weights(net, model) || make_caches(net) || make_rows(net)) {
        return -1;
    }
    DECODE_CUBLAS(cublasCreate(&net->cublas));
    DECODE_CUBLAS(cublasSetStream(net->cublas, stream));
    return 0;
}

/* A step on the device. */
struct work {
    int rows;
    /* The position of every row, if seq is NULL. */
    int pos;
    /* On the device, [rows] each; both NULL if the batch is in step. */
    const int *seq, *at;
    /* The positions that the furthest row sees. */
    int n;
};

/* out [rows][n_out] = in [rows][n_in] times the transpose of weight [n_out][n_in]. cuBLAS counts
 * columns first, so it sees the transpose of each of the three. */
static int project(struct decode_net *net, int rows, float *out, const float *in,
                   const float *weight, int n_out, int n_in) {
    const float one = 1.0f, zero = 0.0f;
    DECODE_CUBLAS(cublasSgemm(net->cublas, CUBLAS_OP_T, CUBLAS_OP_N, n_out, rows, n_in, &one,
                              weight, n_in, in, n_in, &zero, out, n_out));
    return 0;
}

/* Puts the keys and values of a batch in step into the caches, and computes attention from
 * there. */
static int look_back(struct decode_net *net, const struct decode_layer *layer,
                     const struct work *work) {
    const struct decode_shape *s = &net->shape;
    int dim = s->dim, kv_dim = (int)decode_kv_dim(s), head_dim = dim / s->heads;
    /* Where this position goes, and where the oldest visible one is. */
    size_t newest = (size_t)work->pos * kv_dim, oldest = (size_t)(work->pos + 1 - work->n) * kv_dim;

    DECODE_CUDA(decode_launch_rope(net->stream, net->q, net->k, dim, kv_dim, s->heads, s->kv_heads,
                                   head_dim, work->pos, s->rope_base, work->rows));
    DECODE_CUDA(decode_launch_kv_append(net->stream, layer->k_cache + newest,
                                        layer->v_cache + newest, net->k, net->v, kv_dim,
                                        net->max_len, 0, work->rows));
    DECODE_CUDA(decode_launch_attention(net->stream, net->partial, net->q, layer->k_cache + oldest,
                                        layer->v_cache + oldest, work->n, s->heads, s->kv_heads,
                                        head_dim, net->max_len, work->rows));
    return 0;
}

/* The same for rows of any sequences at any positions. All rows are in the caches before
 * attention begins. */
static int look_back_rows(struct decode_net *net, const struct decode_layer *layer,
                          const struct work *work) {
    const struct decode_shape *s = &net->shape;
    int dim = s->dim, kv_dim = (int)decode_kv_dim(s), head_dim = dim / s->heads;
    DECODE_CUDA(decode_launch_rope_rows(net->stream, net->q, net->k, dim, kv_dim, s->heads,
                                        s->kv_heads, head_dim, work->at, s->rope_base, work->rows));
    DECODE_CUDA(decode_launch_kv_append_rows(net->stream, layer->k_cache, layer->v_cache, net->k,
                                             net->v, kv_dim, net->max_len, work->seq, work->at,
                                             work->rows));
    DECODE_CUDA(decode_launch_attention_rows(
        net->stream, net->partial, net->q, layer->k_cache, layer->v_cache, work->seq, work->at,
        s->context, work->n, s->heads, s->kv_heads, head_dim, net->max_len, work->rows));
    return 0;
}

/* Attention of each row over itself and the positions before it, as many as in training. Adds
 * the result to x. */
static int attend(struct decode_net *net, const struct decode_layer *layer,
                  const struct work *work) {
    const struct decode_shape *s = &net->shape;
    int dim = s->dim, kv_dim = (int)decode_kv_dim(s);
    DECODE_CUDA(decode_launch_rmsnorm(net->stream, net->y, net->x, layer->attn_norm, dim,
                                      s->norm_eps, work->rows));
    if (project(net, work->rows, net->q, net->y, layer->wq, dim, dim) ||
        project(net, work->rows, net->k, net->y, layer->wk, kv_dim, dim) ||
        project(net, work->rows, net->v, net->y, layer->wv, kv_dim, dim)) {
        return -1;
    }
    if (work->seq ? look_back_rows(net, layer, work) : look_back(net, layer, work)) {
        return -1;
    }
    DECODE_CUDA(decode_launch_combine(net->stream, net->attended, net->partial, work->n, s->heads,
                                      dim / s->heads, work->rows));
    if (project(net, work->rows, net->y, net->attended, layer->wo, dim, dim)) {
        return -1;
    }
    DECODE_CUDA(decode_launch_residual_add(net->stream, net->x, net->y, work->rows * dim));
    return 0;
}

/* The gated feed-forward part. Adds the result to x. */
static int feed_forward(struct decode_net *net, const struct decode_layer *layer, int rows) {
    const struct decode_shape *s = &net->shape;
    DECODE_CUDA(decode_launch_rmsnorm(net->stream, net->y, net->x, layer->mlp_norm, s->dim,
                                      s->norm_eps, rows));
    if (project(net, rows, net->gate, net->y, layer->gate, s->hidden, s->dim) ||
        project(net, rows, net->up, net->y, layer->up, s->hidden, s->dim)) {
        return -1;
    }
    DECODE_CUDA(
        decode_launch_silu_mul(net->stream, net->gate, net->gate, net->up, rows * s->hidden));
    if (project(net, rows, net->y, net->gate, layer->down, s->dim, s->hidden)) {
        return -1;
    }
    DECODE_CUDA(decode_launch_residual_add(net->stream, net->x, net->y, rows * s->dim));
    return 0;
}

/* Computes the logits of x, and chooses among them. */
static int choose(struct decode_net *net, const struct work *work, float temperature,
                  unsigned long long seed) {
    const struct decode_shape *s = &net->shape;
    DECODE_CUDA(decode_launch_rmsnorm(net->stream, net->y, net->x, net->final_norm, s->dim,
                                      s->norm_eps, work->rows));
    if (project(net, work->rows, net->logits, net->y, net->embedding, s->vocab, s->dim)) {
        return -1;
    }
    if (temperature > 0 && work->seq) {
        DECODE_CUDA(decode_launch_sample_rows(net->stream, net->tokens_dev, net->logits, s->vocab,
                                              temperature, seed, work->seq, work->at, work->rows));
    } else if (temperature > 0) {
        DECODE_CUDA(decode_launch_sample(net->stream, net->tokens_dev, net->logits, s->vocab,
                                         temperature, seed, work->pos, work->rows));
    } else {
        DECODE_CUDA(
            decode_launch_argmax(net->stream, net->tokens_dev, net->logits, s->vocab, work->rows));
    }
    return 0;
}

/* Copies the step's input to the device in one copy. */
static int send_up(struct decode_net *net, const struct decode_step *step, struct work *work) {
    size_t rows = step->n_rows, numbers = rows;
    int furthest = 0;
    for (size_t i = 0; i < rows; i++) {
        furthest = step->rows[i].pos > furthest ? step->rows[i].pos : furthest;
    }
    *work =
        (struct work){.rows = step->n_rows,
                      .pos = furthest,
                      .n = furthest + 1 < net->shape.context ? furthest + 1 : net->shape.context};
    if (!step->in_step) {
        for (size_t i = 0; i < rows; i++) {
            net->tokens_in[rows + i] = step->rows[i].seq;
            net->tokens_in[2 * rows + i] = step->rows[i].pos;
        }
        work->seq = net->tokens_dev + rows;
        work->at = net->tokens_dev + 2 * rows;
        numbers = 3 * rows;
    }
    DECODE_CUDA(cudaMemcpyAsync(net->tokens_dev, net->tokens_in, numbers * sizeof(int),
                                cudaMemcpyHostToDevice, net->stream));
    return 0;
}

int decode_net_step(struct decode_net *net, const struct decode_step *step, float temperature,
                    unsigned long long seed) {
    struct work work;
    if (send_up(net, step, &work)) {
        return -1;
    }
    DECODE_CUDA(decode_launch_embedding(net->stream, net->x, net->embedding, net->tokens_dev,
                                        net->shape.dim, step->kind == DECODE_KIND_DECODE,
                                        work.rows));
    for (int i = 0; i < net->shape.layers; i++) {
        if (attend(net, &net->layers[i], &work) || feed_forward(net, &net->layers[i], work.rows)) {
            return -1;
        }
    }
    if (choose(net, &work, temperature, seed)) {
        return -1;
    }
    DECODE_CUDA(cudaMemcpyAsync(net->tokens_out, net->tokens_dev, work.rows * sizeof(int),
                                cudaMemcpyDeviceToHost, net->stream));
    DECODE_CUDA(cudaStreamSynchronize(net->stream));
    return 0;
}

int decode_net_destroy(struct decode_net *net) {
    /* After a failed step every call fails in the same way, so the first error is enough. */
    cublasStatus_t cublas = net->cublas ? cublasDestroy(net->cublas) : CUBLAS_STATUS_SUCCESS;
    cudaError_t first = cudaSuccess;
    cudaError_t each[] = {
        cudaFreeHost(net->tokens_out), cudaFreeHost(net->tokens_in), cudaFree(net->tokens_dev),
        cudaFree(net->rows),           cudaFree(net->caches),        cudaFree(net->weights),
    };
    for (size_t i = 0; i < sizeof(each) / sizeof(*each) && first == cudaSuccess; i++) {
        first = each[i];
    }
    free(net->layers);
    memset(net, 0, sizeof(*net));
    return decode_cublas_failed(cublas, "freeing the cuBLAS handle") |
           decode_cuda_failed(first, "freeing memory");
}
