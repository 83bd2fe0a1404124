/*
 * Opens a library beside it by a bare name; the loader finds the library by the RUNPATH of this
 * one.
 */
#include <dlfcn.h>

#include "tests/gpu/programs/plugin.h"

void *plugin_open(const char *name, int flags);
void *plugin_open(const char *name, int flags) {
    /* Not the last thing that it does: who calls dlopen is told by where that returns. */
    void *volatile handle = dlopen(name, flags);
    return handle;
}
