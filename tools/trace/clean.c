/*
 * Writes one text in the form that its format needs. Every verb calls it. Any thread; it keeps no
 * state and never fails.
 */
#include "tools/trace/clean.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shim/base/clean.h"

/* ---- characters ---- */

enum { LONGEST = 4 /* bytes of a character; the final NUL is within none */ };

/* What takes another number of columns than one. Wide and combining characters are those of common
 * scripts; Unicode, UAX 11 and the property Mn. */
static const struct range {
    uint32_t first, last;
    unsigned columns;
} ranges[] = {
    {0x300, 0x36f, 0},     {0x1100, 0x115f, 2}, {0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},
    {0x20d0, 0x20ff, 0},   {0x2e80, 0x303e, 2}, {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},
    {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0}, {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},
    {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2}, {0x1f300, 0x1f64f, 2}, {0x1f900, 0x1f9ff, 2},
    {0x20000, 0x3fffd, 2},
};

static unsigned columns_of(uint32_t code) {
    for (unsigned i = 0; i < sizeof ranges / sizeof *ranges && ranges[i].first <= code; i++)
        if (code <= ranges[i].last)
            return ranges[i].columns;
    return 1;
}

static uint32_t code_at(const char *at) {
    uint32_t code = 0;
    cus_utf8(at, LONGEST, &code);
    return code;
}

struct clean_character clean_next(const char *at) {
    uint32_t code;
    unsigned bytes = (unsigned)cus_utf8(at, LONGEST, &code);
    bool shown = bytes && cus_is_shown(code);
    return (struct clean_character){bytes ? bytes : 1, shown ? columns_of(code) : 1, bytes != 0,
                                    shown};
}

/* Puts the character; returns what is behind it. */
static const char *put(FILE *to, const char *at) {
    struct clean_character c = clean_next(at);
    if (c.shown)
        fwrite(at, 1, c.bytes, to);
    else
        putc('?', to);
    return at + c.bytes;
}

/* ---- terminals ---- */

void clean_text(FILE *to, const char *text) {
    while (*text)
        text = put(to, text);
}

size_t clean_columns(const char *text) {
    size_t columns = 0;
    while (*text) {
        struct clean_character c = clean_next(text);
        columns += c.columns;
        text += c.bytes;
    }
    return columns;
}

void clean_cell(FILE *to, const char *text, size_t columns) {
    size_t used = 0, cut = columns > 2 && clean_columns(text) > columns ? 2 : 0;
    while (*text && used + clean_next(text).columns <= columns - cut) {
        used += clean_next(text).columns;
        text = put(to, text);
    }
    fprintf(to, "%s%*s", cut ? ".." : "", (int)(columns - cut - used), "");
}

/* How many bytes of the text are one word, and how many columns they fill. */
static size_t word(const char *text, size_t *columns) {
    size_t bytes = 0;
    for (*columns = 0; text[bytes] && text[bytes] != ' ';) {
        struct clean_character c = clean_next(text + bytes);
        bytes += c.bytes;
        *columns += c.columns;
    }
    return bytes;
}

