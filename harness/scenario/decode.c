/*
 * Loops like those of a decoder: the same launches in each step, scalars and one grid that grow, a
 * synchronisation, and a value that the host reads. Main thread.
 */
#include "harness/scenario/sc.h"

enum {
    DIM = 64,
    HEADS = 4,
    KV_HEADS = 2,
    HEAD_DIM = 16,
    KV_DIM = KV_HEADS * HEAD_DIM,
    MAX_LEN = 256,
    LAYERS = 2,
    START = 52 /* attention then needs a second chunk in the middle of the run */
};

struct layer {
    CUdeviceptr weight, k_cache, v_cache;
};

struct model {
    CUdeviceptr x, y, q, k, v, partial, token;
    struct layer layer[LAYERS];
};

static void go(struct sc *sc, enum sc_kernel kernel, unsigned gx, unsigned gy, unsigned gz,
               unsigned block, CUstream s, void **params) {
    OK(sc->cu.LaunchKernel(sc->fn[kernel], gx, gy, gz, block, 1, 1, 0, s, params, NULL));
}

static void rms(struct sc *sc, CUstream s, CUdeviceptr y, CUdeviceptr x, CUdeviceptr w) {
    int dim = DIM;
    float eps = 1e-5f;
    go(sc, SC_rmsnorm, 1, 1, 1, 128, s, (void *[]){&y, &x, &w, &dim, &eps});
}

static void attend(struct sc *sc, CUstream s, struct model *m, struct layer *l, int pos) {
    int q_stride = DIM, kv_stride = KV_DIM, heads = HEADS, kv_heads = KV_HEADS, hd = HEAD_DIM;
    int kv_dim = KV_DIM, max_len = MAX_LEN, n = pos + 1;
    int chunks = (n + CUS_ATTENTION_CHUNK - 1) / CUS_ATTENTION_CHUNK;
    float base = 10000.0f, scale = 0.25f;
    go(sc, SC_rope, (unsigned)((HEADS + KV_HEADS) * HEAD_DIM / 2 + 63) / 64, 1, 1, 64, s,
       (void *[]){&m->q, &m->k, &q_stride, &kv_stride, &heads, &kv_heads, &hd, &pos, &base});
    go(sc, SC_kv_append, 1, 1, 1, 128, s,
       (void *[]){&l->k_cache, &l->v_cache, &m->k, &m->v, &kv_stride, &kv_stride, &kv_dim, &max_len,
                  &pos});
    go(sc, SC_attention_decode, HEADS, (unsigned)chunks, 1, 64, s,
       (void *[]){&m->partial, &m->q, &l->k_cache, &l->v_cache, &q_stride, &n, &heads, &kv_heads,
                  &hd, &max_len, &scale});
    go(sc, SC_attention_combine, HEADS, 1, 1, 64, s,
       (void *[]){&m->y, &m->partial, &q_stride, &chunks, &heads, &hd});
}

static void layer(struct sc *sc, CUstream s, struct model *m, struct layer *l, int pos) {
    int dim = DIM;
    rms(sc, s, m->y, m->x, l->weight);
    sc_copy(sc, s, m->q, m->y, DIM);
    sc_copy(sc, s, m->k, m->y, KV_DIM);
    sc_copy(sc, s, m->v, m->y + KV_DIM * 4, KV_DIM);
    attend(sc, s, m, l, pos);
    go(sc, SC_residual_add, 1, 1, 1, 128, s, (void *[]){&m->x, &m->y, &dim});
    rms(sc, s, m->y, m->x, l->weight);
    go(sc, SC_silu_mul, 1, 1, 1, 128, s, (void *[]){&m->y, &m->y, &m->y, &dim});
    go(sc, SC_residual_add, 1, 1, 1, 128, s, (void *[]){&m->x, &m->y, &dim});
}

static void model_make(struct sc *sc, struct model *m) {
    float host[DIM];
    m->x = sc_device(sc, "x", DIM);
    m->y = sc_device(sc, "y", DIM);
    m->q = sc_device(sc, "q", DIM);
    m->k = sc_device(sc, "k", KV_DIM);
    m->v = sc_device(sc, "v", KV_DIM);
    m->partial = sc_device(sc, "partial", HEADS * 4 * (HEAD_DIM + 2));
    m->token = sc_device(sc, "token", 1);
    for (int l = 0; l < LAYERS; l++) {
        m->layer[l].weight = sc_device(sc, "weight", DIM);
        m->layer[l].k_cache = sc_device(sc, "k_cache", MAX_LEN * KV_DIM);
        m->layer[l].v_cache = sc_device(sc, "v_cache", MAX_LEN * KV_DIM);
        for (int d = 0; d < DIM; d++) {
            host[d] = 0.5f + (float)sc_random(sc, 1000) / 1000.0f;
        }
        OK(sc->cu.MemcpyHtoD(m->layer[l].weight, host, sizeof(host)));
    }
    for (int d = 0; d < DIM; d++) {
        host[d] = (float)sc_random(sc, 1000) / 500.0f - 1.0f;
    }
    OK(sc->cu.MemcpyHtoD(m->x, host, sizeof(host)));
    /* A copy from pageable memory returns when its source was read, and a non-blocking stream
     * does not wait for the copy. */
    OK(sc->cu.CtxSynchronize());
}

int sc_run_decode_loop(struct sc *sc) {
    struct model m;
    CUstream s;
    sc_start(sc);
    model_make(sc, &m);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    int *token = sc_pinned(sc, "token_host", sizeof(*token));
    uint64_t said = 14695981039346656037u;
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        int vocab = DIM, stride = DIM;
        for (int l = 0; l < LAYERS; l++) {
            layer(sc, s, &m, &m.layer[l], START + (int)step % (MAX_LEN - START));
        }
        go(sc, SC_argmax, 1, 1, 1, 128, s, (void *[]){&m.token, &m.x, &vocab, &stride});
        OK(sc->cu.MemcpyDtoHAsync(token, m.token, sizeof(*token), s));
        OK(sc->cu.StreamSynchronize(s));
        said = sc_hash(said, token, sizeof(*token));
        /* The token sets a scalar of the next step, as an embedding does. */
        sc_axpy(sc, s, m.x, m.layer[0].weight, 0.01f * (float)(*token + 1), DIM);
    }
    sc_say(sc, "tokens: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}

/* The same loop on the legacy stream. A blocking copy is its only synchronisation, as in simple
 * programs. */
int sc_run_decode_legacy(struct sc *sc) {
    struct model m;
    sc_start(sc);
    model_make(sc, &m);
    uint64_t said = 14695981039346656037u;
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        int vocab = DIM, stride = DIM, token = -1;
        for (int l = 0; l < LAYERS; l++) {
            layer(sc, NULL, &m, &m.layer[l], START + (int)step % (MAX_LEN - START));
        }
        go(sc, SC_argmax, 1, 1, 1, 128, NULL, (void *[]){&m.token, &m.x, &vocab, &stride});
        OK(sc->cu.MemcpyDtoH(&token, m.token, sizeof(token)));
        said = sc_hash(said, &token, sizeof(token));
        sc_axpy(sc, NULL, m.x, m.layer[0].weight, 0.01f * (float)(token + 1), DIM);
    }
    sc_say(sc, "tokens: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}
