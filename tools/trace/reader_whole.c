/*
 * Answers whether a replayable trace is whole, and who can have written it. The verbs that replay
 * ask before they start a child; the player asks again. It never calls a driver.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/trace/reader_inside.h"

struct asking {
    const struct cst_trace *trace;
    cst_tell *tell;
    void *context;
    bool whole;
};

static void say(struct asking *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct asking *a, const char *format, ...) {
    char text[1200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    a->whole = false;
    a->tell(a->context, text);
}

/* Did the recording end in good order, with all that it saw? */
static void ask_recording(struct asking *a) {
    const struct cst_trace *trace = a->trace;
    if (!trace->replay.n_works)
        say(a, "it has nothing to replay: record it with cusplice record --replayable");
    if (trace->lost_records)
        say(a, "%" PRIu64 " records were lost when it was recorded: not all of it is there",
            trace->lost_records);
    if (!trace->closed)
        say(a, "the recording did not end in good order: not all of it is there");
}

/* ---- what stands in data blocks ---- */

/* How many parts belong to the same thing as the first one of them. */
static size_t same(const struct cst_replay *replay, size_t first) {
    const struct cst_part *part = &replay->parts[first];
    size_t n = 1;
    while (first + n < replay->n_parts && part[n].of == part->of && part[n].id == part->id)
        n++;
    return n;
}

/* Where the parts end, each of which has to begin where the one before ends; UINT64_MAX: one does
 * not. */
static uint64_t end_of(const struct cst_part *parts, size_t n) {
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].offset != end)
            return UINT64_MAX;
        end += parts[i].bytes;
    }
    return end;
}

static void ask_memory(struct asking *a, const struct cst_part *parts, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (parts[i].offset - parts[i - 1].offset < parts[i - 1].bytes) {
            say(a, "corrupt: two blocks of memory hold what was at 0x%" PRIx64, parts[i].offset);
            return;
        }
}

static void ask_parts(struct asking *a) {
    const struct cst_replay *replay = &a->trace->replay;
    for (size_t i = 0, n; i < replay->n_parts; i += n) {
        const struct cst_part *part = &replay->parts[i];
        n = same(replay, i);
        if (part->of == CST_DATA_MEMORY)
            ask_memory(a, part, n);
        else if (end_of(part, n) == UINT64_MAX)
            say(a, "corrupt: the blocks of %s %u overlap, or something is missing between them",
                part->of == CST_DATA_IMAGE ? "module" : "input", part->id);
    }
}

/* The code of what is launched. */
static void ask_code(struct asking *a) {
    const struct cst_replay *replay = &a->trace->replay;
    bool *asked = calloc(replay->n_modules + (size_t)1, sizeof *asked);
    if (!asked)
        say(a, "not enough memory to look at it");
    for (size_t i = 0; asked && i < replay->n_works; i++) {
        const struct cst_work *work = replay->works[i];
        uint32_t id = work->head.flags == CST_WORK_LAUNCH ? replay->codes[work->code]->module : 0;
        if (!id || asked[id] || replay->modules[id]->form != CST_MODULE_IMAGE)
            continue;
        asked[id] = true;
        size_t n;
        const struct cst_part *parts = cst_data_of(a->trace, CST_DATA_IMAGE, id, &n);
        uint64_t got = end_of(parts, n);
        if (got != UINT64_MAX && (got != replay->modules[id]->bytes || !got))
            say(a,
                "the code of module %u is not whole in the trace: %" PRIu64 " of %" PRIu64 " bytes",
                id, got, replay->modules[id]->bytes);
    }
    free(asked);
}

static void ask_contents(struct asking *a) {
    char error[900];
    for (size_t i = 0; i < a->trace->replay.n_parts; i++)
        if (!cst_data_sound(a->trace, &a->trace->replay.parts[i], error, sizeof error)) {
            say(a, "%s", error);
            return; /* one is enough: the file is to be copied again */
        }
}

bool cst_replay_whole(const struct cst_trace *trace, bool contents, cst_tell *tell, void *context) {
    struct asking a = {trace, tell, context, true};
    char error[900];
    ask_recording(&a);
    ask_parts(&a);
    ask_code(&a);
    if (!cst_data_fits(trace, error, sizeof error))
        say(&a, "%s", error);
    else if (contents && a.whole)
        ask_contents(&a);
    return a.whole;
}

const char *cst_distrust(const struct cst_trace *trace) {
    if (trace->owner != geteuid() && trace->owner != 0)
        return "it belongs to another user";
    if (trace->mode & (S_IWGRP | S_IWOTH))
        return "others than its owner may write it";
    return NULL;
}
