/*
 * Finds objects whose references to the driver or the loader bypass this library.
 */
#ifndef CUSPLICE_HOOK_SLOTS_H
#define CUSPLICE_HOOK_SLOTS_H

#include <stdbool.h>

/*
 * Examines the objects that were loaded since the last call. Changes their slots so that they lead
 * to this library, and looks for libraries with a private route to the GPU (routes.c). Returns why
 * nothing may be deferred any more, or NULL; the text stays valid. Only after cus_real_find
 * returned true. If nothing was loaded, the call reads one counter of the loader. `from_open`: the
 * caller is inside its own dlopen. While another thread is inside a dlopen, nothing is examined;
 * the last thread to leave its dlopen does so.
 */
const char *cus_slots_look(bool from_open);

#endif
