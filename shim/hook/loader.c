/*
 * The exported dlopen, dlmopen and dlclose. The library cannot examine an object before its
 * constructors run, and these may launch past the library. Hence everything is flushed first,
 * nothing is deferred while the real dlopen runs, and the object's slots are examined afterwards
 * (slots.c, HAZARDS G1). Any thread, constructors too: these run inside another dlopen, which
 * examines at its end. Holds no lock over the real functions, and leaves their errors and errno.
 */
#define _GNU_SOURCE
#include "shim/hook/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

#include "shim/base/hazard.h"
#include "shim/hook/elf.h"
#include "shim/hook/guard.h"
#include "shim/hook/handshake.h"
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

/* ---- the next functions behind this library ---- */

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

/* ---- the caller's object ---- */

struct ret {
    uintptr_t caller;
    const uint8_t *found, *program; /* a way back in the caller's object; one in the program */
};

/* Instructions after which the processor is back in cus_call_from. */
#if defined(__x86_64__)
static const uint8_t *find_way_back(const uint8_t *begin, size_t bytes) {
    return memchr(begin, 0xc3, bytes); /* ret */
}
#else
static const uint8_t *find_way_back(const uint8_t *begin, size_t bytes) {
    /* ldp x29, x30, [sp], #n, where n is 16 to 496 and a multiple of 16 */
    const uint32_t LDP = 0xa8c07bfd, LDP_MASK = 0xffe0ffff;
    const uint32_t AUTIASP = 0xd50323bf, RET = 0xd65f03c0;
    const uint32_t *end = (const uint32_t *)(begin + bytes / 4 * 4) - 2;
    for (const uint32_t *at = (const uint32_t *)begin; at < end; at++) {
        if ((*at & LDP_MASK) == LDP && *at & ~LDP_MASK && at[1 + (at[1] == AUTIASP)] == RET)
            return (const uint8_t *)at;
    }
    return NULL;
}
#endif

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
    const uint8_t *there = find_way_back(begin, segment->p_filesz);
    if (!ret->program)
        ret->program = there;
    if (!cus_elf_holds(info, ret->caller))
        return 0;
    ret->found = there;
    return 1;
}

/* The loader finds by the return address of dlopen where to look for a name without a slash, and
 * what $ORIGIN means. If the calling code belongs to no object, it counts as the program's. */
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

/* ---- around dlopen ---- */

/* The number of dlopens that this thread is inside of. Inside one, the thread may hold the
 * loader's lock, so it must not wait for a thread that is inside the driver. */
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

/* The last thread to leave its dlopen examines the objects. It leaves if no other thread came
 * meanwhile. */
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

/* Leaves dlerror and errno as the real function left them. `why`: the reason to defer nothing
 * any more, or NULL. */
static void end(const char *why) {
    struct cus_guard guard;
    if (why)
        cus_lifecycle_defer_off_later(why);
    if (CUS_HAZARD(G1) && leave())
        why = "";
    if (!--inside && why && cus_guard_enter(&guard))
        cus_guard_leave(&guard); /* cus_guard_enter calls cus_lifecycle_attend */
}

EXPORT void *dlopen(const char *name, int flags) {
    const void *caller = __builtin_return_address(0);
    if (!name || flags & RTLD_NOLOAD) /* this opens nothing new */
        return open_for(caller, name, flags);
    begin();
    void *handle = open_for(caller, name, flags);
    bool driver = strncmp(cus_elf_base(name), "libcuda.so", 10) == 0;
    /* This may be the only hint that libcuda is there: behind another interposer, no other call
     * may reach this library. */
    if (handle && driver)
        cus_real_find();
    end(NULL);
    if (!handle && driver)
        cus_handshake_absent();
    return handle;
}

/* An object in another namespace is bound to nothing of this namespace, and may have a libcuda
 * of its own. */
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

/* After the close, another object may lie at the same address. The table is emptied before,
 * because the address is free from then on, and after, because the object's destructors may have
 * launched. */
EXPORT int dlclose(void *handle) {
    cus_runtime_forget();
    int result = cus_loader_close(handle);
    cus_runtime_forget();
    return result;
}
