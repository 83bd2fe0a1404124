/*
 * Writes the selected records in two passes: the first finds the definitions that they need, the
 * second writes. A LAUNCH or FLUSH whose ops are partly left out says how many remain. verb_trim.c
 * calls it. It never changes the source.
 */
#include "tools/trace/trim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "shim/base/options.h"
#include "shim/trace/file.h"
#include "tools/trace/beside.h"
#include "tools/trace/budget.h"
#include "tools/trace/facts.h"
#include "tools/trace/progress.h"
#include "tools/trace/text_file.h"

enum { LEVEL = 3 };

struct trim {
    const struct look *look;
    const struct selection *selection;
    struct cst_out out;
    struct cst_sink sink;
    char *frame;       /* where blocks are packed; NULL: they are not */
    uint32_t *strings; /* by number of the text: its id where it is needed, else 0 */
    uint32_t *kinds;   /* new number by old one; 0: left out */
    uint32_t *cursor;  /* by stream: the first op that went out in no record seen so far */
    const struct cst_call **end; /* of the steps that are kept, by address */
    size_t n_ends;
    bool bare;
    bool no_memory;
    char wrong[512]; /* what is wrong with the trace that is read */
};

static void need_string(struct trim *t, uint32_t id) {
    uint32_t number = cst_text_number(t->look->trace, id);
    if (number < t->look->trace->n_texts)
        t->strings[number] = id;
}

/* ---- what is kept ---- */

static int by_address(const void *a, const void *b) {
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    return x < y ? -1 : x > y;
}

static bool in_time(const struct trim *t, const struct cst_record *record) {
    return select_in_time(t->selection, record->ns);
}

/* How many of its ops a LAUNCH or FLUSH speaks of when others are left out; 0: it is left out. */
static uint32_t left_of(struct trim *t, const struct cst_record *record, uint32_t stream,
                        uint32_t n) {
    const struct model_stream *s = &t->look->model->streams[stream];
    uint32_t took = 0, kept = 0;
    for (; t->cursor[stream] < s->n_ops; t->cursor[stream]++) {
        const struct model_op *op = look_op(t->look, stream, t->cursor[stream]);
        if (op->out && op->out != record)
            break;
        took += op->out == record;
        kept += op->out == record && t->selection->steps[op->step];
    }
    if (!took)
        return in_time(t, record) ? n : 0;
    return kept ? n - (took - kept) : 0;
}

/* The LAUNCH or FLUSH at `i`. Its BRANCH records stand before it, with the same time. */
static void each_out(struct trim *t, size_t i, uint32_t stream, uint32_t n,
                     void (*keep)(struct trim *, const struct cst_record *, uint32_t)) {
    const struct cst_record *const *events = t->look->trace->events;
    const struct cst_record *record = events[i];
    uint32_t kept = 0;
    size_t first = i;
    while (first > 0 && events[first - 1]->ns == record->ns)
        first--;
    for (size_t b = first; b < i; b++) {
        const struct cst_branch *branch = (const struct cst_branch *)events[b];
        if (branch->head.type != CST_BRANCH || branch->head.thread != record->thread)
            continue;
        uint32_t its = left_of(t, record, branch->stream, branch->n);
        n -= branch->n < n ? branch->n : n;
        kept += its;
        if (its)
            keep(t, &branch->head, its);
    }
    kept += left_of(t, record, stream, n);
    if (kept)
        keep(t, record, kept);
}

/* Calls `keep` with each event that is kept, and with `n` where it is a LAUNCH, FLUSH or BRANCH. */
static void each(struct trim *t, void (*keep)(struct trim *, const struct cst_record *, uint32_t)) {
    const struct cst_trace *trace = t->look->trace;
    uint32_t op = 0;
    memset(t->cursor, 0, trace->n_streams * sizeof *t->cursor);
    for (size_t i = 0; i < trace->n_events && !t->no_memory && !t->out.error; i++) {
        progress_event("trim", i, trace->n_events);
        const struct cst_record *record = trace->events[i];
        switch (record->type) {
        case CST_OP:
            if (t->selection->steps[t->look->model->ops[op++].step])
                keep(t, record, 0);
            break;
        case CST_FLUSH: {
            const struct cst_flush *flush = (const struct cst_flush *)record;
            each_out(t, i, flush->stream, flush->n, keep);
            break;
        }
        case CST_LAUNCH: {
            const struct cst_launch *launch = (const struct cst_launch *)record;
            each_out(t, i, launch->stream, launch->n, keep);
            break;
        }
        case CST_BRANCH: /* goes with its LAUNCH or FLUSH */
            break;
        case CST_CALL:
            if (in_time(t, record) ||
                bsearch(&record, t->end, t->n_ends, sizeof(void *), by_address))
                keep(t, record, 0);
            break;
        default:
            if (in_time(t, record))
                keep(t, record, 0);
        }
    }
}

