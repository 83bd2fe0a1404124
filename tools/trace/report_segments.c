/*
 * report segments: graph launches by their list of ops. One pass over each stream finds the
 * launches; segments, variants and what followed them are gathered and sorted. verb_report.c and
 * html.c call it. It never prints.
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

/* `i`: the first op behind the graph. */
static struct mark ender_of(const struct look *look, uint32_t row, uint32_t stream, uint32_t i) {
    const struct model_stream *s = &look->model->streams[stream];
    uint32_t step = look_op(look, stream, i - 1)->step;
    const struct model_op *next = i < s->n_ops ? look_op(look, stream, i) : NULL;
    if (!next || next->step != step) {
        const struct cst_call *end = look->model->steps[step].end;
        return end ? (struct mark){row, END_CALL, end->name, 0}
                   : (struct mark){row, END_OPEN, 0, 0};
    }
    switch (look_outcome(next)) {
    case LOOK_GRAPH:
        return (struct mark){row, END_SEGMENT, 0, 0};
    case LOOK_EAGER:
        return (struct mark){row, END_EAGER, next->op->why, 0};
    case LOOK_FLUSHED:
        return (struct mark){row, END_FLUSH, ((const struct cst_flush *)next->out)->cause, 0};
    default:
        return (struct mark){row, END_OPEN, 0, 0};
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
    struct report_rows rows;
    struct marks marks, ends;
};

/* Ops `from` to `from + n` of a stream went out as one graph. */
static void take(struct pass *pass, uint32_t stream, uint32_t from, uint32_t n, uint64_t hash) {
    const struct look *look = pass->look;
    const struct cst_launch *launch = (const struct cst_launch *)look_op(look, stream, from)->out;
    char segment[20], list[1024];
    snprintf(segment, sizeof segment, "%016" PRIx64, hash);
    uint32_t known = pass->rows.n;
    uint32_t number = report_row(&pass->rows, hash, "");
    union table_value *row;
    if (number == known) {
        row = table_row(pass->table);
        if (!row)
            return;
        look_list(look, stream, from, n, list, sizeof list);
        row[NODES].number = n;
        row[SEGMENT].text = table_keep(pass->table, segment);
        row[LIST].text = table_keep(pass->table, list);
    }
    if (number == CST_NONE ||
        !mark(&pass->marks, (struct mark){number, stream, launch->segment, launch->variant}) ||
        !mark(&pass->ends, ender_of(look, number, stream, from + n))) {
        pass->table->failed = true;
        return;
    }
    row = pass->table->values + (size_t)number * COLUMNS;
    row[LAUNCHES].number++;
    row[OPS].number += n;
    row[EXACT].number += launch->head.flags == CST_EXACT;
    row[PATCHED].number += launch->head.flags == CST_PATCHED;
    row[BUILT].number += launch->head.flags == CST_BUILT;
    row[PATCHED_NODES].number += launch->patched;
    row[HOST].number += launch->host_ns;
    row[BUILD].number += launch->build_ns;
    row[BYTES].number += launch->bytes;
}

static void walk(struct pass *pass, uint32_t stream) {
    const struct look *look = pass->look;
    uint32_t n_ops = look->model->streams[stream].n_ops;
    for (uint32_t i = 0; i < n_ops && !pass->table->failed;) {
        const struct model_op *op = look_op(look, stream, i);
        uint32_t n = 1;
        if (model_in_graph(op)) {
            uint64_t hash = look->kinds[op->op->kind];
            for (; i + n < n_ops && look_op(look, stream, i + n)->out == op->out; n++) {
                uint64_t kind = look->kinds[look_op(look, stream, i + n)->op->kind];
                hash = XXH3_64bits_withSeed(&kind, sizeof kind, hash);
            }
            take(pass, stream, i, n, hash);
        }
        i += n;
    }
}

static void finish(struct pass *pass) {
    struct table *table = pass->table;
    struct marks *marks = &pass->marks, *ends = &pass->ends;
    if (marks->n)
        qsort(marks->at, marks->n, sizeof *marks->at, by_mark);
    if (ends->n)
        qsort(ends->at, ends->n, sizeof *ends->at, by_mark);
    for (size_t i = 0; i < marks->n; i++) {
        const struct mark *at = &marks->at[i], *before = i ? at - 1 : NULL;
        union table_value *row = table->values + (size_t)at->row * COLUMNS;
        bool same = before && before->row == at->row && before->stream == at->stream &&
                    before->segment == at->segment;
        row[SEGMENTS].number += !same;
        row[VARIANTS].number += !same || before->variant != at->variant;
    }
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
    for (uint32_t s = 0; s < look->trace->n_streams; s++)
        walk(&pass, s);
    if (!table->failed)
        finish(&pass);
    free(pass.marks.at);
    free(pass.ends.at);
    report_rows_free(&pass.rows);
}
