/*
 * Which mechanisms a build for ablation leaves out. The shipped library has none of this.
 *
 * The constructor reads CUSPLICE_WITHOUT once, before the program starts a thread. base/config.c
 * reports unknown names in it.
 */
#define _GNU_SOURCE /* secure_getenv */
#include "shim/base/pays.h"

#ifdef CUS_ABLATE
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

uint32_t cus_pays_off;

_Static_assert(CUS_PAYS_ROWS <= 32, "a bit for each row");

/* True: `name` is this word, or begins with the word and an underscore. */
static int is_named(const char *name, const char *word, size_t bytes) {
    return bytes && strncmp(name, word, bytes) == 0 && (name[bytes] == 0 || name[bytes] == '_');
}

uint32_t cus_pays_named(const char *list, const char **unknown) {
    static const char *const names[] = {
#define PAYS(id, name, what) name,
#include "shim/base/pays.def"
#undef PAYS
    };
    uint32_t named = 0;
    *unknown = NULL;
    while (*list) {
        size_t bytes = strcspn(list, ",");
        uint32_t these = 0;
        for (unsigned i = 0; i < CUS_PAYS_ROWS; i++)
            these |= (uint32_t)is_named(names[i], list, bytes) << i;
        if (!these && !*unknown)
            *unknown = list;
        named |= these;
        list += bytes + (list[bytes] != 0);
    }
    return named;
}

__attribute__((constructor)) static void read_once(void) {
    const char *list = secure_getenv("CUSPLICE_WITHOUT"), *unknown;
    cus_pays_off = list ? cus_pays_named(list, &unknown) : 0;
}
#endif
