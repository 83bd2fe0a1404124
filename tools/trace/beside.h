/*
 * A file that is made beside its final name and renamed when it is whole. Every verb that writes a
 * file calls it, on one thread, since it reads the umask by setting it. The file is never more
 * readable than what it is made from.
 */
#ifndef CUSPLICE_TOOLS_TRACE_BESIDE_H
#define CUSPLICE_TOOLS_TRACE_BESIDE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BESIDE_PATH = 4096,
    BESIDE_INPUT = EDEADLK, /* the errno that says: PATH is what the file is to be made from */
};

struct beside {
    bool force;  /* a file that has the name is replaced */
    mode_t mode; /* that the file is to have */
    char path[BESIDE_PATH], partial[BESIDE_PATH + 32];
};

/* The mode of a file that is made from others: the bits for reading and writing that all of them
 * have, less the umask. `from` names them, up to a NULL; NULL: there are none. */
mode_t beside_mode(const char *const *from);
/* Is the file of this name one of these, up to a NULL, by another name or a link too? */
bool beside_is_one_of(const char *path, const char *const *from);
/* Do both names stand for one place in one folder, whether or not a file is there? */
bool beside_same(const char *a, const char *b);
/* Says what the file is to be called meanwhile: PATH.PID.partial, which is not there then. `from`:
 * what it is to be made from, as above. Returns 0 or an errno; EEXIST: PATH is there,
 * and `force` is not set; BESIDE_INPUT, also with `force`. */
int beside_plan(struct beside *beside, const char *path, bool force, const char *const *from);
/* The same, and makes the empty file and opens it for writing. Returns its descriptor, or -1
 * with errno. */
int beside_open(struct beside *beside, const char *path, bool force, const char *const *from);
/* Gives it its mode, and its name. Returns 0 or an errno; the partial file is gone either way. */
int beside_name(struct beside *beside);
/* Makes the whole file by `fill`, which returns false where it failed. Returns 0 or an errno. */
typedef bool beside_fill_fn(FILE *to, const void *context);
int beside_write(const char *path, bool force, const char *const *from, beside_fill_fn *fill,
                 const void *context);
/* Removes the partial file. */
void beside_remove(struct beside *beside);
/* What to tell of an errno of these. */
const char *beside_why(int error);

#ifdef __cplusplus
}
#endif

#endif
