/*
 * The ways by which a CUDA program finds the driver's functions; route_elf.c has the linker's way.
 * A preloaded library must intercept calls on each way.
 *
 * Runs on the main thread before any other CUDA call. Holds no lock; calls no driver function but
 * cuGetProcAddress.
 */
#include "harness/scenario/sc.h"
#include "harness/sim/cusim_next.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef CUresult (*v1_fn)(const char *, void **, int, cuuint64_t);
typedef CUresult (*v2_fn)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
typedef int (*entry_fn)(const char *, void **, unsigned, unsigned long long, int *);

struct entry {
    void **where;
    const char *symbol, *name;
    int version;
    cuuint64_t flags;
};

static void *library(const char *name) {
    void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        fprintf(stderr, "scenario: %s\n", dlerror());
    }
    return lib;
}

static bool by_dlsym(const struct entry *entry) {
    static void *lib;
    if (!lib && !(lib = library("libcuda.so.1"))) {
        return false;
    }
    *entry->where = dlsym(lib, entry->symbol);
    return *entry->where != NULL;
}

/* Uses the five-argument look-up that the library exports, then the one that it returns for its
 * own name. */
static bool by_getproc(const struct entry *entry) {
    static v2_fn look;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!look) {
        void *lib = library("libcuda.so.1"), *self = NULL;
        look = lib ? (v2_fn)dlsym(lib, "cuGetProcAddress_v2") : NULL;
        if (!look || look("cuGetProcAddress", &self, 12000, 0, &found) != CUDA_SUCCESS || !self) {
            return false;
        }
        look = (v2_fn)self;
    }
    return look(entry->name, entry->where, entry->version, entry->flags, &found) == CUDA_SUCCESS &&
           found == CU_GET_PROC_ADDRESS_SUCCESS && *entry->where;
}

/* The look-up of a program for CUDA 11.3: four arguments, also if found by its own name. */
static bool by_getproc11(const struct entry *entry) {
    static v1_fn look;
    if (!look) {
        CUdriverProcAddressQueryResult found;
        void *lib = library("libcuda.so.1"), *self = NULL;
        v2_fn first = lib ? (v2_fn)dlsym(lib, "cuGetProcAddress_v2") : NULL;
        if (!first || first("cuGetProcAddress", &self, 11030, 0, &found) != CUDA_SUCCESS || !self) {
            return false;
        }
        look = (v1_fn)self;
        /* It also finds itself, by the version of CUDA 11.3. */
        if (look("cuGetProcAddress", &self, 11030, 0) != CUDA_SUCCESS || !self) {
            return false;
        }
        look = (v1_fn)self;
    }
    return look(entry->name, entry->where, entry->version, entry->flags) == CUDA_SUCCESS &&
           *entry->where;
}

/* Calls about memory by a look-up that nobody knows: what the driver answers for its own name and
 * the newest version (simulator of 14000). All else by dlsym. */
static bool by_getproc14(const struct entry *entry) {
    static cusim_next_look look;
    if (strncmp(entry->name, "cuMem", strlen("cuMem")) != 0) {
        return by_dlsym(entry);
    }
    if (!look) {
        CUdriverProcAddressQueryResult found;
        void *lib = library("libcuda.so.1"), *self = NULL;
        v2_fn first = lib ? (v2_fn)dlsym(lib, "cuGetProcAddress_v2") : NULL;
        if (!first || first("cuGetProcAddress", &self, 14000, 0, &found) != CUDA_SUCCESS || !self) {
            return false;
        }
        look = (cusim_next_look)self;
    }
    struct cusim_next_question question = {entry->where, entry->name, entry->version, entry->flags};
    return look(&question) == CUDA_SUCCESS && *entry->where;
}

/* The four-argument look-up that the library exports. */
static bool by_export(const struct entry *entry) {
    static v1_fn look;
    if (!look) {
        void *lib = library("libcuda.so.1");
        look = lib ? (v1_fn)dlsym(lib, "cuGetProcAddress") : NULL;
        if (!look) {
            return false;
        }
    }
    return look(entry->name, entry->where, entry->version, entry->flags) == CUDA_SUCCESS &&
           *entry->where;
}

/* The runtime's way to the driver. The runtime is opened here, so other routes need none. */
static bool by_runtime(const struct entry *entry) {
    static entry_fn look;
    if (!look) {
        void *lib = library("libcudart.so.13");
        look = lib ? (entry_fn)dlsym(lib, "cudaGetDriverEntryPointByVersion") : NULL;
        if (!look) {
            return false;
        }
    }
    int found = -1;
    return look(entry->name, entry->where, (unsigned)entry->version, entry->flags, &found) == 0 &&
           found == 0 && *entry->where;
}

static const struct {
    const char *name;
    bool (*find)(const struct entry *entry);
} routes[] = {
    {"dlsym", by_dlsym},         {"getproc", by_getproc}, {"getproc11", by_getproc11},
    {"getproc14", by_getproc14}, {"export", by_export},   {"runtime", by_runtime},
};

/* Replaces a function that the driver is too old for; a scenario that needs it says so. */
static CUresult too_old(void) {
    return CUDA_ERROR_NOT_FOUND;
}

/* cuDriverGetVersion is among the first entries, so it is known when another one is missing. */
static bool older_than(const struct sc_api *cu, int version) {
    int driver = 0;
    return cu->DriverGetVersion && cu->DriverGetVersion(&driver) == CUDA_SUCCESS &&
           driver < version;
}

bool sc_route_fill(const char *route, struct sc_api *cu) {
    if (strcmp(route, "elf") == 0) {
        return sc_route_elf && sc_route_elf(cu);
    }
    const struct entry entries[] = {
#define SC_API(field, symbol, name, version, flags, params)                                        \
    {(void **)&cu->field, #symbol, #name, version, flags},
#include "harness/scenario/api.def"
#undef SC_API
    };
    for (size_t r = 0; r < sizeof(routes) / sizeof(routes[0]); r++) {
        if (strcmp(route, routes[r].name) != 0) {
            continue;
        }
        for (size_t e = 0; e < sizeof(entries) / sizeof(entries[0]); e++) {
            if (routes[r].find(&entries[e])) {
                continue;
            }
            if (older_than(cu, entries[e].version)) {
                *entries[e].where = (void *)too_old;
            } else {
                fprintf(stderr, "scenario: route %s finds no %s\n", route, entries[e].symbol);
                return false;
            }
        }
        return true;
    }
    fprintf(stderr, "scenario: no route %s\n", route);
    return false;
}
