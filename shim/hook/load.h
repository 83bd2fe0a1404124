/*
 * Loading of modules and libraries: what comes before it, and which file the code is from.
 */
#ifndef CUSPLICE_HOOK_LOAD_H
#define CUSPLICE_HOOK_LOAD_H

/* Before the real call of this row: flushes, and looks whether a library with a private route to
 * the GPU was mapped. */
void cus_load_begins(unsigned row);
/* Behind it: `code`, a module or library, was loaded from memory at `image`, or from the file at
 * `path`; one of the two is NULL. */
void cus_load_ended(const void *code, const void *image, const char *path);

#endif
