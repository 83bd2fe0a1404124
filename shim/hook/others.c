/*
 * Finds other interposers and asks those in front what they hand out (HAZARDS G2, G3).
 *
 * cus_others_find runs in look-ups, possibly under the loader's lock, and calls nobody. What asks
 * others runs once, on the thread that starts the library. Holds no lock over their functions.
 */
#define __CUDA_API_VERSION_INTERNAL
#define _GNU_SOURCE
#include "shim/hook/others.h"

#include <cuda.h>
#include <dlfcn.h>
#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/hook/elf.h"
#include "shim/hook/handshake.h"
#include "shim/hook/lifecycle.h"
#include "shim/hook/real.h"

#include "shim/base/forbid.h"

/* ---- who is there ---- */

enum { EARLY = 24, WHY_BYTES = 512 };

static const char *const loader_names[CUS_LOADERS] = {
#define NAME(name) #name,
    CUS_LOADER_FUNCTIONS(NAME)
#undef NAME
};

struct survey {
    struct cus_others *to;
    uintptr_t cuda, next, raw; /* addresses in libcuda, the next dlsym and the C library's */
    unsigned index;
    bool passed, ended; /* this library; the preloaded objects behind it */
    unsigned n_early;
    struct cus_object early[EARLY]; /* the program and what was preloaded */
};

/* An object that was not preloaded is there because an earlier one needs it. */
static bool is_needed(const struct survey *survey, const struct cus_object *object) {
    const char *base = cus_elf_base(object->info->dlpi_name);
    for (unsigned i = 0; i < survey->n_early; i++) {
        const struct cus_object *by = &survey->early[i];
        for (const ElfW(Dyn) *entry = by->dynamic; entry < by->dynamic_end; entry++) {
            if (entry->d_tag != DT_NEEDED)
                continue;
            const char *needed = cus_elf_text(by, entry->d_un.d_val);
            if (strcmp(needed, object->soname) == 0 || strcmp(cus_elf_base(needed), base) == 0)
                return true;
        }
    }
    return false;
}

static void note(struct survey *survey, const struct cus_object *object, bool front) {
    struct cus_others *to = survey->to;
    struct cus_other other = {.path = object->info->dlpi_name,
                              .front = front,
                              .row = -1,
                              .dlsym = cus_elf_exported(object, "dlsym", cus_elf_hash("dlsym"))};
    for (int row = 0; row < CUS_API_ROWS; row++) {
        const char *name = cus_api_rows[row].name;
        void *function = cus_elf_exported(object, name, cus_elf_hash(name));
        if (!function)
            continue;
        if (front)
            to->front[row] = true;
        else if (!to->behind[row])
            to->behind[row] = function;
        if (other.row < 0 && cus_entry_hooks[row])
            other.row = row;
    }
    for (unsigned i = 0; front && i < CUS_LOADERS; i++)
        to->loader_in_front[i] |=
            cus_elf_exported(object, loader_names[i], cus_elf_hash(loader_names[i])) != NULL;
    /* What the program itself exports is its own. */
    if (survey->index == 0 || (other.row < 0 && !other.dlsym) || to->n == CUS_OTHERS)
        return;
    cus_elf_measure(object->info, &other.low, &other.high);
    to->list[to->n++] = other;
}

static int survey_object(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct survey *survey = context;
    struct cus_object object;
    (void)bytes;
    bool read = cus_elf_read(info, &object);
    if (cus_elf_holds(info, survey->raw))
        cus_elf_measure(info, &survey->to->loader_low, &survey->to->loader_high);
    if (cus_elf_holds(info, (uintptr_t)&survey_object)) {
        survey->passed = true;
    } else if (read && !cus_elf_holds(info, survey->cuda) && !cus_elf_holds(info, survey->raw)) {
        survey->ended |= survey->passed && is_needed(survey, &object);
        if (!survey->passed || !survey->ended || cus_elf_holds(info, survey->next))
            note(survey, &object, !survey->passed);
    }
    if (!survey->ended && read && survey->n_early < EARLY)
        survey->early[survey->n_early++] = object;
    survey->ended |= survey->n_early == EARLY;
    survey->index++;
    return 0;
}

void cus_others_find(struct cus_others *others, uintptr_t cuda) {
    struct survey survey = {.to = others,
                            .cuda = cuda,
                            .next = (uintptr_t)cus_dlsym_next(),
                            .raw = (uintptr_t)cus_dlsym_find()};
    dl_iterate_phdr(survey_object, &survey);
}

