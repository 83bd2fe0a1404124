/*
 * Reads the tables of a profile. Exports make tables lazily and versions differ in columns, so
 * each is asked for first. import.c calls it. It never reads a view, nor more rows and text than
 * import_open.h allows.
 */
#include "tools/trace/import.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "tools/trace/export.h"
#include "tools/trace/import_open.h"

#define KERNEL "CUPTI_ACTIVITY_KIND_KERNEL"
#define MEMSET "CUPTI_ACTIVITY_KIND_MEMSET"
#define MEMCPY "CUPTI_ACTIVITY_KIND_MEMCPY"
#define RUNTIME "CUPTI_ACTIVITY_KIND_RUNTIME"
#define SYNC "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
#define EVENT "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
#define RECORD "CUSPLICE_RECORD"
#define WAIT "CUSPLICE_WAIT"
#define PID "((%s >> 24) & 16777215)"

struct reader {
    const struct import_options *options;
    struct import_data *data;
    sqlite3 *sqlite;
    size_t op_room, call_room, made_room, stream_room, text_room;
    struct import_bounds bounds;
    char *error;
    size_t bytes;
};

static bool fail(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct reader *r, const char *format, ...) {
    va_list args;
    int n = snprintf(r->error, r->bytes, "%s: ", r->options->from);
    va_start(args, format);
    if (n >= 0 && (size_t)n < r->bytes)
        vsnprintf(r->error + n, r->bytes - (size_t)n, format, args);
    va_end(args);
    return false;
}

static bool broken(struct reader *r) {
    if (sqlite3_errcode(r->sqlite) == SQLITE_INTERRUPT)
        return fail(r, "corrupt: reading it takes longer than a file of its length can");
    return fail(r, "cannot be read: %s", sqlite3_errmsg(r->sqlite));
}

/* One more of a list. */
static void *more(struct reader *r, void *list, size_t n, size_t *room, size_t each) {
    void **at = list;
    if (!r->bounds.rows--) {
        fail(r, "corrupt: it has more rows than a file of its length can");
        return NULL;
    }
    if (n == *room) {
        size_t larger = *room ? *room * 2 : 256;
        void *moved = realloc(*at, larger * each);
        if (!moved) {
            fail(r, "not enough memory to read it");
            return NULL;
        }
        *at = moved;
        *room = larger;
    }
    char *entry = (char *)*at + n * each;
    memset(entry, 0, each);
    return entry;
}

/* ---- what there is ---- */

static bool has(struct reader *r, const char *table, const char *column) {
    sqlite3_stmt *ask = NULL;
    bool found = false;
    const char *sql = column ? "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2"
                             : "SELECT 1 FROM sqlite_master WHERE name = ?1 AND type = 'table'";
    if (sqlite3_prepare_v2(r->sqlite, sql, -1, &ask, NULL) == SQLITE_OK) {
        sqlite3_bind_text(ask, 1, table, -1, SQLITE_STATIC);
        if (column)
            sqlite3_bind_text(ask, 2, column, -1, SQLITE_STATIC);
        found = sqlite3_step(ask) == SQLITE_ROW;
    }
    sqlite3_finalize(ask);
    return found;
}

/* The first of the columns (separated by |) that the table has; else `otherwise`. */
static const char *column(struct reader *r, const char *table, const char *names,
                          const char *otherwise, char to[64]) {
    while (*names) {
        size_t n = strcspn(names, "|");
        snprintf(to, 64, "%.*s", (int)n, names);
        if (has(r, table, to))
            return to;
        names += n + (names[n] == '|');
    }
    snprintf(to, 64, "%s", otherwise);
    return to;
}

/* `SELECT a, b, ... FROM table WHERE of the process`, each of the columns by what there is: lists
 * of "name|older name=what it is where there is none". No `=`: it must be there. */
