/*
 * The command line of a verb: a table of options, read with getopt_long(3), from which the help is
 * made, too (help.c). Every verb calls it. Options that several verbs have stand here alone, so
 * that they are one dialect. Mistakes are told on stderr. An abbreviated option is never taken.
 */
#ifndef CUSPLICE_TOOLS_CLI_OPTIONS_H
#define CUSPLICE_TOOLS_CLI_OPTIONS_H

#include <stdbool.h>

#include "tools/cli/verb.h"

struct cli_option {
    const char *name;  /* without dashes; NULL: the table ends here */
    char brief;        /* 'o' for -o; 0: none */
    const char *value; /* what is missing where nothing follows; NULL: the option takes no value */
    /* Called in the order of the command line. False: the value is wrong, which was said. */
    bool (*take)(const struct cli_option *self, const char *value);
    void *to;                 /* where `take` stores the value */
    const char *const *words; /* that cli_take_word allows */
    unsigned least, most;     /* that cli_take_number allows; most 0: any number */
    const char *key;          /* the setting whose value it takes, for completion; NULL: none */
    /* For people: what the value is called (NULL: there is none), and what the option does, in
     * words between which lines may end; '\n' ends one. NULL: an old name, which the help does not
     * have.
     */
    const char *arg, *help;
};

/* clang-format off */
#define CLI_OPTION(NAME, BRIEF, TAKE, TO, ARG, HELP) {.name = NAME, .brief = BRIEF, .value = "a value", .take = TAKE, .to = TO, .arg = ARG, .help = HELP}
#define CLI_FLAG(NAME, TO, HELP) {.name = NAME, .take = cli_take_flag, .to = TO, .help = HELP}
#define CLI_TEXT(NAME, BRIEF, TO, ARG, HELP) CLI_OPTION(NAME, BRIEF, cli_take_text, TO, ARG, HELP)
#define CLI_WORD(NAME, TO, WORDS, ARG, HELP) {.name = NAME, .value = "a value", .take = cli_take_word, .to = TO, .words = WORDS, .arg = ARG, .help = HELP}
#define CLI_NUMBER(NAME, TO, LEAST, MOST, ARG, HELP) {.name = NAME, .value = "a value", .take = cli_take_number, .to = TO, .least = LEAST, .most = MOST, .arg = ARG, .help = HELP}
/* A setting under a name of its own. */
#define CLI_SETTING(NAME, TAKE, KEY, ARG, HELP) {.name = NAME, .value = "a value", .take = TAKE, .to = KEY, .key = KEY, .arg = ARG, .help = HELP}

/* The options that several verbs have: what each of them adds is MORE. */
#define CLI_EAGER(TAKE, TO, MORE) CLI_OPTION("eager", 0, TAKE, TO, "PATTERN", "these kernels never go into a graph: a pattern as in [rules], may be repeated. Short for --set eager=PATTERN" MORE)
#define CLI_MODE(TAKE, TO, MORE) {.name = "mode", .value = "a value", .take = TAKE, .to = TO, .key = "mode", .arg = "MODE", .help = "which ops become graphs: off, observe, eager, piecewise, full, full_decode_only, full_and_piecewise. Short for --set mode=MODE" MORE}
#define CLI_SET(TAKE, TO, MORE) CLI_OPTION("set", 0, TAKE, TO, "KEY=VALUE", "one setting, stronger than any file (cusplice config --list names the keys); eager=PATTERN adds an eager rule in front of all others" MORE)
#define CLI_OUTPUT(TAKE, TO, MORE) CLI_OPTION("output", 'o', TAKE, TO, "FILE", "where it goes" MORE)
#define CLI_FORCE(TO) CLI_FLAG("force", TO, "replace a file that is there, but never what is read")
#define CLI_FORMAT(TAKE, TO, MORE) {.name = "format", .value = "a value", .take = TAKE, .to = TO, .words = table_formats, .arg = "FORM", .help = "table (default), json, csv or md" MORE}
#define CLI_WIDE(TO) CLI_FLAG("wide", TO, "all columns, and no text shortened. Otherwise a table is as wide as the terminal; in a file or pipe as COLUMNS says, or 120 columns")
#define CLI_TABLE_OR_JSON(TO) {.name = "format", .value = "a value", .take = cli_take_json, .to = TO, .words = cli_table_or_json, .arg = "FORM", .help = "table (default) or json"}
#define CLI_OLD(NAME, BRIEF, TAKE, TO) {.name = NAME, .brief = BRIEF, .value = "a value", .take = TAKE, .to = TO}
#define CLI_OLD_FLAG(NAME, TAKE, TO) {.name = NAME, .take = TAKE, .to = TO}
/* clang-format on */

bool cli_take_flag(const struct cli_option *self, const char *value);   /* to: bool */
bool cli_take_text(const struct cli_option *self, const char *value);   /* to: const char * */
bool cli_take_name(const struct cli_option *self, const char *value);   /* the same, not empty */
bool cli_take_word(const struct cli_option *self, const char *value);   /* to: an enum, its place */
bool cli_take_number(const struct cli_option *self, const char *value); /* to: unsigned */

extern const char *const cli_table_or_json[];
bool cli_take_json(const struct cli_option *self, const char *value); /* to: bool, of two words */

/* The number that a value is, in the row's bounds. False: none, which was said. */
bool cli_number(const struct cli_option *self, const char *value, unsigned *out);
/* Is this a good value for a key of the library? False: no, which was said with the option's name.
 */
bool cli_setting_fits(const char *option, const char *key, const char *value);

enum cli_form {
    CLI_WORDS,   /* options and words in any order, up to `--` */
    CLI_PROGRAM, /* options, then a program and its arguments */
};

/* What is no option. */
struct cli_words {
    char **at;      /* then NULL */
    int n, options; /* in all; of them those in front of `--` */
};

/* Reads `tables` (then NULL). -1: go on; else the exit status, with everything said: 0 after
 * --help, 2 after an error, 125 where a program would follow. */
int cli_options_read(const struct cli_verb *self, int argc, char **argv, enum cli_form form,
                     const struct cli_option *const *tables, struct cli_words *words);

extern const struct cli_option cli_option_help[]; /* --help, which each verb has */

/* Who prints a verb's help: NULL is cli_print_help. `cusplice help` sets it for pages and
 * completion, which are made from the same tables. */
typedef void cli_help_fn(const struct cli_verb *verb, const struct cli_option *const *tables);
void cli_help_by(cli_help_fn *printer);

/* The verb's help on stdout, as wide as the terminal: how it is called, then `help` with the
 * options of `tables` in place of CLI_OPTIONS. */
void cli_print_help(const struct cli_verb *verb, const struct cli_option *const *tables);
/* A text filled as such help is. */
void cli_print_filled(const char *text);

#endif
