/*
 * Reads a verb's options by its table, and finds the name that is near a wrong one. Every verb
 * calls it, on one thread. It never exits.
 */
#include "tools/cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/options.h"
#include "tools/cli/run.h"

/* A code of getopt_long from LONG on is the place of a row; a smaller one is the row's `brief`. */
enum { ROWS = 40, LONG = 256, EXIT_BAD = 2 };

struct reading {
    const struct cli_option *rows[ROWS];
    int n;
    struct option longs[ROWS + 1];
    char briefs[2 * ROWS + 3];
};

/* ---- what rows take ---- */

bool cli_take_flag(const struct cli_option *self, const char *value) {
    (void)value;
    return *(bool *)self->to = true;
}

bool cli_take_text(const struct cli_option *self, const char *value) {
    *(const char **)self->to = value;
    return true;
}

bool cli_take_name(const struct cli_option *self, const char *value) {
    if (*value)
        return cli_take_text(self, value);
    cli_say("--%s: %s is missing", self->name, self->value);
    return false;
}

/* The word that is near, or all of them. */
static void say_words(const struct cli_option *self, const char *value) {
    const char *near = cus_near(value, self->words);
    char all[160] = "";
    for (unsigned i = 0; self->words[i]; i++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s",
                 !i                   ? ""
                 : self->words[i + 1] ? ", "
                                      : " or ",
                 self->words[i]);
    }
    if (near)
        cli_say("--%s %s: no such value; the nearest is %s", self->name, value, near);
    else
        cli_say("--%s %s: no such value: it may be %s", self->name, value, all);
}

bool cli_take_word(const struct cli_option *self, const char *value) {
    for (unsigned i = 0; self->words[i]; i++)
        if (strcmp(value, self->words[i]) == 0) {
            *(unsigned *)self->to = i;
            return true;
        }
    say_words(self, value);
    return false;
}

const char *const cli_table_or_json[] = {"table", "json", NULL};

bool cli_take_json(const struct cli_option *self, const char *value) {
    struct cli_option one = *self;
    unsigned place;
    one.to = &place;
    bool good = cli_take_word(&one, value);
    if (good)
        *(bool *)self->to = place == 1;
    return good;
}

bool cli_number(const struct cli_option *self, const char *value, unsigned *out) {
    size_t digits = strspn(value, "0123456789");
    *out = digits && digits < 10 ? (unsigned)atoi(value) : 0;
    if (digits && digits < 10 && !value[digits] && *out >= self->least &&
        (!self->most || *out <= self->most))
        return true;
    if (self->most)
        cli_say("--%s %s: a number from %u to %u is expected", self->name, value, self->least,
                self->most);
    else
        cli_say("--%s %s: a number from %u on is expected", self->name, value, self->least);
    return false;
}

bool cli_take_number(const struct cli_option *self, const char *value) {
    return cli_number(self, value, self->to);
}

bool cli_setting_fits(const char *option, const char *key, const char *value) {
    struct cus_options scratch;
    struct cus_setting setting = {"", key, value, option, 0};
    int problems = 0;
    memset(&scratch, 0, sizeof scratch);
    bool good = cus_options_set(&scratch, &setting, cli_problem, &problems);
    cus_options_free(&scratch);
    return good;
}

/* ---- reading ---- */

static cli_help_fn *help_by = cli_print_help;

void cli_help_by(cli_help_fn *printer) {
    help_by = printer ? printer : cli_print_help;
}

const struct cli_option cli_option_help[] = {{.name = "help", .brief = 'h', .help = "print this"},
                                             {0}};

static char *add_table(struct reading *it, const struct cli_option *row, char *brief) {
    for (; row->name && it->n < ROWS; row++) {
        it->longs[it->n] = (struct option){row->name, row->value ? required_argument : no_argument,
                                           NULL, LONG + it->n};
        it->rows[it->n++] = row;
        if (row->brief)
            *brief++ = row->brief;
        if (row->brief && row->value)
            *brief++ = ':';
    }
    return brief;
}

