/*
 * Learns a function: its name, rule, parameter layout, clusters and limits. The driver is asked
 * after a launch of the function succeeded, and for the limit of dynamic shared memory again once a
 * setting changed. Runs on program threads with the context current and no lock held, for the limit
 * with the engine's; noted_lock is innermost.
 */
#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/cache/cache.h"
#include "shim/graph/issue.h"
#include "shim/graph/relax.h"
#include "shim/plan/name.h"
#include "shim/stream/fallback.h"
#include "shim/stream/origins.h"
#include "shim/stream/state.h"

enum { PARAMS_MAX = CUS_ISSUE_PARAMS_MAX };

/* Handles whose kind is known from the call that made them. For these no probe fails (HAZARDS
 * E2). */
struct noted {
    const void *handle;
    enum cus_handle kind;
    UT_hash_handle hh;
};
static struct cus_lock noted_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct noted *noted; /* noted_lock */

void cus_func_note(const void *handle, enum cus_handle kind) {
    struct noted *entry;
    cus_lock_take(&noted_lock);
    HASH_FIND_PTR(noted, &handle, entry);
    if (entry) {
        entry->kind = kind;
    } else if ((entry = cus_mem_alloc(sizeof *entry))) {
        bool added = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
        entry->handle = handle;
        entry->kind = kind;
        HASH_ADD_PTR(noted, handle, entry);
        if (!added)
            cus_mem_free(entry);
    }
    cus_lock_give(&noted_lock);
}

void cus_func_forget_noted(void) {
    cus_lock_take(&noted_lock);
    struct noted *entry, *next;
    HASH_ITER(hh, noted, entry, next) {
        HASH_DEL(noted, entry);
        cus_mem_free(entry);
    }
    cus_lock_give(&noted_lock);
}

/* The name, from the call that fits the handle. At most one probe fails. */
static bool query_name(const void *handle, const char **name, enum cus_handle *kind) {
    const struct cus_driver *driver = cus_process.driver;
    struct noted *entry;
    cus_lock_take(&noted_lock);
    HASH_FIND_PTR(noted, &handle, entry);
    bool is_noted = CUS_HAZARD(E2) && entry;
    *kind = is_noted ? entry->kind : CUS_HANDLE_KERNEL;
    cus_lock_give(&noted_lock);
    if (!driver->cuKernelGetName || !driver->cuFuncGetName)
        return false;
    if (*kind == CUS_HANDLE_KERNEL &&
        driver->cuKernelGetName(name, (CUkernel)(uintptr_t)handle) == CUDA_SUCCESS)
        return true;
    if (is_noted && *kind == CUS_HANDLE_KERNEL)
        return false;
    *kind = CUS_HANDLE_FUNCTION;
    return driver->cuFuncGetName(name, (CUfunction)(uintptr_t)handle) == CUDA_SUCCESS;
}

static CUresult query_param(const void *handle, enum cus_handle kind, size_t i, size_t *offset,
                            size_t *size) {
    const struct cus_driver *driver = cus_process.driver;
    return kind == CUS_HANDLE_KERNEL
               ? driver->cuKernelGetParamInfo((CUkernel)(uintptr_t)handle, i, offset, size)
               : driver->cuFuncGetParamInfo((CUfunction)(uintptr_t)handle, i, offset, size);
}

static bool query_layout(const void *handle, enum cus_handle kind, struct cus_layout *layout) {
    const struct cus_driver *driver = cus_process.driver;
    if (!driver->cuKernelGetParamInfo || !driver->cuFuncGetParamInfo)
        return false;
    struct cus_argument arguments[PARAMS_MAX];
    uint32_t n = 0;
    size_t offset, size;
    CUresult result = CUDA_SUCCESS;
    while (n < PARAMS_MAX &&
           (result = query_param(handle, kind, n, &offset, &size)) == CUDA_SUCCESS) {
        arguments[n] = (struct cus_argument){(uint32_t)offset, (uint32_t)size};
        if (offset + size > layout->bytes)
            layout->bytes = (uint32_t)(offset + size);
        n++;
    }
    /* The end of the list has its own error. Without it the layout may be too short, and launches
     * would be without their last arguments. */
    if (result != CUDA_ERROR_INVALID_VALUE)
        return false;
    struct cus_argument *copy = cus_mem_alloc((n + 1) * sizeof *copy);
    if (!copy)
        return false;
    memcpy(copy, arguments, n * sizeof *copy);
    layout->n = n;
    layout->arguments = copy;
    return true;
}