static sqlite3_stmt *select_rows(struct reader *r, const char *table, const char *const *columns,
                                 const char *global, const char *order) {
    char sql[4096] = "SELECT ", name[64];
    size_t n = strlen(sql);
    for (unsigned i = 0; columns[i]; i++) {
        char names[128];
        const char *otherwise = strchr(columns[i], '=');
        size_t length = otherwise ? (size_t)(otherwise - columns[i]) : strlen(columns[i]);
        snprintf(names, sizeof names, "%.*s", (int)length, columns[i]);
        column(r, table, names, otherwise ? otherwise + 1 : "", name);
        if (!*name) {
            fail(r, "table %s has no column %s: an export of a version that is not known", table,
                 names);
            return NULL;
        }
        n += (size_t)snprintf(sql + n, sizeof sql - n, "%s%s", i ? ", " : "", name);
    }
    n += (size_t)snprintf(sql + n, sizeof sql - n, " FROM %s", table);
    if (r->data->pid && global && has(r, table, global))
        n += (size_t)snprintf(sql + n, sizeof sql - n, " WHERE %s IS NULL OR " PID " = %" PRIu64,
                              global, global, r->data->pid);
    snprintf(sql + n, sizeof sql - n, " ORDER BY %s", order);
    sqlite3_stmt *select = NULL;
    if (sqlite3_prepare_v2(r->sqlite, sql, -1, &select, NULL) != SQLITE_OK)
        broken(r);
    return select;
}

static int64_t number(sqlite3_stmt *row, int i) {
    return sqlite3_column_int64(row, i);
}

/* Nanoseconds; no file is trusted to have sane ones, and differences must fit. */
static int64_t time_of(sqlite3_stmt *row, int i) {
    const int64_t most = INT64_C(1) << 61;
    int64_t time = sqlite3_column_int64(row, i);
    return time > most ? most : time < -most ? -most : time;
}

static int64_t number_or(sqlite3_stmt *row, int i, int64_t none) {
    return sqlite3_column_type(row, i) == SQLITE_NULL ? none : sqlite3_column_int64(row, i);
}

/* Ends a statement; false where it did not come to its end. */
static bool end(struct reader *r, sqlite3_stmt *select, int result) {
    bool done = result == SQLITE_DONE;
    if (!done && result != SQLITE_ROW) /* a row: what was read found no memory, and said so */
        broken(r);
    sqlite3_finalize(select);
    return done;
}

/* ---- which process ---- */

static void first_text(struct reader *r, const char *sql, char *to, size_t bytes) {
    sqlite3_stmt *select = NULL;
    if (sqlite3_prepare_v2(r->sqlite, sql, -1, &select, NULL) == SQLITE_OK &&
        sqlite3_step(select) == SQLITE_ROW && sqlite3_column_text(select, 0))
        snprintf(to, bytes, "%s", (const char *)sqlite3_column_text(select, 0));
    sqlite3_finalize(select);
}

static void read_exporter(struct reader *r, const char *table) {
    const struct {
        const char *name;
        char *to;
        size_t bytes;
    } facts[] = {
        {"EXPORT_PRODUCT_NAME", r->data->exporter, sizeof r->data->exporter},
        {"EXPORT_SCHEMA_VERSION", r->data->schema, sizeof r->data->schema},
    };
    if (!has(r, table, "name") || !has(r, table, "value"))
        return;
    for (unsigned i = 0; i < sizeof facts / sizeof *facts; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT value FROM %s WHERE name = '%s'", table, facts[i].name);
        first_text(r, sql, facts[i].to, facts[i].bytes);
    }
}

static void read_origin(struct reader *r) {
    struct import_data *data = r->data;
    char base[32] = "", times[32] = "";
    read_exporter(r, "EXPORT_META_DATA"); /* older exports */
    read_exporter(r, "META_DATA_EXPORT");
    data->own = strcmp(data->exporter, "cusplice") == 0;
    if (has(r, "TARGET_INFO_GPU", "name"))
        first_text(r, "SELECT name FROM TARGET_INFO_GPU LIMIT 1", data->gpu, sizeof data->gpu);
    if (data->own && has(r, "CUSPLICE_FACTS", "value")) {
        first_text(r, "SELECT value FROM CUSPLICE_FACTS WHERE name = 'base_ns'", base, sizeof base);
        first_text(r, "SELECT value FROM CUSPLICE_FACTS WHERE name = 'gpu_times'", times,
                   sizeof times);
    }
    data->gpu_times = !data->own || strncmp(times, "measured", 8) == 0;
    data->base = strtoll(base, NULL, 10);
    if (data->base < 0 || data->base > INT64_C(1) << 61)
        data->base = 0;
}

