/*
 * Finds the files beside this binary, and composes LD_PRELOAD. The verbs call it, on the
 * launcher's one thread. It never loads the library into the launcher.
 */
#include "tools/cli/library.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/verb.h"

/* From the folder of this very binary. */
static const char *const libraries[] = {
    "../shim/libcusplice.so",         /* bazel-bin/tools/cusplice */
    "../lib/libcusplice.so",          /* PREFIX/bin/cusplice */
    "../lib/cusplice/libcusplice.so", /* the same, in a folder of its own */
    "libcusplice.so",
    NULL,
};
static const char *const players[] = {
    "../harness/player/player",
    "../lib/cusplice/player",
    "player",
    NULL,
};

static const char *const scenarios[] = {
    "../harness/scenario/scenario",
    "../lib/cusplice/scenario",
    "scenario",
    NULL,
};

static const char *const demos[] = {
    "../lib/cusplice/demo/demo.py",
    NULL,
};

/* The folder of this binary; "": it cannot be told. */
static void own_folder(char out[PATH_MAX]) {
    ssize_t got = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[got > 0 ? got : 0] = 0;
    if (got > 0)
        *strrchr(out, '/') = 0;
}

/* The first of the places, relative to this binary, that can be accessed so. */
static bool look(const char *self, const char *const *places, int access_mode, char *out,
                 size_t bytes) {
    char path[PATH_MAX + 64], real[PATH_MAX];
    for (unsigned i = 0; places[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", self, places[i]);
        if (realpath(path, real) && access(real, access_mode) == 0)
            return (size_t)snprintf(out, bytes, "%s", real) < bytes;
    }
    return false;
}

/* False: there is none, which was said. */
static bool find(const char *const *places, const char *what, int access_mode, char *out,
                 size_t bytes) {
    char self[PATH_MAX];
    own_folder(self);
    if (!*self) {
        cli_say("/proc/self/exe cannot be read: %s cannot be found", what);
        return false;
    }
    if (look(self, places, access_mode, out, bytes))
        return true;
    cli_say("%s was found neither in %s/%.*s nor in %s/../lib", what, self,
            (int)(strrchr(places[0], '/') - places[0]), places[0], self);
    return false;
}

bool cli_library_look(char *out, size_t bytes) {
    char self[PATH_MAX];
    own_folder(self);
    return *self && look(self, libraries, R_OK, out, bytes);
}

bool cli_library_find(char *out, size_t bytes) {
    if (!find(libraries, "libcusplice.so", R_OK, out, bytes))
        return false;
    if (!strpbrk(out, " :"))
        return true;
    cli_say("%s: LD_PRELOAD cannot name a path with a blank or a colon in it", out);
    return false;
}

bool cli_player_find(char *out, size_t bytes) {
    return find(players, "the player of traces", X_OK, out, bytes);
}

bool cli_scenario_find(char *out, size_t bytes) {
    return find(scenarios, "the program of scenarios (//harness/scenario)", X_OK, out, bytes);
}

bool cli_demo_find(char *out, size_t bytes) {
    return find(demos, "the demo (in the source tree: tools/demo)", R_OK, out, bytes);
}

static bool is_sanitizer(const char *entry, size_t bytes) {
    static const char *const names[] = {"libasan.so", "libtsan.so", "libubsan.so", "liblsan.so"};
    const char *base = entry;
    for (size_t i = 0; i < bytes; i++)
        if (entry[i] == '/')
            base = entry + i + 1;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((size_t)(entry + bytes - base) >= strlen(names[i]) &&
            strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Appends the entries of `before` that are, or are not, sanitizers; the library itself is left out.
 */
static void append_entries(char *list, const char *before, const char *library, bool sanitizers) {
    for (const char *at = before; *at;) {
        at += strspn(at, " :");
        size_t bytes = strcspn(at, " :");
        bool same = bytes == strlen(library) && memcmp(at, library, bytes) == 0;
        if (bytes && !same && is_sanitizer(at, bytes) == sanitizers) {
            if (*list)
                strcat(list, ":");
            strncat(list, at, bytes);
        }
        at += bytes;
    }
}

char *cli_library_preload(const char *library, const char *before) {
    if (!before)
        before = "";
    char *list = calloc(1, strlen(library) + strlen(before) + 4);
    if (!list)
        return NULL;
    append_entries(list, before, library, true);
    if (*list)
        strcat(list, ":");
    strcat(list, library);
    append_entries(list, before, library, false);
    return list;
}
