/*
 * Makes the three forms of each kind's name. verb_export.c calls it. Kinds of one name share the
 * texts; it never changes the trace.
 */
#include "tools/trace/kind_names.h"

#include <stdlib.h>
#include <string.h>

#include "shim/plan/name.h"
#include "tools/trace/demangle.h"

static char *base_of(const char *mangled) {
    size_t bytes = strlen(mangled) + 1;
    char *base = malloc(bytes);
    if (base)
        cus_name_base(mangled, base, bytes);
    return base;
}

static char *demangled_of(const char *mangled) {
    char *name = demangle(mangled);
    return name ? name : strdup(mangled);
}

struct kind_name *kind_names_make(const struct cst_trace *trace) {
    struct kind_name *names = calloc(trace->n_kinds + (size_t)1, sizeof *names);
    const struct kind_name **known = calloc(trace->n_texts + (size_t)1, sizeof *known);
    bool made = names && known;
    for (uint32_t i = 0; made && i < trace->n_kinds; i++) {
        if (!trace->kinds[i])
            continue;
        const struct kind_name **same = &known[cst_text_number(trace, trace->kinds[i]->name)];
        if (*same) {
            names[i] = **same;
            names[i].own = false;
            continue;
        }
        names[i].own = true;
        names[i].mangled = cst_string(trace, trace->kinds[i]->name);
        names[i].base = base_of(names[i].mangled);
        names[i].demangled = demangled_of(names[i].mangled);
        made = names[i].base && names[i].demangled;
        *same = &names[i];
    }
    free(known);
    if (made)
        return names;
    kind_names_free(names, trace->n_kinds);
    return NULL;
}

void kind_names_free(struct kind_name *names, uint32_t n) {
    for (uint32_t i = 0; names && i < n; i++) {
        if (!names[i].own)
            continue;
        free(names[i].base);
        free(names[i].demangled);
    }
    free(names);
}
