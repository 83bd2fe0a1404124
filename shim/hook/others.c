/*
 * Finds other interposers and asks those in front of this library what they hand out (HAZARDS G2,
 * G3).
 *
 * cus_others_find runs in look-ups, possibly under the loader's lock, and calls only the C
 * library's dlsym. The functions of others are called once, on the thread that starts the library,
 * without a lock.
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
#include "shim/hook/loader.h"
#include "shim/hook/real.h"

#include "shim/base/forbid.h"

typedef void *dlsym_fn(void *handle, const char *name);

/* ---- which interposers there are ---- */

enum { WHY_BYTES = 512 };

static const char *const loader_names[CUS_LOADERS] = {
#define NAME(name) #name,
    CUS_LOADER_FUNCTIONS(NAME)
#undef NAME
};

struct survey {
    struct cus_others *to;
    uintptr_t cuda, next, raw; /* addresses in libcuda, the next dlsym and the C library's */
    void *const *own;          /* the driver's functions */
    unsigned index;
    bool passed;                     /* the walk is past this library */
    uint32_t listed;                 /* bits of to->list: objects that stay listed in any scope */
    uint32_t exported[CUS_API_ROWS]; /* bits of to->list: the objects behind that export the row */
    uint32_t hashes[CUS_API_ROWS];   /* of the rows' names */
};
_Static_assert(CUS_OTHERS < 32, "those that the list has no room for share one more bit");

/* The program's own exports are not listed. */
static void note(struct survey *survey, const struct cus_object *object) {
    struct cus_others *to = survey->to;
    bool front = !survey->passed, any = false;
    struct cus_other other = {.path = object->info->dlpi_name,
                              .front = front,
                              .row = -1,
                              .dlsym = cus_elf_exported(object, "dlsym", cus_elf_hash("dlsym"))};
    for (int row = 0; row < CUS_API_ROWS; row++) {
        if (!cus_elf_exported(object, cus_api_rows[row].name, survey->hashes[row]))
            continue;
        any = true;
        if (front)
            to->front[row] = true;
        else
            survey->exported[row] |= 1u << to->n;
        if (other.row < 0 && cus_entry_hooks[row])
            other.row = row;
    }
    for (unsigned i = 0; front && i < CUS_LOADERS; i++)
        to->loader_in_front[i] |=
            cus_elf_exported(object, loader_names[i], cus_elf_hash(loader_names[i])) != NULL;
    bool stays = front ? other.dlsym || other.row >= 0 : cus_elf_holds(object->info, survey->next);
    if (survey->index == 0 || !(stays || (any && !front)) || to->n == CUS_OTHERS)
        return;
    survey->listed |= (uint32_t)stays << to->n;
    cus_elf_measure(object->info, &other.low, &other.high);
    to->list[to->n++] = other;
}

static int survey_object(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct survey *survey = context;
    struct cus_object object;
    (void)bytes;
    if (cus_elf_holds(info, survey->raw))
        cus_elf_measure(info, &survey->to->loader_low, &survey->to->loader_high);
    if (cus_elf_holds(info, (uintptr_t)&survey_object))
        survey->passed = true;
    else if (!cus_elf_holds(info, survey->cuda) && !cus_elf_holds(info, survey->raw) &&
             cus_elf_read(info, &object))
        note(survey, &object);
    survey->index++;
    return 0;
}

/* An object that exports a row stands before the driver only if the loader finds the object
 * first. That is not so if the object is in no global scope, or comes after libcuda. The C
 * library's dlsym tells. An object that stays listed is kept loaded, since the hooks call its
 * exports. */
static void ask_scope(struct survey *survey) {
    struct cus_others *to = survey->to;
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    unsigned n = 0;
    for (int row = 0; row < CUS_API_ROWS; row++) {
        void *next = survey->exported[row] ? look(RTLD_NEXT, cus_api_rows[row].name) : NULL;
        if (!next || next == survey->own[row])
            continue;
        to->behind[row] = next;
        survey->listed |= survey->exported[row];
    }
    for (unsigned i = 0; i < to->n; i++) {
        if (!(survey->listed >> i & 1))
            continue;
        to->list[n++] = to->list[i];
        cus_loader_open(to->list[i].path, RTLD_NOLOAD | RTLD_LAZY);
    }
    to->n = n;
}

void cus_others_find(struct cus_others *others, uintptr_t cuda, void *const *own) {
    struct survey survey = {.to = others,
                            .cuda = cuda,
                            .next = (uintptr_t)cus_dlsym_next(),
                            .raw = (uintptr_t)cus_dlsym_find(),
                            .own = own};
    for (int row = 0; row < CUS_API_ROWS; row++)
        survey.hashes[row] = cus_elf_hash(cus_api_rows[row].name);
    dl_iterate_phdr(survey_object, &survey);
    ask_scope(&survey);
}

const struct cus_other *cus_others_behind(const struct cus_others *others, const void *address) {
    for (unsigned i = 0; others && i < others->n; i++) {
        const struct cus_other *other = &others->list[i];
        if (!other->front && (uintptr_t)address >= other->low && (uintptr_t)address < other->high)
            return other;
    }
    return NULL;
}

/* ---- what interposers in front answer ---- */

static bool is_look_up(unsigned row) {
    return row == CUS_ROW_cuGetProcAddress || row == CUS_ROW_cuGetProcAddress_v2;
}

/* True: the interposer's cuGetProcAddress leads launches to this library. It may be called
 * before cuInit. */
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

/* The first row for which the interposer's dlsym leads neither directly nor by cuGetProcAddress
 * to this library; -1: none. */
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
    dlerror(); /* the program must not see an error of a look-up that it did not make */
    return otherwise;
}

/* ---- why nothing may be deferred ---- */

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

void cus_others_note(const void *function, unsigned row) {
    const struct cus_other *other = cus_others_behind(cus_real_others(), function);
    if (!other || !cus_real_is_launch(row))
        return;
    const char *reason =
        because(other->path, "answers by a function of its own for", cus_api_rows[row].name);
    if (reason)
        cus_lifecycle_defer_off_later(reason);
}
