/*
 * The command line of a verb: a table of options, read with getopt_long(3). Every verb calls it.
 * Mistakes are told on stderr. An abbreviated option is never taken.
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
};

/* clang-format off */
#define CLI_OPTION(NAME, BRIEF, TAKE, TO) {.name = NAME, .brief = BRIEF, .value = "a value", .take = TAKE, .to = TO}
#define CLI_FLAG(NAME, TO) {.name = NAME, .take = cli_take_flag, .to = TO}
#define CLI_TEXT(NAME, BRIEF, TO) CLI_OPTION(NAME, BRIEF, cli_take_text, TO)
#define CLI_WORD(NAME, TO, WORDS) {.name = NAME, .value = "a value", .take = cli_take_word, .to = TO, .words = WORDS}
#define CLI_NUMBER(NAME, TO, LEAST, MOST) {.name = NAME, .value = "a value", .take = cli_take_number, .to = TO, .least = LEAST, .most = MOST}
/* clang-format on */

bool cli_take_flag(const struct cli_option *self, const char *value);   /* to: bool */
bool cli_take_text(const struct cli_option *self, const char *value);   /* to: const char * */
bool cli_take_name(const struct cli_option *self, const char *value);   /* the same, not empty */
bool cli_take_word(const struct cli_option *self, const char *value);   /* to: an enum, its place */
bool cli_take_number(const struct cli_option *self, const char *value); /* to: unsigned */

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

#endif
