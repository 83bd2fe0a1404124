/*
 * Recognises that ops repeat, by samples of their hashes.
 * shim/stream calls it on program threads without a lock while a stream is demoted. Shared fields
 * are atomic, and an update may be lost. Allocates at the first start. Never calls the driver.
 */
#include "shim/plan/repeat.h"

#include <stddef.h>

#include "shim/base/mem.h"

/* One in AGAIN samples of a window must have come before. If a turn has 8000 samples, which is 2
 * million ops, about four in ten are still in the table. If nothing repeats, one sample in 65536
 * seems to have come before. */
enum { AGAIN = 4 };

#define SAMPLED (UINT64_MAX / CUS_REPEAT_SAMPLE) /* hashes below it are samples */

static struct cus_repeat_samples *history_of(const struct cus_repeat *repeat) {
    return __atomic_load_n(&repeat->history, __ATOMIC_ACQUIRE);
}

bool cus_repeat_start(struct cus_repeat *repeat) {
    struct cus_repeat_samples *history = repeat->history;
    if (!history) {
        history = cus_mem_grow(sizeof *history);
        __atomic_store_n(&repeat->history, history, __ATOMIC_RELEASE);
    }
    if (!history)
        return false;
    for (uint32_t i = 0; i < CUS_REPEAT_SLOTS; i++)
        __atomic_store_n(&history->slots[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&history->least, UINT64_MAX, __ATOMIC_RELAXED);
    __atomic_store_n(&history->as, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->gram, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->bar, UINT64_MAX, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->ops, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->samples, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->again, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->apart, 0, __ATOMIC_RELAXED);
    return true;
}

void cus_repeat_free(struct cus_repeat *repeat) {
    cus_mem_shrink(repeat->history);
    repeat->history = NULL;
}

static void sample(struct cus_repeat *repeat, struct cus_repeat_samples *history, uint64_t gram) {
    gram = cus_hash_second(gram);
    uint32_t *slot = &history->slots[(gram >> 32) % CUS_REPEAT_SLOTS];
    uint32_t window = __atomic_load_n(&repeat->windows, __ATOMIC_RELAXED);
    uint32_t tag = (uint32_t)gram << 16 | 1u << 16, was = __atomic_load_n(slot, __ATOMIC_RELAXED);
    bool before = (was ^ tag) >> 16 == 0;
    __atomic_store_n(slot, tag | (uint16_t)window, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->samples, __atomic_load_n(&repeat->samples, __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
    if (!before)
        return;
    __atomic_store_n(&repeat->again, __atomic_load_n(&repeat->again, __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->apart,
                     __atomic_load_n(&repeat->apart, __ATOMIC_RELAXED) + (uint16_t)(window - was),
                     __ATOMIC_RELAXED);
}

void cus_repeat_look(struct cus_repeat *repeat, uint64_t gram) {
    struct cus_repeat_samples *history = history_of(repeat);
    if (!history)
        return;
    if (gram < __atomic_load_n(&history->least, __ATOMIC_RELAXED)) {
        __atomic_store_n(&history->least, gram, __ATOMIC_RELAXED);
        __atomic_store_n(&repeat->bar, gram > SAMPLED ? gram : SAMPLED, __ATOMIC_RELAXED);
    }
    if (gram < SAMPLED)
        sample(repeat, history, gram);
}

/* Notes the least hash of a window that has ended. */
static void note_least(struct cus_repeat *repeat, struct cus_repeat_samples *history) {
    uint64_t before = __atomic_load_n(&history->as, __ATOMIC_RELAXED);
    __atomic_store_n(&history->as_before, before, __ATOMIC_RELAXED);
    __atomic_store_n(&history->as, __atomic_load_n(&history->least, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&history->least, UINT64_MAX, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->bar, UINT64_MAX, __ATOMIC_RELAXED);
}

void cus_repeat_passed(struct cus_repeat *repeat, uint64_t ops) {
    uint32_t windows = __atomic_load_n(&repeat->windows, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->windows, windows + (uint32_t)(ops / CUS_REPEAT_WINDOW),
                     __ATOMIC_RELAXED);
}

bool cus_repeat_decide(struct cus_repeat *repeat) {
    struct cus_repeat_samples *history = history_of(repeat);
    if (history)
        note_least(repeat, history);
    uint32_t samples = __atomic_load_n(&repeat->samples, __ATOMIC_RELAXED);
    uint32_t again = __atomic_load_n(&repeat->again, __ATOMIC_RELAXED);
    uint32_t apart = __atomic_load_n(&repeat->apart, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->ops, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->samples, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->again, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->apart, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->windows, __atomic_load_n(&repeat->windows, __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->turn,
                     again ? (uint32_t)((uint64_t)apart * CUS_REPEAT_WINDOW / again) : 0,
                     __ATOMIC_RELAXED);
    /* Without any sample the answer is yes: many different hashes cannot all miss that part of the
     * range, so the hashes are few and come again. */
    return history && again * AGAIN >= samples;
}
