/*
 * An open trace: records, model, names, signatures, and helpers that several reports share. The
 * verbs that look at traces call it. Nothing changes it after look_open.
 */
#ifndef CUSPLICE_TOOLS_TRACE_LOOK_H
#define CUSPLICE_TOOLS_TRACE_LOOK_H

#include "tools/trace/model.h"
#include "tools/trace/names.h"
#include "tools/trace/table.h"

struct look {
    struct cst_trace *trace;
    struct model *model;
    struct names *names;
    char *facts;          /* one line of JSON; "{}" where the trace's are none */
    bool facts_bad;       /* ... and that was so */
    uint64_t *signatures; /* by step: of names and shapes, so equal between traces. Records of
                           * events do not count: an older recording has them as calls */
    uint64_t *kinds;      /* by kind: a hash of what it is, equal between traces */
};

/* False with a sentence in `error`. */
bool look_open(struct look *look, const char *path, enum names_form form, char *error,
               size_t bytes);
/* The same with what can be read of a damaged trace (cst_trace.damage). */
bool look_salvage(struct look *look, const char *path, char *error, size_t bytes);
void look_close(struct look *look);

/* The op of that place in its stream. */
static inline const struct model_op *look_op(const struct look *look, uint32_t stream, uint32_t i) {
    return &look->model->ops[look->model->streams[stream].ops[i]];
}

/* Is it a record of an event, or a wait for one? */
static inline bool look_is_event(const struct look *look, const struct cst_op *op) {
    uint32_t type = look->trace->kinds[op->kind]->op;
    return type == CST_OP_RECORD || type == CST_OP_WAIT;
}

/* What became of an op. */
enum look_outcome { LOOK_GRAPH, LOOK_EAGER, LOOK_FLUSHED, LOOK_OPEN };
enum look_outcome look_outcome(const struct model_op *op);
extern const char *const look_outcomes[]; /* "graph", "eager", "flushed", "open" */

/* True where op `i` of the stream ended a run: it is in no graph, and the op before it in the same
 * step is in one. */
bool look_ends_run(const struct look *look, uint32_t stream, uint32_t i);

/* The stream with the most ops; 0: there is none. */
uint32_t look_busiest(const struct look *look);

/* Names of `n` ops, which are given by their places in model->ops: "a, b x3, ... 7 more". */
void look_list(const struct look *look, const uint32_t *ops, uint32_t n, char *out, size_t bytes);

/* 100 part / whole; 0 of nothing. */
double look_share(uint64_t part, uint64_t whole);

/* Where the numbers come from: file, program, length, ops, what is missing. */
void look_notes(const struct look *look, struct table *table);

/* In a table of several traces: that this one is imported, if it is. */
void look_note_imported(const struct look *look, struct table *table);

/* A member of the facts: a text without its quotes, an array's texts with spaces between, else as
 * JSON. "" where there is none. */
void look_fact(const struct look *look, const char *key, char *out, size_t bytes);
/* The same of a value that facts_each told. */
void look_unquote(const char *value, size_t value_bytes, char *out, size_t bytes);

#endif
