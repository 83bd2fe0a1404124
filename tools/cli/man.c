/*
 * The manual pages of the command and of its verbs, for `cusplice help --man`. main.c calls
 * cli_man, on one thread. It adds no sentence of its own: what a page says is in the verb's tables.
 */
#include <stdio.h>
#include <string.h>

#include "tools/cli/pages.h"
#include "tools/cli/roff.h"

bool cli_row_next(const char **rows, struct cli_row *row) {
    const char *at = *rows;
    if (!at || !*at)
        return false;
    row->thing = at;
    row->thing_bytes = strcspn(at, "\t\n");
    at += row->thing_bytes + (at[row->thing_bytes] == '\t');
    row->text = at;
    row->text_bytes = strcspn(at, "\n");
    *rows = at + row->text_bytes + (at[row->text_bytes] == '\n');
    return true;
}

bool cli_word_next(const char **words, const char **word, size_t *bytes) {
    if (!*words)
        return false;
    *words += strspn(*words, " ");
    *word = *words;
    *bytes = strcspn(*words, " ");
    *words += *bytes;
    return *bytes != 0;
}

/* ---- the text of a help ---- */

/* The column of the text in a line that is `  word   text`; 0: it is no such line. */
static size_t text_of(const char *line, size_t bytes) {
    size_t at = strspn(line, " ");
    for (; at && at + 2 < bytes; at++)
        if (line[at] == ' ' && line[at + 1] == ' ')
            return at + strspn(line + at, " ");
    return 0;
}

static void put_item(const char *line, size_t bytes, size_t column) {
    size_t begin = strspn(line, " "), end = column;
    char word[64];
    while (end > begin && line[end - 1] == ' ')
        end--;
    snprintf(word, sizeof word, "%.*s", (int)(end - begin), line + begin);
    roff_item();
    roff_font('B', word);
    roff_item_text();
    roff_text(line + column, bytes - column);
}

/* Lines with the same indent and no text in a column of its own: as they stand. */
static const char *put_block(const char *text, const char *end) {
    const char *at = text;
    char lines[1024];
    size_t used = 0;
    while (at < end && *at == ' ') {
        size_t bytes = strcspn(at, "\n"), in = strspn(at, " ");
        used += (size_t)snprintf(lines + used, sizeof lines - used, "%.*s\n", (int)(bytes - in),
                                 at + in);
        at += bytes + 1;
    }
    roff_lines(lines, used);
    return at;
}

/* Paragraphs, items and blocks. `first`: a section's head stands right above. */
static void put_help(const char *text, const char *end, bool first) {
    bool begins = !first, item = false; /* a paragraph begins; an item is open */
    while (text < end) {
        size_t bytes = strcspn(text, "\n"), column = text_of(text, bytes);
        bool indented = *text == ' ';
        if (!bytes) {
            begins = true;
        } else if (column && !(item && column == strspn(text, " "))) {
            put_item(text, bytes, column);
            item = true;
        } else if (indented && !item) {
            text = put_block(text, end);
            begins = true;
            continue;
        } else {
            if (!indented && (begins || item) && !first)
                roff_paragraph();
            item = item && indented;
            roff_text(text, bytes);
        }
        begins = !bytes;
        first = first && !bytes;
        text += bytes + 1;
    }
}

/* ---- parts ---- */

static void put_option(const struct cli_option *row) {
    char name[64];
    roff_item();
    if (row->brief) {
        snprintf(name, sizeof name, "-%c", row->brief);
        roff_font('B', name);
        roff_mark(',');
    }
    snprintf(name, sizeof name, "--%s", row->name);
    roff_font('B', name);
    if (row->arg)
        roff_font('I', row->arg);
    roff_item_text();
    for (const char *line = row->help; *line;) {
        size_t bytes = strcspn(line, "\n");
        if (line != row->help)
            roff_break();
        roff_text(line, bytes);
        line += bytes + (line[bytes] == '\n');
    }
    if (*row->help && row->help[strlen(row->help) - 1] != '.')
        roff_mark('.');
}

static void put_options(const struct cli_option *const *tables) {
    roff_section("OPTIONS");
    for (; *tables; tables++)
        for (const struct cli_option *row = *tables; row->name; row++)
            if (row->help)
                put_option(row);
    put_option(cli_option_help);
}

