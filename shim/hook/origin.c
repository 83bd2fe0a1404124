/*
 * Finds which library a call of the runtime would have reached without this library. A process may
 * hold several runtimes, and each knows only the kernels that were registered with it. Any thread,
 * in constructors too. The walk holds the lock under which objects come and go. It avoids the lock
 * that the loader holds while constructors run, since a constructor may wait for a thread that
 * launches. Only doubtful cases ask the loader, which takes that lock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>

#include "shim/hook/elf.h"
#include "shim/hook/entry.h"
#include "shim/hook/loader.h"
#include "shim/hook/runtime.h"

#include "shim/base/forbid.h"

/* From version 12 on, cudaSetDevice makes the device's context current at once. The current
 * context is then the one that the runtime uses. */
enum { VERSION_MIN = 12, DEFINERS = 16 };

typedef void *dlsym_fn(void *handle, const char *name);

static const char *const names[CUS_RUNTIMES] = {
#define NAME(name) #name,
    CUS_RUNTIME_FUNCTIONS(NAME)
#undef NAME
};

int cus_runtime_find(const char *name) {
    for (int i = 0; i < CUS_RUNTIMES; i++) {
        if (strcmp(name, names[i]) == 0)
            return i;
    }
    return -1;
}

/* 13 for libcudart.so.13, whatever stands between the two parts; 0: the name is no runtime's. */
static unsigned version_of(const char *soname) {
    unsigned version = 0;
    const char *at = strncmp(soname, "libcudart", 9) == 0 ? strstr(soname, ".so.") : NULL;
    for (at = at ? at + 4 : ""; *at >= '0' && *at <= '9' && version < 1000; at++)
        version = 10 * version + (unsigned)(*at - '0');
    return version;
}

struct definer {
    void *function;
    const char *soname;
    unsigned version;
    bool with_kernel, with_caller; /* this object holds the kernel or the caller */
};

struct walk {
    const char *name;
    uint32_t hash;
    uintptr_t kernel, caller;
    unsigned n; /* in the order in which they were loaded */
    struct definer definers[DEFINERS];
    uintptr_t address; /* for the second walk: lies in the object whose needs are read */
    const struct definer *needed;
};

static int find_definers(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct walk *walk = context;
    struct cus_object object;
    (void)bytes;
    if (cus_elf_holds(info, (uintptr_t)&version_of)) {
        walk->n = 0;
        return 0;
    }
    if (!cus_elf_read(info, &object))
        return 0;
    void *function = cus_elf_exported(&object, walk->name, walk->hash);
    if (function && walk->n < DEFINERS)
        walk->definers[walk->n++] =
            (struct definer){.function = function,
                             .soname = object.soname,
                             .version = version_of(object.soname),
                             .with_kernel = cus_elf_holds(info, walk->kernel),
                             .with_caller = cus_elf_holds(info, walk->caller)};
    return 0;
}

/* Finds which definer the object at `address` names among its needed libraries. */
static int find_needed(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct walk *walk = context;
    struct cus_object object;
    (void)bytes;
    if (!cus_elf_holds(info, walk->address) || !cus_elf_read(info, &object))
        return 0;
    for (const ElfW(Dyn) *entry = object.dynamic; entry < object.dynamic_end; entry++) {
        if (entry->d_tag != DT_NEEDED)
            continue;
        for (unsigned i = 0; i < walk->n; i++) {
            if (strcmp(cus_elf_text(&object, entry->d_un.d_val), walk->definers[i].soname) == 0) {
                walk->needed = &walk->definers[i];
                return 1;
            }
        }
    }
    return 1;
}

static const struct definer *needed_at(struct walk *walk, uintptr_t address) {
    walk->address = address;
    walk->needed = NULL;
    dl_iterate_phdr(find_needed, walk);
    return walk->needed;
}

