/*
 * Which libraries choose which presets. One bit per row: seen, and taken. A library that goes again
 * leaves its rules behind.
 */
#include "shim/plan/preset_choice.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/presets.h"
#include "shim/plan/pattern.h"
#include "shim/plan/rules.h"

/* An engine's preset brings those of the back ends that it may take. PyTorch has kernels of its own
 * that wait for peers, and so has each library that brings all-reduce kernels. */
static const struct cus_preset_choice rows[] = {
    {"*/vllm/*.so*", "vllm"},
    {"*/sgl_kernel/*.so*", "sglang"},
    {"*/tensorrt_llm/*.so*", "tensorrt_llm"},
    {"*/libtensorrt_llm*.so*", "tensorrt_llm"},
    {"*/libggml-cuda*.so*", "llama_cpp"},
    {"*/libnccl*.so*", "nccl"},
    {"*/libtorch_cuda*.so*", "peer"},
    {"*/libtensorrt_llm*.so*", "peer"},
    {"*/libnvshmem*.so*", "peer"},
    {"*/flashinfer/*.so*", "peer"},
    {"*/deep_ep*.so*", "peer"},
};
enum { ROWS = sizeof rows / sizeof *rows, PATIENCE_MS = 100 };
_Static_assert(ROWS <= 32, "a bit per row");

static uint32_t seen;  /* atomic */
static uint32_t taken; /* taking */
static struct cus_lock taking = CUS_LOCK_OF(CUS_RANK_NONE);
/* Of the library that was seen first for a row: its name and folder. Written before its bit is set.
 */
static char paths[ROWS][128];
static uint32_t written; /* atomic: rows whose path a thread has begun to write */

const struct cus_preset_choice *cus_preset_choice_get(unsigned index) {
    return index < ROWS ? &rows[index] : NULL;
}

static const char *last_parts(const char *path, unsigned n) {
    const char *at = path + strlen(path);
    while (at > path && (at[-1] != '/' || --n))
        at--;
    return at;
}

void cus_preset_see(const char *path) {
    for (unsigned i = 0; path && i < ROWS; i++) {
        uint32_t bit = 1u << i;
        if (__atomic_load_n(&written, __ATOMIC_RELAXED) & bit ||
            !cus_glob_matches(rows[i].library, path) ||
            __atomic_fetch_or(&written, bit, __ATOMIC_RELAXED) & bit)
            continue;
        strncat(paths[i], last_parts(path, 2), sizeof paths[i] - 1);
        __atomic_fetch_or(&seen, bit, __ATOMIC_ACQ_REL);
    }
}

static void take(unsigned row) {
    char file[PATH_MAX];
    if (!cus_preset_find(rows[row].preset, file, sizeof file))
        CUS_LOG_ONCE(CUS_WARN, "rules",
                     "presets = auto: %s is loaded, and no preset %s is installed", paths[row],
                     rows[row].preset);
    else if (cus_rules_add_preset(file, paths[row]))
        cus_log(CUS_INFO, "rules", "%s is loaded: the rules of preset %s hold", paths[row],
                rows[row].preset);
}

/* A thread inside a dlopen may hold the loader's lock. So no thread waits here without end for
 * another one, which may want that lock: the C library may load something for a pattern. False: it
 * waited long enough, and the other thread will take what was seen. */
static bool take_lock(void) {
    for (unsigned ms = 0; !cus_lock_try(&taking); ms++) {
        if (ms == PATIENCE_MS)
            return false;
        usleep(1000);
    }
    return true;
}

void cus_preset_choose(void) {
    uint32_t now = __atomic_load_n(&seen, __ATOMIC_ACQUIRE);
    if (now == __atomic_load_n(&taken, __ATOMIC_ACQUIRE) ||
        cus_options()->presets != CUS_PRESETS_AUTO)
        return;
    int saved = errno;
    while (now != __atomic_load_n(&taken, __ATOMIC_ACQUIRE) && take_lock()) {
        for (unsigned i = 0; i < ROWS; i++)
            if (now & ~taken & 1u << i)
                take(i);
        __atomic_fetch_or(&taken, now, __ATOMIC_RELEASE);
        cus_lock_give(&taking);
        /* Written, so that a thread that adds a bit behind this finds the lock free. */
        now = __atomic_fetch_or(&seen, 0, __ATOMIC_ACQ_REL);
    }
    errno = saved;
}

bool cus_preset_held(char *out, size_t bytes) {
    const char *last = NULL; /* the file that was listed last */
    const struct cus_rule *rule;
    size_t used = 0;
    *out = 0;
    for (unsigned i = 0; (rule = cus_rules_get(cus_rules(), i)); i++) {
        if (!rule->chosen_by || !cus_rules_matched(cus_rules(), i) ||
            (last && strcmp(last, rule->file) == 0) || used >= bytes)
            continue;
        used += (size_t)snprintf(out + used, bytes - used, "%s%s (%s)", last ? ", " : "",
                                 last_parts(rule->file, 1), rule->chosen_by);
        last = rule->file;
    }
    return last != NULL;
}

void cus_preset_drop(void) {
    memset(paths, 0, sizeof paths);
    seen = taken = written = 0;
}
