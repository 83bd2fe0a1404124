/*
 * Turns what the real driver answered to a look-up into what the program receives.
 */
#ifndef CUSPLICE_HOOK_RESOLVE_H
#define CUSPLICE_HOOK_RESOLVE_H

#include <stdbool.h>

#include "shim/hook/entry.h"

/* True: the mode is off, and look-ups answer the real functions. The first call loads the
 * options. */
bool cus_resolve_off(void);

/*
 * The address to hand out for `function`, which the real driver or the loader answered for `name`.
 * `version` is that of cuGetProcAddress, 0 for dlsym. An address that is no function of the real
 * libcuda is returned unchanged. Only after cus_real_find returned true.
 */
void *cus_resolve(void *function, const char *name, int version);

/* ---- spare stubs (spare.c) ---- */

enum cus_spare_kind {
    CUS_SPARE_UNKNOWN,
    CUS_SPARE_GRAPHICS,
    CUS_SPARE_LOOK_UP,
    CUS_SPARE_CUPTI_FIRST
};

/* A stub that jumps to `function`; the same stub each time for the same function. NULL: none is
 * left. */
void *cus_spare_stub(void *function, const char *name, unsigned kind);
/* The function and the kind of stub `index`, counted from 0. */
void *cus_spare_function(unsigned index);
unsigned cus_spare_kind(unsigned index);

/* ---- cupti.c ---- */

/* The number of a watched CUPTI function with this name, or -1. */
int cus_cupti_find(const char *name);
/* The answer for a watched function that dlsym found. If `function` lies outside CUPTI, the
 * answer is `function`. If it is this library's export and CUPTI is not loaded, the answer is
 * NULL. */
void *cus_cupti_resolve(int which, void *function);
/* Called before a watched CUPTI function runs. */
void cus_cupti_before(int which, const struct cus_frame *frame);
/* The real CUPTI function behind the exported symbol, for a call from `caller` (NULL: from
 * anywhere). Never NULL. */
void *cus_cupti_real(int which, const void *caller);
/* Tells the engine if ops must be issued one by one for a profiler, or need not any more. Only
 * inside a hook. */
void cus_cupti_apply(void);

/* ---- routes.c ---- */

/* If the file is a library with a private route to the GPU, its name, at the first such library
 * only. Otherwise NULL. */
const char *cus_routes_see(const char *path);
/* Examines the objects that were loaded meanwhile (slots.h). For look-ups, which must not wait:
 * the next hook acts on the result. */
void cus_routes_look_later(void);

#endif
