/* See the header. */
#include "harness/player/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 2048 }; /* names in a trace may be long, and there may be many of them */

void notes_add(struct notes *notes, const char *format, ...) {
    char line[LINE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (unsigned i = 0; i < notes->n; i++)
        if (strcmp(notes->text[i], line) == 0)
            return;
    char *text = notes->n < NOTES ? strdup(line) : NULL;
    if (text)
        notes->text[notes->n++] = text;
    else
        notes->more++;
}

void notes_clear(struct notes *notes) {
    while (notes->n)
        free(notes->text[--notes->n]);
    notes->more = 0;
}

/* Bytes beyond ASCII are told one by one, whatever they encode. */
void notes_put_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

void notes_put(const struct notes *notes, const char *key) {
    printf("\"%s\":[", key);
    for (unsigned i = 0; i < notes->n; i++) {
        if (i)
            putchar(',');
        notes_put_text(notes->text[i]);
    }
    if (notes->more)
        printf(",\"and %llu more\"", (unsigned long long)notes->more);
    putchar(']');
}