static bool choose_process(struct reader *r) {
    char sql[256], list[512] = "";
    sqlite3_stmt *select = NULL;
    unsigned n = 0;
    bool asked = false;
    if (!has(r, KERNEL, "globalPid"))
        return true;
    snprintf(sql, sizeof sql,
             "SELECT " PID " AS pid, count(*) FROM " KERNEL
             " WHERE globalPid IS NOT NULL GROUP BY pid ORDER BY 2 DESC",
             "globalPid");
    if (sqlite3_prepare_v2(r->sqlite, sql, -1, &select, NULL) != SQLITE_OK)
        return broken(r);
    int result;
    while ((result = sqlite3_step(select)) == SQLITE_ROW) {
        uint64_t pid = (uint64_t)number(select, 0);
        size_t used = strlen(list);
        if (n++ < 16)
            snprintf(list + used, sizeof list - used, "%s%" PRIu64 " (%" PRId64 " kernels)",
                     used ? ", " : "", pid, number(select, 1));
        r->data->pid = n == 1 ? pid : r->data->pid;
        asked |= pid == r->options->pid;
    }
    if (!end(r, select, result))
        return false;
    if (r->options->pid) {
        r->data->pid = r->options->pid;
        return asked ||
               fail(r, "holds no kernels of process %" PRIu64 ", but of %s", r->options->pid, list);
    }
    return n <= 1 || fail(r,
                          "holds several processes, and a trace is of one: choose with --pid "
                          "N: %s",
                          list);
}

/* ---- ops ---- */

static struct import_op *add_op(struct reader *r, sqlite3_stmt *row, uint8_t type) {
    struct import_op *op =
        more(r, &r->data->ops, r->data->n_ops, &r->op_room, sizeof *r->data->ops);
    if (!op)
        return NULL;
    r->data->n_ops++;
    op->type = type;
    op->start = time_of(row, 0);
    op->end = time_of(row, 1);
    op->device = (uint32_t)number(row, 2);
    op->context = (uint32_t)number(row, 3);
    op->stream = (uint32_t)number(row, 4);
    op->correlation = number_or(row, 5, -1);
    op->in_graph = number(row, 6) != 0;
    r->data->correlated |= op->correlation > 0;
    return op;
}

#define WHERE_AND_WHEN                                                                             \
    "start", "end=start", "deviceId=0", "contextId=0", "streamId=0", "correlationId=NULL",         \
        "graphNodeId=0"

static bool read_kernels(struct reader *r) {
    static const char *const columns[] = {WHERE_AND_WHEN,
                                          "mangledName|shortName|demangledName|name",
                                          "demangledName|shortName|name=0",
                                          "gridX",
                                          "gridY",
                                          "gridZ",
                                          "blockX",
                                          "blockY",
                                          "blockZ",
                                          "dynamicSharedMemory=0",
                                          "launchType=1",
                                          "clusterX=1",
                                          "clusterY=1",
                                          "clusterZ=1",
                                          "shortName|demangledName|name=0",
                                          NULL};
    sqlite3_stmt *row = select_rows(r, KERNEL, columns, "globalPid", "rowid");
    int result = SQLITE_DONE;
    while (row && (result = sqlite3_step(row)) == SQLITE_ROW) {
        struct import_op *op = add_op(r, row, CST_OP_LAUNCH);
        if (!op)
            break;
        op->name = number_or(row, 7, number(row, 19));
        op->variant = number(row, 8);
        for (int i = 0; i < 7; i++)
            op->dims[i] = (uint32_t)number(row, 9 + i);
        op->cooperative = number(row, 16) >= 2;
        for (int i = 0; i < 3; i++)
            op->cluster[i] = (uint32_t)number_or(row, 17 + i, 1);
    }
    return row && end(r, row, result);
}

/* Pages of managed memory that moved, by faults for the most part: nobody asked for them. Kinds of
 * ENUM_CUDA_MEMCPY_OPER; a cause is there, where a version knows the column, for migrations alone.
 */
static bool is_migration(int64_t copy, int64_t cause) {
    enum { UVM_HTOD = 11, UVM_DTOD = 13 };
    return (copy >= UVM_HTOD && copy <= UVM_DTOD) || cause > 0;
}

