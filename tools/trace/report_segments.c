/*
 * report segments: graph launches by their list of ops, those of branches behind the others. One
 * pass over the launches; segments, variants and what followed them are gathered and sorted.
 * verb_report.c and html.c call it. It never prints.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/report.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

enum {
    LAUNCHES,
    NODES,
    OPS,
    SHARE,
    SEGMENTS,
    VARIANTS,
    EXACT,
    PATCHED,
    BUILT,
    PATCHED_NODES,
    HOST,
    BUILD,
    BYTES,
    ENDED,
    SEGMENT,
    LIST
};

static const struct table_column columns[] = {
    {"launches", TABLE_COUNT},      {"nodes", TABLE_COUNT},    {"ops", TABLE_COUNT},
    {"share", TABLE_PERCENT},       {"segments", TABLE_COUNT}, {"variants", TABLE_COUNT},
    {"exact", TABLE_COUNT},         {"patched", TABLE_COUNT},  {"built", TABLE_COUNT},
    {"patched_nodes", TABLE_COUNT}, {"host_ns", TABLE_NS},     {"build_ns", TABLE_NS},
    {"bytes", TABLE_BYTES},         {"ended", TABLE_TEXT},     {"segment", TABLE_TEXT},
    {"list", TABLE_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof *columns, ENDERS = 3 };

/* Something that is counted apart within a row. */
struct mark {
    uint32_t row, stream, segment, variant; /* or: row, kind of ender, string, 0 */
    uint32_t bytes;                         /* of that graph */
};

struct marks {
    struct mark *at;
    size_t n, room;
};

static bool mark(struct marks *marks, struct mark what) {
    if (marks->n == marks->room) {
        size_t room = marks->room ? 2 * marks->room : 256;
        void *at = realloc(marks->at, room * sizeof *marks->at);
        if (!at)
            return false;
        marks->at = at;
        marks->room = room;
    }
    marks->at[marks->n++] = what;
    return true;
}

static int by_mark(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    for (unsigned i = 0; i < 4; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* ---- what ends a launch ---- */

enum ender { END_SEGMENT, END_EAGER, END_FLUSH, END_CALL, END_OPEN };
static const char *const enders[] = {"next segment", "eager", "flush", "call", "end of trace"};

/* `last`: the last op of the graph on its own stream; `next`: the op behind that one there. */
static struct mark ender_of(const struct look *look, uint32_t row, const struct model_op *last,
                            const struct model_op *next) {
    if (!next || next->step != last->step) {
        const struct cst_call *end = look->model->steps[last->step].end;
        return end ? (struct mark){.row = row, .stream = END_CALL, .segment = end->name}
                   : (struct mark){.row = row, .stream = END_OPEN};
    }
    switch (look_outcome(next)) {
    case LOOK_GRAPH:
        return (struct mark){.row = row, .stream = END_SEGMENT};
    case LOOK_EAGER:
        return (struct mark){.row = row, .stream = END_EAGER, .segment = next->op->why};
    case LOOK_FLUSHED:
        return (struct mark){.row = row,
                             .stream = END_FLUSH,
                             .segment = ((const struct cst_flush *)next->out)->cause};
    default:
        return (struct mark){.row = row, .stream = END_OPEN};
    }
}

/* The enders of one row are `n` marks that follow each other; the most frequent first. */
static const char *ended(const struct look *look, struct table *table, const struct mark *marks,
                         size_t n) {
    struct count {
        const struct mark *mark;
        size_t n;
    } best[ENDERS] = {{NULL, 0}};
    for (size_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && by_mark(&marks[i], &marks[i + same]) == 0;)
            same++;
        struct count count = {&marks[i], same};
        for (unsigned b = 0; b < ENDERS; b++)
            if (count.n > best[b].n) {
                struct count swap = best[b];
                best[b] = count;
                count = swap;
            }
    }
    char text[512] = "";
    size_t used = 0;
    for (unsigned b = 0; b < ENDERS && best[b].n && used < sizeof text; b++) {
        const char *name = cst_string(look->trace, best[b].mark->segment);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%.64s %zu", b ? ", " : "",
                                 enders[best[b].mark->stream], *name ? ":" : "", name, best[b].n);
    }
    return table_keep(table, text);
}

/* ---- launches ---- */

struct pass {
    const struct look *look;
    struct table *table;
    uint32_t *next; /* by op: the one behind it on its stream; CST_NONE: there is none */
    struct report_rows rows;
    struct marks marks, ends;
};

/* The last op of the launch's own stream, which come first. */
static uint32_t last_of(const struct look *look, const struct model_launch *launch) {
    const struct model_op *ops = look->model->ops;
    uint32_t n = 1, stream = ops[launch->ops[0]].op->stream;
    while (n < launch->n && ops[launch->ops[n]].op->stream == stream)
        n++;
    return launch->ops[n - 1];
}

static uint64_t hash_of(const struct look *look, const struct model_launch *launch) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < launch->n; i++) {
        uint64_t kind = look->kinds[look->model->ops[launch->ops[i]].op->kind];
        hash = i ? XXH3_64bits_withSeed(&kind, sizeof kind, hash) : kind;
    }
    return hash;
}

