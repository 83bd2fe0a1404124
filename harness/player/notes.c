/* See the header. */
#include "harness/player/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 2048 }; /* a trace may have long and many names */

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

void notes_put(const struct notes *notes, struct cus_json *json, const char *key) {
    cus_json_open(json, key, '[');
    for (unsigned i = 0; i < notes->n; i++)
        cus_json_text(json, NULL, notes->text[i]);
    if (notes->more) {
        char line[48];
        snprintf(line, sizeof line, "and %llu more", (unsigned long long)notes->more);
        cus_json_text(json, NULL, line);
    }
    cus_json_close(json, ']');
}