static void need(struct trim *t, const struct cst_record *record, uint32_t n) {
    (void)n;
    if (record->type == CST_OP) {
        const struct cst_op *op = (const struct cst_op *)record;
        t->kinds[op->kind] = 1;
        need_string(t, op->eager);
        need_string(t, op->why);
    } else if (record->type == CST_CALL) {
        need_string(t, ((const struct cst_call *)record)->name);
    } else if (record->type == CST_FLUSH) {
        need_string(t, ((const struct cst_flush *)record)->cause);
        need_string(t, ((const struct cst_flush *)record)->reason);
    }
}

/* ---- writing ---- */

static void end_block(struct trim *t) {
    if (!t->frame || !t->sink.used) {
        cst_sink_flush(&t->sink);
        return;
    }
    size_t n =
        ZSTD_compress(t->frame, ZSTD_compressBound(CST_SINK), t->sink.buffer, t->sink.used, LEVEL);
    if (ZSTD_isError(n))
        t->no_memory = true;
    else
        cst_out_block(&t->out, CST_BLOCK_RECORDS, CST_BLOCK_ZSTD, t->frame, n, t->sink.used);
    t->sink.used = 0;
}

/* A copy of the record, where it now stands. */
static void *put(struct trim *t, const struct cst_record *record) {
    size_t bytes = record->words * (size_t)8;
    if (t->sink.used + bytes > CST_SINK)
        end_block(t);
    cst_sink_put(&t->sink, record, bytes);
    return t->sink.buffer + t->sink.used - bytes;
}

static void put_op(struct trim *t, const struct cst_op *op) {
    struct cst_op bare = *op;
    bare.head.words = sizeof bare / 8; /* the params stand behind it */
    struct cst_op *copy = put(t, t->bare ? &bare.head : &op->head);
    copy->kind = t->kinds[op->kind];
}

static void put_event(struct trim *t, const struct cst_record *record, uint32_t n) {
    if (record->type == CST_OP) {
        put_op(t, (const struct cst_op *)record);
        return;
    }
    void *copy = put(t, record);
    if (record->type == CST_LAUNCH)
        ((struct cst_launch *)copy)->n = n;
    else if (record->type == CST_FLUSH)
        ((struct cst_flush *)copy)->n = n;
    else if (record->type == CST_BRANCH)
        ((struct cst_branch *)copy)->n = n;
}

/* When the ops that are kept ran. What was no op, or is of one that is left out, is left out. */
static void put_gpu(struct trim *t, bool names) {
    const struct cst_trace *trace = t->look->trace;
    const struct model *model = t->look->model;
    for (size_t i = 0; !names && i < trace->n_gpu_streams; i++)
        put(t, &trace->gpu_streams[i]->head);
    for (size_t i = 0; !names && i < trace->n_gpu_contexts; i++)
        put(t, &trace->gpu_contexts[i]->head);
    for (uint32_t i = 0; i < model->n_ops && !t->no_memory && !t->out.error; i++)
        if (model->ops[i].gpu && t->selection->steps[model->ops[i].step]) {
            if (names)
                need_string(t, model->ops[i].gpu->name);
            else
                put(t, &model->ops[i].gpu->head);
        }
}

