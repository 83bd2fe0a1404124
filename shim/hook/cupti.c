/*
 * Finds out whether a profiler records. It does if an activity kind or callbacks at API calls are
 * enabled. A mapped CUPTI or a subscription does not count: PyTorch always has the first, and keeps
 * the second for ever. While a profiler records, ops are issued one by one, so that it sees each
 * kernel as the program launched it (HAZARDS E8). Any thread, also before cuInit and inside
 * callbacks. Counters without a lock; passes every call on unchanged.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/hook/guard.h"
#include "shim/hook/lifecycle.h"
#include "shim/hook/resolve.h"
#include "shim/hook/runtime.h"
#include "shim/stream/engine.h"

#include "shim/base/forbid.h"

/* Activity kinds are numbers below KINDS. The domains are those of cupti_callbacks.h. */
enum { KINDS = 256, DOMAIN_DRIVER_API = 1, DOMAIN_RUNTIME_API = 2 };

typedef void *dlsym_fn(void *handle, const char *name);

static const char *const names[CUS_CUPTIS] = {
#define NAME(name) [CUS_CUPTI_##name] = #name,
    CUS_CUPTI_FUNCTIONS(NAME)
#undef NAME
};

/* All atomic. One call disables a kind that was enabled twice. Contexts are counted without
 * telling them apart, so at worst a profiler counts as recording for too long. */
static uint8_t enabled[KINDS];
static uint32_t enabled_contexts[KINDS];
static uint32_t subscribers;
static uint32_t api_domains; /* a bit for each API domain in which callbacks are enabled */
static uint32_t applied;     /* what the engine was told last: 0 or 1 */

/* CUPTI_ERROR_NOT_INITIALIZED */
static unsigned absent(void) {
    return 15;
}

int cus_cupti_find(const char *name) {
    if (strncmp(name, "cupti", 5) != 0)
        return -1;
    for (int i = 0; i < CUS_CUPTIS; i++) {
        if (strcmp(name, names[i]) == 0)
            return i;
    }
    return -1;
}

static bool is_cupti(const char *path) {
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "libcupti.so", 11) == 0;
}

void *cus_cupti_resolve(int which, void *function) {
    Dl_info info;
    /* The look-up found this library's export. The answer depends on the real function. */
    if (function == cus_entry_cuptis[which])
        return cus_cupti_real(which, NULL) == (void *)absent ? NULL : function;
    if (cus_resolve_off())
        return function;
    if (!dladdr(function, &info) || !info.dli_fname || !is_cupti(info.dli_fname))
        return function;
    /* Each function gets its own stub, since a process may hold several versions of CUPTI. */
    void *stub = cus_spare_stub(function, names[which], CUS_SPARE_CUPTI_FIRST + (unsigned)which);
    return stub ? stub : function;
}

/* Sequentially consistent, as are all changes: a thread that changes the answer calls attention,
 * and whoever attends sees the change (cus_lifecycle_call_attention). */
static bool recording(void) {
    static uint32_t injected; /* atomic: 0 not asked yet, 1 no, 2 yes */
    uint32_t now = __atomic_load_n(&injected, __ATOMIC_RELAXED);
    if (now == 0) {
        const char *path = secure_getenv("CUDA_INJECTION64_PATH");
        now = path && *path ? 2 : 1;
        __atomic_store_n(&injected, now, __ATOMIC_RELAXED);
    }
    if (now == 2 || __atomic_load_n(&api_domains, __ATOMIC_SEQ_CST))
        return true;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        if (__atomic_load_n(&enabled[kind], __ATOMIC_SEQ_CST) ||
            __atomic_load_n(&enabled_contexts[kind], __ATOMIC_SEQ_CST))
            return true;
    }
    return false;
}

/* A tool that listens to the runtime's calls sees each of them, whatever the setting `profile`
 * says. */
static void apply_runtime(void) {
    bool told, now = recording();
    do {
        told = now;
        cus_runtime_listened(told);
    } while ((now = recording()) != told);
}

void cus_cupti_apply(void) {
    apply_runtime();
    if (cus_options()->profile == CUS_PROFILE_IGNORE) {
        static uint32_t watched; /* atomic; from the first record on for ever */
        if (recording() && !__atomic_exchange_n(&watched, 1, __ATOMIC_RELAXED))
            cus_engine_nodes_timed(true);
        return;
    }
    /* Repeats if another thread changed the answer meanwhile: the thread that tells the engine last
     * has then told the answer that holds. */
    bool again = false;
    uint32_t told, now = recording();
    do {
        told = now;
        if (__atomic_exchange_n(&applied, told, __ATOMIC_SEQ_CST) != told || again) {
            cus_log(CUS_INFO, "hook",
                    told ? "a profiler records: launches go out one by one"
                         : "no profiler records any more");
            cus_engine_profiling(told != 0);
        }
        again = true;
    } while ((now = recording()) != told);
}

