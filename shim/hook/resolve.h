/*
 * From what the real driver answered to what the program is given.
 */
#ifndef CUSPLICE_HOOK_RESOLVE_H
#define CUSPLICE_HOOK_RESOLVE_H

#include <stdbool.h>

#include "shim/hook/entry.h"

/* The mode is off: look-ups answer the real functions. Loads the options at the first call. */
bool cus_resolve_off(void);

/*
 * The address to hand out for `function`, which the real driver (or the loader) answered for
 * `name`. `version` is that of cuGetProcAddress, 0 for dlsym. Anything that is not a function of
 * the real libcuda is its own answer. cus_real_find was true.
 */
void *cus_resolve(void *function, const char *name, int version);

/* ---- spare stubs (spare.c) ---- */

enum cus_spare_kind { CUS_SPARE_UNKNOWN, CUS_SPARE_GRAPHICS, CUS_SPARE_CUPTI_FIRST };

/* A stub that goes to `function`, always the same one for the same function; NULL: there are none
 * left. */
void *cus_spare_stub(void *function, const char *name, unsigned kind);
/* What a stub is; `index` counts from 0. */
void *cus_spare_function(unsigned index);
unsigned cus_spare_kind(unsigned index);

/* ---- cupti.c ---- */

/* Does the name belong to a function of the profiler's library that is watched? Its number, or -1.
 */
int cus_cupti_find(const char *name);
/* The answer for a watched function that dlsym found: itself, where it does not lie in the
 * profiler's library; NULL, where it is our own export and that library is not there. */
void *cus_cupti_resolve(int which, void *function);
/* A watched function is about to be called. */
void cus_cupti_before(int which, const struct cus_frame *frame);
/* The real function behind the exported symbol, for a call from `caller` (NULL: from anywhere);
 * never NULL. */
void *cus_cupti_real(int which, const void *caller);
/* Tells the engine where the need for launches one by one has changed. Only inside a hook. */
void cus_cupti_apply(void);

/* ---- routes.c ---- */

/* The name of the library with a private route to the GPU that this file is, the first time that
 * one is seen; NULL: it is none. */
const char *cus_routes_see(const char *path);
/* Looks at what was loaded meanwhile (slots.h), for look-ups, which must not wait for anything: the
 * next hook acts. */
void cus_routes_look_later(void);

#endif