static int find_object(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct walk *walk = context;
    (void)bytes;
    if (!cus_elf_holds(info, walk->address))
        return 0;
    walk->n = cus_elf_holds(info, (uintptr_t)walk->name);
    return 1;
}

bool cus_runtime_same_object(const void *one, const void *other) {
    struct walk walk = {.address = (uintptr_t)one, .name = other};
    dl_iterate_phdr(find_object, &walk);
    return walk.n != 0;
}

/* What the global scope has behind this library. */
static void *next_of(int which) {
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    void *next = look(RTLD_NEXT, names[which]);
    if (!next)
        dlerror();
    return next;
}

void *cus_runtime_behind(int which, const void *caller) {
    int error = errno;
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    void *found = next_of(which), *handle = NULL;
    Dl_info info;
    if (!found && dladdr(caller, &info) && info.dli_fname)
        handle = cus_loader_open(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    if (handle) {
        found = look(handle, names[which]);
        cus_loader_close(handle); /* the caller keeps the object loaded */
        dlerror();
    }
    errno = error;
    return found != cus_runtime_export(which) ? found : NULL;
}

static const struct definer *of_function(const struct walk *walk, const void *function) {
    for (unsigned i = 0; i < walk->n; i++) {
        if (walk->definers[i].function == function)
            return &walk->definers[i];
    }
    return NULL;
}

/* `one` is what an object has or needs. It counts if it is a runtime. If it is not, the object
 * was bound to it only if it was loaded before what the global scope has. */
static const struct definer *if_bound(const struct definer *one, const struct definer *next) {
    return one && (one->version || !next || one < next) ? one : NULL;
}

/*
 * Chooses among the objects that export the function, in this order:
 *
 *   1. The only one there is.
 *   2. If a library that is no runtime exports the name: what the kernel's object has itself,
 *      then that library, provided that the loader finds it first in the global scope.
 *   3. What the kernel's object was linked to, by name. The loader gives the first object of
 *      that name to everybody.
 *   4. What the calling object has itself, then what it was linked to.
 *   5. What the loader finds next in the global scope, then the first of the list.
 *
 * Objects before this library in the loader's list are not candidates: the program would have
 * called them in this library's place.
 */
static const struct definer *choose(struct walk *walk, enum cus_runtime which) {
    if (walk->n < 2)
        return walk->n ? walk->definers : NULL;
    const struct definer *next = NULL, *chosen, *kernels = NULL, *callers = NULL;
    bool others = false;
    for (unsigned i = 0; i < walk->n; i++) {
        const struct definer *one = &walk->definers[i];
        others |= !one->version;
        kernels = one->with_kernel ? one : kernels;
        callers = one->with_caller ? one : callers;
    }
    if (others) {
        next = of_function(walk, next_of(which));
        if ((chosen = if_bound(kernels, next)))
            return chosen;
        if (next && !next->version)
            return next;
    }
    if ((chosen = if_bound(needed_at(walk, walk->kernel), next)) ||
        (chosen = if_bound(callers, next)) ||
        (chosen = if_bound(needed_at(walk, walk->caller), next)) ||
        (chosen = next ? next : of_function(walk, next_of(which))))
        return chosen;
    return walk->definers;
}

struct cus_runtime_origin cus_runtime_origin(enum cus_runtime which, const void *kernel,
                                             const void *caller) {
    int error = errno;
    struct walk walk = {.name = names[which],
                        .hash = cus_elf_hash(names[which]),
                        .kernel = (uintptr_t)kernel,
                        .caller = (uintptr_t)caller};
    dl_iterate_phdr(find_definers, &walk);
    const struct definer *chosen = choose(&walk, which);
    void *function = chosen ? chosen->function : cus_runtime_behind((int)which, caller);
    /* This function called this library's export, and would do so again without end. */
    if (!chosen && function && cus_runtime_same_object(caller, function))
        function = NULL;
    errno = error;
    return (struct cus_runtime_origin){function, chosen && chosen->version >= VERSION_MIN};
}
