/*
 * What the hooks remember of handles: which functions were touched, which values were set.
 */
#ifndef CUSPLICE_HOOK_HANDLES_H
#define CUSPLICE_HOOK_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

/* Is it the first time that this function or kernel handle is asked about in the current context?
 * Remembers it. */
bool cus_touch_first(const void *handle);
/* Handles may come back with another meaning. */
void cus_touch_forget(void);

/* A setter's call as data. `value` holds what is compared, of `bytes` bytes; 0 bytes: never the
 * same. */
struct cus_setting_call {
    const void *handle;
    uint64_t attribute; /* which setter and which of its attributes */
    uint64_t place;     /* device or context that the setting is for */
    uint8_t value[40];
    uint32_t bytes;
};
/* Is this value what the last successful call of the same handle, attribute and place set? */
bool cus_settings_same(const struct cus_setting_call *call);
/* The call succeeded. */
void cus_settings_remember(const struct cus_setting_call *call);
/* Forgets what was set for `handle`; NULL: everything. */
void cus_settings_forget(const void *handle);

#endif
