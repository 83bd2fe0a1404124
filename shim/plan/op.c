/*
 * Ops as plain data: comparing, storing, hashing, and which shapes a node may get.
 * Called on the thread that offers an op, under the lock of the op's engine. Pure: no CUDA, clock
 * or allocation.
 */
#include "shim/plan/op.h"

#include <string.h>

#include "shim/base/hash.h"
#include "shim/base/hazard.h"

/* The limits of every GPU: CUDA Programming Guide, table of compute capabilities. */
enum { GRID_YZ_MAX = 65535, GRID_X_MAX = 2147483647, BLOCK_XY_MAX = 1024, BLOCK_Z_MAX = 64 };
/* Where grid, block and shared memory stand in `dims`. */
enum { GRID = 0, BLOCK = 3, SHARED = 6 };

/* Multiplies to 128 bits and folds the halves; the constants are odd numbers with well spread
 * bits. */
static uint64_t mix(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)(a ^ CUS_HASH_FACTOR) * (b ^ CUS_HASH_SECOND);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The factors by which each op multiplies the two halves of a signature. */
#define SIGNATURE_LO 0xd1342543de82ef95u
#define SIGNATURE_HI 0xaf251af3b0f025b5u

static bool grid_in_limits(const struct cus_kind *kind, const uint32_t *grid) {
    if (grid[0] == 0 || grid[0] > GRID_X_MAX || grid[1] == 0 || grid[1] > GRID_YZ_MAX ||
        grid[2] == 0 || grid[2] > GRID_YZ_MAX)
        return false;
    for (int i = 0; i < 3; i++)
        if (kind->cluster[i] > 1 && grid[i] % kind->cluster[i] != 0)
            return false;
    return true;
}

static bool block_in_limits(const struct cus_kind *kind, const uint32_t *block) {
    return block[0] && block[0] <= BLOCK_XY_MAX && block[1] && block[1] <= BLOCK_XY_MAX &&
           block[2] && block[2] <= BLOCK_Z_MAX &&
           (uint64_t)block[0] * block[1] * block[2] <= kind->threads_max;
}

/* Are the words [from, to) of a shape that ran these? */
static bool ran_with(const uint32_t *shape, const uint32_t *dims, unsigned from, unsigned to) {
    while (from < to && __atomic_load_n(&shape[from], __ATOMIC_RELAXED) == dims[from])
        from++;
    return from == to;
}

/* Would the driver accept a shape that did not run, with this grid? A function that ran with two
 * blocks was not compiled for one block alone (.reqntid). */
static bool shape_in_limits(const struct cus_kind *kind, const uint32_t *dims, unsigned n) {
    if (dims[SHARED] >= __atomic_load_n(&kind->shared_end, __ATOMIC_ACQUIRE))
        return false;
    bool block_ran = false, second_block = false;
    for (unsigned i = 0; i < n; i++) {
        block_ran |= ran_with(kind->shapes[i], dims, BLOCK, SHARED);
        second_block |= !ran_with(kind->shapes[i], kind->shapes[0], BLOCK, SHARED);
    }
    return block_ran || (second_block && block_in_limits(kind, &dims[BLOCK]));
}

bool cus_kind_allows_else(const struct cus_kind *kind, const uint32_t dims[CUS_DIMS]) {
    if (!grid_in_limits(kind, dims))
        return false;
    /* The grid of a shape that ran may be new. For a cooperative kernel even the grid must have
     * run, since it must fit the device. */
    unsigned from = CUS_HAZARD(A11) && kind->cooperative ? GRID : BLOCK;
    unsigned n = __atomic_load_n(&kind->n_shapes, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < n; i++)
        if (ran_with(kind->shapes[i], dims, from, CUS_DIMS))
            return true;
    return shape_in_limits(kind, dims, n);
}

void cus_kind_ran(struct cus_kind *kind, const uint32_t dims[CUS_DIMS]) {
    unsigned slot = kind->n_shapes;
    if (kind->type != CUS_OP_LAUNCH || slot == CUS_KIND_SHAPES || cus_kind_allows(kind, dims))
        return;
    for (unsigned i = 0; i < CUS_DIMS; i++)
        __atomic_store_n(&kind->shapes[slot][i], dims[i], __ATOMIC_RELAXED);
    __atomic_store_n(&kind->n_shapes, slot + 1, __ATOMIC_RELEASE);
}