void clean_fold(FILE *to, const char *text, size_t at, size_t indent, size_t width) {
    bool first = true; /* in its line */
    for (text += strspn(text, " "); *text;) {
        size_t columns, bytes = word(text, &columns);
        /* A word that no line has room for stays where it is. */
        if (!first && width && at + 1 + columns > width && indent + columns <= width) {
            fprintf(to, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        if (!first)
            putc(' ', to);
        at += columns + !first;
        first = false;
        for (const char *end = text + bytes; text < end;)
            text = put(to, text);
        text += strspn(text, " ");
    }
    putc('\n', to);
}

void clean_comment(FILE *to, size_t width, const char *format, ...) {
    char text[8192], *lines = NULL, *rest, *line;
    size_t bytes;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    FILE *folded = open_memstream(&lines, &bytes);
    if (!folded)
        return;
    clean_fold(folded, text, 0, 2, width > 2 ? width - 2 : width);
    if (fclose(folded) == 0)
        for (rest = lines; (line = strsep(&rest, "\n")) && (*line || rest);)
            fprintf(to, "# %s\n", line);
    free(lines);
}

void clean_vprint(FILE *to, const char *format, va_list args) {
    char room[4096], *text = room, *more = NULL;
    size_t ends = strlen(format), lines = 0;
    va_list again;
    va_copy(again, args);
    int bytes = vsnprintf(room, sizeof room, format, args);
    if (bytes >= (int)sizeof room && (more = malloc((size_t)bytes + 1))) {
        vsnprintf(more, (size_t)bytes + 1, format, again);
        text = more;
    }
    va_end(again);
    if (bytes < 0)
        return;
    while (lines < ends && format[ends - lines - 1] == '\n')
        lines++;
    if (text == more || bytes < (int)sizeof room)
        text[(size_t)bytes - lines] = 0; /* else it is cut, without memory */
    clean_text(to, text);
    while (lines--)
        putc('\n', to);
    free(more);
}

void clean_print(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    clean_vprint(to, format, args);
    va_end(args);
}

/* ---- CSV ---- */

/* Does a spreadsheet take it for a formula? They look behind blanks and quotes, and know the wide
 * forms of the signs. */
static bool is_formula(const char *text) {
    static const uint32_t blanks[] = {' ', '"', '\'', '`', 0xa0, 0x3000};
    static const uint32_t signs[] = {'=',  '+',    '-',    '@',    '\t',  '\r',
                                     '\n', 0xff1d, 0xff0b, 0xff0d, 0xff20};
    for (; *text; text += clean_next(text).bytes) {
        uint32_t code = code_at(text);
        bool blank = false;
        for (unsigned i = 0; i < sizeof signs / sizeof *signs; i++)
            if (code == signs[i])
                return true;
        for (unsigned i = 0; i < sizeof blanks / sizeof *blanks; i++)
            blank |= code == blanks[i];
        if (!blank)
            return false;
    }
    return false;
}

void clean_csv(FILE *to, const char *text) {
    bool quoted = text[strcspn(text, ",\"")];
    if (quoted)
        putc('"', to);
    if (is_formula(text))
        putc('\'', to);
    while (*text) {
        if (*text == '"')
            putc('"', to);
        text = put(to, text);
    }
    if (quoted)
        putc('"', to);
}

/* ---- Markdown ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_behind(const char *text, const char *at, const char *word) {
    size_t bytes = strlen(word);
    return (size_t)(at - text) >= bytes && strncasecmp(at - bytes, word, bytes) == 0;
}

/* A character that a link is known by: an escape does not hide it from all who look for links in
 * what is rendered already, a code span does. */
static bool makes_link(const char *text, const char *at) {
    if (*at == ':')
        return (at[1] == '/' && at[2] == '/') || is_behind(text, at, "mailto") ||
               is_behind(text, at, "xmpp");
    return *at == '@' || (*at == '.' && is_behind(text, at, "www"));
}

/* Does the character need a backslash? */
static bool is_markup(const char *text, const char *at) {
    if (at == text && strchr("#+->", *at))
        return true;
    if ((*at == '.' || *at == ')') && at > text && is_digit(at[-1]) && (!at[1] || at[1] == ' '))
        return strspn(text, "0123456789") == (size_t)(at - text); /* a list begins so */
    return strchr("\\`*~[]|&$", *at) != NULL;
}

/* Underscores with letters or digits on both sides are never markup. Returns what is behind them.
 */
static const char *put_underscores(FILE *to, const char *text, const char *at) {
    size_t n = strspn(at, "_");
    bool plain = at > text && is_alnum(at[-1]) && is_alnum(at[n]);
    for (size_t i = 0; i < n; i++)
        fputs(plain ? "_" : "\\_", to);
    return at + n;
}

static const char *put_links(FILE *to, const char *text, const char *at) {
    putc('`', to);
    while (*at && makes_link(text, at))
        putc(*at++, to);
    putc('`', to);
    return at;
}

void clean_md(FILE *to, const char *text) {
    text += strspn(text, " "); /* four begin a block of code */
    for (const char *at = text; *at;) {
        if (makes_link(text, at)) {
            at = put_links(to, text, at);
        } else if (*at == '_') {
            at = put_underscores(to, text, at);
        } else if (*at == '<') { /* not all know an escape of it */
            fputs("&lt;", to);
            at++;
        } else {
            if (is_markup(text, at))
                putc('\\', to);
            at = put(to, at);
        }
    }
}

/* ---- dot, XML ---- */

void clean_dot(FILE *to, const char *text) {
    while (*text) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        if (*text == '&') { /* &lt; would be read as < */
            fputs("&amp;", to);
            text++;
        } else {
            text = put(to, text);
        }
    }
}

static const char *entity(char c) {
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static size_t count(const char *text) {
    size_t n = 0;
    for (; *text; n++)
        text += clean_next(text).bytes;
    return n;
}

void clean_xml(FILE *to, const char *text, unsigned most) {
    size_t n = count(text), left = n <= most ? n : most > 3 ? most - 3 : 0;
    for (; left; left--) {
        const char *name = entity(*text);
        if (name) {
            fputs(name, to);
            text++;
        } else {
            text = put(to, text);
        }
    }
    if (*text)
        fputs("...", to);
}