static bool read_memory(struct reader *r, const char *table, uint8_t type) {
    static const char *const columns[] = {
        WHERE_AND_WHEN,        "bytes", "copyKind=0", "srcKind=NULL", "dstKind=NULL",
        "migrationCause=NULL", NULL};
    if (!has(r, table, NULL))
        return true;
    sqlite3_stmt *row = select_rows(r, table, columns, "globalPid", "rowid");
    int result = SQLITE_DONE;
    while (row && (result = sqlite3_step(row)) == SQLITE_ROW) {
        if (is_migration(number(row, 8), number(row, 11))) {
            r->data->migrations++;
            continue;
        }
        struct import_op *op = add_op(r, row, type);
        if (!op)
            break;
        op->bytes = (uint64_t)number(row, 7);
        op->copy = (uint8_t)number(row, 8);
        /* ENUM_CUDA_MEM_KIND: 0 is pageable */
        op->pageable = number_or(row, 9, 1) == 0 || number_or(row, 10, 1) == 0;
    }
    return row && end(r, row, result);
}

/* Records of events, or waits for them: in databases of cusplice alone. */
static bool read_events(struct reader *r, const char *table, enum cst_op_type type) {
    static const char *const columns[] = {WHERE_AND_WHEN, "event", "number", NULL};
    if (!r->data->own || !has(r, table, NULL))
        return true;
    sqlite3_stmt *row = select_rows(r, table, columns, "globalPid", "rowid");
    struct import_op *op;
    int result = SQLITE_DONE;
    while (row && (result = sqlite3_step(row)) == SQLITE_ROW && (op = add_op(r, row, type))) {
        op->event[0] = (uint64_t)number(row, 7);
        op->event[1] = (uint64_t)number(row, 8);
    }
    return row && end(r, row, result);
}

/* ---- calls ---- */

static bool read_calls(struct reader *r) {
    static const char *const columns[] = {
        "start",  "end=start",     "globalTid=0",  "correlationId=NULL",
        "nameId", "returnValue=0", "eventClass=0", NULL};
    if (!has(r, RUNTIME, NULL))
        return true;
    sqlite3_stmt *row = select_rows(r, RUNTIME, columns, "globalTid", "rowid");
    int result = SQLITE_DONE;
    while (row && (result = sqlite3_step(row)) == SQLITE_ROW) {
        if (number(row, 6) > 1) /* neither runtime nor driver: backtraces, libraries */
            continue;
        struct import_call *call =
            more(r, &r->data->calls, r->data->n_calls, &r->call_room, sizeof *r->data->calls);
        if (!call)
            break;
        r->data->n_calls++;
        *call = (struct import_call){.start = time_of(row, 0),
                                     .end = time_of(row, 1),
                                     .thread = number(row, 2) & 0xffffff,
                                     .correlation = number_or(row, 3, -1),
                                     .name = number(row, 4),
                                     .result = number(row, 5),
                                     .stream = CST_NONE};
    }
    return row && end(r, row, result);
}

static int by_word(const char *text, const char *(*word)(unsigned), unsigned n) {
    for (unsigned i = 0; text && i < n; i++)
        if (strcmp(word(i), text) == 0)
            return (int)i;
    return 0;
}

/* What cusplice wrote says more than names of calls do. */
static bool read_made(struct reader *r) {
    static const char *const columns[] = {"start", "end",   "globalTid", "nameId", "streamId",
                                          "what",  "scope", "abi",       "value",  NULL};
    if (!r->data->own || !has(r, "CUSPLICE_CALL", NULL))
        return true;
    sqlite3_stmt *row = select_rows(r, "CUSPLICE_CALL", columns, "globalTid", "rowid");
    int result = SQLITE_DONE;
    while (row && (result = sqlite3_step(row)) == SQLITE_ROW) {
        struct import_call *call =
            more(r, &r->data->made, r->data->n_made, &r->made_room, sizeof *r->data->made);
        if (!call)
            break;
        const char *what = (const char *)sqlite3_column_text(row, 5);
        const char *scope = (const char *)sqlite3_column_text(row, 6);
        r->data->n_made++;
        *call =
            (struct import_call){.start = time_of(row, 0),
                                 .end = time_of(row, 1),
                                 .thread = number(row, 2) & 0xffffff,
                                 .correlation = -1,
                                 .name = number(row, 3),
                                 .stream = number_or(row, 4, CST_NONE),
                                 .what = (uint8_t)by_word(what, export_what, CST_CALLS),
                                 .scope = (uint8_t)by_word(scope, export_scope, CST_SCOPE_P + 1),
                                 .abi = (uint8_t)number(row, 7),
                                 .value = (uint64_t)number(row, 8)};
    }
    return row && end(r, row, result);
}

