/*
 * Looks a name up in the rows of cuda_api.def and runtime_api.def. import.c calls it. An unknown
 * name is a barrier; it never fails.
 */
#include "tools/trace/call_class.h"

#include <stdio.h>
#include <string.h>

#include "shim/trace/format.h"

static const struct row {
    const char *name;
    enum call_kind kind;
    int scope;
    const char *act, *abi;
} rows[] = {
#define CUS_API(symbol, class, scope, arg, abi, act, reason)                                       \
    {#symbol, CALL_##class, CST_SCOPE_##scope, #act, #abi},
#include "shim/api/cuda_api.def"
#undef CUS_API
};

static const struct runtime {
    const char *name, *driver; /* driver: NULL where nothing is called that matters */
} runtimes[] = {
#define RUNTIME_API(runtime, driver) {#runtime, #driver},
#define RUNTIME_PASS(runtime) {#runtime, NULL},
#include "tools/trace/runtime_api.def"
#undef RUNTIME_API
#undef RUNTIME_PASS
};

static const struct row *find_row(const char *name) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* Takes `ending` off; false: it does not end so. */
static bool cut(char *name, const char *ending) {
    size_t n = strlen(name), m = strlen(ending);
    if (n <= m || strcmp(name + n - m, ending) != 0)
        return false;
    name[n - m] = 0;
    return true;
}

/* cudaLaunchKernel_v7000 and cudaLaunchKernel_ptsz_v7000 are cudaLaunchKernel. */
static void strip(char *name, bool *ptsz) {
    char *version = strrchr(name, '_');
    if (version && version[1] == 'v' && strlen(version) >= 6 &&
        strspn(version + 2, "0123456789") == strlen(version + 2))
        *version = 0;
    *ptsz = cut(name, "_ptsz") || cut(name, "_ptds");
}

static struct call_class of_row(const struct row *row, bool ptsz) {
    return (struct call_class){row->kind, row->scope, row->act, row->name, ptsz, true};
}

struct call_class call_class_of(const char *name) {
    struct call_class barrier = {CALL_BARRIER, CST_SCOPE_P, "FLUSH", NULL, false, false};
    struct call_class pass = {CALL_PASS, CST_SCOPE_NONE, "PASS", NULL, false, true};
    const struct row *row = find_row(name);
    char plain[256];
    bool ptsz;
    if (row)
        return of_row(row, strcmp(row->abi, "PTSZ") == 0);
    snprintf(plain, sizeof plain, "%s", name);
    strip(plain, &ptsz);
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
        if (strcmp(runtimes[i].name, plain) != 0)
            continue;
        if (!runtimes[i].driver)
            return pass;
        row = find_row(runtimes[i].driver);
        return row ? of_row(row, ptsz) : barrier;
    }
    return barrier;
}
