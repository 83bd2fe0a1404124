/*
 * The loader's functions that this library exports: objects that come and go are seen.
 */
#ifndef CUSPLICE_HOOK_LOADER_H
#define CUSPLICE_HOOK_LOADER_H

/* What comes behind this library's exports in the global scope: a tool may stand before the
 * loader's own. For calls of this library's own; nothing is looked at. */
void *cus_loader_open(const char *name, int flags);
int cus_loader_close(void *handle);

/* entry_x86_64.S: function(a0, a1, a2), called from `there`, a `ret` in the object that asks. */
void *cus_call_from(const void *a0, const void *a1, const void *a2, void *function,
                    const void *there);

#endif
