/*
 * Other interposers: objects beside this library that export functions of the driver or dlsym.
 *
 * The loader finds an interposer in front of this library first when it binds a name in the global
 * scope. An interposer behind this library is what the loader would find without it; the hooks call
 * that interposer (real.c).
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
    const char *path; /* the loader's string */
    bool front;
    int row;     /* a function of the driver that the object exports and this library watches;
                  * -1: none */
    void *dlsym; /* the object's own; NULL: none */
};

struct cus_others {
    unsigned n;
    struct cus_other list[CUS_OTHERS];
    bool front[CUS_API_ROWS];          /* an object in front exports the row */
    bool loader_in_front[CUS_LOADERS]; /* an object in front exports this function of the loader */
    uintptr_t loader_low, loader_high; /* the object with the C library's dlsym */
    void *behind[CUS_API_ROWS];        /* the next export of the row, if it comes before the
                                        * driver's in the global scope; or NULL */
};

/* Finds who stands before the driver in the global scope. `cuda` is an address in libcuda, and
 * `own` are libcuda's functions. The function walks the loader's list once, then asks the C
 * library's dlsym for what objects behind export. */
void cus_others_find(struct cus_others *others, uintptr_t cuda, void *const *own);
/* The interposer behind this library that holds the address; NULL: none. */
const struct cus_other *cus_others_behind(const struct cus_others *others, const void *address);

/* Writes to the log and to the hand-shake which interposers there are. */
void cus_others_tell(const struct cus_others *others);
/*
 * Called once when the library starts, at depth 1 and without a lock. Asks the interposers in front
 * what they answer. Returns why nothing may be deferred beside them, or NULL; the text stays valid.
 */
const char *cus_others_start(void);
/* Called by a look-up if an interposer behind answered with a function of its own that it did
 * not show when the table was filled. */
void cus_others_note(const void *function, unsigned row);

#endif