static bool query_attribute(const void *function, CUfunction_attribute attribute, int *value) {
    return cus_process.driver->cuFuncGetAttribute(value, attribute,
                                                  (CUfunction)(uintptr_t)function) == CUDA_SUCCESS;
}

/* The CUfunction, the cluster dimensions that it was compiled with (its grid must be divisible by
 * them), and how many threads a block may have. False: a cluster is unknown, and the kernel is
 * never deferred. */
static bool query_limits(const void *handle, enum cus_handle kind, struct cus_func *func) {
    const struct cus_driver *driver = cus_process.driver;
    CUfunction f = (CUfunction)(uintptr_t)handle;
    func->cluster[0] = func->cluster[1] = func->cluster[2] = 1;
    if (!driver->cuFuncGetAttribute || !driver->cuKernelGetFunction)
        return false;
    if (kind == CUS_HANDLE_KERNEL &&
        driver->cuKernelGetFunction(&f, (CUkernel)(uintptr_t)handle) != CUDA_SUCCESS)
        return false;
    func->function = f;
    static const CUfunction_attribute ids[3] = {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                                CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                                                CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
    int value, must = 0, threads = 0;
    bool clusters = !query_attribute(f, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &must) || must;
    for (int i = 0; i < 3; i++) {
        if (!query_attribute(f, ids[i], &value))
            return false;
        clusters |= value > 0;
        if (value > 1)
            func->cluster[i] = (uint32_t)value;
    }
    if (!clusters && query_attribute(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads) &&
        threads > 0)
        func->threads_max = (uint32_t)threads;
    return true;
}

uint32_t cus_func_shared_end(const void *function) {
    int value;
    struct cus_relaxed relaxed = cus_relax(cus_process.driver);
    bool known = query_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &value);
    cus_relax_end(cus_process.driver, relaxed);
    return known && value >= 0 ? (uint32_t)value + 1 : 0;
}

void cus_func_free(struct cus_func *func) {
    struct cus_kind_entry *table = func->kinds, *entry, *next;
    HASH_ITER(hh, table, entry, next) {
        HASH_DEL(table, entry);
        cus_mem_free_lines(entry);
    }
    cus_mem_free((void *)(uintptr_t)func->layout.arguments);
    cus_mem_free((void *)(uintptr_t)func->shown);
    cus_mem_free(func->name);
    cus_mem_free(func);
}

struct cus_func *cus_func_make(const void *handle) {
    struct cus_func *func = cus_mem_alloc(sizeof *func);
    if (!func)
        return NULL;
    const char *name = NULL;
    enum cus_handle kind;
    char shown[256], file[CUS_FILE_NAME];
    func->handle = handle;
    struct cus_relaxed relaxed = cus_relax(cus_process.driver);
    bool named = query_name(handle, &name, &kind) && name;
    const struct cus_subject subject = {.name = named ? name : NULL,
                                        .lib = cus_origins_file(handle, file)};
    struct cus_verdict verdict = cus_rules_ask(cus_rules(), &subject, -1);
    func->policy = verdict.policy;
    func->rule = verdict.rule;
    cus_rules_note(cus_rules(), &subject);
    if (named) {
        func->step = cus_rules_step(cus_rules(), name);
        func->name = cus_mem_text(name);
        func->code = cus_cache_hash(name, strlen(name), cus_origins_code(handle));
        cus_name_base(name, shown, sizeof shown);
        func->known = query_layout(handle, kind, &func->layout) && query_limits(handle, kind, func);
    }
    cus_relax_end(cus_process.driver, relaxed);
    if (func->policy == CUS_POLICY_NEVER_DEFER)
        __atomic_store_n(&cus_process.never_defer, true, __ATOMIC_RELEASE);
    func->shown = cus_mem_text(func->name ? shown : "(unnamed)");
    func->tally = cus_tally_of(func->shown ? func->shown : "(unnamed)", true);
    if (!func->name || !func->shown)
        func->known = false;
    if (!func->known) {
        cus_fallback(CUS_FALLBACK_NO_LAYOUT);
        CUS_LOG_ONCE(CUS_INFO, "stream", "no name or parameter layout of %s: it stays eager",
                     func->name ? func->name : "a kernel");
    }
    return func;
}