static void put_synopsis(const char *synopsis) {
    roff_section("SYNOPSIS");
    for (bool first = true; *synopsis; first = false) {
        size_t bytes = strcspn(synopsis, "\n");
        const char *rest = first ? synopsis : synopsis + strlen("cusplice ");
        if (!first)
            roff_break();
        roff_font('B', "cusplice");
        roff_usage(rest, (size_t)(synopsis + bytes - rest));
        synopsis += bytes + (synopsis[bytes] == '\n');
    }
}

static void put_rows(const char *section, const char *rows) {
    struct cli_row row;
    char thing[128];
    if (rows)
        roff_section(section);
    while (cli_row_next(&rows, &row)) {
        snprintf(thing, sizeof thing, "%.*s", (int)row.thing_bytes, row.thing);
        roff_item();
        roff_font('B', thing);
        roff_item_text();
        roff_text(row.text, row.text_bytes);
    }
}

static void put_examples(const char *rows) {
    struct cli_row row;
    roff_section("EXAMPLES");
    for (bool first = true; cli_row_next(&rows, &row); first = false) {
        if (!first)
            roff_paragraph();
        roff_text(row.text, row.text_bytes);
        roff_lines(row.thing, row.thing_bytes);
    }
}

static void put_see(const struct cli_verb *verb) {
    const char *words = verb->page.see, *word;
    size_t bytes;
    char name[64];
    roff_section("SEE ALSO");
    if (*verb->name)
        roff_see("cusplice", 1, false);
    while (cli_word_next(&words, &word, &bytes)) {
        snprintf(name, sizeof name, "cusplice-%.*s", (int)bytes, word);
        roff_see(name, 1, false);
    }
    roff_see("cusplice.conf", 5, true);
}

/* ---- pages ---- */

static const struct cli_verb *const *listed; /* in cusplice(1) */

static void put_verbs(void) {
    char name[64];
    roff_section("COMMANDS");
    for (const struct cli_verb *const *verb = listed; *verb; verb++) {
        snprintf(name, sizeof name, "cusplice-%s", (*verb)->name);
        roff_item();
        roff_see(name, 1, true);
        roff_words((*verb)->summary);
    }
}

static void put_page(const struct cli_verb *verb, const struct cli_option *const *tables) {
    const char *help = verb->help, *end = help + strlen(help), *options = strstr(help, CLI_OPTIONS);
    char name[64];
    snprintf(name, sizeof name, "cusplice%s%s", *verb->name ? "-" : "", verb->name);
    roff_head(name, 1, verb->summary);
    put_synopsis(verb->synopsis);
    roff_section("DESCRIPTION");
    if (options == help) /* it has options alone */
        roff_words(verb->summary), roff_mark('.');
    put_help(help, options ? options : end, true);
    if (options)
        put_options(tables);
    if (!*verb->name)
        put_verbs();
    if (options && options + strlen(CLI_OPTIONS) + 1 < end) {
        roff_section("NOTES");
        put_help(options + strlen(CLI_OPTIONS) + 1, end, true);
    }
    put_rows("ENVIRONMENT", verb->page.environment);
    put_rows("FILES", verb->page.files);
    roff_section("EXIT STATUS");
    roff_words(verb->page.exits);
    roff_mark('.');
    put_examples(verb->page.examples);
    put_see(verb);
    roff_end();
}

int cli_man(const struct cli_verb *whole, const struct cli_verb *const *verbs, const char *page) {
    const char *name = strncmp(page, "cusplice-", 9) == 0 ? page + 9 : page;
    listed = verbs;
    if (!*page || strcmp(page, "cusplice") == 0) {
        put_page(whole, NULL);
        return 0;
    }
    if (strcmp(page, "cusplice.conf") == 0) {
        cli_man_conf();
        return 0;
    }
    for (; *verbs; verbs++)
        if (strcmp((*verbs)->name, name) == 0) {
            char *const asked[] = {(char *)(*verbs)->name, "--help", NULL};
            cli_help_by(put_page);
            return (*verbs)->run(*verbs, 2, (char **)asked);
        }
    cli_say("'%s' is no page: there are cusplice, cusplice.conf and one for each verb", page);
    return 2;
}
