/*
 * Probes of what a program would find in its process: the library, settings, variables, preloaded
 * libraries. The table calls them, each in a child. They tell no variable but those of CUSPLICE,
 * LD and CUDA, since a report goes to others.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "shim/base/version.h"
#include "shim/plan/rules.h"
#include "tools/doctor/elf.h"
#include "tools/doctor/probe.h"

extern char **environ;

void doctor_ask_cusplice(struct doctor_answer *answer) {
    const char *library = doctor_facts->asked->library;
    struct doctor_elf elf;
    doctor_find(answer, DOCTOR_OK, NULL, "version %s", CUSPLICE_VERSION);
    if (!library)
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL,
                    "libcusplice.so was not found beside this command");
    else if (!doctor_elf_open(&elf, library))
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "%s cannot be read, or is no library", library);
    else
        doctor_find(answer, DOCTOR_OK, NULL, "%s", library);
}

/* ---- settings ---- */

struct problems {
    int n;
    char first[512];
};

static void note_problem(void *context, const struct cus_problem *problem) {
    struct problems *problems = context;
    if (problem->notice)
        return;
    if (!problems->n++)
        cus_problem_show(problem, problems->first, sizeof problems->first);
}

static void tell_changed(struct doctor_answer *answer, const struct cus_options *options) {
    const struct cus_option_row *row;
    for (unsigned i = 0; (row = cus_options_row(i)); i++) {
        char value[512];
        cus_options_show(options, i, value, sizeof value);
        if (strcmp(value, row->value) != 0)
            doctor_find(answer, DOCTOR_OK, NULL, "%s = %s", row->key, value);
    }
}

void doctor_ask_settings(struct doctor_answer *answer) {
    struct problems problems = {0};
    struct cus_options options;
    unsigned n = 0;
    cus_options_load(&options, false, note_problem, &problems);
    struct cus_rules *rules = cus_rules_load(false, note_problem, &problems, NULL);
    while (rules && cus_rules_get(rules, n))
        n++;
    if (options.mode == CUS_MODE_OFF)
        doctor_find(answer, DOCTOR_NOT_RIGHT,
                    "take mode = off, or CUSPLICE=off, out of the configuration",
                    "mode is off: all calls pass unchanged");
    else if (cus_options_graphs(&options) < CUS_MODE_PIECEWISE)
        doctor_find(answer, DOCTOR_NOTE, "set mode = piecewise for graphs", "mode %s: no graphs",
                    cus_mode_name(options.mode));
    else
        doctor_find(answer, DOCTOR_OK, NULL, "mode %s", cus_mode_name(options.mode));
    doctor_find(answer, DOCTOR_OK, NULL, "%u rule%s", n, n == 1 ? "" : "s");
    tell_changed(answer, &options);
    if (problems.n)
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "%d problem%s, the first: %s", problems.n,
                    problems.n == 1 ? "" : "s", problems.first);
    cus_rules_free(rules);
    cus_options_free(&options);
}

/* ---- variables ---- */

static bool is_on(const char *value) {
    return *value && strcmp(value, "0") != 0;
}

static bool is_off(const char *value) {
    return strcmp(value, "off") == 0;
}

static bool is_no_gpu(const char *value) {
    return !*value || *value == '-' || strcmp(value, "NoDevFiles") == 0;
}

static bool is_one(const char *value) {
    return strcmp(value, "1") == 0;
}

static bool has_stubs(const char *value) {
    return strstr(value, "/stubs") != NULL;
}

/* What a value means. The first five are those of shim/stream/start.c. */
static const struct meaning {
    const char *name;
    bool (*if_it)(const char *value);
    enum doctor_status status;
    const char *advice;
} meanings[] = {
    {"CUDA_LAUNCH_BLOCKING", is_on, DOCTOR_NOT_RIGHT,
     "unset CUDA_LAUNCH_BLOCKING: it promises that each launch has completed, so nothing is "
     "deferred"},
    {"CUDA_DEVICE_WAITS_ON_EXCEPTION", is_on, DOCTOR_NOT_RIGHT,
     "unset CUDA_DEVICE_WAITS_ON_EXCEPTION: nothing is deferred with it"},
    {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", is_on, DOCTOR_NOT_RIGHT,
     "unset CUDA_ENABLE_COREDUMP_ON_EXCEPTION: nothing is deferred with it"},
    {"CUDA_ENABLE_USER_TRIGGERED_COREDUMP", is_on, DOCTOR_NOT_RIGHT,
     "unset CUDA_ENABLE_USER_TRIGGERED_COREDUMP: nothing is deferred with it"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", is_one, DOCTOR_NOTE,
     "with CUDA_DEVICE_MAX_CONNECTIONS=1 fewer launches go into graphs where a program uses "
     "several streams"},
    {"CUDA_VISIBLE_DEVICES", is_no_gpu, DOCTOR_NOT_RIGHT,
     "CUDA_VISIBLE_DEVICES hides all GPUs: name one, or unset it"},
    {"CUDA_INJECTION64_PATH", is_on, DOCTOR_NOTE,
     "a profiler is injected by CUDA_INJECTION64_PATH: while it records, nothing is deferred"},
    {"CUSPLICE", is_off, DOCTOR_NOT_RIGHT, "unset CUSPLICE: off lets all calls pass unchanged"},
    {"LD_AUDIT", is_on, DOCTOR_NOTE,
     "LD_AUDIT binds names its own way: if launches are not seen, unset it"},
    {"LD_LIBRARY_PATH", has_stubs, DOCTOR_NOTE,
     "take the toolkit's stubs out of LD_LIBRARY_PATH: they stand in for the driver, and are none"},
};

