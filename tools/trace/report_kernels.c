/*
 * report kernels: one pass counts ops, one gathers host times for the percentile, and one over the
 * graphs finds patched nodes. verb_report.c and html.c call it. It never prints.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/trace/report.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

enum {
    CALLS,
    IN_GRAPHS,
    EAGER,
    FLUSHED,
    OPEN,
    SHARE,
    PATCHED,
    BREAKS,
    HOST,
    AVG,
    P99,
    GPU,
    GPU_AVG,
    OP,
    NAME
};

static const struct table_column columns[] = {
    {"calls", TABLE_COUNT},    {"in_graphs", TABLE_COUNT}, {"eager", TABLE_COUNT},
    {"flushed", TABLE_COUNT},  {"open", TABLE_COUNT},      {"share", TABLE_PERCENT},
    {"patched", TABLE_COUNT},  {"breaks", TABLE_COUNT},    {"host_ns", TABLE_NS},
    {"host_avg_ns", TABLE_NS}, {"host_p99_ns", TABLE_NS},  {"gpu_ns", TABLE_NS},
    {"gpu_avg_ns", TABLE_NS},  {"op", TABLE_TEXT},         {"name", TABLE_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static union table_value *row_at(struct table *table, uint32_t row) {
    return table->values + (size_t)row * COLUMNS;
}

/* The row of each kind. */
static uint32_t *rows_of_kinds(const struct look *look, struct table *table) {
    const struct cst_trace *trace = look->trace;
    struct report_rows rows = {0};
    uint32_t *row_of = malloc((trace->n_kinds + 1) * sizeof *row_of);
    for (uint32_t i = 0; row_of && i < trace->n_kinds; i++) {
        const struct cst_kind *kind = trace->kinds[i];
        if (!kind)
            continue;
        row_of[i] = report_row(&rows, kind->op, names_of(look->names, i));
        if (row_of[i] == CST_NONE) {
            table->failed = true;
            break;
        }
        if (row_of[i] < table->n_rows)
            continue;
        union table_value *row = table_row(table);
        if (!row)
            break;
        row[OP].text = model_op_words[kind->op];
        row[NAME].text = names_of(look->names, i);
    }
    table->failed |= !row_of;
    report_rows_free(&rows);
    return row_of;
}

static void count(const struct look *look, struct table *table, const uint32_t *row_of) {
    for (uint32_t s = 0; s < look->trace->n_streams; s++)
        for (uint32_t i = 0; i < look->model->streams[s].n_ops; i++) {
            static const unsigned fates[] = {IN_GRAPHS, EAGER, FLUSHED, OPEN};
            const struct model_op *op = look_op(look, s, i);
            union table_value *row = row_at(table, row_of[op->op->kind]);
            enum look_outcome outcome = look_outcome(op);
            row[CALLS].number++;
            row[fates[outcome]].number++;
            row[HOST].number += op->op->host_ns;
            row[BREAKS].number += outcome == LOOK_EAGER && look_ends_run(look, s, i);
        }
}

/* Of the ops whose GPU times are known; the average is of those. */
static void gpu_times(const struct look *look, struct table *table, const uint32_t *row_of) {
    const struct model *model = look->model;
    if (!model->gpu_known)
        table->idle = 1u << GPU | 1u << GPU_AVG;
    int64_t *known = calloc(table->n_rows + 1, sizeof *known);
    table->failed |= !known;
    for (uint32_t i = 0; known && i < model->n_ops; i++)
        if (model->ops[i].gpu) {
            uint32_t row = row_of[model->ops[i].op->kind];
            row_at(table, row)[GPU].number += (int64_t)model->ops[i].gpu->gpu_ns;
            known[row]++;
        }
    for (uint32_t i = 0; known && i < table->n_rows; i++) {
        union table_value *row = row_at(table, i);
        if (known[i])
            row[GPU_AVG].number = row[GPU].number / known[i];
        else
            row[GPU] = row[GPU_AVG] = table_unknown(TABLE_NS);
    }
    free(known);
}

/* ---- the percentile ---- */

