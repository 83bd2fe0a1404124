/*
 * Faults on demand: the n-th call of an entry point fails, loses its context, spoils captures,
 * submits work that fails, or never returns; the n-th kernel that runs ends its context.
 *
 * Any thread. The list's own lock is taken behind cusim.lock or alone. What a fault does to
 * contexts and captures happens under cusim.lock, before the call itself takes that lock.
 */
#include "harness/sim/cusim.h"
#include "harness/sim/graph.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum effect {
    FAIL,       /* returns the code and does nothing */
    LOSE,       /* returns the code, as do all later calls that use the context */
    LATE,       /* succeeds; after its work in a stream the context ends with the code */
    INVALIDATE, /* spoils the context's open captures, then works as usual */
    HANG,       /* never returns */
};

enum { KERNEL = CUSIM_API_COUNT }; /* stands for an api: each kernel that runs counts as a call */

struct fault {
    int api;
    int caller; /* CUSIM_CALLERS: any */
    uint64_t nth, seen;
    bool onward;
    enum effect effect;
    CUresult code;
};
enum { FAULTS_MAX = 64 };
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault faults[FAULTS_MAX]; /* under fault_lock, as the next */
static unsigned n_faults;
static atomic_bool any_fault;

static _Thread_local enum cusim_caller caller;
static _Thread_local CUresult late; /* of the work that the current call submits */

enum cusim_caller cusim_caller(void) {
    return caller;
}

__attribute__((visibility("default"))) unsigned cuSimCaller(unsigned who);
unsigned cuSimCaller(unsigned who) {
    unsigned before = caller;
    caller = who < CUSIM_CALLERS ? who : CUSIM_CALLER_PROGRAM;
    return before;
}

CUresult cusim_take_late(void) {
    CUresult code = late;
    late = CUDA_SUCCESS;
    return code;
}

/* ---- the list ---- */

static int api_by_name(const char *name, size_t length) {
    if (length == strlen("kernel") && memcmp(name, "kernel", length) == 0)
        return KERNEL;
    for (int i = 0; i < CUSIM_API_COUNT; i++)
        if (strlen(cusim_rows[i].symbol) == length &&
            memcmp(cusim_rows[i].symbol, name, length) == 0)
            return i;
    return -1;
}

static bool take(const char **text, const char *word) {
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

static bool take_number(const char **text, uint64_t most, uint64_t *number) {
    *number = 0;
    if (!isdigit((unsigned char)**text))
        return false;
    for (; isdigit((unsigned char)**text); (*text)++)
        if ((*number = *number * 10 + (uint64_t)(**text - '0')) > most)
            return false;
    return *number > 0;
}

/* symbol[@own|@program]:n[+]:(code|lost=code|late=code|invalidate|hang), kernel:n[+]:late=code */
static bool take_fault(const char **text, struct fault *f) {
    uint64_t code;
    size_t length = strcspn(*text, "@:,");
    *f = (struct fault){.api = api_by_name(*text, length), .caller = CUSIM_CALLERS};
    *text += length;
    if (take(text, "@own"))
        f->caller = CUSIM_CALLER_OWN;
    else if (take(text, "@program"))
        f->caller = CUSIM_CALLER_PROGRAM;
    if (f->api < 0 || !take(text, ":") || !take_number(text, UINT32_MAX, &f->nth))
        return false;
    f->onward = take(text, "+");
    if (!take(text, ":"))
        return false;
    if (take(text, "invalidate"))
        f->effect = INVALIDATE;
    else if (take(text, "hang"))
        f->effect = HANG;
    else if (take(text, "lost="))
        f->effect = LOSE;
    else if (take(text, "late="))
        f->effect = LATE;
    if (f->api == KERNEL && (f->effect != LATE || f->caller != CUSIM_CALLERS))
        return false;
    if (f->effect == INVALIDATE || f->effect == HANG)
        return true;
    if (!take_number(text, 99999, &code))
        return false;
    f->code = (CUresult)code;
    return true;
}

bool cusim_faults_set(const char *text) {
    struct fault list[FAULTS_MAX];
    unsigned n = 0;
    while (text && *text) {
        if (n == FAULTS_MAX || !take_fault(&text, &list[n++]) || (*text && *text != ','))
            return false;
        if (*text == ',' && !*++text)
            return false;
    }
    pthread_mutex_lock(&fault_lock);
    memcpy(faults, list, n * sizeof *list);
    n_faults = n;
    atomic_store(&any_fault, n > 0);
    pthread_mutex_unlock(&fault_lock);
    return true;
}

/* Counts the call, and finds its fault. */
static bool due(int api, struct fault *out) {
    bool is_due = false;
    pthread_mutex_lock(&fault_lock);
    for (unsigned i = 0; i < n_faults; i++) {
        struct fault *f = &faults[i];
        if (f->api != api || (f->caller != CUSIM_CALLERS && f->caller != (int)caller))
            continue;
        f->seen++;
        if (f->seen == f->nth || (f->onward && f->seen > f->nth)) {
            *out = *f;
            is_due = true;
        }
    }
    pthread_mutex_unlock(&fault_lock);
    return is_due;
}

/* ---- effects of faults ---- */

static void lose_context(CUresult code) {
    struct cusim_ctx *ctx = NULL;
    cusim_lock();
    if (cusim_ctx_current(&ctx) == CUDA_SUCCESS)
        ctx->error = code;
    cusim_unlock();
}

static void spoil_captures(void) {
    struct cusim_ctx *ctx = NULL;
    cusim_lock();
    if (cusim_ctx_current(&ctx) == CUDA_SUCCESS)
        cusim_capture_invalidate_ctx(ctx);
    cusim_unlock();
}

CUresult cusim_fault(enum cusim_api api) {
    struct fault f;
    late = CUDA_SUCCESS;
    if (!atomic_load_explicit(&any_fault, memory_order_acquire) || !due((int)api, &f))
        return CUDA_SUCCESS;
    switch (f.effect) {
    case INVALIDATE:
        spoil_captures();
        return CUDA_SUCCESS;
    case LATE:
        late = f.code;
        return CUDA_SUCCESS;
    case LOSE:
        lose_context(f.code);
        return f.code;
    case HANG:
        for (;;) /* as long as the process lives */
            pause();
    default:
        return f.code;
    }
}

CUresult cusim_fault_kernel(void) {
    struct fault f;
    bool any = atomic_load_explicit(&any_fault, memory_order_acquire) && due(KERNEL, &f);
    return any ? f.code : CUDA_SUCCESS;
}
