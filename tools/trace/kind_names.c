#include "tools/trace/kind_names.h"

#include <stdlib.h>
#include <string.h>

#include "shim/plan/name.h"

/* Of the C++ runtime, which the tools are linked with. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *bytes, int *status);

static char *base_of(const char *mangled) {
    size_t bytes = strlen(mangled) + 1;
    char *base = malloc(bytes);
    if (base)
        cus_name_base(mangled, base, bytes);
    return base;
}

static char *demangled_of(const char *mangled) {
    int status;
    char *name =
        strncmp(mangled, "_Z", 2) == 0 ? __cxa_demangle(mangled, NULL, NULL, &status) : NULL;
    return name ? name : strdup(mangled);
}

struct kind_name *kind_names_make(const struct cst_trace *trace) {
    struct kind_name *names = calloc(trace->n_kinds + 1, sizeof *names);
    bool made = names;
    for (uint32_t i = 0; made && i < trace->n_kinds; i++) {
        if (!trace->kinds[i])
            continue;
        names[i].mangled = cst_string(trace, trace->kinds[i]->name);
        names[i].base = base_of(names[i].mangled);
        names[i].demangled = demangled_of(names[i].mangled);
        made = names[i].base && names[i].demangled;
    }
    if (made)
        return names;
    kind_names_free(names, trace->n_kinds);
    return NULL;
}

void kind_names_free(struct kind_name *names, uint32_t n) {
    for (uint32_t i = 0; names && i < n; i++) {
        free(names[i].base);
        free(names[i].demangled);
    }
    free(names);
}
