/*
 * Finds the real libcuda, which the program has loaded or not: this file never loads it.
 *
 * Runs on whatever thread looks something up or calls an exported symbol first, possibly inside a
 * constructor and thus under the loader's lock. So it takes no lock of its own: two threads may
 * fill the table side by side, with the same values. It must never call the driver.
 */
#define _GNU_SOURCE
#include "shim/hook/real.h"

#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>

#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/hook/handshake.h"

#include "shim/base/forbid.h"

void *cus_real_functions[CUS_API_ROWS + CUS_ENTRY_SPARE];

struct row_of {
    uintptr_t function;
    uint32_t row;
};

/* Everything that is known once libcuda is found; frozen when it is published. */
struct real {
    uintptr_t low, high; /* the object in memory */
    unsigned rows;
    struct row_of sorted[CUS_API_ROWS]; /* by function, then by row */
};

static struct real *found; /* atomic */

/* Of the thread that asks first: without it no call of the program would arrive, so that it must
 * not depend on memory. Another thread that asks meanwhile fills one of its own. */
static struct real first;
static uint32_t first_taken; /* atomic */

typedef void *dlsym_fn(void *handle, const char *name);

unsigned cus_real_absent(void) {
    return CUDA_ERROR_NOT_INITIALIZED;
}

/* For a symbol that this library exports and this driver lacks. */
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
    uintptr_t low = UINTPTR_MAX, high = 0;
    (void)bytes;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        if (begin < low)
            low = begin;
        if (begin + segment->p_memsz > high)
            high = begin + segment->p_memsz;
    }
    if (object->inside < low || object->inside >= high)
        return 0;
    object->low = low;
    object->high = high;
    object->path = info->dlpi_name;
    return 1;
}

/* Shell sort: no recursion, no allocation (qsort may allocate). */
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

static void fill(struct real *real, void *handle) {
    dlsym_fn *look = (dlsym_fn *)cus_dlsym_find();
    for (unsigned row = 0; row < CUS_API_ROWS; row++) {
        void *function = look(handle, cus_api_rows[row].name);
        if (function) {
            real->sorted[real->rows].function = (uintptr_t)function;
            real->sorted[real->rows++].row = row;
        } else {
            function = (void *)lacking;
        }
        __atomic_store_n(&cus_real_functions[row], function, __ATOMIC_RELAXED);
    }
    sort(real->sorted, real->rows);
}

bool cus_real_found(void) {
    return __atomic_load_n(&found, __ATOMIC_ACQUIRE) != NULL;
}

bool cus_real_find(void) {
    if (cus_real_found())
        return true;
    int error = errno;
    /* By soname, so that it does not matter under which path the program loaded it. The handle is
     * kept: what we hand out must stay. */
    void *handle = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    struct real *real = NULL;
    if (handle)
        real = __atomic_exchange_n(&first_taken, 1, __ATOMIC_ACQ_REL) ? cus_mem_alloc(sizeof *real)
                                                                      : &first;
    if (real) {
        struct real *nobody = NULL;
        struct object object = {0};
        fill(real, handle);
        object.inside = real->rows ? real->sorted[0].function : 0;
        dl_iterate_phdr(measure, &object);
        real->low = object.low;
        real->high = object.high;
        if (!__atomic_compare_exchange_n(&found, &nobody, real, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
            if (real != &first)
                cus_mem_free(real);
        } else {
            cus_log(CUS_DEBUG, "hook", "libcuda is %s, %u of %d entry points",
                    object.path ? object.path : "?", real->rows, CUS_API_ROWS);
            cus_handshake_loaded();
        }
    }
    /* The look-ups above that failed are nothing that the program shall hear of. */
    dlerror();
    errno = error;
    return cus_real_found();
}

bool cus_real_has(unsigned row) {
    return __atomic_load_n(&cus_real_functions[row], __ATOMIC_RELAXED) != (void *)lacking;
}

/* Does `symbol` belong to the plain name that was asked for (cuFoo_v2_ptsz to cuFoo)? */
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
    int best = -1;
    for (; low < real->rows && real->sorted[low].function == (uintptr_t)function; low++) {
        int row = (int)real->sorted[low].row;
        if (name && belongs(cus_api_rows[row].name, name))
            return row;
        /* Of several names for one function the one that is not PASS errs on the safe side. */
        if (best < 0 || cus_api_rows[best].act == CUS_ACT_PASS)
            best = row;
    }
    return best;
}

bool cus_real_holds(const void *address) {
    const struct real *real = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
    return real && (uintptr_t)address >= real->low && (uintptr_t)address < real->high;
}
