/*
 * Clears and sets CUSPLICE_ variables, and tells problems of a configuration on stderr. Children
 * of tools call it before exec or play. It never runs where a second thread could read the
 * environment.
 */
#include "tools/trace/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/options.h"
#include "tools/trace/clean.h"

extern char **environ;

void settings_forget(void) {
    char **kept = environ;
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, "CUSPLICE", 8) != 0)
            *kept++ = *entry;
    if (kept)
        *kept = NULL;
    setenv("XDG_CONFIG_HOME", "/dev/null", 1); /* there is no file below it */
}

void settings_set(const char *key, const char *value) {
    char name[64] = "CUSPLICE_";
    size_t used = strlen(name);
    for (key = cus_options_key(key); *key && used + 1 < sizeof name; key++)
        name[used++] = *key >= 'a' && *key <= 'z' ? (char)(*key - 'a' + 'A') : *key;
    name[used] = 0;
    setenv(name, value, 1);
}

void settings_tell(void *context, const struct cus_problem *problem) {
    char text[1200];
    *(int *)context += !problem->notice;
    cus_problem_show(problem, text, sizeof text);
    clean_print(stderr, "cusplice: %s\n", text);
}
