/*
 * Mode verify, the engine's part. Keeps what the program asked for apart from what the plan made of
 * it. When a graph is ready to be launched, it stops all other work, and shim/verify does the rest.
 * Runs on program threads with the lock of the engine that launches; takes no other engine's lock.
 * In other modes engine->shadow is NULL and nothing here runs.
 */
#include <string.h>
#include <time.h>

#include "shim/base/clock.h"
#include "shim/base/hash.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/graph/relax.h"
#include "shim/stream/check_launch.h"
#include "shim/stream/room.h"
#include "shim/stream/streams.h"
#include "shim/verify/device.h"
#include "shim/verify/gate.h"
#include "shim/verify/report.h"

enum { IDLE_NS = 500000000, IDLE_SHORT_NS = 10000000, PATIENCE = 3, LOOK_NS = 50000 };

struct cus_shadow {
    uint32_t n;  /* deferred ops that were kept */
    bool broken; /* an op could not be kept */
    /* The values of the requested ops, one after the other; the variant's image before it was
     * patched. */
    uint8_t *requested, *before;
    uint64_t used, requested_room, before_room;
    bool built, patched; /* the variant was just built; some of its nodes are patched */
    uint64_t offset[CUS_SEGMENT_MAX];
    struct cus_verify_op ops[CUS_SEGMENT_MAX];
};

bool cus_check_on(void) {
    return cus_options()->mode == CUS_MODE_VERIFY;
}

struct cus_shadow *cus_check_new(void) {
    return cus_check_on() ? cus_mem_alloc(sizeof(struct cus_shadow)) : NULL;
}

void cus_check_free(struct cus_shadow *shadow) {
    if (!shadow)
        return;
    cus_mem_free(shadow->requested);
    cus_mem_free(shadow->before);
    cus_mem_free(shadow);
}

static bool have_room(uint8_t **memory, uint64_t *room, uint64_t kept, uint64_t wanted) {
    if (wanted <= *room)
        return true;
    uint64_t bytes = wanted + wanted / 2 + 4096;
    uint8_t *more = cus_mem_alloc(bytes);
    if (!more)
        return false;
    if (kept)
        memcpy(more, *memory, kept);
    cus_mem_free(*memory);
    *memory = more;
    *room = bytes;
    return true;
}

void cus_check_requested(struct cus_engine *engine, const struct cus_op *op) {
    struct cus_shadow *shadow = engine->shadow;
    if (engine->view.n == 1) {
        shadow->n = 0;
        shadow->used = 0;
        shadow->broken = false;
    }
    uint64_t bytes = cus_values_bytes(op->kind);
    if (shadow->n + 1 != engine->view.n || !have_room(&shadow->requested, &shadow->requested_room,
                                                      shadow->used, shadow->used + bytes)) {
        shadow->broken = true;
        return;
    }
    cus_op_store(op, (struct cus_values *)(void *)(shadow->requested + shadow->used));
    shadow->ops[shadow->n].kind = op->kind;
    shadow->offset[shadow->n++] = shadow->used;
    shadow->used += bytes;
}

void cus_check_ready(struct cus_engine *engine, const struct cus_variant *variant, bool built) {
    struct cus_shadow *shadow = engine->shadow;
    uint64_t bytes = engine->view.segment->image_bytes;
    shadow->built = built;
    shadow->patched = cus_plan_next_dirty(cus_engine_plan(engine), 0) < engine->view.segment->n;
    if (have_room(&shadow->before, &shadow->before_room, 0, bytes))
        memcpy(shadow->before, variant->image, bytes);
    else
        shadow->broken = true;
}

static uint64_t random_state = CUS_HASH_FACTOR; /* any thread; a lost update does no harm */
static uint32_t late;                           /* atomic: times that work did not end in time */

void cus_check_drop(void) {
    random_state = CUS_HASH_FACTOR;
    late = 0;
    cus_report_drop();
    cus_memory_drop();
}

/* Is this launch to be verified? The first one of each variant, then one in `verify_every`. */
static bool wanted(const struct cus_variant *variant) {
    uint64_t x = __atomic_load_n(&random_state, __ATOMIC_RELAXED);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    __atomic_store_n(&random_state, x, __ATOMIC_RELAXED);
    return !variant->verified || x % cus_options()->verify_every == 0;
}

