/*
 * Counts kernels by name and tries patterns on them. The verbs whatif, replay and bench call it.
 * It never prints; it fails with a sentence.
 */
#include "tools/whatif/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/config.h"
#include "shim/plan/name.h"
#include "shim/plan/pattern.h"

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct whatif_kernel *)a)->name, ((const struct whatif_kernel *)b)->name);
}

static int by_calls(const void *a, const void *b) {
    const struct whatif_kernel *x = a, *y = b;
    return x->calls != y->calls ? (x->calls < y->calls ? 1 : -1) : strcmp(x->name, y->name);
}

/* Kernels of one name become one kernel; sorted by calls. */
static uint32_t merge(struct whatif_kernel *kernels, uint32_t n) {
    uint32_t kept = 0;
    qsort(kernels, n, sizeof *kernels, by_name);
    for (uint32_t i = 0; i < n; i++)
        if (kept && strcmp(kernels[kept - 1].name, kernels[i].name) == 0)
            kernels[kept - 1].calls += kernels[i].calls;
        else
            kernels[kept++] = kernels[i];
    qsort(kernels, kept, sizeof *kernels, by_calls);
    for (uint32_t i = 0; i < kept; i++)
        cus_name_base(kernels[i].name, kernels[i].base, sizeof kernels[i].base);
    return kept;
}

struct whatif_kernel *whatif_replayed(const struct cst_trace *trace, uint32_t *n) {
    const struct cst_replay *replay = &trace->replay;
    struct whatif_kernel *kernels = calloc(replay->n_codes + 1, sizeof *kernels);
    uint64_t *calls = calloc(replay->n_codes + 1, sizeof *calls);
    *n = 0;
    for (size_t i = 0; calls && i < replay->n_works; i++)
        if (replay->works[i]->head.flags == CST_WORK_LAUNCH)
            calls[replay->works[i]->code]++;
    for (uint32_t id = 0; calls && kernels && id < replay->n_codes; id++) {
        const char *name = calls[id] ? cst_string(trace, replay->codes[id]->name) : "";
        if (*name)
            kernels[(*n)++] = (struct whatif_kernel){.name = name, .calls = calls[id]};
    }
    free(calls);
    if (kernels)
        *n = merge(kernels, *n);
    return kernels;
}

struct whatif_kernel *whatif_kernels(const struct cst_trace *trace, uint32_t *n) {
    uint64_t *calls = calloc(trace->n_kinds + 1, sizeof *calls);
    struct whatif_kernel *kernels = calloc(trace->n_kinds + 1, sizeof *kernels);
    *n = 0;
    for (size_t i = 0; calls && i < trace->n_events; i++)
        if (trace->events[i]->type == CST_OP)
            calls[((const struct cst_op *)trace->events[i])->kind]++;
    for (uint32_t id = 0; calls && kernels && id < trace->n_kinds; id++) {
        const struct cst_kind *kind = trace->kinds[id];
        const char *name = kind ? cst_string(trace, kind->name) : "";
        if (calls[id] && kind->op == CST_OP_LAUNCH && *name)
            kernels[(*n)++] = (struct whatif_kernel){.name = name, .calls = calls[id]};
    }
    free(calls);
    if (!kernels || !calls) {
        free(kernels);
        return NULL;
    }
    *n = merge(kernels, *n);
    return kernels;
}

/* Behind the word that says what a pattern is compared with. */
static const char *bare(const char *pattern) {
    const char *colon = strchr(pattern, ':');
    return colon && colon[1] != ':' ? colon + 1 : pattern;
}

static void name_of(const struct cst_trace *trace, const struct cst_kind *kind,
                    enum cus_pattern_sort sort, char *out, size_t bytes) {
    const char *text = cst_string(trace, sort == CUS_PATTERN_LIB ? kind->file : kind->name);
    const char *slash = sort == CUS_PATTERN_LIB ? strrchr(text, '/') : NULL;
    if (sort == CUS_PATTERN_NAME && kind->op == CST_OP_LAUNCH)
        cus_name_base(text, out, bytes);
    else
        snprintf(out, bytes, "%s", slash ? slash + 1 : text);
}

bool whatif_matches(const struct cst_trace *trace, const char *text, char *error, size_t bytes) {
    char why[256], name[256], nearest[256] = "";
    unsigned best = UINT32_MAX;
    struct cus_pattern *pattern = cus_pattern_new(text, why, sizeof why);
    if (!pattern) {
        snprintf(error, bytes, "%s: %s", text, why);
        return false;
    }
    enum cus_pattern_sort sort = cus_pattern_sort_of(pattern);
    bool met = false;
    for (uint32_t id = 0; !met && id < trace->n_kinds; id++) {
        const struct cst_kind *kind = trace->kinds[id];
        if (!kind || (kind->op == CST_OP_LAUNCH) == (sort == CUS_PATTERN_API))
            continue;
        name_of(trace, kind, sort, name, sizeof name);
        met = sort == CUS_PATTERN_API ? cus_pattern_matches_api(pattern, name)
              : sort == CUS_PATTERN_LIB
                  ? cus_pattern_matches_lib(pattern, name)
                  : cus_pattern_matches(pattern, cst_string(trace, kind->name));
        unsigned distance = cus_distance(bare(text), name);
        if (*name && distance < best) {
            best = distance;
            memcpy(nearest, name, sizeof nearest);
        }
    }
    cus_pattern_free(pattern);
    if (!met && *nearest)
        snprintf(error, bytes, "%s: %s of the trace has that name; the nearest is %s", text,
                 sort == CUS_PATTERN_NAME  ? "no kernel"
                 : sort == CUS_PATTERN_LIB ? "no library"
                                           : "no memset, copy or record",
                 nearest);
    else if (!met)
        snprintf(error, bytes, "%s: the trace names %s", text,
                 sort == CUS_PATTERN_NAME  ? "no kernel"
                 : sort == CUS_PATTERN_LIB ? "no library that code is from"
                                           : "no memset, copy or record");
    return met;
}
