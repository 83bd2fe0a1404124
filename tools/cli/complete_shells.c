/*
 * The tables of the scripts completion.bash, completion.zsh and completion.fish, in the words of
 * each shell. complete.c calls it, on one thread. It never reads an option.
 */
#include <stdio.h>
#include <string.h>

#include "shim/base/options.h"
#include "tools/cli/complete.h"
#include "tools/cli/completion.inc" /* completion_bash, _zsh, _fish: each ends with a NUL */

static const char mark[] = "# TABLES\n";

/* The script with what `tables` prints in the place of the mark. */
static void print_script(const unsigned char *script, const struct cli_verb *const *verbs,
                         void (*tables)(const struct cli_verb *const *verbs)) {
    const char *text = (const char *)script, *at = strstr(text, mark);
    printf("%.*s", (int)(at - text), text);
    tables(verbs);
    fputs(at + strlen(mark), stdout);
}

static void put_words(const char *const *words) {
    for (unsigned i = 0; words[i]; i++)
        printf("%s%s", i ? " " : "", words[i]);
}

/* What a verb's words are, as the scripts have it. */
static const char *takes(const struct cli_verb *verb) {
    static const char *const names[] = {
        [CLI_TAKES_NOTHING] = "NOTHING",   [CLI_TAKES_PROGRAM] = "PROGRAM",
        [CLI_TAKES_BEHIND] = "BEHIND",     [CLI_TAKES_TRACE] = "TRACE",
        [CLI_TAKES_DATABASE] = "DATABASE", [CLI_TAKES_CONF] = "CONF",
        [CLI_TAKES_FOLDER] = "FOLDER",     [CLI_TAKES_PID] = "PID",
    };
    return names[verb->page.takes];
}

/* ---- bash ---- */

static void bash_value(const char *verb, const char *option, const char *dashes,
                       const struct cli_option *row) {
    static const char *const kinds[] = {[CLI_VALUE_ANY] = "ANY",
                                        [CLI_VALUE_FILE] = "FILE",
                                        [CLI_VALUE_CONFIG] = "CONFIG",
                                        [CLI_VALUE_SETTING] = "SETTING"};
    const char *const *words;
    enum cli_value value = cli_value_of(row, &words);
    if (value == CLI_VALUE_NONE)
        return;
    printf("    ['%s %s%s']='", verb, dashes, option);
    if (words)
        put_words(words);
    else
        fputs(kinds[value], stdout);
    puts("'");
}

static void bash_values(const struct cli_verb *verb, const struct cli_option *const *tables) {
    for (const struct cli_option *row = NULL; (row = cli_next_option(&tables, row));) {
        char brief[2] = {row->brief, 0};
        bash_value(verb->name, row->name, "--", row);
        if (row->brief)
            bash_value(verb->name, brief, "-", row);
    }
}

static void bash_options(const struct cli_verb *verb, const struct cli_option *const *tables) {
    printf("    [%s]='", verb->name);
    for (const struct cli_option *row = NULL; (row = cli_next_option(&tables, row));)
        printf("--%s ", row->name);
    puts("--help'");
}

static void bash_tables(const struct cli_verb *const *verbs) {
    const struct cus_option_row *row;
    printf("_cusplice_verbs='");
    for (unsigned i = 0; verbs[i]; i++)
        printf("%s%s", i ? " " : "", verbs[i]->name);
    printf("'\n_cusplice_keys='");
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        printf("%s= ", row->key);
    puts("eager='\n# What a verb's words are; what the first one may be.\n"
         "declare -gA _cusplice_takes=(");
    for (unsigned i = 0; verbs[i]; i++)
        printf("    [%s]=%s\n", verbs[i]->name, takes(verbs[i]));
    puts(")\ndeclare -gA _cusplice_first=(");
    for (unsigned i = 0; verbs[i]; i++)
        if (verbs[i]->page.words)
            printf("    [%s]='%s'\n", verbs[i]->name, verbs[i]->page.words);
    puts(")\ndeclare -gA _cusplice_options=(");
    cli_each_verb(verbs, bash_options);
    puts(")\n# Of options, and of settings: words, or what they are.\n"
         "declare -gA _cusplice_values=(");
    cli_each_verb(verbs, bash_values);
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        if (cus_options_words(i)) {
            printf("    [%s]='", row->key);
            put_words(cus_options_words(i));
            puts("'");
        }
    puts(")");
}

