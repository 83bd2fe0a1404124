/*
 * A library that is opened locally and looks up its own functions; one has the name of a driver's
 * function.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef const char *text_fn(void);

const char *scope_c_text(void);
const char *scope_c_text(void) {
    return "c";
}

const char *scope_c_own(void);
const char *scope_c_own(void) {
    text_fn *own = (text_fn *)dlsym(RTLD_DEFAULT, "scope_c_text");
    return own ? own() : "none";
}

int cuInit(int unused);
int cuInit(int unused) {
    return unused;
}
