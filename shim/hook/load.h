/*
 * Loading of modules and libraries: what happens before it, and which file the code comes from.
 */
#ifndef CUSPLICE_HOOK_LOAD_H
#define CUSPLICE_HOOK_LOAD_H

/* Called before the real call of this row. Flushes, and checks whether a library with a private
 * route to the GPU was mapped. */
void cus_load_begins(unsigned row);
/* Called after the real call. The driver loaded `code`, a module or library, from memory at
 * `image` or from the file at `path`; the other of the two is NULL. */
void cus_load_ended(const void *code, const void *image, const char *path);

#endif
