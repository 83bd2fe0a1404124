/*
 * Decides what the exported dlsym answers (entry_x86_64.S, entry_aarch64.S). Only names that begin
 * with cu[A-Z], cup, cud or __cud come here. Runs on any thread, possibly in a constructor under
 * the loader's lock. Takes no lock, waits for nothing and starts nothing. Never calls dlsym by
 * name, since that name is this library's own. cus_dlsym_find is not even instrumented: a
 * sanitizer's runtime calls dlsym before the runtime is ready.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#include "shim/base/hazard.h"
#include "shim/hook/real.h"
#include "shim/hook/resolve.h"
#include "shim/hook/runtime.h"

#include "shim/base/forbid.h"

typedef void *dlsym_fn(void *handle, const char *name);

dlsym_fn *cus_dlsym_function; /* the next dlsym behind this library; the assembly reads it */

static dlsym_fn *real_function; /* atomic: the C library's */

static void *nothing(void *handle, const char *name) {
    (void)handle;
    (void)name;
    return NULL;
}

#define BEFORE_SANITIZERS __attribute__((no_sanitize("address", "thread", "undefined")))

BEFORE_SANITIZERS void *cus_dlsym_find(void) {
    dlsym_fn *function = __atomic_load_n(&real_function, __ATOMIC_RELAXED);
    if (function)
        return (void *)function;
    /* The C libraries export dlsym under these versions, newest first. */
    function = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!function)
        function = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
    if (!function)
        function = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!function)
        function = nothing;
    __atomic_store_n(&real_function, function, __ATOMIC_RELAXED);
    return (void *)function;
}

BEFORE_SANITIZERS void *cus_dlsym_next(void) {
    dlsym_fn *function = __atomic_load_n(&cus_dlsym_function, __ATOMIC_RELAXED);
    if (function)
        return (void *)function;
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    function = (dlsym_fn *)look(RTLD_NEXT, "dlsym");
    if (!function)
        function = look;
    __atomic_store_n(&cus_dlsym_function, function, __ATOMIC_RELAXED);
    return (void *)function;
}

static struct cus_dlsym_answer answer(void *value) {
    return (struct cus_dlsym_answer){.value = value, .decided = 1};
}

/* Leaves dlerror as a failed look-up of `name` leaves it. */
static struct cus_dlsym_answer not_there(dlsym_fn *look, const char *name) {
    look(RTLD_NEXT, name); /* nothing is behind this library, or the real function would have
                            * been loaded */
    return answer(NULL);
}

/* The assembly jumps to `look`, which answers in the caller's frame. */
static struct cus_dlsym_answer left_to(void *look) {
    return (struct cus_dlsym_answer){.value = look, .decided = 0};
}

/* An interposer behind this library looks something up for itself. It receives the driver's own
 * function, since interposer and hook would call each other without end. If only the driver
 * answers the name, the interposer receives the hook: it may be a library that launches. */
static struct cus_dlsym_answer for_other(void *handle, const char *name) {
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    int row = cus_api_find(name);
    if (row < 0 || !cus_entry_hooks[row])
        return left_to((void *)look);
    void *found = look(handle, name), *own = cus_real_own((unsigned)row);
    bool hook = own && !cus_real_asking() && !cus_real_is_chained((unsigned)row);
    if (hook && !cus_resolve_off() && (found == own || found == cus_entry_hooks[row]))
        return answer(cus_entry_hooks[row]);
    if (found != cus_entry_hooks[row])
        return left_to((void *)look);
    return own ? answer(own) : not_there(look, name);
}

static bool is_of_other(const void *caller) {
    return cus_real_asking() || cus_others_behind(cus_real_others(), caller);
}

static struct cus_dlsym_answer decide_cupti(int cupti, void *handle, const char *name) {
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    void *profiler = look(handle, name);
    if (!profiler)
        return left_to(cus_dlsym_next());
    profiler = cus_cupti_resolve(cupti, profiler);
    return profiler ? answer(profiler) : not_there(look, name);
}

/* A runtime's own function goes to whoever looks in that runtime. */
static struct cus_dlsym_answer decide_runtime(int runtime, void *handle, const char *name,
                                              const void *caller) {
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    void *found = look(handle, name);
    if (found != cus_runtime_export(runtime))
        return left_to(cus_dlsym_next());
    void *behind = cus_runtime_behind(runtime, caller);
    if (!behind)
        return not_there(look, name);
    return answer(cus_resolve_off() ? behind : found);
}

struct cus_dlsym_answer cus_dlsym_decide(void *handle, const char *name, const void *caller) {
    const struct cus_dlsym_answer undecided = left_to(cus_dlsym_next());
    int cupti = cus_cupti_find(name), runtime = cus_runtime_find(name);
    if (cupti < 0 && runtime < 0 && !(name[2] >= 'A' && name[2] <= 'Z'))
        return undecided;
    /* Only the real dlsym can tell which object is the "next" one, by the caller's frame. If
     * this library is next, its export is the answer anyway. */
    if (handle == RTLD_NEXT)
        return is_of_other(caller) ? left_to(cus_dlsym_find()) : undecided;
    if (cupti >= 0)
        return decide_cupti(cupti, handle, name);
    if (runtime >= 0)
        return decide_runtime(runtime, handle, name, caller);
    if (is_of_other(caller))
        return for_other(handle, name);

    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    void *found = (CUS_HAZARD(G3) ? (dlsym_fn *)cus_dlsym_next() : look)(handle, name);
    if (!found)
        return undecided; /* fails once more, in the caller's own scope */
    int row = cus_api_find(name);
    if (row >= 0 && cus_entry_hooks[row] && found == cus_entry_hooks[row]) {
        /* The look-up found this library's export. The answer depends on the real function. */
        if (!cus_real_find() || !cus_real_has((unsigned)row))
            return not_there(look, name);
        return answer(cus_resolve_off() ? cus_real_functions[row] : found);
    }
    /* A look-up that the driver makes itself receives the real function. */
    if (!cus_real_find() || cus_resolve_off() || cus_real_holds(caller))
        return undecided;
    void *given = cus_resolve(found, name, 0);
    if (given == found)
        return undecided;
    cus_routes_look_later();
    return answer(given);
}
