/* A sorted array of the spans that are there now. */
#include "harness/player/spans.h"

#include <stdlib.h>
#include <string.h>

bool spans_begin(struct spans *spans, const struct cst_trace *trace) {
    *spans = (struct spans){.trace = trace};
    spans->alive = malloc((trace->replay.n_spans + 1) * sizeof(void *));
    return spans->alive != NULL;
}

void spans_end(struct spans *spans) {
    free(spans->alive);
}

/* The first span that begins after the address. */
static size_t behind(const struct spans *spans, uint64_t address) {
    size_t low = 0, high = spans->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans->alive[middle]->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take(struct spans *spans, const struct cst_span *span) {
    size_t at = behind(spans, span->address);
    bool there = at && spans->alive[at - 1]->address == span->address;
    if (span->gone && there) {
        memmove(spans->alive + at - 1, spans->alive + at, (spans->n - at) * sizeof(void *));
        spans->n--;
    } else if (!span->gone && there) {
        spans->alive[at - 1] = span;
    } else if (!span->gone && spans->n == SPANS_MAX) {
        spans->too_many = true;
    } else if (!span->gone) {
        memmove(spans->alive + at + 1, spans->alive + at, (spans->n - at) * sizeof(void *));
        spans->alive[at] = span;
        spans->n++;
    }
}

void spans_move(struct spans *spans, uint64_t ns) {
    const struct cst_replay *replay = &spans->trace->replay;
    for (; spans->next < replay->n_spans && replay->spans[spans->next]->head.ns <= ns;
         spans->next++) {
        const struct cst_span *span = replay->spans[spans->next];
        if (span->what != CST_SPAN_RESERVED && span->what != CST_SPAN_DEVICE)
            take(spans, span);
    }
}

const struct cst_span *spans_find(const struct spans *spans, uint64_t address) {
    size_t at = behind(spans, address);
    const struct cst_span *span = at ? spans->alive[at - 1] : NULL;
    return span && address - span->address < span->bytes ? span : NULL;
}