/* ---- zsh ---- */

static void zsh_option(const struct cli_option *row) {
    const char *const *words;
    enum cli_value value = cli_value_of(row, &words);
    char clause[160];
    cli_clause(row->help, clause, sizeof clause);
    if (row->brief)
        printf("            '*'{-%c%s,--%s%s}'[%s]", row->brief, value ? "+" : "", row->name,
               value ? "=" : "", clause);
    else
        printf("            '*--%s%s[%s]", row->name, value ? "=" : "", clause);
    if (value)
        printf(":%s:", row->arg ? row->arg : "value");
    if (words) {
        putchar('(');
        put_words(words);
        putchar(')');
    } else if (value > CLI_VALUE_WORDS) {
        fputs(value == CLI_VALUE_FILE     ? "_files"
              : value == CLI_VALUE_CONFIG ? "_cusplice_config"
                                          : "_cusplice_setting",
              stdout);
    }
    puts("' \\");
}

static void zsh_words(const struct cli_verb *verb) {
    static const char *const by[] = {
        [CLI_TAKES_NOTHING] = "",
        [CLI_TAKES_PROGRAM] = "            '(-)1:program: _command_names -e' '*:: :_normal'",
        [CLI_TAKES_BEHIND] = "            '(-)1:program:_cusplice_behind' '*:: :_normal'",
        [CLI_TAKES_TRACE] = "            '*:trace:_cusplice_traces'",
        [CLI_TAKES_DATABASE] = "            '*:file:_files -g \"*.sqlite\"'",
        [CLI_TAKES_CONF] = "            '*:file:_files -g \"*.conf\"'",
        [CLI_TAKES_FOLDER] = "            '*:folder:_files -/'",
        [CLI_TAKES_PID] = "            '*:process:_pids'",
    };
    if (verb->page.words)
        printf("            '1: :{ compadd %s; _cusplice_traces; }' \\\n", verb->page.words);
    printf("%s\n            ;;\n", by[verb->page.takes]);
}

static void zsh_verb(const struct cli_verb *verb, const struct cli_option *const *tables) {
    printf("    %s)\n        _arguments -S '(- *)'{-h,--help}'[print help]' \\\n", verb->name);
    for (const struct cli_option *row = NULL; (row = cli_next_option(&tables, row));)
        zsh_option(row);
    zsh_words(verb);
}

static void zsh_tables(const struct cli_verb *const *verbs) {
    const struct cus_option_row *row;
    char clause[160];
    puts("typeset -ga _cusplice_verbs _cusplice_keys\ntypeset -gA _cusplice_values\n"
         "_cusplice_verbs=(");
    for (unsigned i = 0; verbs[i]; i++) {
        cli_clause(verbs[i]->summary, clause, sizeof clause);
        printf("    '%s:%s'\n", verbs[i]->name, clause);
    }
    printf(")\n_cusplice_keys=(");
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        printf("%s ", row->key);
    puts("eager)\n_cusplice_values=(");
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        if (cus_options_words(i)) {
            printf("    %s '", row->key);
            put_words(cus_options_words(i));
            puts("'");
        }
    puts(")\n\n_cusplice_verb() {\n    case $1 in\n    help) _describe -t commands command "
         "_cusplice_verbs ;;");
    cli_each_verb(verbs, zsh_verb);
    puts("    esac\n}");
}

/* ---- fish ---- */

