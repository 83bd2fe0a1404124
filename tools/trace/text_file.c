#include "tools/trace/text_file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct cookie {
    char **text;
    size_t *bytes;
    size_t room;
};

/* 0 is an error. */
static ssize_t put(void *cookie, const char *from, size_t n) {
    struct cookie *c = cookie;
    size_t bytes = *c->bytes;
    if (n >= SIZE_MAX / 2 - bytes)
        return 0;
    if (bytes + n + 1 > c->room) {
        size_t room = (bytes + n + 1) + (bytes + n) / 2;
        char *text = realloc(*c->text, room);
        if (!text)
            return 0;
        *c->text = text;
        c->room = room;
    }
    memcpy(*c->text + bytes, from, n);
    *c->bytes = bytes + n;
    (*c->text)[bytes + n] = 0;
    return (ssize_t)n;
}

/* For ftell alone. */
static int tell(void *cookie, off64_t *to, int from) {
    const struct cookie *c = cookie;
    if (from != SEEK_CUR || *to)
        return -1;
    *to = (off64_t)*c->bytes;
    return 0;
}

static int done(void *cookie) {
    free(cookie);
    return 0;
}

FILE *text_file_open(char **text, size_t *bytes) {
    const cookie_io_functions_t functions = {.write = put, .seek = tell, .close = done};
    struct cookie *cookie = malloc(sizeof *cookie);
    *text = calloc(1, 1);
    *bytes = 0;
    FILE *file = NULL;
    if (cookie && *text) {
        *cookie = (struct cookie){.text = text, .bytes = bytes, .room = 1};
        file = fopencookie(cookie, "w", functions);
    }
    if (!file) {
        free(cookie);
        free(*text);
        *text = NULL;
    }
    return file;
}

bool text_file_close(FILE *file, char **text) {
    bool whole = fflush(file) == 0 && !ferror(file);
    if (fclose(file) == 0 && whole)
        return true;
    free(*text);
    *text = NULL;
    return false;
}