bool cus_flat_same(const struct cus_kind *kind, const uint8_t *flat,
                   const struct cus_values *values) {
    const struct cus_layout *layout = kind->layout;
    if (memcmp(flat, values->params, kind->param_bytes) == 0)
        return true;
    for (uint32_t i = 0; layout && i < layout->n; i++) {
        struct cus_argument argument = layout->arguments[i];
        if (!cus_bytes_same(flat + argument.offset, values->params + argument.offset,
                            argument.size))
            return false;
    }
    return layout != NULL;
}

bool cus_op_same_params(const struct cus_op *op, const struct cus_values *values) {
    return op->params ? cus_arguments_same(op->kind->layout, op->params, values->params)
                      : cus_flat_same(op->kind, op->flat, values);
}

void cus_launch_store(const struct cus_kind *kind, const uint32_t *dims, void *const *params,
                      struct cus_values *values) {
    const struct cus_layout *layout = kind->layout;
    memcpy(values->dims, dims, sizeof values->dims);
    values->unknown = 0;
    for (uint32_t i = 0, end = 0; i < layout->n; i++) {
        struct cus_argument argument = layout->arguments[i];
        static const uint8_t zeroes[8];
        if (argument.offset - end <= sizeof zeroes)
            cus_bytes_copy(values->params + end, zeroes, argument.offset - end);
        else if (argument.offset > end)
            memset(values->params + end, 0, argument.offset - end);
        cus_bytes_copy(values->params + argument.offset, params[i], argument.size);
        end = argument.offset + argument.size;
    }
}

void cus_op_store(const struct cus_op *op, struct cus_values *values) {
    if (op->params) {
        cus_launch_store(op->kind, op->dims, op->params, values);
        return;
    }
    memcpy(values->dims, op->dims, sizeof values->dims);
    values->unknown = 0;
    if (op->kind->param_bytes)
        memcpy(values->params, op->flat, op->kind->param_bytes);
}

static uint64_t hash_bytes(uint64_t hash, const void *data, uint32_t bytes) {
    const uint8_t *at = data;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = mix(hash, word);
    }
    if (bytes) {
        uint64_t word = 0;
        memcpy(&word, at, bytes);
        hash = mix(hash, word ^ ((uint64_t)bytes << 56));
    }
    return hash;
}

/* Most arguments are 8 or 4 bytes long. */
static uint64_t hash_argument(uint64_t hash, const void *at, uint32_t size) {
    uint32_t half;
    if (size == 8)
        return mix(hash, cus_word_at(at));
    if (size != 4)
        return hash_bytes(hash, at, size);
    memcpy(&half, at, 4);
    return mix(hash, half ^ (uint64_t)4 << 56);
}

uint64_t cus_op_hash(const struct cus_op *op) {
    const struct cus_layout *layout = op->kind->layout;
    uint64_t hash = hash_bytes(op->kind->id, op->dims, sizeof op->dims);
    if (!layout)
        return hash_bytes(hash, op->flat, op->kind->param_bytes);
    for (uint32_t i = 0; i < layout->n; i++)
        hash =
            hash_argument(hash, op->params ? op->params[i] : op->flat + layout->arguments[i].offset,
                          layout->arguments[i].size);
    return hash;
}

uint64_t cus_values_hash(const struct cus_kind *kind, const struct cus_values *values) {
    return hash_bytes(hash_bytes(kind->id, values->dims, sizeof values->dims), values->params,
                      kind->param_bytes);
}

struct cus_signature cus_signature_add(struct cus_signature sig, const struct cus_kind *kind,
                                       const uint32_t dims[CUS_DIMS]) {
    uint64_t words[4] = {dims[0] | (uint64_t)dims[1] << 32, dims[2] | (uint64_t)dims[3] << 32,
                         dims[4] | (uint64_t)dims[5] << 32, dims[6] | (uint64_t)kind->id << 32};
    sig.lo = sig.lo * SIGNATURE_LO + mix(mix(words[2], words[0]), mix(words[1], words[3]));
    sig.hi = sig.hi * SIGNATURE_HI +
             mix(mix(0x632be59bd9b4e019u, words[2] ^ words[0]), mix(words[3], words[1]));
    return sig;
}

struct cus_signature cus_signature_power(uint32_t n) {
    struct cus_signature power = {1, 1};
    for (; n; n--) {
        power.lo *= SIGNATURE_LO;
        power.hi *= SIGNATURE_HI;
    }
    return power;
}