static void prepare(struct reading *it, enum cli_form form,
                    const struct cli_option *const *tables) {
    memset(it, 0, sizeof *it);
    /* '-': words come in their order; '+': the first one ends the options; ':': no messages. */
    it->briefs[0] = form == CLI_PROGRAM ? '+' : '-';
    it->briefs[1] = ':';
    char *brief = it->briefs + 2;
    for (; *tables; tables++)
        brief = add_table(it, *tables, brief);
    add_table(it, cli_option_help, brief);
    optind = 0; /* glibc begins anew */
}

/* The row of a code; NULL: none. `word`: as it was given. A beginning of a name, which getopt_long
 * would take for it, is none. */
static const struct cli_option *find(const struct reading *it, int code, const char *word) {
    if (code >= LONG) {
        const struct cli_option *row = it->rows[code - LONG];
        return strcspn(word + 2, "=") == strlen(row->name) ? row : NULL;
    }
    for (int i = 0; i < it->n; i++)
        if (it->rows[i]->brief && it->rows[i]->brief == code)
            return it->rows[i];
    return NULL;
}

static bool refuse(const struct cli_verb *self, const struct reading *it, const char *word) {
    const char *names[ROWS + 1] = {NULL};
    char bare[64];
    const char *begin = word + strspn(word, "-");
    int n = 0;
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(begin, "="), begin);
    for (int i = 0; i < it->n; i++) {
        const struct cli_option *row = it->rows[i];
        if (strcmp(bare, row->name) == 0 && !row->value && strchr(word, '=')) {
            cli_say("--%s takes no value", bare);
            return false;
        }
        if (row->help || row == cli_option_help)
            names[n++] = row->name;
    }
    const char *near = cus_near(bare, names);
    if (near)
        cli_say("unknown option %s; the nearest is --%s", word, near);
    else
        cli_say("unknown option %s (see cusplice %s --help)", word, self->name);
    return false;
}

/* An option in the place of a value is hardly the value. `--html=--force` takes it as one. */
static bool is_option(const struct reading *it, const char *word, const char *value) {
    bool is = false;
    for (int i = 0; i < it->n; i++)
        is |= strncmp(value, "--", 2) == 0 && strcmp(value + 2, it->rows[i]->name) == 0;
    return is && !strchr(word, '=');
}

/* One option that getopt_long found. `word`: the one that it stands in. False: wrong, which was
 * said, or help, and *helped. */
static bool take(const struct cli_verb *self, const struct reading *it, int code, const char *word,
                 bool *helped) {
    bool missing = code == ':', bad = code == '?';
    char brief[3] = {'-', (char)optopt, 0};
    if ((missing || bad) && optopt && optopt < LONG)
        word = brief;
    const struct cli_option *row = bad ? NULL : find(it, missing ? optopt : code, word);
    /* The value of a short option stands apart: -output is no option, nor is -o=file. */
    bool attached = row && !missing && code < LONG && row->value && word[2] && optarg == word + 2;
    if (!row || attached)
        return refuse(self, it, word);
    if (missing) {
        cli_say("%s: %s is missing", word, row->value);
        return false;
    }
    if (row->value && is_option(it, word, optarg)) {
        cli_say("%s: %s is missing in front of %s", word, row->value, optarg);
        return false;
    }
    *helped = row == cli_option_help;
    return !*helped && row->take(row, optarg);
}

int cli_options_read(const struct cli_verb *self, int argc, char **argv, enum cli_form form,
                     const struct cli_option *const *tables, struct cli_words *words) {
    struct reading it;
    int code;
    bool helped = false;
    prepare(&it, form, tables);
    *words = (struct cli_words){.at = argv + 1};
    while ((code = getopt_long(argc, argv, it.briefs, it.longs, NULL)) != -1) {
        if (code == 1) {
            words->at[words->n++] = optarg; /* over what was read already */
            continue;
        }
        bool apart = code != ':' && optarg && optarg == argv[optind - 1];
        if (!take(self, &it, code, argv[optind - (apart ? 2 : 1)], &helped)) {
            if (helped)
                help_by(self, tables);
            return helped ? 0 : form == CLI_PROGRAM ? CLI_EXIT_REFUSED : EXIT_BAD;
        }
    }
    words->options = words->n;
    memmove(words->at + words->n, argv + optind, (size_t)(argc - optind + 1) * sizeof *argv);
    words->n += argc - optind;
    return -1;
}
