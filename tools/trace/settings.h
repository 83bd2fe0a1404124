/*
 * The library's settings in the environment of a child that plays or measures. verb_calibrate.c,
 * tools/replay and tools/whatif call it in the child, which has one thread. It never changes the
 * parent.
 */
#ifndef CUSPLICE_TOOLS_TRACE_SETTINGS_H
#define CUSPLICE_TOOLS_TRACE_SETTINGS_H

#include "shim/base/options.h"

/* None of the user's holds any more, but for /etc/cusplice.conf. */
void settings_forget(void);
/* The variable that the key is short for. */
void settings_set(const char *key, const char *value);
/* Says what is wrong with a configuration on stderr. `context`: an int, which counts. */
void settings_tell(void *context, const struct cus_problem *problem);

#endif
