/*
 * dlopen, dlmopen and dlclose, the exports.
 *
 * What is opened may launch past this library before it can be looked at: its constructors may, and
 * whoever it is bound to is not known. So everything is issued first, nothing is deferred while the
 * real dlopen runs, and its slots are looked at behind that (slots.c, HAZARDS G1). Any thread,
 * constructors too: those are inside another dlopen, whose end looks. No lock is held over the real
 * functions; their errors and errno are theirs.
 */
#define _GNU_SOURCE
#include "shim/hook/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

#include "shim/base/hazard.h"
#include "shim/hook/elf.h"
#include "shim/hook/guard.h"
#include "shim/hook/lifecycle.h"
#include "shim/hook/real.h"
#include "shim/hook/resolve.h"
#include "shim/hook/runtime.h"
#include "shim/hook/slots.h"

#include "shim/base/forbid.h"

#define EXPORT __attribute__((visibility("default")))

typedef void *dlsym_fn(void *handle, const char *name);
typedef void *dlopen_fn(const char *name, int flags);
typedef int dlclose_fn(void *handle);

/* ---- what comes behind this library ---- */

static int cannot_close(void *handle) {
    (void)handle;
    return -1;
}

static void *cannot_open(const void *a0, const void *a1, const void *a2) {
    (void)a0, (void)a1, (void)a2;
    return NULL;
}

static void *next_of(void **known, const char *name, void *otherwise) {
    void *function = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (function)
        return function;
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    function = look(RTLD_NEXT, name);
    if (!function)
        function = otherwise;
    __atomic_store_n(known, function, __ATOMIC_RELAXED);
    return function;
}

static void *real_open(void) {
    static void *known;
    return next_of(&known, "dlopen", (void *)cannot_open);
}

void *cus_loader_open(const char *name, int flags) {
    return ((dlopen_fn *)real_open())(name, flags);
}

int cus_loader_close(void *handle) {
    static void *known;
    return ((dlclose_fn *)next_of(&known, "dlclose", (void *)cannot_close))(handle);
}

/* ---- on whose behalf ---- */

struct ret {
    uintptr_t caller;
    const uint8_t *found, *program; /* a `ret` of the caller's object; of the program */
};

static int find_ret(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct ret *ret = context;
    const ElfW(Phdr) *segment = cus_elf_segment(info, ret->caller);
    (void)bytes;
    for (unsigned i = 0; !segment && !ret->program && i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
            segment = &info->dlpi_phdr[i];
    }
    if (!segment || (segment->p_flags & (PF_R | PF_X)) != (PF_R | PF_X))
        return 0;
    const uint8_t *begin = (const uint8_t *)(info->dlpi_addr + segment->p_vaddr);
    const uint8_t *there = memchr(begin, 0xc3, segment->p_filesz);
    if (!ret->program)
        ret->program = there;
    if (!cus_elf_holds(info, ret->caller))
        return 0;
    ret->found = there;
    return 1;
}

/* The loader finds by the return address of dlopen where to look for a name without a slash, and
 * what $ORIGIN is. Code that belongs to no object counts as the program's. */
static void *call_for(const void *caller, const void *a0, const void *a1, const void *a2,
                      void *function) {
    struct ret ret = {.caller = (uintptr_t)caller};
    dl_iterate_phdr(find_ret, &ret);
    const void *there = ret.found ? ret.found : ret.program;
    if (!there)
        return ((__typeof__(&cannot_open))function)(a0, a1, a2);
    return cus_call_from(a0, a1, a2, function, there);
}

static void *open_for(const void *caller, const char *name, int flags) {
    if (!name || (strchr(name, '/') && !strchr(name, '$')))
        return cus_loader_open(name, flags);
    return call_for(caller, name, (const void *)(intptr_t)flags, NULL, real_open());
}

/* ---- around what is opened ---- */

/* Of this thread: dlopens that it is inside of. There it may hold the loader's lock, and must not
 * wait for a thread that is inside the driver. */
static __thread unsigned inside __attribute__((tls_model("initial-exec")));

static void begin(void) {
    struct cus_guard guard;
    if (CUS_HAZARD(G1))
        cus_opening_enter();
    if (!inside++ && cus_guard_enter(&guard)) {
        if (CUS_HAZARD(G1))
            cus_engine_opening();
        cus_guard_leave(&guard);
    }
}

/* The last thread to leave looks, and leaves if nobody came meanwhile. */
static const char *leave(void) {
    const char *why = NULL, *found;
    uint64_t word;
    do {
        found = NULL;
        word = cus_opening_word();
        if ((uint32_t)word == 1 && cus_real_found() && !cus_resolve_off())
            found = cus_slots_look(true);
        if (found)
            cus_lifecycle_defer_off_later(why = found);
    } while (!cus_opening_leave(word));
    return why;
}

/* dlerror and errno are as the real function left them. `why`: nothing may be deferred any more. */
static void end(const char *why) {
    struct cus_guard guard;
    if (why)
        cus_lifecycle_defer_off_later(why);
    if (CUS_HAZARD(G1) && leave())
        why = "";
    if (!--inside && why && cus_guard_enter(&guard))
        cus_guard_leave(&guard); /* attends */
}

EXPORT void *dlopen(const char *name, int flags) {
    const void *caller = __builtin_return_address(0);
    if (!name || flags & RTLD_NOLOAD) /* nothing new is opened */
        return open_for(caller, name, flags);
    begin();
    void *handle = open_for(caller, name, flags);
    /* Behind another interposer nothing else may come by here. */
    if (handle && strncmp(cus_elf_base(name), "libcuda.so", 10) == 0)
        cus_real_find();
    end(NULL);
    return handle;
}

/* What is opened in another namespace is bound to nothing of this one, and may have a libcuda of
 * its own. */
EXPORT void *dlmopen(Lmid_t space, const char *name, int flags) {
    static void *known;
    const void *caller = __builtin_return_address(0);
    void *real = next_of(&known, "dlmopen", (void *)cannot_open);
    begin();
    void *handle = call_for(caller, (const void *)space, name, (const void *)(intptr_t)flags, real);
    bool away = CUS_HAZARD(G1) && handle && space != LM_ID_BASE;
    end(away ? "an object was opened in another namespace (dlmopen)" : NULL);
    return handle;
}

/* What is at an address may be another object's before the next look. Forgotten before, since the
 * address is free from then on; and behind, since the object's own destructors may have launched.
 */
EXPORT int dlclose(void *handle) {
    cus_runtime_forget();
    int result = cus_loader_close(handle);
    cus_runtime_forget();
    return result;
}
