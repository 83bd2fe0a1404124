/*
 * Finds the real libcuda, if the program has loaded it; this file never loads it. If other
 * interposers stand behind this library, this file asks them for each function as the program would
 * have done (HAZARDS G3). Runs on the thread that first looks something up or calls an exported
 * symbol, possibly in a constructor under the loader's lock. Takes no lock of its own: two threads
 * may fill the table at once, with the same values. Never calls the driver.
 */
#define _GNU_SOURCE
#include "shim/hook/real.h"

#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/pays.h"
#include "shim/hook/elf.h"
#include "shim/hook/handshake.h"
#include "shim/hook/loader.h"
#include "shim/hook/resolve.h"

#include "shim/base/forbid.h"

void *cus_real_functions[CUS_API_ROWS + CUS_ENTRY_SPARE];

struct row_of {
    uintptr_t function;
    uint32_t row;
};

/* All that is known once libcuda is found; frozen when published. */
struct real {
    void *handle;
    uintptr_t low, high; /* the object in memory */
    const char *path;
    unsigned rows, has;
    void *own[CUS_API_ROWS];                /* the driver's; NULL: the driver has none */
    struct row_of sorted[2 * CUS_API_ROWS]; /* by function, then by row; with the functions of
                                             * interposers */
    struct cus_others others;
    int before_launches; /* the first row that launches work and is an interposer's; -1: none */
    const char *before_path;
};

static struct real *found; /* atomic */

/* The first thread that asks uses this one, since a failed allocation would leave the hooks
 * without real functions. Another thread that asks meanwhile allocates its own. */
static struct real first;
static uint32_t first_taken; /* atomic */

static __thread bool asking __attribute__((tls_model("initial-exec")));

typedef void *dlsym_fn(void *handle, const char *name);

unsigned cus_real_absent(void) {
    return CUDA_ERROR_NOT_INITIALIZED;
}

/* Stands for a symbol that this library exports and this driver lacks. */
static unsigned lacking(void) {
    return CUDA_ERROR_NOT_FOUND;
}

/* The object around an address. */
struct object {
    uintptr_t inside;
    uintptr_t low, high;
    const char *path;
};

static int measure(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct object *object = context;
    (void)bytes;
    if (!cus_elf_holds(info, object->inside))
        return 0;
    cus_elf_measure(info, &object->low, &object->high);
    object->path = info->dlpi_name;
    return 1;
}

/* Shell sort: it needs no recursion and no memory (qsort may allocate). */
static void sort(struct row_of *rows, unsigned count) {
    for (unsigned gap = count / 2; gap > 0; gap /= 2) {
        for (unsigned i = gap; i < count; i++) {
            struct row_of moved = rows[i];
            unsigned at = i;
            for (; at >= gap &&
                   (rows[at - gap].function > moved.function ||
                    (rows[at - gap].function == moved.function && rows[at - gap].row > moved.row));
                 at -= gap)
                rows[at] = rows[at - gap];
            rows[at] = moved;
        }
    }
}

static void add(struct real *real, void *function, unsigned row) {
    real->sorted[real->rows++] = (struct row_of){(uintptr_t)function, row};
}

static void fill_own(struct real *real) {
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    struct object object = {0};
    for (unsigned row = 0; row < CUS_API_ROWS; row++) {
        real->own[row] = look(real->handle, cus_api_rows[row].name);
        if (!real->own[row])
            continue;
        real->has++;
        object.inside = (uintptr_t)real->own[row];
        add(real, real->own[row], row);
    }
    dl_iterate_phdr(measure, &object);
    real->low = object.low;
    real->high = object.high;
    real->path = object.path;
}

/* What the program would have received without this library. */
static void *chained(const struct real *real, unsigned row) {
    dlsym_fn *next = (dlsym_fn *)cus_dlsym_next();
    void *function = NULL;
    if (!CUS_HAZARD(G3))
        return real->own[row];
    if ((void *)next != cus_dlsym_find()) {
        asking = true;
        function = next(real->handle, cus_api_rows[row].name);
        asking = false;
    }
    if (function && function != real->own[row] && function != cus_entry_hooks[row])
        return function;
    return real->others.behind[row] ? real->others.behind[row] : real->own[row];
}

/* Stands for a launch in a build for ablation that makes none (base/pays.def). */
static unsigned no_launch(void) {
    return CUDA_SUCCESS;
}

/* What the hook of a row calls. */
static void *called(unsigned row, void *function) {
    if (!function)
        return (void *)lacking;
    bool launches =
        !CUS_PAYS(LAUNCHES) && strncmp(cus_api_rows[row].name, "cuLaunchKernel", 14) == 0;
    return launches ? (void *)no_launch : function;
}

bool cus_real_is_launch(unsigned row) {
    return cus_api_rows[row].kind == CUS_CLASS_OP || cus_api_rows[row].act == CUS_ACT_COUNT;
}

