/* Makes and keeps names. Reports call it by names_of, on one thread. It never changes the trace. */
#include "tools/trace/names.h"

#include <stdlib.h>
#include <string.h>

#include "shim/plan/name.h"
#include "tools/trace/demangle.h"

const char *const names_forms[] = {"base", "demangled", "mangled", NULL};

struct names {
    const struct cst_trace *trace;
    enum names_form form;
    char **made; /* by number of the text: many kinds may have one name */
};

struct names *names_make(const struct cst_trace *trace, enum names_form form) {
    struct names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->trace = trace;
    names->form = form;
    names->made = calloc(trace->n_texts + (size_t)1, sizeof *names->made);
    if (names->made)
        return names;
    free(names);
    return NULL;
}

void names_free(struct names *names) {
    if (!names)
        return;
    for (uint32_t i = 0; i < names->trace->n_texts; i++)
        free(names->made[i]);
    free(names->made);
    free(names);
}

/* nvcc puts __nv_static_LENGTH_MODULE_ in front of what is local to a file. */
static const char *behind_prefix(const char *name) {
    const char *at = strncmp(name, "__nv_static_", 12) == 0 ? strstr(name, "_Z") : NULL;
    return at ? at : name;
}

static char *make(enum names_form form, const char *mangled) {
    if (form == NAMES_DEMANGLED)
        return demangle(behind_prefix(mangled));
    size_t bytes = 2 * strlen(mangled) + 64; /* an operator's name is longer than its code */
    char *base = malloc(bytes);
    if (base)
        cus_name_base(mangled, base, bytes);
    return base;
}

const char *names_of(struct names *names, uint32_t id) {
    const struct cst_kind *kind = id < names->trace->n_kinds ? names->trace->kinds[id] : NULL;
    const char *name = kind ? cst_string(names->trace, kind->name) : "";
    if (!*name)
        return "(no name)";
    if (kind->op != CST_OP_LAUNCH || names->form == NAMES_MANGLED)
        return name;
    char **made = &names->made[cst_text_number(names->trace, kind->name)];
    if (!*made && !(*made = make(names->form, name)))
        *made = strdup(name); /* it is none, or too much: not to be tried for each kind */
    return *made && **made ? *made : name;
}