static void put_definitions(struct trim *t) {
    const struct cst_trace *trace = t->look->trace;
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < trace->n_threads; i++)
        if (trace->threads[i] && !t->bare)
            need_string(t, trace->threads[i]->name);
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        if (t->kinds[i]) {
            need_string(t, trace->kinds[i]->name);
            if (!t->bare)
                need_string(t, trace->kinds[i]->file);
        }
    for (uint32_t i = 0; i < trace->n_texts; i++)
        if (t->strings[i]) {
            const char *text = cst_string(trace, t->strings[i]);
            if (t->sink.used + sizeof(struct cst_string) + strlen(text) + 8 > CST_SINK)
                end_block(t);
            cst_sink_string(&t->sink, t->strings[i], text);
        }
    for (uint32_t i = 0; i < trace->n_threads; i++)
        if (trace->threads[i]) {
            struct cst_thread *thread = put(t, &trace->threads[i]->head);
            thread->name = t->bare ? 0 : thread->name;
        }
    for (uint32_t i = 0; i < trace->n_streams; i++)
        if (trace->streams[i])
            put(t, &trace->streams[i]->head);
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        if (t->kinds[i]) {
            struct cst_kind *kind = put(t, &trace->kinds[i]->head);
            kind->id = t->kinds[i] = ++kinds;
            if (t->bare) {
                kind->flags |= CST_KIND_OPAQUE;
                kind->file = 0;
            }
        }
    for (size_t i = 0; i < trace->n_ranges && !t->bare; i++)
        if (trace->ranges[i]->head.ns < t->selection->end)
            put(t, &trace->ranges[i]->head);
}

/* ---- what a replay needs ---- */

static bool may_be_replayed(const struct cst_replay *replay) {
    return replay->n_works || replay->n_parts;
}

static void need_replay(struct trim *t) {
    const struct cst_replay *replay = &t->look->trace->replay;
    for (uint32_t i = 0; i < replay->n_modules; i++)
        if (replay->modules[i]) {
            need_string(t, replay->modules[i]->file);
            need_string(t, replay->modules[i]->build_id);
        }
    for (uint32_t i = 0; i < replay->n_codes; i++)
        if (replay->codes[i])
            need_string(t, replay->codes[i]->name);
    for (size_t i = 0; i < replay->n_spans; i++)
        need_string(t, replay->spans[i]->name);
    for (size_t i = 0; i < replay->n_obstacles; i++) {
        need_string(t, replay->obstacles[i]->call);
        need_string(t, replay->obstacles[i]->why);
    }
}

/* Its checksum is looked at: what is broken must not become whole. */
static void put_part(struct trim *t, const struct cst_part *part) {
    struct cst_data head = {part->of, part->id, part->offset, part->bytes};
    size_t raw = sizeof head + part->bytes, room = t->frame ? ZSTD_compressBound(raw) : 0;
    char *bytes = malloc(raw + room), *frame = bytes ? bytes + raw : NULL;
    if (!bytes) {
        t->no_memory = true;
        return;
    }
    memcpy(bytes, &head, sizeof head);
    if (cst_data_load(t->look->trace, part, bytes + sizeof head, t->wrong, sizeof t->wrong)) {
        size_t n = t->frame ? ZSTD_compress(frame, room, bytes, raw, LEVEL) : raw;
        if (ZSTD_isError(n))
            t->no_memory = true;
        else if (t->frame)
            cst_out_block(&t->out, CST_BLOCK_DATA, CST_BLOCK_ZSTD, frame, n, raw);
        else
            cst_out_block(&t->out, CST_BLOCK_DATA, 0, bytes, raw, raw);
    }
    free(bytes);
}

static void put_replay(struct trim *t) {
    const struct cst_replay *replay = &t->look->trace->replay;
    for (uint32_t i = 0; i < replay->n_modules; i++)
        if (replay->modules[i])
            put(t, &replay->modules[i]->head);
    for (uint32_t i = 0; i < replay->n_codes; i++)
        if (replay->codes[i])
            put(t, &replay->codes[i]->head);
    for (uint32_t i = 0; i < replay->n_lanes; i++)
        if (replay->lanes[i])
            put(t, &replay->lanes[i]->head);
    for (size_t i = 0; i < replay->n_spans; i++)
        put(t, &replay->spans[i]->head);
    for (size_t i = 0; i < replay->n_works && !t->no_memory && !t->out.error; i++)
        put(t, &replay->works[i]->head);
    for (size_t i = 0; i < replay->n_checks; i++)
        put(t, &replay->checks[i]->head);
    for (size_t i = 0; i < replay->n_obstacles; i++)
        put(t, &replay->obstacles[i]->head);
    end_block(t);
    cst_data_fits(t->look->trace, t->wrong, sizeof t->wrong);
    for (size_t i = 0; i < replay->n_parts && !t->no_memory && !t->out.error && !*t->wrong; i++)
        put_part(t, &replay->parts[i]);
}

