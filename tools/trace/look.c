/*
 * Opens a trace, hashes its kinds and steps, and answers small questions of reports. The verbs
 * that look at traces call it, on one thread. It never prints.
 */
#include "tools/trace/look.h"

#include <stdlib.h>
#include <string.h>

#include "tools/trace/budget.h"
#include "tools/trace/facts.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

const char *const look_outcomes[] = {"graph", "eager", "flushed", "open"};

enum { LISTED = 8 };

/* ---- signatures ---- */

/* What a recorder or an import knows of a kind is no part of it. */
static uint64_t hash_kind(const struct cst_trace *trace, const struct cst_kind *kind) {
    const char *name = cst_string(trace, kind->name);
    uint32_t numbers[] = {kind->op,         kind->flags & CST_KIND_COOPERATIVE,
                          kind->elem,       kind->form,
                          kind->cluster[0], kind->cluster[1],
                          kind->cluster[2]};
    return XXH3_64bits_withSeed(name, strlen(name), XXH3_64bits(numbers, sizeof numbers));
}

static bool sign(struct look *look) {
    const struct cst_trace *trace = look->trace;
    const struct model *model = look->model;
    look->kinds = calloc(trace->n_kinds + 1, sizeof *look->kinds);
    look->signatures = calloc(model->n_steps + 1, sizeof *look->signatures);
    if (!look->kinds || !look->signatures)
        return false;
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        if (trace->kinds[i])
            look->kinds[i] = hash_kind(trace, trace->kinds[i]);
    for (uint32_t i = 0; i < model->n_ops; i++) {
        const struct cst_op *op = model->ops[i].op;
        if (look_is_event(look, op))
            continue;
        uint64_t *signature = &look->signatures[model->ops[i].step];
        *signature = XXH3_64bits_withSeed(op->dims, sizeof op->dims,
                                          *signature * 31 + look->kinds[op->kind]);
    }
    return true;
}

/* ---- opening ---- */

static bool open_by(struct look *look, const char *path, enum names_form form, bool salvage,
                    char *error, size_t bytes) {
    memset(look, 0, sizeof *look);
    look->trace = budget_open_once(path, salvage, error, bytes);
    if (!look->trace)
        return false;
    look->facts = facts_line(look->trace->facts);
    look->facts_bad = !look->facts;
    if (!look->facts)
        look->facts = strdup("{}");
    look->names = names_make(look->trace, form);
    look->model = model_make(look->trace);
    if (look->facts && look->names && look->model && sign(look))
        return true;
    snprintf(error, bytes,
             "%s: not enough memory for its %llu ops: cusplice trim --steps A-B makes a part of it",
             path, (unsigned long long)look->trace->ops);
    look_close(look);
    return false;
}

bool look_open(struct look *look, const char *path, enum names_form form, char *error,
               size_t bytes) {
    return open_by(look, path, form, false, error, bytes);
}

bool look_salvage(struct look *look, const char *path, char *error, size_t bytes) {
    return open_by(look, path, NAMES_MANGLED, true, error, bytes);
}

void look_close(struct look *look) {
    free(look->signatures);
    free(look->kinds);
    free(look->facts);
    model_free(look->model);
    names_free(look->names);
    cst_free(look->trace);
    memset(look, 0, sizeof *look);
}

/* ---- questions ---- */

enum look_outcome look_outcome(const struct model_op *op) {
    if (op->out)
        return op->out->type == CST_LAUNCH ? LOOK_GRAPH : LOOK_FLUSHED;
    return op->op->head.flags == CST_DEFERRED ? LOOK_OPEN : LOOK_EAGER;
}

bool look_ends_run(const struct look *look, uint32_t stream, uint32_t i) {
    if (i == 0)
        return false;
    const struct model_op *op = look_op(look, stream, i), *before = look_op(look, stream, i - 1);
    return op->step == before->step && model_in_graph(before) && !model_in_graph(op);
}

uint32_t look_busiest(const struct look *look) {
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < look->trace->n_streams; i++)
        if (look->model->streams[i].n_ops > most) {
            most = look->model->streams[i].n_ops;
            best = i;
        }
    return best;
}

static const char *name_of(const struct look *look, uint32_t op) {
    return names_of(look->names, look->model->ops[op].op->kind);
}