static int by_correlation(const void *a, const void *b) {
    int64_t x = (*(struct import_call *const *)a)->correlation,
            y = (*(struct import_call *const *)b)->correlation;
    return x < y ? -1 : x > y;
}

/* Waits, and records of events, whose stream or event the table has. */
static bool read_named(struct reader *r, const char *table) {
    static const char *const columns[] = {"correlationId=NULL", "streamId=NULL", "eventId=0", NULL};
    size_t n = r->data->n_calls;
    if (!n || !has(r, table, NULL))
        return true;
    struct import_call **calls = malloc(n * sizeof *calls);
    sqlite3_stmt *row = calls ? select_rows(r, table, columns, "globalPid", "rowid") : NULL;
    int result = SQLITE_DONE;
    for (size_t i = 0; calls && i < n; i++)
        calls[i] = &r->data->calls[i];
    if (calls)
        qsort(calls, n, sizeof *calls, by_correlation);
    while (row && (result = sqlite3_step(row)) == SQLITE_ROW) {
        struct import_call key = {.correlation = number_or(row, 0, -1)}, *at = &key;
        struct import_call **found = bsearch(&at, calls, n, sizeof *calls, by_correlation);
        int64_t stream = number_or(row, 1, CST_NONE);
        if (!found || key.correlation < 0)
            continue;
        if (stream >= 0 && stream < CST_NONE)
            (*found)->stream = stream;
        (*found)->event = number(row, 2);
    }
    free(calls);
    return row && end(r, row, result);
}

/* ---- streams ---- */

static struct import_stream *add_stream(struct reader *r) {
    struct import_stream *stream =
        more(r, &r->data->streams, r->data->n_streams, &r->stream_room, sizeof *stream);
    r->data->n_streams += stream != NULL;
    return stream;
}

static bool read_own_streams(struct reader *r) {
    static const char *const columns[] = {"streamId", "contextId", "deviceId", "kind",
                                          "flags",    "priority",  NULL};
    sqlite3_stmt *row = select_rows(r, "CUSPLICE_STREAM", columns, NULL, "streamId");
    int result = SQLITE_DONE;
    struct import_stream *stream;
    r->data->stream_kinds = true;
    while (row && (result = sqlite3_step(row)) == SQLITE_ROW && (stream = add_stream(r)))
        *stream = (struct import_stream){
            .stream = (uint32_t)number(row, 0),
            .context = (uint32_t)number(row, 1),
            .device = (uint32_t)number(row, 2),
            .kind = (uint32_t)by_word((const char *)sqlite3_column_text(row, 3), export_stream,
                                      CST_STREAM_UNKNOWN + 1),
            .flags = (uint32_t)number(row, 4),
            .priority = (int32_t)number(row, 5)};
    return row && end(r, row, result);
}

/* Devices are told by ops: CST_NONE here. */
static bool read_null_streams(struct reader *r, const char *table, const char *number_column) {
    const char *const columns[] = {number_column, "contextId=0", NULL};
    struct import_stream *stream;
    int result = SQLITE_DONE;
    if (!has(r, table, number_column))
        return true;
    r->data->stream_kinds = true;
    sqlite3_stmt *row = select_rows(r, table, columns, NULL, "rowid");
    while (row && (result = sqlite3_step(row)) == SQLITE_ROW && (stream = add_stream(r)))
        *stream = (struct import_stream){.stream = (uint32_t)number(row, 0),
                                         .context = (uint32_t)number(row, 1),
                                         .device = CST_NONE,
                                         .kind = CST_STREAM_LEGACY};
    return row && end(r, row, result);
}

