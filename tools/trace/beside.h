/*
 * A file that is made beside its final name and gets it when it is whole: what stands under the
 * name is all of it or what was there before.
 */
#ifndef CUSPLICE_TOOLS_TRACE_BESIDE_H
#define CUSPLICE_TOOLS_TRACE_BESIDE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BESIDE_PATH = 4096 };

struct beside {
    bool force; /* a file that has the name is replaced */
    char path[BESIDE_PATH], partial[BESIDE_PATH + 32];
};

/* Says what the file is to be called meanwhile: PATH.PID.partial, which is not there then. Returns
 * 0 or an errno; EEXIST: PATH is there, and `force` is not set. */
int beside_plan(struct beside *beside, const char *path, bool force);
/* The same, and makes the empty file and opens it for writing. Returns its descriptor, or -1
 * with errno. */
int beside_open(struct beside *beside, const char *path, bool force);
/* Gives it its name. Returns 0 or an errno; the partial file is gone either way. */
int beside_name(struct beside *beside);
/* Removes the partial file. */
void beside_remove(struct beside *beside);
/* What to tell of an errno of these. */
const char *beside_why(int error);

#ifdef __cplusplus
}
#endif

#endif
