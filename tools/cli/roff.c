/*
 * Writes manual pages in the language of man(7). See roff.h.
 */
#include "tools/cli/roff.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/version.h"

enum { FULL = 76 }; /* where a line of text ends */

static unsigned at; /* column of the line that is written; 0: none is begun */

static void put_char(char c) {
    static const struct {
        char c;
        const char *as;
    } marks[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                 {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
    for (unsigned i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i].c == c) {
            fputs(marks[i].as, stdout);
            return;
        }
    putchar(c);
}

static void end_line(void) {
    if (at)
        putchar('\n');
    at = 0;
}

static void macro(const char *text) {
    end_line();
    puts(text);
}

/* Room for a word of so many columns, and what stands between it and the one before. */
static void begin_word(size_t bytes) {
    if (at && at + 1 + bytes > FULL)
        end_line();
    if (at)
        putchar(' ');
    at += (unsigned)bytes + (at != 0);
}

static void put_word(const char *word, size_t bytes) {
    begin_word(bytes);
    if (at == bytes && (*word == '.' || *word == '\''))
        fputs("\\&", stdout); /* no macro */
    for (size_t i = 0; i < bytes; i++)
        put_char(word[i]);
}

void roff_text(const char *text, size_t bytes) {
    for (const char *end = text + bytes; text < end;) {
        size_t word = strcspn(text, " \n");
        word = word < (size_t)(end - text) ? word : (size_t)(end - text);
        if (word)
            put_word(text, word);
        text += word + 1;
    }
}

void roff_words(const char *text) {
    roff_text(text, strlen(text));
}

static void font(char to) {
    printf("\\f%c", to);
}

void roff_font(char to, const char *text) {
    begin_word(strlen(text));
    font(to);
    for (; *text; text++)
        put_char(*text);
    font('R');
}

/* Where the part of a word ends that begins at `i` and has one font; *to: which. */
static size_t part(const char *word, size_t i, size_t bytes, char *to) {
    size_t end = i;
    if (word[i] == '-' && bytes - i > 1 && (i == 0 || !isalnum((unsigned char)word[i - 1]))) {
        while (end < bytes && (word[end] == '-' || islower((unsigned char)word[end])))
            end++;
        *to = 'B';
        return end;
    }
    while (end < bytes && (isupper((unsigned char)word[end]) || (end > i && word[end] == '-')))
        end++;
    *to = end > i ? 'I' : 'R';
    return end > i ? end : i + 1;
}

static void put_usage_word(const char *word, size_t bytes) {
    char now = 'R', to;
    begin_word(bytes);
    for (size_t i = 0, end; i < bytes; i = end) {
        end = part(word, i, bytes, &to);
        if (to != now)
            font(to);
        now = to;
        for (size_t k = i; k < end; k++)
            put_char(word[k]);
    }
    if (now != 'R')
        font('R');
}

void roff_usage(const char *text, size_t bytes) {
    for (const char *end = text + bytes; text < end;) {
        size_t word = strcspn(text, " \n");
        word = word < (size_t)(end - text) ? word : (size_t)(end - text);
        if (word)
            put_usage_word(text, word);
        text += word + 1;
    }
}

void roff_lines(const char *text, size_t bytes) {
    macro(".PP\n.RS 4\n.nf");
    for (const char *end = text + bytes; text < end; text++) {
        if (!at && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\n')
            putchar('\n');
        else
            put_char(*text);
        at = *text != '\n';
    }
    macro(".fi\n.RE");
}

/* ---- macros ---- */

static void put_all(const char *text, bool large) {
    for (; *text; text++)
        put_char(large ? (char)toupper((unsigned char)*text) : *text);
}

void roff_head(const char *name, int section, const char *summary) {
    puts(".\\\" Made by: cusplice help --man");
    fputs(".TH ", stdout);
    put_all(name, true);
    printf(" %d %s \"cusplice %s\" \"cusplice\"\n", section, CUSPLICE_DATE, CUSPLICE_VERSION);
    roff_section("NAME");
    put_all(name, false);
    fputs(" \\- ", stdout);
    put_all(summary, false);
    putchar('\n');
}

void roff_section(const char *name) {
    end_line();
    printf(".SH %s\n", name);
}

void roff_paragraph(void) {
    macro(".PP");
}

void roff_item(void) {
    macro(".TP");
}

void roff_item_text(void) {
    end_line();
}

void roff_mark(char mark) {
    putchar(mark);
    at++;
}

void roff_break(void) {
    macro(".br");
}

void roff_see(const char *name, int section, bool last) {
    end_line();
    fputs(".BR ", stdout);
    put_all(name, false);
    printf(" (%d)%s\n", section, last ? "" : ",");
}

void roff_end(void) {
    end_line();
}