static bool read_nsys_streams(struct reader *r) {
    static const char *const columns[] = {"streamId", "contextId=0", "flag=0", "priority=0", NULL};
    struct import_stream *stream;
    int result = SQLITE_DONE;
    if (has(r, "TARGET_INFO_CUDA_STREAM", "flag")) {
        r->data->stream_kinds = true;
        sqlite3_stmt *row = select_rows(r, "TARGET_INFO_CUDA_STREAM", columns, NULL, "rowid");
        while (row && (result = sqlite3_step(row)) == SQLITE_ROW && (stream = add_stream(r))) {
            int64_t flag = number(row, 2); /* ENUM_CUPTI_STREAM_TYPE */
            *stream =
                (struct import_stream){.stream = (uint32_t)number(row, 0),
                                       .context = (uint32_t)number(row, 1),
                                       .device = CST_NONE,
                                       .kind = flag == 3 ? CST_STREAM_LEGACY : CST_STREAM_CREATED,
                                       .flags = flag == 2,
                                       .priority = (int32_t)number(row, 3)};
        }
        if (!row || !end(r, row, result))
            return false;
    }
    return read_null_streams(r, "TARGET_INFO_CUDA_CONTEXT_INFO", "nullStreamId") &&
           read_null_streams(r, "TARGET_INFO_CUDA_NULL_STREAM", "streamId"); /* older exports */
}

/* ---- names ---- */

static int by_id(const void *a, const void *b) {
    int64_t x = ((const struct import_text *)a)->id, y = ((const struct import_text *)b)->id;
    return x < y ? -1 : x > y;
}

static bool read_texts(struct reader *r) {
    static const char *const columns[] = {"id", "value", NULL};
    if (!has(r, "StringIds", NULL))
        return fail(r, "has no table StringIds: not an export of nsys");
    sqlite3_stmt *row = select_rows(r, "StringIds", columns, NULL, "id");
    int result = SQLITE_DONE;
    while (row && (result = sqlite3_step(row)) == SQLITE_ROW) {
        struct import_text *text =
            more(r, &r->data->texts, r->data->n_texts, &r->text_room, sizeof *text);
        const char *value = (const char *)sqlite3_column_text(row, 1);
        uint64_t length = (uint64_t)sqlite3_column_bytes(row, 1);
        if (text && length > r->bounds.text) {
            fail(r, "corrupt: it has more text than a file of its length can");
            break;
        }
        if (!text || !(text->text = strdup(value ? value : "")))
            break;
        r->bounds.text -= length;
        text->id = number(row, 0);
        r->data->n_texts++;
    }
    return row && end(r, row, result);
}

const char *import_text(const struct import_data *data, int64_t id) {
    struct import_text key = {id, NULL};
    const struct import_text *found =
        data->n_texts ? bsearch(&key, data->texts, data->n_texts, sizeof key, by_id) : NULL;
    return found ? found->text : "";
}

/* ---- the file ---- */

static bool read_all(struct reader *r) {
    char name[64];
    if (!has(r, KERNEL, NULL))
        return fail(r, "holds no kernels (no table " KERNEL "): profile with nsys profile "
                       "--trace=cuda, then nsys export --type=sqlite");
    read_origin(r);
    r->data->mangled = *column(r, KERNEL, "mangledName", "", name);
    if (!choose_process(r) || !read_kernels(r))
        return false;
    if (!r->data->n_ops)
        return fail(r, "holds no kernels (table " KERNEL " is empty)");
    return read_memory(r, MEMSET, CST_OP_MEMSET) && read_memory(r, MEMCPY, CST_OP_COPY) &&
           read_events(r, RECORD, CST_OP_RECORD) && read_events(r, WAIT, CST_OP_WAIT) &&
           read_calls(r) && read_made(r) && read_named(r, SYNC) && read_named(r, EVENT) &&
           (r->data->own && has(r, "CUSPLICE_STREAM", NULL) ? read_own_streams(r)
                                                            : read_nsys_streams(r)) &&
           read_texts(r);
}

bool import_read(const struct import_options *options, struct import_data *data, char *error,
                 size_t bytes) {
    struct reader r = {.options = options, .data = data, .error = error, .bytes = bytes};
    r.sqlite = import_open(options->from, &r.bounds, error, bytes);
    bool read = r.sqlite && read_all(&r);
    sqlite3_close(r.sqlite);
    return read;
}

void import_free(struct import_data *data) {
    for (size_t i = 0; i < data->n_texts; i++)
        free(data->texts[i].text);
    free(data->texts);
    free(data->streams);
    free(data->made);
    free(data->calls);
    free(data->ops);
}