/* The element that would stand at `k` if they were sorted (Hoare's selection). */
static uint32_t select_nth(uint32_t *at, ptrdiff_t n, ptrdiff_t k) {
    ptrdiff_t low = 0, high = n - 1;
    while (low < high) {
        uint32_t pivot = at[low + (high - low) / 2];
        ptrdiff_t i = low, j = high;
        while (i <= j) {
            while (at[i] < pivot)
                i++;
            while (at[j] > pivot)
                j--;
            if (i <= j) {
                uint32_t swap = at[i];
                at[i++] = at[j];
                at[j--] = swap;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return at[k];
}

/* Host times of each row side by side; the least that 99 of 100 do not exceed. */
static void percentiles(const struct look *look, struct table *table, const uint32_t *row_of) {
    const struct model *model = look->model;
    uint32_t *times = malloc((model->n_ops + (size_t)1) * sizeof *times);
    size_t *next = calloc(table->n_rows + 1, sizeof *next);
    if (!times || !next) {
        table->failed = true;
    } else {
        for (size_t i = 1; i < table->n_rows; i++)
            next[i] = next[i - 1] + (size_t)row_at(table, (uint32_t)i - 1)[CALLS].number;
        for (uint32_t i = 0; i < model->n_ops; i++)
            times[next[row_of[model->ops[i].op->kind]]++] = model->ops[i].op->host_ns;
        for (uint32_t i = 0; i < table->n_rows; i++) {
            union table_value *row = row_at(table, i);
            size_t n = (size_t)row[CALLS].number;
            if (!n)
                continue;
            row[P99].number =
                select_nth(times + next[i] - n, (ptrdiff_t)n, (ptrdiff_t)((n * 99 + 99) / 100 - 1));
            row[AVG].number = row[HOST].number / (int64_t)n;
            row[SHARE].real = look_share((uint64_t)row[IN_GRAPHS].number, n);
        }
    }
    free(times);
    free(next);
}

/* ---- what was patched ---- */

/* The ops that the nodes of one executable graph hold. */
struct held {
    uint64_t key; /* segment and variant; 0: free */
    uint32_t stream;
    uint32_t n;
    const struct cst_op **ops;
};

struct graphs {
    struct held *at;
    uint32_t n, room;
};

static struct held *held_at(struct held *at, uint32_t room, uint64_t key, uint32_t stream) {
    uint64_t hash = XXH3_64bits_withSeed(&key, sizeof key, stream);
    for (;; hash++) {
        struct held *held = &at[hash & (room - 1)];
        if (!held->key || (held->key == key && held->stream == stream))
            return held;
    }
}

static struct held *held_of(struct graphs *graphs, const struct cst_launch *launch) {
    uint64_t key = ((uint64_t)launch->segment << 32 | launch->variant) + 1;
    if (2 * graphs->n >= graphs->room) {
        uint32_t room = graphs->room ? 2 * graphs->room : 256;
        struct held *at = calloc(room, sizeof *at);
        if (!at)
            return NULL;
        for (uint32_t i = 0; i < graphs->room; i++)
            if (graphs->at[i].key)
                *held_at(at, room, graphs->at[i].key, graphs->at[i].stream) = graphs->at[i];
        free(graphs->at);
        graphs->at = at;
        graphs->room = room;
    }
    struct held *held = held_at(graphs->at, graphs->room, key, launch->stream);
    if (!held->key) {
        held->key = key;
        held->stream = launch->stream;
        graphs->n++;
    }
    return held;
}

static bool differ(const struct cst_trace *trace, const struct cst_op *a, const struct cst_op *b) {
    const struct cst_kind *kind = trace->kinds[a->kind];
    if (a == b)
        return false;
    if (a->kind != b->kind || memcmp(a->dims, b->dims, sizeof a->dims) != 0)
        return true;
    return !(kind->flags & CST_KIND_OPAQUE) &&
           memcmp(cst_op_params(a), cst_op_params(b), kind->param_bytes) != 0;
}

static bool make_room(struct held *held, uint32_t n) {
    if (n <= held->n)
        return true;
    void *ops = realloc(held->ops, n * sizeof *held->ops);
    if (!ops)
        return false;
    held->ops = ops;
    memset(held->ops + held->n, 0, (n - held->n) * sizeof *held->ops);
    held->n = n;
    return true;
}

/* What became of an op's node, as far as its values tell. */
enum node { NODE_SAME, NODE_MEMORY, NODE_OTHER, NODE_EVENT, NODES };

/* MEMORY: a memset or copy with the values that its node held. OTHER, EVENT: with other values. */
static enum node node_of(const struct cst_trace *trace, const struct cst_op *held,
                         const struct cst_op *op) {
    uint32_t type = trace->kinds[op->kind]->op;
    if (!held || type == CST_OP_WAIT) /* a wait is an edge of the graph */
        return NODE_SAME;
    if (differ(trace, held, op))
        return type == CST_OP_RECORD ? NODE_EVENT : NODE_OTHER;
    return type == CST_OP_MEMSET || type == CST_OP_COPY ? NODE_MEMORY : NODE_SAME;
}

/*
 * Counts the nodes that a launch patched. The trace has their number, and the values of each op.
 * After memory was freed all memsets and copies are patched, also to the values that they have; not
 * every record of an event has a node. The number tells which of these are among them.
 */
static void count_patched(const struct look *look, struct table *table, const uint32_t *row_of,
                          const struct model_launch *launch, const struct held *held) {
    const struct model_op *ops = look->model->ops;
    uint32_t n[NODES] = {0}, patched = launch->record->patched;
    for (uint32_t i = 0; i < launch->n; i++) {
        const struct model_op *op = &ops[launch->ops[i]];
        n[node_of(look->trace, held->ops[op->place], op->op)]++;
    }
    uint32_t memory = n[NODE_OTHER] + n[NODE_MEMORY], events = n[NODE_EVENT];
    bool counts[NODES] = {[NODE_OTHER] = true};
    counts[NODE_MEMORY] = patched == memory + events || (events && patched == memory);
    counts[NODE_EVENT] = patched > (counts[NODE_MEMORY] ? memory : n[NODE_OTHER]);
    for (uint32_t i = 0; i < launch->n; i++) {
        const struct model_op *op = &ops[launch->ops[i]];
        if (counts[node_of(look->trace, held->ops[op->place], op->op)])
            row_at(table, row_of[op->op->kind])[PATCHED].number++;
    }
}

/* An exact launch may have patched nodes as well: exact are its shapes. */
static void patches(const struct look *look, struct table *table, const uint32_t *row_of) {
    const struct model *model = look->model;
    struct graphs graphs = {0};
    for (uint64_t l = 0; l < model->graph_launches && !table->failed; l++) {
        const struct model_launch *launch = &model->launches[l];
        uint32_t n = launch->n ? model->ops[launch->ops[launch->n - 1]].place + 1 : 0;
        struct held *held = held_of(&graphs, launch->record);
        if (!held || !make_room(held, n)) {
            table->failed = true;
            break;
        }
        if (launch->record->patched && launch->record->head.flags != CST_BUILT)
            count_patched(look, table, row_of, launch, held);
        for (uint32_t i = 0; i < launch->n; i++)
            held->ops[model->ops[launch->ops[i]].place] = model->ops[launch->ops[i]].op;
    }
    for (uint32_t i = 0; i < graphs.room; i++)
        free(graphs.at[i].ops);
    free(graphs.at);
}

/* Kinds that were defined and not asked for. */
static void drop_idle(struct table *table) {
    size_t to = 0;
    for (uint32_t i = 0; i < table->n_rows; i++)
        if (row_at(table, i)[CALLS].number)
            memmove(row_at(table, (uint32_t)to++), row_at(table, i),
                    COLUMNS * sizeof *table->values);
    table->n_rows = to;
}

void report_kernels(const struct look *look, struct table *table) {
    table_init(table, "kernels", columns, COLUMNS, "host_ns");
    table->spare = "open,host_p99_ns,flushed,patched,gpu_avg_ns,op,eager,host_avg_ns,breaks";
    look_notes(look, table);
    uint32_t *row_of = rows_of_kinds(look, table);
    if (!table->failed) {
        count(look, table, row_of);
        gpu_times(look, table, row_of);
        percentiles(look, table, row_of);
        patches(look, table, row_of);
        drop_idle(table);
    }
    free(row_of);
}