static const struct meaning *meaning_of(const char *entry, size_t name_bytes) {
    for (unsigned i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strlen(meanings[i].name) == name_bytes &&
            memcmp(meanings[i].name, entry, name_bytes) == 0)
            return &meanings[i];
    return NULL;
}

/* CUSPLICE alone, or the beginning of a name. */
static bool is_told(const char *entry) {
    return strncmp(entry, "CUSPLICE=", 9) == 0 || strncmp(entry, "CUSPLICE_", 9) == 0 ||
           strncmp(entry, "LD_", 3) == 0 || strncmp(entry, "CUDA_", 5) == 0;
}

/* Whatever is not right comes first: the text has a bound. */
void doctor_ask_environment(struct doctor_answer *answer) {
    unsigned n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (char **entry = environ; entry && *entry; entry++) {
            const char *equals = strchr(*entry, '=');
            if (!equals || !is_told(*entry))
                continue;
            const struct meaning *meaning = meaning_of(*entry, (size_t)(equals - *entry));
            bool counts = meaning && meaning->if_it(equals + 1);
            if (counts != (pass == 0))
                continue;
            n++;
            doctor_find(answer, counts ? meaning->status : DOCTOR_OK,
                        counts ? meaning->advice : NULL, "%.512s", *entry);
        }
    if (!n)
        doctor_find(answer, DOCTOR_OK, NULL, "none");
}

/* ---- preloaded libraries ---- */

/* A function that the library answers, too; NULL: it exports none. */
static const char *stands_before(const struct doctor_elf *elf) {
    static const char *const names[] = {"cuLaunchKernel",
                                        "cuLaunchKernelEx",
                                        "cuGraphLaunch",
                                        "cuGetProcAddress_v2",
                                        "cuGetProcAddress",
                                        "cuMemAlloc_v2",
                                        "cuInit",
                                        "cudaLaunchKernel",
                                        "cudaMalloc",
                                        "dlsym",
                                        "dlopen"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (doctor_elf_exports(elf, names[i]))
            return names[i];
    return NULL;
}

static bool is_sanitizer(const char *entry) {
    const char *slash = strrchr(entry, '/'), *base = slash ? slash + 1 : entry;
    size_t letters = strcspn(base, ".");
    return letters > 3 + 3 && strncmp(base, "lib", 3) == 0 &&
           strncmp(base + letters - 3, "san", 3) == 0;
}

/* The loader has read LD_PRELOAD for this process, too: what is not mapped was not found. */
static bool find_mapped(const char *entry, char out[PATH_MAX]) {
    struct link_map *map;
    void *object = dlopen(entry, RTLD_LAZY | RTLD_NOLOAD);
    if (object && dlinfo(object, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, out))
        return true;
    return strchr(entry, '/') && realpath(entry, out);
}

static void ask_entry(struct doctor_answer *answer, const char *entry) {
    const char *library = doctor_facts->asked->library;
    char path[PATH_MAX];
    struct doctor_elf elf;
    if (!find_mapped(entry, path)) {
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "%s is not there, and left out", entry);
    } else if (library && strcmp(path, library) == 0) {
        doctor_find(answer, DOCTOR_OK, NULL, "%s (this library)", entry);
    } else if (is_sanitizer(entry)) {
        doctor_find(answer, DOCTOR_OK, NULL, "%s (a sanitizer)", entry);
    } else if (!doctor_elf_open(&elf, path)) {
        doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "%s is no 64-bit library, and left out", path);
    } else {
        const char *name = stands_before(&elf);
        const char *slash = strrchr(path, '/');
        if (strcmp(slash + 1, "libcusplice.so") == 0)
            doctor_find(answer, DOCTOR_NOT_RIGHT, NULL, "%s is another cusplice", path);
        else if (name)
            doctor_find(answer, DOCTOR_NOTE,
                        "if launches do not go into graphs (see interposers), run without it",
                        "%s exports %s, as this library does", path, name);
        else
            doctor_find(answer, DOCTOR_OK, NULL, "%s", path);
        doctor_elf_close(&elf);
    }
}

static unsigned ask_entries(struct doctor_answer *answer, char *list) {
    unsigned n = 0;
    char *save, *entry = strtok_r(list, " :\t\n", &save);
    for (; entry; entry = strtok_r(NULL, " :\t\n", &save), n++)
        ask_entry(answer, entry);
    return n;
}

void doctor_ask_preloads(struct doctor_answer *answer) {
    const char *variable = getenv("LD_PRELOAD");
    char *list = strdup(variable ? variable : ""), text[8192];
    unsigned n = list ? ask_entries(answer, list) : 0;
    if (doctor_read("/etc/ld.so.preload", text, sizeof text))
        n += ask_entries(answer, text);
    free(list);
    if (!n)
        doctor_find(answer, DOCTOR_OK, NULL, "nothing");
}
