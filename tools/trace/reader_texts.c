/*
 * The strings of a trace by id. reader.c fills it, and every reader of a trace asks. It never
 * copies a string.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/trace/reader_inside.h"

static int by_id(const void *a, const void *b) {
    uint32_t x = ((const struct cst_text *)a)->id, y = ((const struct cst_text *)b)->id;
    return x < y ? -1 : x > y;
}

bool cst_texts(struct cst_trace *trace, const struct cst_string *const *strings, size_t n,
               char *to) {
    trace->texts = calloc(n + 1, sizeof *trace->texts);
    if (!trace->texts)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct cst_string *string = strings[i];
        trace->texts[i] = (struct cst_text){string->id, string->bytes, to};
        memcpy(to, string + 1, string->bytes);
        to[string->bytes] = 0;
        to += string->bytes + (size_t)1;
    }
    trace->n_texts = (uint32_t)n;
    qsort(trace->texts, n, sizeof *trace->texts, by_id);
    return true;
}

uint32_t cst_text_number(const struct cst_trace *trace, uint32_t id) {
    uint32_t low = 0, high = trace->n_texts;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->texts[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trace->n_texts && trace->texts[low].id == id ? low : trace->n_texts;
}

const char *cst_string(const struct cst_trace *trace, uint32_t id) {
    uint32_t number = cst_text_number(trace, id);
    return number < trace->n_texts ? trace->texts[number].text : "";
}