/* The highest N of members "trimmed_N"; 1 for "trimmed", 0: it was never trimmed. */
static void count_trims(void *context, const char *key, size_t key_bytes, const char *value,
                        size_t bytes) {
    unsigned *most = context, n = 0;
    (void)value, (void)bytes;
    if (key_bytes == sizeof "\"trimmed\"" - 1 && memcmp(key, "\"trimmed\"", key_bytes) == 0)
        n = 1;
    else if (key_bytes < 20 && strncmp(key, "\"trimmed_", 9) == 0)
        n = (unsigned)strtoul(key + 9, NULL, 10);
    *most = n > *most && n < UINT32_MAX ? n : *most;
}

/* ---- facts for others to see ---- */

static bool is_key(const char *key, size_t bytes, const char *name) {
    return bytes == strlen(name) + 2 && memcmp(key + 1, name, bytes - 2) == 0;
}

/* Is it an option whose value is a path? */
static bool is_path(const char *key, size_t bytes) {
    const struct cus_option_row *row;
    for (unsigned i = 0; (row = cus_options_row(i)); i++) {
        char allowed[64];
        cus_options_allowed(i, allowed, sizeof allowed);
        if (is_key(key, bytes, row->key))
            return strcmp(allowed, "a path") == 0;
    }
    return true; /* of another version */
}

static void put_member(FILE *to, const char *key, size_t key_bytes, const char *value,
                       size_t bytes) {
    if (ftell(to) > 1)
        putc(',', to);
    fprintf(to, "%.*s:%.*s", (int)key_bytes, key, (int)bytes, value);
}

static void put_option(void *to, const char *key, size_t key_bytes, const char *value,
                       size_t bytes) {
    if (!is_path(key, key_bytes))
        put_member(to, key, key_bytes, value, bytes);
}

/* The members of an object that `put` lets by, as an object; the caller frees it. NULL: no memory.
 */
static char *filtered(const char *object, size_t bytes, facts_fn *put_it) {
    char *copy = strndup(object, bytes), *text = NULL;
    size_t n;
    FILE *to = copy ? text_file_open(&text, &n) : NULL;
    if (to) {
        putc('{', to);
        facts_each(copy, put_it, to);
        putc('}', to);
    }
    if (to)
        text_file_close(to, &text);
    free(copy);
    return text;
}

static void put_fact(void *to, const char *key, size_t key_bytes, const char *value, size_t bytes) {
    static const char *const kept[] = {"cusplice", "driver", "gpu",   "compute_capability",
                                       "clock",    "rules",  "steps", "stream_kinds"};
    for (unsigned i = 0; i < sizeof kept / sizeof *kept; i++)
        if (is_key(key, key_bytes, kept[i]))
            put_member(to, key, key_bytes, value, bytes);
    if (!is_key(key, key_bytes, "options") || *value != '{')
        return;
    char *options = filtered(value, bytes, put_option);
    if (options)
        put_member(to, key, key_bytes, options, strlen(options));
    free(options);
}

/* The facts with the note as one more member. */
static void put_facts(struct trim *t, const char *note) {
    char *few = t->bare ? filtered(t->look->facts, strlen(t->look->facts), put_fact) : NULL;
    const char *line = t->bare ? few : t->look->facts;
    char key[32] = "trimmed";
    unsigned before = 0;
    if (!line) {
        t->no_memory = true;
        return;
    }
    facts_each(line, count_trims, &before);
    if (before)
        snprintf(key, sizeof key, "trimmed_%u", before + 1);
    size_t bytes = strlen(line) + strlen(note) + sizeof key + 16;
    char *text = malloc(bytes);
    if (!text) {
        t->no_memory = true;
        free(few);
        return;
    }
    int n = snprintf(text, bytes, "%.*s%s\"%s\":%s}", (int)strlen(line) - 1, line,
                     strlen(line) > 2 ? "," : "", key, note);
    cst_out_block(&t->out, CST_BLOCK_FACTS, 0, text, (size_t)n, (size_t)n);
    free(text);
    free(few);
}