static void count_down(uint32_t *counter) {
    uint32_t now = __atomic_load_n(counter, __ATOMIC_RELAXED);
    while (now > 0 && !__atomic_compare_exchange_n(counter, &now, now - 1, false, __ATOMIC_SEQ_CST,
                                                   __ATOMIC_RELAXED)) {
    }
}

/* A single disabled callback says nothing about the other callbacks of its domain. */
static void note_domains(uint32_t domains, bool enable, bool all_of_it) {
    domains &= 1u << DOMAIN_DRIVER_API | 1u << DOMAIN_RUNTIME_API;
    if (enable)
        __atomic_fetch_or(&api_domains, domains, __ATOMIC_SEQ_CST);
    else if (all_of_it)
        __atomic_fetch_and(&api_domains, ~domains, __ATOMIC_SEQ_CST);
}

static void forget_all(void) {
    for (unsigned kind = 0; kind < KINDS; kind++) {
        __atomic_store_n(&enabled[kind], 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&enabled_contexts[kind], 0, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&subscribers, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&api_domains, 0, __ATOMIC_SEQ_CST);
}

static void note(int which, uint32_t first, uint32_t second, uint32_t third) {
    switch (which) {
    case CUS_CUPTI_cuptiActivityEnable:
        if (first < KINDS)
            __atomic_store_n(&enabled[first], 1, __ATOMIC_SEQ_CST);
        break;
    case CUS_CUPTI_cuptiActivityDisable:
        if (first < KINDS)
            __atomic_store_n(&enabled[first], 0, __ATOMIC_SEQ_CST);
        break;
    case CUS_CUPTI_cuptiActivityEnableContext:
        if (second < KINDS)
            __atomic_fetch_add(&enabled_contexts[second], 1, __ATOMIC_SEQ_CST);
        break;
    case CUS_CUPTI_cuptiActivityDisableContext:
        if (second < KINDS)
            count_down(&enabled_contexts[second]);
        break;
    case CUS_CUPTI_cuptiEnableCallback: /* enable, subscriber, domain, callback */
        if (third < 32)
            note_domains(1u << third, first != 0, false);
        break;
    case CUS_CUPTI_cuptiEnableDomain: /* enable, subscriber, domain */
        if (third < 32)
            note_domains(1u << third, first != 0, true);
        break;
    case CUS_CUPTI_cuptiEnableAllDomains: /* enable, subscriber */
        note_domains(~0u, first != 0, true);
        break;
    case CUS_CUPTI_cuptiFinalize:
        forget_all();
        break;
    case CUS_CUPTI_cuptiSubscribe:
    case CUS_CUPTI_cuptiSubscribe_v2:
        __atomic_fetch_add(&subscribers, 1, __ATOMIC_SEQ_CST);
        break;
    case CUS_CUPTI_cuptiUnsubscribe:
        count_down(&subscribers);
        if (__atomic_load_n(&subscribers, __ATOMIC_SEQ_CST) == 0)
            note_domains(~0u, false, true);
        break;
    default:
        break;
    }
}

void cus_cupti_before(int which, const struct cus_frame *frame) {
    note(which, (uint32_t)cus_frame_argument(frame, 0), (uint32_t)cus_frame_argument(frame, 1),
         (uint32_t)cus_frame_argument(frame, 2));
    struct cus_guard guard;
    if (cus_guard_enter(&guard)) {
        cus_cupti_apply();
        cus_guard_leave(&guard);
    } else {
        /* Before the library's start nobody needs the answer. Inside a hook, the next hook tells
         * the engine. */
        cus_lifecycle_call_attention();
    }
}

struct library {
    char path[4096];
};

static int find_library(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct library *library = context;
    (void)bytes;
    if (!info->dlpi_name || !is_cupti(info->dlpi_name) ||
        strlen(info->dlpi_name) >= sizeof library->path)
        return 0;
    memcpy(library->path, info->dlpi_name, strlen(info->dlpi_name) + 1);
    return 1;
}

/* Finds the function to which the caller would be bound without this library: the next export in
 * the global scope. If there is none, the caller's own dependencies decide, since PyTorch opens
 * its libraries locally and a process may hold several versions of CUPTI. Last comes any mapped
 * CUPTI. */
void *cus_cupti_real(int which, const void *caller) {
    int error = errno;
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    void *real = look(RTLD_NEXT, names[which]), *handle = NULL;
    Dl_info info;
    if (!real && caller && dladdr(caller, &info) && info.dli_fname)
        handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    if (handle) {
        real = look(handle, names[which]);
        dlclose(handle); /* the caller keeps the object loaded */
    }
    struct library library;
    if (!real && dl_iterate_phdr(find_library, &library)) {
        handle = dlopen(library.path, RTLD_NOLOAD | RTLD_LAZY);
        real = handle ? look(handle, names[which]) : NULL;
    }
    dlerror();
    errno = error;
    return real && real != cus_entry_cuptis[which] ? real : (void *)absent;
}
