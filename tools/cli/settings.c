/*
 * Collects --set and --eager, and checks that each pattern matches something in the trace. The
 * verbs whatif, replay and bench call it. It tells mistakes on stderr and never exits.
 */
#include "tools/cli/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/whatif/kernels.h"

bool cli_settings_add(struct cli_settings *to, const char *option, const char *key,
                      size_t key_bytes, const char *value) {
    char *name = strndup(key, key_bytes);
    if (!name || to->n == CLI_SETTINGS) {
        cli_say("%s: too many settings", option);
        free(name);
        return false;
    }
    to->names[to->n] = name;
    to->values[to->n++] = value;
    return cli_setting_fits(option, name, value);
}

static bool add_pattern(struct cli_settings *to, const char *pattern) {
    size_t used = strlen(to->eager);
    if (strchr(pattern, ';') || !*pattern) {
        cli_say("--eager %s: one pattern at a time", pattern);
        return false;
    }
    if (used + strlen(pattern) + 2 > sizeof to->eager) {
        cli_say("--eager %s: too many patterns", pattern);
        return false;
    }
    snprintf(to->eager + used, sizeof to->eager - used, "%s%s", used ? ";" : "", pattern);
    return true;
}

bool cli_take_eager(const struct cli_option *self, const char *value) {
    return add_pattern(self->to, value);
}

bool cli_take_set(const struct cli_option *self, const char *value) {
    const char *equals = strchr(value, '=');
    if (!equals || equals == value) {
        cli_say("--set %s: KEY=VALUE is expected", value);
        return false;
    }
    if (strncmp(value, "eager=", 6) == 0)
        return add_pattern(self->to, equals + 1);
    return cli_settings_add(self->to, "--set", value, (size_t)(equals - value), equals + 1);
}

bool cli_take_set_played(const struct cli_option *self, const char *value) {
    if (strncmp(value, "mode=", 5) == 0)
        cli_say("--set %s: the mode is what --strategy says", value);
    else if (strncmp(value, "record", 6) == 0)
        cli_say("--set %s: a replay is not recorded", value);
    else
        return cli_take_set(self, value);
    return false;
}

bool cli_settings_match(const struct cli_settings *settings, const struct cst_trace *trace) {
    char *list = strdup(settings->eager), *rest = list, *pattern, error[600];
    bool all = list != NULL;
    while (all && (pattern = strsep(&rest, ";")))
        if (*pattern && !whatif_matches(trace, pattern, error, sizeof error)) {
            cli_say("%s: --eager %s", trace->path, error);
            all = false;
        }
    free(list);
    return all;
}

void cli_settings_free(struct cli_settings *settings) {
    for (unsigned i = 0; i < settings->n; i++)
        free(settings->names[i]);
}
