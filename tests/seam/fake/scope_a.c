/* A library that looks up, in the libraries after it, a function that it also has itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef const char *text_fn(void);

const char *scope_text(void);
const char *scope_text(void) {
    return "a";
}

const char *scope_a_next(void);
const char *scope_a_next(void) {
    text_fn *next = (text_fn *)dlsym(RTLD_NEXT, "scope_text");
    return next ? next() : "none";
}