/* The number of the launch's row, which is made where there is none; CST_NONE without memory. */
static uint32_t row_of(struct pass *pass, const struct model_launch *launch) {
    uint64_t hash = hash_of(pass->look, launch);
    uint32_t known = pass->rows.n, number = report_row(&pass->rows, hash, "");
    if (number != known || number == CST_NONE)
        return number;
    char segment[20], list[1024];
    union table_value *row = table_row(pass->table);
    if (!row)
        return CST_NONE;
    snprintf(segment, sizeof segment, "%016" PRIx64, hash);
    look_list(pass->look, launch->ops, launch->n, list, sizeof list);
    row[NODES].number = launch->n;
    row[SEGMENT].text = table_keep(pass->table, segment);
    row[LIST].text = table_keep(pass->table, list);
    return number;
}

static void take(struct pass *pass, const struct model_launch *of) {
    const struct look *look = pass->look;
    const struct cst_launch *launch = of->record;
    const struct model_op *ops = look->model->ops;
    uint32_t number = row_of(pass, of), last = last_of(look, of), next = pass->next[last];
    if (number == CST_NONE ||
        !mark(&pass->marks, (struct mark){number, launch->stream, launch->segment, launch->variant,
                                          launch->bytes}) ||
        !mark(&pass->ends,
              ender_of(look, number, &ops[last], next == CST_NONE ? NULL : &ops[next]))) {
        pass->table->failed = true;
        return;
    }
    union table_value *row = pass->table->values + (size_t)number * COLUMNS;
    row[LAUNCHES].number++;
    row[OPS].number += of->n;
    row[EXACT].number += launch->head.flags == CST_EXACT;
    row[PATCHED].number += launch->head.flags == CST_PATCHED;
    row[BUILT].number += launch->head.flags == CST_BUILT;
    row[PATCHED_NODES].number += launch->patched;
    row[HOST].number += launch->host_ns;
    row[BUILD].number += launch->build_ns;
}

static bool find_next(struct pass *pass) {
    const struct model *model = pass->look->model;
    pass->next = malloc((model->n_ops + (size_t)1) * sizeof *pass->next);
    for (uint32_t s = 0; pass->next && s < pass->look->trace->n_streams; s++) {
        const struct model_stream *stream = &model->streams[s];
        for (uint32_t i = 0; i < stream->n_ops; i++)
            pass->next[stream->ops[i]] = i + 1 < stream->n_ops ? stream->ops[i + 1] : CST_NONE;
    }
    return pass->next != NULL;
}

/* Segments, variants and their memory: each graph counts once, however often it was launched. */
static void count_graphs(struct pass *pass) {
    const struct mark *marks = pass->marks.at, *before = NULL;
    size_t n = pass->marks.n;
    for (size_t i = 0, same; i < n; i += same) {
        const struct mark *at = &marks[i];
        union table_value *row = pass->table->values + (size_t)at->row * COLUMNS;
        uint32_t bytes = at->bytes; /* a trace may have it with the first launch alone */
        for (same = 1; i + same < n && by_mark(at, at + same) == 0; same++)
            bytes = at[same].bytes > bytes ? at[same].bytes : bytes;
        row[SEGMENTS].number += !before || before->row != at->row || before->stream != at->stream ||
                                before->segment != at->segment;
        row[VARIANTS].number++;
        row[BYTES].number += bytes;
        before = at;
    }
}

static void finish(struct pass *pass) {
    struct table *table = pass->table;
    struct marks *marks = &pass->marks, *ends = &pass->ends;
    if (marks->n)
        qsort(marks->at, marks->n, sizeof *marks->at, by_mark);
    if (ends->n)
        qsort(ends->at, ends->n, sizeof *ends->at, by_mark);
    count_graphs(pass);
    for (size_t i = 0, n; i < ends->n; i += n) {
        for (n = 1; i + n < ends->n && ends->at[i + n].row == ends->at[i].row;)
            n++;
        union table_value *row = table->values + (size_t)ends->at[i].row * COLUMNS;
        row[ENDED].text = ended(pass->look, table, &ends->at[i], n);
        row[SHARE].real = look_share((uint64_t)row[OPS].number, pass->look->model->n_ops);
    }
}

void report_segments(const struct look *look, struct table *table) {
    struct pass pass = {.look = look, .table = table};
    table_init(table, "segments", columns, COLUMNS, "ops");
    table->spare = "segment,segments,variants,exact,patched,built,patched_nodes,build_ns,host_ns,"
                   "bytes,nodes,ended,share";
    look_notes(look, table);
    table->failed |= !find_next(&pass);
    for (uint64_t i = 0; i < look->model->graph_launches && !table->failed; i++)
        if (look->model->launches[i].n) /* else its ops were lost */
            take(&pass, &look->model->launches[i]);
    if (!table->failed)
        finish(&pass);
    free(pass.next);
    free(pass.marks.at);
    free(pass.ends.at);
    report_rows_free(&pass.rows);
}