const struct cus_other *cus_others_behind(const struct cus_others *others, const void *address) {
    for (unsigned i = 0; others && i < others->n; i++) {
        const struct cus_other *other = &others->list[i];
        if (!other->front && (uintptr_t)address >= other->low && (uintptr_t)address < other->high)
            return other;
    }
    return NULL;
}

/* ---- what those in front answer ---- */

typedef void *dlsym_fn(void *handle, const char *name);

static bool is_look_up(unsigned row) {
    return row == CUS_ROW_cuGetProcAddress || row == CUS_ROW_cuGetProcAddress_v2;
}

/* Does its cuGetProcAddress lead launches to this library? It may be called before cuInit. */
static bool leads_here(unsigned row, void *function) {
    void *launch = NULL;
    CUdriverProcAddressQueryResult status;
    CUresult result;
    if (cus_real_holds(function))
        return false;
    if (row == CUS_ROW_cuGetProcAddress)
        result = ((__typeof__(&cuGetProcAddress))function)("cuLaunchKernel", &launch, 11030, 0);
    else
        result = ((__typeof__(&cuGetProcAddress_v2))function)("cuLaunchKernel", &launch, 12000, 0,
                                                              &status);
    return result != CUDA_SUCCESS || launch == cus_entry_hooks[CUS_ROW_cuLaunchKernel];
}

/* The first row for which its dlsym answers neither by this library's function nor by one that
 * leads here; -1: there is none. */
static int answers_otherwise(const struct cus_other *other) {
    static const unsigned asked[] = {CUS_ROW_cuLaunchKernel, CUS_ROW_cuLaunchKernelEx,
                                     CUS_ROW_cuGetProcAddress_v2, CUS_ROW_cuGetProcAddress};
    dlsym_fn *its = (dlsym_fn *)other->dlsym;
    void *handle = cus_real_handle();
    int otherwise = -1;
    for (unsigned i = 0; its && handle && otherwise < 0 && i < sizeof asked / sizeof *asked; i++) {
        unsigned row = asked[i];
        void *answer = its(handle, cus_api_rows[row].name);
        if (answer && answer != cus_entry_hooks[row] &&
            !(is_look_up(row) && leads_here(row, answer)))
            otherwise = (int)row;
    }
    dlerror(); /* the program did not ask */
    return otherwise;
}

/* ---- what follows ---- */

static char why[WHY_BYTES]; /* written once */
static uint32_t why_taken;  /* atomic */

static const char *because(const char *path, const char *does, const char *name) {
    if (cus_options()->trust_interposers || __atomic_exchange_n(&why_taken, 1, __ATOMIC_ACQ_REL))
        return NULL;
    const char *parts[] = {path, " ", does, " ", name, " (trust_interposers = yes trusts it)"};
    char *at = why;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *from = parts[i]; *from && at + 1 < why + sizeof why; from++)
            *at++ = *from;
    *at = 0;
    return why;
}

void cus_others_tell(const struct cus_others *others) {
    for (unsigned i = 0; i < others->n; i++) {
        const struct cus_other *other = &others->list[i];
        cus_log(CUS_INFO, "hook", "another interposer %s this library: %s",
                other->front ? "in front of" : "behind", other->path);
        cus_handshake_found(other->front ? CUS_FOUND_FRONT : CUS_FOUND_BEHIND, other->path);
    }
}

const char *cus_others_start(void) {
    const struct cus_others *others = cus_real_others();
    const char *reason = NULL, *path;
    int row = -1;
    for (unsigned i = 0; others && i < others->n; i++) {
        const struct cus_other *other = &others->list[i];
        if (!other->front)
            continue;
        row = other->row >= 0 ? other->row : answers_otherwise(other);
        if (row < 0)
            continue;
        if (CUS_HAZARD(G2) && !reason)
            reason = because(other->path, "stands in front of this library and answers for",
                             cus_api_rows[row].name);
    }
    path = cus_real_before_launches(&row);
    if (path && !reason)
        reason = because(path, "stands behind this library and before", cus_api_rows[row].name);
    return reason;
}

void cus_others_met(const void *function, unsigned row) {
    const struct cus_other *other = cus_others_behind(cus_real_others(), function);
    if (!other || !cus_real_is_launch(row))
        return;
    const char *reason =
        because(other->path, "answers by a function of its own for", cus_api_rows[row].name);
    if (reason)
        cus_lifecycle_withhold_off_later(reason);
}