static void fish_option(const struct cli_verb *verb, const struct cli_option *row) {
    static const char *const by[] = {[CLI_VALUE_NONE] = "",
                                     [CLI_VALUE_ANY] = " -x",
                                     [CLI_VALUE_WORDS] = " -x",
                                     [CLI_VALUE_FILE] = " -rF",
                                     [CLI_VALUE_CONFIG] = " -rF -a '(__cusplice_presets)'",
                                     [CLI_VALUE_SETTING] = " -x -a '(__cusplice_setting)'"};
    const char *const *words;
    enum cli_value value = cli_value_of(row, &words);
    char clause[160];
    cli_clause(row->help, clause, sizeof clause);
    printf("complete -c cusplice -n '__cusplice_in %s' -l %s", verb->name, row->name);
    if (row->brief)
        printf(" -s %c", row->brief);
    fputs(by[value], stdout);
    if (words) {
        fputs(" -a '", stdout);
        put_words(words);
        putchar('\'');
    }
    printf(" -d '%s'\n", clause);
}

/* Folders, and files with an ending. */
static void fish_files(const struct cli_verb *verb, const char *end) {
    printf("complete -c cusplice -n '__cusplice_in %s' -k -a '(__fish_complete_suffix %s)'\n",
           verb->name, end);
}

static void fish_verb(const struct cli_verb *verb, const struct cli_option *const *tables) {
    const struct cli_option *const *all = tables;
    for (const struct cli_option *row = NULL; (row = cli_next_option(&tables, row));)
        fish_option(verb, row);
    if (verb->page.words)
        printf("complete -c cusplice -n '__cusplice_in %s' -a '%s'\n", verb->name,
               verb->page.words);
    if (verb->page.takes == CLI_TAKES_TRACE)
        fish_files(verb, ".cst");
    if (verb->page.takes == CLI_TAKES_DATABASE)
        fish_files(verb, ".sqlite");
    if (verb->page.takes == CLI_TAKES_CONF)
        fish_files(verb, ".conf");
    if (verb->page.takes == CLI_TAKES_FOLDER)
        printf("complete -c cusplice -n '__cusplice_in %s' -a '(__fish_complete_directories)'\n",
               verb->name);
    if (verb->page.takes == CLI_TAKES_PID)
        printf("complete -c cusplice -n '__cusplice_in %s' -a '(__fish_complete_pids)'\n",
               verb->name);
    if (verb->page.takes != CLI_TAKES_PROGRAM && verb->page.takes != CLI_TAKES_BEHIND)
        return;
    printf("complete -c cusplice -n '__cusplice_%s %s' -x -a '(__cusplice_program",
           verb->page.takes == CLI_TAKES_PROGRAM ? "is" : "behind", verb->name);
    for (const struct cli_option *row = NULL; (row = cli_next_option(&all, row));) {
        if (row->value)
            printf(" --%s", row->name);
        if (row->value && row->brief)
            printf(" -%c", row->brief);
    }
    puts(")'");
}

static void fish_tables(const struct cli_verb *const *verbs) {
    const struct cus_option_row *row;
    char clause[160];
    printf("set -g __cusplice_keys");
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        printf(" %s", row->key);
    puts(" eager");
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        if (cus_options_words(i)) {
            printf("set -g __cusplice_values_%s ", row->key);
            put_words(cus_options_words(i));
            putchar('\n');
        }
    puts("\ncomplete -c cusplice -f\n"
         "complete -c cusplice -n __cusplice_begins -s h -l help -d 'print help'\n"
         "complete -c cusplice -n __cusplice_begins -l version -d 'print the version'");
    for (unsigned i = 0; verbs[i]; i++) {
        cli_clause(verbs[i]->summary, clause, sizeof clause);
        printf("complete -c cusplice -n __cusplice_begins -a %s -d '%s'\n", verbs[i]->name, clause);
        printf("complete -c cusplice -n '__cusplice_is help' -a %s -d '%s'\n", verbs[i]->name,
               clause);
    }
    cli_each_verb(verbs, fish_verb);
}

void cli_complete_bash(const struct cli_verb *const *verbs) {
    print_script(completion_bash, verbs, bash_tables);
}

void cli_complete_zsh(const struct cli_verb *const *verbs) {
    print_script(completion_zsh, verbs, zsh_tables);
}

void cli_complete_fish(const struct cli_verb *const *verbs) {
    print_script(completion_fish, verbs, fish_tables);
}
