/*
 * What the hooks remember of handles: which functions the program asked about, and which values it
 * set.
 */
#ifndef CUSPLICE_HOOK_HANDLES_H
#define CUSPLICE_HOOK_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

/* True at the first call for this function or kernel handle in the current context. Remembers
 * the handle. */
bool cus_touch_first(const void *handle);
/* Called before handles go: the driver may give a handle out again with another meaning. */
void cus_touch_forget(void);

/* A call of a setter as data. `value` holds the `bytes` bytes to compare. With 0 bytes the value
 * never counts as the same. */
struct cus_setting_call {
    const void *handle;
    uint64_t attribute; /* the setter, and which attribute it sets */
    uint64_t place;     /* the device or context that the setting is for */
    uint8_t value[40];
    uint32_t bytes;
};
/* True: the last successful call with the same handle, attribute and place set the same value. */
bool cus_settings_same(const struct cus_setting_call *call);
/* Called after the setter succeeded. */
void cus_settings_remember(const struct cus_setting_call *call);
/* Forgets what the program set for `handle`; NULL: everything. */
void cus_settings_forget(const void *handle);

#endif
