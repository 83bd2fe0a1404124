/*
 * Reads the weights file: a header, then each matrix row by row in half precision, converted to
 * single precision. The code trusts nothing in the file and bounds all sizes before it multiplies
 * or allocates. One thread, no locks, no CUDA. Returns the reason of a failure and never prints.
 */
#include "harness/decode/model.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_BYTES = 256,
    VERSION = 1,
    /* Where the vocabulary begins in the header, after the numbers. */
    VOCABULARY_AT = 48,
    VOCAB_MAX = HEADER_BYTES - VOCABULARY_AT,
    /* attention_decode keeps a query of at most this size in shared memory. */
    HEAD_DIM_MAX = 256,
};

static const char magic[8] = "CHARLLM";

static int fail(char *why, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(char *why, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return -1;
}

/* The file is little-endian on every machine. */
static uint32_t read_u32(const unsigned char *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static float read_float(const unsigned char *p) {
    uint32_t bits = read_u32(p);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

float decode_half_to_float(uint16_t half) {
    uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    float value;
    if (exponent == 31) {
        value = fraction ? NAN : INFINITY;
    } else if (exponent == 0) {
        value = ldexpf((float)fraction, -24);
    } else {
        value = ldexpf((float)(fraction | 1024), (int)exponent - 25);
    }
    return half & 0x8000 ? -value : value;
}

size_t decode_kv_dim(const struct decode_shape *shape) {
    return (size_t)shape->dim / shape->heads * shape->kv_heads;
}

size_t decode_count_weights(const struct decode_shape *shape) {
    size_t dim = shape->dim, kv_dim = decode_kv_dim(shape);
    size_t layer = 2 * dim + 2 * dim * dim + 2 * kv_dim * dim + 3 * dim * shape->hidden;
    return shape->vocab * dim + shape->layers * layer + dim;
}

static int read_size(const unsigned char *header, size_t at, uint32_t max, const char *name,
                     int *value, char *why, size_t size) {
    uint32_t read = read_u32(header + at);
    if (read < 1 || read > max) {
        return fail(why, size, "the header says %s = %u, which is not in 1..%u", name, read, max);
    }
    *value = (int)read;
    return 0;
}

static int read_shape(const unsigned char *h, struct decode_shape *s, char *why, size_t size) {
    if (read_size(h, 12, 8192, "dim", &s->dim, why, size) ||
        read_size(h, 16, 256, "layers", &s->layers, why, size) ||
        read_size(h, 20, 1024, "heads", &s->heads, why, size) ||
        read_size(h, 24, 1024, "kv_heads", &s->kv_heads, why, size) ||
        read_size(h, 28, 65536, "hidden", &s->hidden, why, size) ||
        read_size(h, 32, VOCAB_MAX, "vocab", &s->vocab, why, size) ||
        read_size(h, 36, 1 << 20, "context", &s->context, why, size)) {
        return -1;
    }
    s->rope_base = read_float(h + 40);
    s->norm_eps = read_float(h + 44);
    if (!(s->rope_base > 0 && s->rope_base <= 1e9f) || !(s->norm_eps >= 0 && s->norm_eps <= 1)) {
        return fail(why, size, "the header's rope_base or norm_eps makes no sense");
    }
    if (s->dim % s->heads || s->heads % s->kv_heads || s->dim / s->heads % 2 ||
        s->dim / s->heads > HEAD_DIM_MAX) {
        return fail(why, size, "dim %d, heads %d and kv_heads %d do not go together", s->dim,
                    s->heads, s->kv_heads);
    }
    return 0;
}

static int read_vocabulary(const unsigned char *header, struct decode_model *model, char *why,
                           size_t size) {
    for (int byte = 0; byte < 256; byte++) {
        model->token_of[byte] = -1;
    }
    for (int token = 0; token < model->shape.vocab; token++) {
        unsigned char byte = header[VOCABULARY_AT + token];
        if (model->token_of[byte] >= 0) {
            return fail(why, size, "the vocabulary has byte %d twice", byte);
        }
        model->byte_of[token] = byte;
        model->token_of[byte] = token;
    }
    return 0;
}

static int read_weights(FILE *file, struct decode_model *model, char *why, size_t size) {
    size_t count = decode_count_weights(&model->shape);
    unsigned char *halves = malloc(count * 2 + 1);
    model->weights = malloc(count * sizeof(float));
    if (!halves || !model->weights) {
        free(halves);
        return fail(why, size, "no memory for %zu weights", count);
    }
    /* One byte more than expected, to detect a file that is too long. */
    size_t bytes = fread(halves, 1, count * 2 + 1, file);
    int status = 0;
    if (bytes != count * 2) {
        status = fail(why, size, "the file should have %zu bytes and is too %s",
                      (size_t)HEADER_BYTES + count * 2, bytes < count * 2 ? "short" : "long");
    }
    for (size_t i = 0; status == 0 && i < count; i++) {
        model->weights[i] =
            decode_half_to_float((uint16_t)(halves[2 * i] | halves[2 * i + 1] << 8));
        if (!isfinite(model->weights[i])) {
            status = fail(why, size, "weight %zu is not a finite number", i);
        }
    }
    free(halves);
    model->n_weights = count;
    return status;
}

static int read_all(FILE *file, struct decode_model *model, char *why, size_t size) {
    unsigned char header[HEADER_BYTES];
    if (fread(header, 1, sizeof(header), file) != sizeof(header) ||
        memcmp(header, magic, sizeof(magic)) != 0) {
        return fail(why, size, "this is no weights file of a character model");
    }
    if (read_u32(header + 8) != VERSION) {
        return fail(why, size, "format version %u is not known here", read_u32(header + 8));
    }
    if (read_shape(header, &model->shape, why, size) || read_vocabulary(header, model, why, size)) {
        return -1;
    }
    return read_weights(file, model, why, size);
}

int decode_model_read(const char *path, struct decode_model *model, char *why, size_t why_size) {
    memset(model, 0, sizeof(*model));
    why[0] = '\0';
    FILE *file = fopen(path, "rb");
    if (!file) {
        return fail(why, why_size, "%s", strerror(errno));
    }
    int status = read_all(file, model, why, why_size);
    fclose(file);
    if (status) {
        decode_model_free(model);
    }
    return status;
}

void decode_model_free(struct decode_model *model) {
    free(model->weights);
    memset(model, 0, sizeof(*model));
}
