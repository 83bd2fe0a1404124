/*
 * Prints the help of a verb, as wide as the terminal: the text is filled anew, options come from
 * their tables. options.c calls it. It never reads an option.
 */
#include <stdio.h>
#include <string.h>

#include "tools/cli/options.h"
#include "tools/cli/width.h"

/* HANG: where the texts of options stand. WIDEST: longer lines are hard to read. */
enum { HANG = 24, WIDEST = 110 };

struct page {
    unsigned at, width, hang; /* of the next lines of a paragraph */
    bool texts;               /* the line had a word, then its text, which goes on at `hang` */
};

static void end_line(struct page *page) {
    if (page->at)
        putchar('\n');
    page->at = 0;
}

static void put_blanks(struct page *page, unsigned to) {
    for (; page->at < to; page->at++)
        putchar(' ');
}

/* One word, on a line of its own where this one has no room for it. */
static void put_word(struct page *page, const char *word, size_t bytes) {
    if (page->at > page->hang && page->at + 1 + bytes > page->width)
        end_line(page);
    if (page->at <= page->hang)
        put_blanks(page, page->hang);
    else
        put_blanks(page, page->at + 1);
    fwrite(word, 1, bytes, stdout);
    page->at += (unsigned)bytes;
}

/* Words up to `end`; a newline ends a line where `breaks`. */
static void put_words(struct page *page, const char *text, const char *end, bool breaks) {
    while (text < end) {
        size_t bytes = strcspn(text, " \n");
        bytes = bytes < (size_t)(end - text) ? bytes : (size_t)(end - text);
        if (bytes)
            put_word(page, text, bytes);
        text += bytes;
        if (text < end && *text++ == '\n' && breaks)
            end_line(page);
    }
}

static void put_option(struct page *page, const struct cli_option *row) {
    char head[80], brief[5] = "   ";
    if (row->brief)
        snprintf(brief, sizeof brief, "-%c,", row->brief);
    int bytes = snprintf(head, sizeof head, "  %s --%s%s%s", brief, row->name, row->arg ? " " : "",
                         row->arg ? row->arg : "");
    fputs(head, stdout);
    page->at = (unsigned)bytes;
    page->hang = HANG;
    if (bytes + 1 > HANG && *row->help)
        end_line(page);
    put_words(page, row->help, row->help + strlen(row->help), true);
    end_line(page);
}

static void put_options(struct page *page, const struct cli_option *const *tables) {
    for (; *tables; tables++)
        for (const struct cli_option *row = *tables; row->name; row++)
            if (row->help)
                put_option(page, row);
    put_option(page, cli_option_help);
}

/* Where the text of a line stands that is `  word   text`; 0: it is no such line. */
static unsigned text_of(const char *line, const char *end) {
    unsigned at = 0;
    while (line + at < end && line[at] == ' ')
        at++;
    for (; at && line + at + 2 < end; at++)
        if (line[at] == ' ' && line[at + 1] == ' ') {
            while (line + at < end && line[at] == ' ')
                at++;
            return at;
        }
    return 0;
}

/* A line that begins with blanks stands as it is, and is folded at its text where it is too long;
 * all others up to the next empty line are one paragraph. */
static void put_text(struct page *page, const char *text, const char *end) {
    while (text < end) {
        const char *line = memchr(text, '\n', (size_t)(end - text));
        unsigned indent = (unsigned)strspn(text, " "), hang;
        line = line ? line : end;
        if (line == text || indent) {
            bool goes_on = page->texts && indent && indent == page->hang;
            if (!goes_on)
                end_line(page);
            hang = text_of(text, line);
            page->hang = goes_on ? indent : hang ? hang : indent;
            page->texts = goes_on || hang;
            if (hang && hang != indent && page->hang == hang) {
                fwrite(text, 1, hang - 1, stdout);
                page->at = hang - 1;
                indent = hang;
            }
            put_words(page, text + indent, line, false);
            if (line == text)
                putchar('\n');
        } else {
            if (page->hang)
                end_line(page);
            page->hang = 0;
            put_words(page, text, line, false);
        }
        text = line + 1;
    }
    end_line(page);
}

/* Each line of how it is called; what follows a newline begins at "cusplice". */
static void put_usage(struct page *page, const char *synopsis) {
    bool first = true;
    while (*synopsis) {
        size_t bytes = strcspn(synopsis, "\n");
        const char *end = synopsis + bytes;
        page->hang = first ? 0 : 7;
        put_words(page, first ? "usage: cusplice" : "", first ? "usage: cusplice" + 15 : "", false);
        page->hang = 7;
        put_words(page, synopsis, end, false);
        end_line(page);
        synopsis = *end ? end + 1 : end;
        first = false;
    }
    putchar('\n');
}

void cli_print_filled(const char *text) {
    struct page page = {.width = cli_width()};
    page.width = page.width < WIDEST ? page.width : WIDEST;
    put_text(&page, text, text + strlen(text));
}

void cli_print_help(const struct cli_verb *verb, const struct cli_option *const *tables) {
    struct page page = {.width = cli_width()};
    const char *options = strstr(verb->help, CLI_OPTIONS), *end = verb->help + strlen(verb->help);
    char exits[512];
    page.width = page.width < WIDEST ? page.width : WIDEST;
    put_usage(&page, verb->synopsis);
    page.hang = 0;
    put_text(&page, verb->help, options ? options : end);
    if (options) {
        put_options(&page, tables);
        page.hang = 0;
        put_text(&page, options + strlen(CLI_OPTIONS), end);
    }
    page.hang = 0;
    snprintf(exits, sizeof exits, "\nExit status: %s.\n", verb->page.exits);
    put_text(&page, exits, exits + strlen(exits));
}