static bool prepare(struct trim *t, bool packed) {
    const struct model *model = t->look->model;
    t->sink = (struct cst_sink){.out = &t->out, .buffer = malloc(CST_SINK)};
    t->frame = packed ? malloc(ZSTD_compressBound(CST_SINK)) : NULL;
    t->kinds = calloc(t->look->trace->n_kinds + (size_t)1, sizeof *t->kinds);
    t->cursor = calloc(t->look->trace->n_streams + (size_t)1, sizeof *t->cursor);
    t->end = calloc(model->n_steps + (size_t)1, sizeof *t->end);
    t->strings = calloc(t->look->trace->n_texts + (size_t)1, sizeof *t->strings);
    if (!t->strings || !t->sink.buffer || (packed && !t->frame) || !t->kinds || !t->cursor ||
        !t->end)
        return false;
    for (uint32_t i = 0; i < model->n_steps; i++)
        if (t->selection->steps[i] && model->steps[i].end)
            t->end[t->n_ends++] = model->steps[i].end;
    qsort(t->end, t->n_ends, sizeof *t->end, by_address);
    return true;
}

static bool refuse(const struct trim *t, const char *path, char *error, size_t bytes) {
    if (*t->wrong)
        snprintf(error, bytes, "%s", t->wrong);
    else if (t->out.error == BESIDE_INPUT)
        snprintf(error, bytes, "%s: it, or %s.partial, is what is read: name another file", path,
                 path);
    else if (t->no_memory)
        snprintf(error, bytes, "%s: not enough memory", path);
    else if (t->out.error == EEXIST)
        snprintf(error, bytes,
                 "%s: it, or %s.partial, is there already: remove it or name another with -o", path,
                 path);
    else
        snprintf(error, bytes, "%s: cannot be written: %s", path, strerror(t->out.error));
    return false;
}

/* Would it be written over what it is made from? */
static bool is_input(const char *trace, const char *path) {
    const char *const from[] = {trace, NULL};
    char partial[CST_PATH + 16];
    snprintf(partial, sizeof partial, "%s.partial", path);
    return beside_is_one_of(path, from) || beside_is_one_of(partial, from);
}

bool trim_write(const struct look *look, const struct selection *selection, const char *note,
                struct trim_form form, const char *path, struct trim_result *result, char *error,
                size_t bytes) {
    struct trim t = {.look = look, .selection = selection, .out = {.fd = -1}, .bare = form.bare};
    bool opened = false, replay = may_be_replayed(&look->trace->replay);
    bool cut = replay && (selection->ranged || form.bare);
    t.no_memory = !prepare(&t, form.packed);
    if (is_input(look->trace->path, path))
        t.out.error = BESIDE_INPUT;
    else if (!t.no_memory)
        opened = cst_out_open(&t.out, path) == 0;
    if (opened) {
        fchmod(t.out.fd, beside_mode((const char *const[]){look->trace->path, NULL}));
        budget_partial(t.out.partial);
        put_facts(&t, note);
        each(&t, need);
        put_gpu(&t, true);
        if (replay && !cut)
            need_replay(&t);
        put_definitions(&t);
        each(&t, put_event);
        put_gpu(&t, false);
        if (replay && !cut)
            put_replay(&t);
        end_block(&t);
    }
    if (opened && !t.no_memory && !t.out.error && !*t.wrong) {
        cst_out_close(&t.out);
        if (t.out.error)
            unlink(t.out.partial);
    } else {
        cst_out_abandon(&t.out);
    }
    budget_whole(t.out.partial);
    *result = (struct trim_result){.bytes = t.out.bytes, .cut = cut};
    for (uint32_t i = 0; i < look->model->n_steps; i++)
        result->ops += selection->steps[i] ? look->model->steps[i].n_ops : 0;
    free(t.sink.buffer);
    free(t.frame);
    free(t.kinds);
    free(t.cursor);
    free(t.end);
    free(t.strings);
    return (!t.no_memory && !t.out.error && !*t.wrong) || refuse(&t, path, error, bytes);
}

bool trim_replace(const struct look *look, const struct selection *selection, const char *note,
                  struct trim_form form, const char *path, struct trim_result *result, char *error,
                  size_t bytes) {
    struct beside beside;
    const char *const from[] = {look->trace->path, NULL};
    int why = beside_plan(&beside, path, true, from);
    if (!why && !trim_write(look, selection, note, form, beside.partial, result, error, bytes))
        return false;
    why = why ? why : beside_name(&beside);
    if (why)
        snprintf(error, bytes, "%s: cannot be written: %s", path, beside_why(why));
    return !why;
}