static void fill(struct real *real) {
    fill_own(real);
    cus_others_find(&real->others, real->low, real->own);
    real->before_launches = -1;
    for (unsigned row = 0; row < CUS_API_ROWS; row++) {
        void *function = chained(real, row);
        if (function && function != real->own[row]) {
            add(real, function, row);
            if (real->before_launches < 0 && cus_real_is_launch(row)) {
                struct object object = {.inside = (uintptr_t)function, .path = "?"};
                dl_iterate_phdr(measure, &object);
                real->before_launches = (int)row;
                real->before_path = object.path;
            }
        }
        __atomic_store_n(&cus_real_functions[row], called(row, function), __ATOMIC_RELAXED);
    }
    sort(real->sorted, real->rows);
}

bool cus_real_found(void) {
    return __atomic_load_n(&found, __ATOMIC_ACQUIRE) != NULL;
}

bool cus_real_find(void) {
    if (cus_real_found() || asking)
        return cus_real_found();
    int error = errno;
    /* Opened by soname, so that any path is found under which the program loaded libcuda. The
     * handle is kept open: the functions that were handed out must stay. */
    void *handle = cus_loader_open("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    struct real *real = NULL;
    if (handle)
        real = __atomic_exchange_n(&first_taken, 1, __ATOMIC_ACQ_REL) ? cus_mem_alloc(sizeof *real)
                                                                      : &first;
    if (real) {
        struct real *nobody = NULL;
        real->handle = handle;
        fill(real);
        if (!__atomic_compare_exchange_n(&found, &nobody, real, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
            if (real != &first)
                cus_mem_free(real);
        } else {
            cus_log(CUS_DEBUG, "hook", "libcuda is %s, %u of %d entry points",
                    real->path ? real->path : "?", real->has, CUS_API_ROWS);
            cus_handshake_loaded();
            if (!cus_resolve_off())
                cus_others_tell(&real->others);
        }
    }
    /* The program must not see the errors of these look-ups. */
    dlerror();
    errno = error;
    return cus_real_found();
}

bool cus_real_has(unsigned row) {
    return __atomic_load_n(&cus_real_functions[row], __ATOMIC_RELAXED) != (void *)lacking;
}

/* True: `symbol` belongs to the plain name, as cuFoo_v2_ptsz to cuFoo. */
static bool belongs(const char *symbol, const char *name) {
    size_t length = strlen(name);
    return strncmp(symbol, name, length) == 0 && (symbol[length] == 0 || symbol[length] == '_');
}

int cus_real_row(const void *function, const char *name) {
    const struct real *real = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
    if (!real)
        return -1;
    unsigned low = 0, high = real->rows;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (real->sorted[middle].function < (uintptr_t)function)
            low = middle + 1;
        else
            high = middle;
    }
    int best = -1, fits = -1;
    for (; low < real->rows && real->sorted[low].function == (uintptr_t)function; low++) {
        int row = (int)real->sorted[low].row;
        if (name && strcmp(cus_api_rows[row].name, name) == 0)
            return row;
        if (fits < 0 && name && belongs(cus_api_rows[row].name, name))
            fits = row;
        /* If one function has several names, the row that is not PASS is the safe choice. */
        if (best < 0 || cus_api_rows[best].act == CUS_ACT_PASS)
            best = row;
    }
    return fits >= 0 ? fits : best;
}

static const struct real *known(void) {
    return __atomic_load_n(&found, __ATOMIC_ACQUIRE);
}

bool cus_real_holds(const void *address) {
    const struct real *real = known();
    return real && (uintptr_t)address >= real->low && (uintptr_t)address < real->high;
}

void *cus_real_handle(void) {
    const struct real *real = known();
    return real ? real->handle : NULL;
}

void *cus_real_own(unsigned row) {
    const struct real *real = known();
    return real ? real->own[row] : NULL;
}

bool cus_real_is_chained(unsigned row) {
    const struct real *real = known();
    void *function = __atomic_load_n(&cus_real_functions[row], __ATOMIC_RELAXED);
    return real && function != real->own[row] && function != (void *)lacking;
}

bool cus_real_is_chained_by_export(unsigned row) {
    const struct real *real = known();
    return real && cus_real_is_chained(row) &&
           __atomic_load_n(&cus_real_functions[row], __ATOMIC_RELAXED) == real->others.behind[row];
}

const struct cus_others *cus_real_others(void) {
    const struct real *real = known();
    return real ? &real->others : NULL;
}

bool cus_real_asking(void) {
    return asking;
}

const char *cus_real_before_launches(int *row) {
    const struct real *real = known();
    if (!real || real->before_launches < 0)
        return NULL;
    *row = real->before_launches;
    return real->before_path;
}
