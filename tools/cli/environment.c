/*
 * Compares two environments and prints what differs. verb_run.c calls it, on the launcher's one
 * thread. It relies on setenv(3), which leaves the texts of older entries as they are.
 */
#include "tools/cli/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/verb.h"

struct cli_environment cli_environment_keep(void) {
    size_t n = 0;
    while (environ && environ[n])
        n++;
    struct cli_environment now = {calloc(n + 1, sizeof *now.entries)};
    if (now.entries && n)
        memcpy(now.entries, environ, n * sizeof *now.entries);
    return now;
}

static bool has(char **entries, const char *entry, size_t bytes) {
    for (; *entries; entries++)
        if (strncmp(*entries, entry, bytes) == 0)
            return true;
    return false;
}

static void print_export(const char *entry) {
    size_t name = strcspn(entry, "=");
    printf("export %.*s='", (int)name, entry);
    for (const char *at = entry + name + (entry[name] != 0); *at; at++)
        fputs(*at == '\'' ? "'\\''" : (const char[]){*at, 0}, stdout);
    fputs("'\n", stdout);
}

bool cli_environment_print(const struct cli_environment *before) {
    if (!before->entries) {
        cli_say("%s", strerror(ENOMEM));
        return false;
    }
    char *none[] = {NULL}, **now = environ ? environ : none;
    for (char **entry = before->entries; *entry; entry++) {
        size_t name = strcspn(*entry, "=");
        if ((*entry)[name] && !has(now, *entry, name + 1))
            printf("unset %.*s\n", (int)name, *entry);
    }
    for (char **entry = now; *entry; entry++)
        if (!has(before->entries, *entry, strlen(*entry) + 1))
            print_export(*entry);
    if (fflush(stdout) == 0)
        return true;
    cli_say("stdout cannot be written: %s", strerror(errno));
    return false;
}