void look_list(const struct look *look, const uint32_t *ops, uint32_t n, char *out, size_t bytes) {
    size_t used = 0;
    unsigned listed = 0;
    *out = 0;
    for (uint32_t i = 0; i < n && used < bytes;) {
        const char *name = name_of(look, ops[i]);
        uint32_t same = 1;
        for (; i + same < n; same++) {
            const char *next = name_of(look, ops[i + same]);
            if (next != name && strcmp(name, next) != 0)
                break;
        }
        const char *comma = i ? ", " : "";
        int wrote;
        if (listed++ == LISTED) {
            snprintf(out + used, bytes - used, "%s... %u more", comma, n - i);
            return;
        }
        if (same > 1)
            wrote = snprintf(out + used, bytes - used, "%s%s x%u", comma, name, same);
        else
            wrote = snprintf(out + used, bytes - used, "%s%s", comma, name);
        used += wrote > 0 ? (size_t)wrote : 0;
        i += same;
    }
}

double look_share(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

struct wanted {
    const char *key;
    char *out;
    size_t bytes;
};

void look_unquote(const char *from, size_t bytes, char *out, size_t room) {
    size_t used = 0;
    bool inside = false, array = bytes && *from == '[';
    if (!bytes || (*from != '"' && !array)) {
        snprintf(out, room, "%.*s", (int)bytes, from);
        return;
    }
    for (size_t i = 0; i < bytes && used + 1 < room; i++) {
        if (from[i] == '"') {
            inside = !inside;
        } else if (from[i] == '\\' && inside && i + 1 < bytes) {
            if (from[i + 1] != '"' && from[i + 1] != '\\' && from[i + 1] != '/')
                out[used++] = '\\';
            if (used + 1 < room)
                out[used++] = from[i + 1];
            i++;
        } else if (inside || !array) {
            out[used++] = from[i];
        } else if (from[i] == ',') {
            out[used++] = ' ';
        } else if (from[i] != '[' && from[i] != ']') {
            out[used++] = from[i];
        }
    }
    out[used] = 0;
}

static void take(void *context, const char *key, size_t key_bytes, const char *value,
                 size_t bytes) {
    struct wanted *wanted = context;
    if (key_bytes == strlen(wanted->key) + 2 && memcmp(key + 1, wanted->key, key_bytes - 2) == 0)
        look_unquote(value, bytes, wanted->out, wanted->bytes);
}

void look_fact(const struct look *look, const char *key, char *out, size_t bytes) {
    struct wanted wanted = {key, out, bytes};
    *out = 0;
    facts_each(look->facts, take, &wanted);
}

void look_notes(const struct look *look, struct table *table) {
    const struct cst_trace *trace = look->trace;
    const struct model *model = look->model;
    char text[1024];
    table_note(table, "trace", trace->path);
    look_fact(look, "argv", text, sizeof text);
    if (*text)
        table_note(table, "program", text);
    look_fact(look, "gpu", text, sizeof text);
    if (*text)
        table_note(table, "gpu", text);
    if (facts_imported(look->facts))
        table_note(table, "imported", FACTS_IMPORT);
    table_note_number(table, "ops", model->n_ops);
    table_note_number(table, "in_graphs", (int64_t)model->in_graphs);
    table_note_number(table, "eager", (int64_t)model->eager);
    table_note_number(table, "flushed", (int64_t)model->flushed);
    table_note_number(table, "graph_launches", (int64_t)model->graph_launches);
    table_note_number(table, "steps", model->n_steps);
    if (model->open)
        table_note_number(table, "open", (int64_t)model->open);
    if (trace->lost_records) {
        table_note_number(table, "lost_records", (int64_t)trace->lost_records);
        table_note_number(table, "lost_ops", (int64_t)trace->lost_ops);
    }
    if (!trace->closed)
        table_note(table, "incomplete", "the recording did not end in good order");
    if (trace->torn)
        table_note_number(table, "torn_bytes", (int64_t)trace->torn);
}

void look_note_imported(const struct look *look, struct table *table) {
    const char *path = look->trace->path, *slash = strrchr(path, '/');
    char text[400];
    snprintf(text, sizeof text, "%.255s is imported " FACTS_IMPORT, slash ? slash + 1 : path);
    if (facts_imported(look->facts))
        table_note(table, "imported", text);
}
