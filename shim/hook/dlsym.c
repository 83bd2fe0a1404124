/*
 * The decision behind the exported dlsym (entry_x86_64.S): names outside cu[A-Z], cup, cud and
 * __cud never come here.
 *
 * Runs on any thread, possibly in a constructor under the loader's lock: takes no lock, waits for
 * nothing, starts nothing. Must never call dlsym by name, which is our own; and cus_dlsym_find must
 * not even be instrumented, since the runtime of a sanitizer looks up its functions before it is
 * ready for anything.
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

dlsym_fn *cus_dlsym_function; /* the next one behind this library; read by the assembly */

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
    /* The versions under which the C libraries of all machines have it, newest first. */
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
    look(RTLD_NEXT, name); /* behind us there is none, or the real one would have been loaded */
    return answer(NULL);
}

/* Somebody else answers, in the caller's own frame. */
static struct cus_dlsym_answer left_to(void *look) {
    return (struct cus_dlsym_answer){.value = look, .decided = 0};
}

/* What an interposer behind this library asks for is for itself: the driver's own, or the two would
 * call each other for ever. Before what nobody but the driver answers, the hook is for it too: it
 * may be a library that launches. */
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

/* A library's own function is for whoever asks that library. */
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
    /* Whose "next" it is only the real dlsym can tell, from the caller's frame. Where we come next
     * in the order, our export is the answer anyway. */
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
        /* Our own export, met in the global scope. The truth is what it stands for. */
        if (!cus_real_find() || !cus_real_has((unsigned)row))
            return not_there(look, name);
        return answer(cus_resolve_off() ? cus_real_functions[row] : found);
    }
    /* What the driver looks up of itself is for itself. */
    if (!cus_real_find() || cus_resolve_off() || cus_real_holds(caller))
        return undecided;
    void *given = cus_resolve(found, name, 0);
    if (given == found)
        return undecided;
    cus_routes_look_later();
    return answer(given);
}
