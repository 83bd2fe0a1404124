/*
 * Other interposers: objects beside this library that answer for the driver, or for dlsym.
 *
 * One in front of this library is found first by whoever is bound in the global scope. One behind
 * it is what would have been found without it, and is called by it (real.c).
 */
#ifndef CUSPLICE_HOOK_OTHERS_H
#define CUSPLICE_HOOK_OTHERS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/hook/entry.h"

/* The functions of the loader that this library exports, in this order everywhere. */
#define CUS_LOADER_FUNCTIONS(X)                                                                    \
    X(dlsym)                                                                                       \
    X(dlopen)                                                                                      \
    X(dlmopen)                                                                                     \
    X(dlclose)
enum cus_loader {
#define CUS_LOADER_ENUM(name) CUS_LOADER_##name,
    CUS_LOADER_FUNCTIONS(CUS_LOADER_ENUM)
#undef CUS_LOADER_ENUM
        CUS_LOADERS
};

enum { CUS_OTHERS = 15 };

struct cus_other {
    uintptr_t low, high;
    const char *path; /* the loader's */
    bool front;
    int row;     /* a function of the driver that it exports and this library watches; -1: none */
    void *dlsym; /* its own; NULL: none */
};

struct cus_others {
    unsigned n;
    struct cus_other list[CUS_OTHERS];
    bool front[CUS_API_ROWS];          /* the row is exported by an object in front */
    bool loader_in_front[CUS_LOADERS]; /* so is a function of the loader */
    uintptr_t loader_low, loader_high; /* the object with the C library's own dlsym */
    void *behind[CUS_API_ROWS];        /* the next export of the row, where it comes before the
                                          driver's in the global scope; or NULL */
};

/* Who stands before the driver in the global scope, `cuda` being an address in libcuda and `own`
 * its functions. One walk over the loader's list; then the C library's dlsym is asked for what
 * objects behind export. */
void cus_others_find(struct cus_others *others, uintptr_t cuda, void *const *own);
/* The one behind this library that holds the address; NULL: none. */
const struct cus_other *cus_others_behind(const struct cus_others *others, const void *address);

/* Tells the log and the launcher who is there. */
void cus_others_tell(const struct cus_others *others);
/*
 * Once, when the library starts, at depth 1 and with no lock: asks those in front what they answer.
 * Why nothing may be deferred beside them, or NULL; the text stays.
 */
const char *cus_others_start(void);
/* The same for a look-up: an object behind answered by a function of its own that it did not show
 * when the table was filled. */
void cus_others_met(const void *function, unsigned row);

#endif
