/*
 * A library whose constructor calls the function at the address in CONSTRUCTED_CALLS.
 */
#include <stdint.h>
#include <stdlib.h>

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("CONSTRUCTED_CALLS");
    if (at)
        ((void (*)(void))(uintptr_t)strtoull(at, NULL, 10))();
}