/* A stream that captures must not be asked about its work. A wait for a context with such a stream
 * spoils the capture. */
static bool anybody_captures(void) {
    for (struct cus_context *context = cus_streams_contexts(); context; context = context->next)
        if (cus_program_captures(context))
            return true;
    return false;
}

/* Has the work of all known streams of this context ended? Work that does not end in time may wait
 * for something that the program does only after this call. */
static bool streams_idle(const struct cus_engine *engine) {
    uint64_t patience =
        __atomic_load_n(&late, __ATOMIC_RELAXED) < PATIENCE ? IDLE_NS : IDLE_SHORT_NS;
    uint64_t end = cus_clock_ns() + patience;
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        const struct cus_engine *other = cus_process.engines[i];
        if (other->context != engine->context || __atomic_load_n(&other->closed, __ATOMIC_ACQUIRE))
            continue;
        while (cus_process.driver->cuStreamQuery(other->handle) == CUDA_ERROR_NOT_READY) {
            if (cus_clock_ns() > end) {
                __atomic_add_fetch(&late, 1, __ATOMIC_RELAXED);
                return false;
            }
            nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
        }
    }
    return true;
}

/* Does nothing run in the context? Streams without an engine are included: per-thread streams of
 * other threads, and streams that no call named. */
static bool idle(const struct cus_engine *engine) {
    return streams_idle(engine) && cus_room_idle(engine->context) &&
           cus_process.driver->cuCtxSynchronize &&
           cus_process.driver->cuCtxSynchronize() == CUDA_SUCCESS;
}

static enum cus_proof verify(struct cus_engine *engine, struct cus_variant *variant,
                             CUresult *result) {
    struct cus_shadow *shadow = engine->shadow;
    const struct cus_segment *segment = engine->view.segment;
    for (uint32_t i = 0; i < segment->n; i++) {
        struct cus_verify_op *op = &shadow->ops[i];
        op->requested =
            (const struct cus_values *)(const void *)(shadow->requested + shadow->offset[i]);
        op->node = shadow->built ? op->requested : cus_image_op(shadow->before, segment, i);
    }
    const struct cus_verify job = {
        .driver = cus_process.driver,
        .context = engine->context->handle,
        .stream = engine->handle,
        .stream_id = engine->id,
        .exec = variant->exec,
        .ops = shadow->ops,
        .n = segment->n,
        .made = shadow->built     ? "built"
                : shadow->patched ? "patched"
                                  : "as it was",
    };
    return cus_verify(&job, result);
}

enum cus_proof cus_check_launch(struct cus_engine *engine, struct cus_variant *variant,
                                CUresult *result) {
    enum cus_proof proof = CUS_PROOF_NONE;
    cus_report_count(&(struct cus_verify_counts){.launches = 1});
    if (!wanted(variant)) {
        cus_report_skip(CUS_UNVERIFIED_CHANCE);
    } else if (engine->shadow->broken || engine->shadow->n != engine->view.segment->n) {
        cus_report_skip(CUS_UNVERIFIED_NO_MEMORY);
    } else if (!cus_gate_shut()) {
        cus_report_skip(CUS_UNVERIFIED_BUSY);
    } else {
        struct cus_relaxed relaxed = cus_relax(cus_process.driver);
        if (anybody_captures()) {
            cus_report_skip(CUS_UNVERIFIED_CAPTURE);
        } else if (!idle(engine)) {
            cus_report_skip(CUS_UNVERIFIED_RUNNING);
        } else {
            proof = verify(engine, variant, result);
            variant->verified = 1; /* or the launch cannot be verified */
        }
        cus_relax_end(cus_process.driver, relaxed);
        cus_gate_open();
    }
    return proof;
}

/* ---- for the hooks ---- */

static bool verifying(void) {
    return cus_check_on() && cus_process.driver;
}

void cus_engine_memory_made(uint64_t address) {
    if (verifying())
        cus_memory_made(cus_process.driver, address);
}

void cus_engine_memory_going(uint64_t address) {
    if (verifying())
        cus_memory_gone(address);
}

bool cus_engine_verify_end(uint64_t *verified, uint64_t *different) {
    struct cus_verify_counts counts;
    if (!verifying())
        return false;
    cus_report_end(cus_options()->verify_report);
    cus_report_get(&counts);
    *verified = counts.checked;
    *different = counts.differing;
    return true;
}
