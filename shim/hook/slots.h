/*
 * Objects whose references to the driver, or to the loader's functions, lead past this library.
 */
#ifndef CUSPLICE_HOOK_SLOTS_H
#define CUSPLICE_HOOK_SLOTS_H

#include <stdbool.h>

/*
 * Looks at the objects that were loaded since the last look: leads their slots here, and looks for
 * libraries with a private route to the GPU (routes.c). Why nothing may be deferred any more, or
 * NULL; the text stays. cus_real_find was true. One look at a counter of the loader where nothing
 * was loaded. `from_open`: the caller is inside its own dlopen; while any other thread is in one,
 * nothing is looked at: that one's end looks.
 */
const char *cus_slots_look(bool from_open);

#endif
