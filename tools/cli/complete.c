/*
 * Completion for bash, zsh and fish, for `cusplice help --completion`: which values an option
 * takes, by its row. main.c calls cli_complete, on one thread. The shells' own code is in
 * complete_*.c.
 */
#include "tools/cli/complete.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/options.h"
#include "shim/base/presets.h"

static const char *const *words_of_key(const char *key) {
    const struct cus_option_row *row;
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        if (strcmp(row->key, key) == 0)
            return cus_options_words(i);
    return NULL;
}

enum cli_value cli_value_of(const struct cli_option *row, const char *const **words) {
    *words = row->words ? row->words : row->key ? words_of_key(row->key) : NULL;
    if (!row->value)
        return CLI_VALUE_NONE;
    if (*words)
        return CLI_VALUE_WORDS;
    if (strcmp(row->name, "config") == 0)
        return CLI_VALUE_CONFIG;
    if (row->arg && strcmp(row->arg, "KEY=VALUE") == 0)
        return CLI_VALUE_SETTING;
    return row->arg && strcmp(row->arg, "FILE") == 0 ? CLI_VALUE_FILE : CLI_VALUE_ANY;
}

void cli_clause(const char *text, char *out, size_t bytes) {
    size_t used = 0, end = strcspn(text, ":;(\n[");
    for (size_t i = 0; i < end && used + 1 < bytes; i++) {
        if (text[i] == '.' && (text[i + 1] == ' ' || !text[i + 1]))
            break;
        if (!strchr("'\"`$\\]", text[i]))
            out[used++] = text[i];
    }
    while (used && (out[used - 1] == ' ' || out[used - 1] == ','))
        used--;
    out[used] = 0;
}

const struct cli_option *cli_next_option(const struct cli_option *const **tables,
                                         const struct cli_option *row) {
    row = row ? row + 1 : **tables;
    while (**tables) {
        for (; row->name; row++)
            if (row->help)
                return row;
        row = *++*tables;
    }
    return NULL;
}

void cli_each_verb(const struct cli_verb *const *verbs, cli_help_fn *printer) {
    cli_help_by(printer);
    for (; *verbs; verbs++) {
        char *const asked[] = {(char *)(*verbs)->name, "--help", NULL};
        (*verbs)->run(*verbs, 2, (char **)asked);
    }
    cli_help_by(NULL);
}

/* Scripts ask for them as they run, so that new ones are offered, too. */
static void print_presets(void) {
    char path[PATH_MAX];
    DIR *folder = cus_preset_home(path, sizeof path) ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t bytes = strlen(entry->d_name);
        if (*entry->d_name != '.' && bytes > 5 && strcmp(entry->d_name + bytes - 5, ".conf") == 0)
            printf("%.*s\n", (int)(bytes - 5), entry->d_name);
    }
    if (folder)
        closedir(folder);
}

int cli_complete(const struct cli_verb *const *verbs, const char *shell) {
    static const char *const shells[] = {"bash", "zsh", "fish", NULL};
    if (strcmp(shell, "bash") == 0)
        cli_complete_bash(verbs);
    else if (strcmp(shell, "zsh") == 0)
        cli_complete_zsh(verbs);
    else if (strcmp(shell, "fish") == 0)
        cli_complete_fish(verbs);
    else if (strcmp(shell, "presets") == 0)
        print_presets();
    else {
        const char *near = cus_near(shell, shells);
        cli_say("--completion %s: no such shell: it may be bash, zsh or fish%s%s", shell,
                near ? "; the nearest is " : "", near ? near : "");
        return 2;
    }
    return 0;
}
