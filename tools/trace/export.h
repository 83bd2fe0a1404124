/*
 * A trace in the formats of other tools; tools/README.md describes them. verb_export.c calls it,
 * on one thread. It never changes the trace.
 */
#ifndef CUSPLICE_TOOLS_TRACE_EXPORT_H
#define CUSPLICE_TOOLS_TRACE_EXPORT_H

#include "tools/trace/kind_names.h"
#include "tools/trace/model.h"
#include "tools/trace/out.h"
#include "tools/trace/timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

struct export_job {
    const struct cst_trace *trace;
    const struct model *model;
    const struct kind_name *names;     /* by kind */
    const struct timeline_span *spans; /* by op of the model */
    const char *const *from;           /* the trace's file, then NULL */
    bool force;                        /* files that are there are replaced */
    bool flows;                        /* Perfetto: arrows from calls to executions */
    uint64_t pid;                      /* of the program; see export_pid */
    uint64_t bytes;                    /* out: of the file */
    const char *group;                 /* Perfetto: what the program's process is called */
    uint32_t place;                    /* 0: the only trace of its file; else from 1 on */
};

/* Each writes a file, or leaves nothing and says in `error` what failed. */
bool export_perfetto(struct export_job *job, const char *path, char *error, size_t bytes);
bool export_sqlite(struct export_job *job, const char *path, char *error, size_t bytes);

/* Perfetto: the traces of several processes in one file, on one clock, each with tracks of its own.
 * Add each trace, then end, also after an error; `begin_ns` is the first event of all. */
struct export_run {
    struct out *out; /* NULL: not open */
    uint64_t begin_ns;
    uint64_t flows; /* ids of arrows that are taken */
    uint32_t n;     /* traces */
};
bool export_run_begin(struct export_run *run, uint64_t begin_ns, const char *path, bool force,
                      const char *const *from, char *error, size_t bytes);
bool export_run_add(struct export_run *run, struct export_job *job);
/* `whole`: all were added. False with a sentence, and nothing left of the file. */
bool export_run_end(struct export_run *run, bool whole, uint64_t *written, char *error,
                    size_t bytes);

/* The process that a trace is of: "pid" of its facts, else its first thread. */
uint64_t export_pid(const struct cst_trace *trace);

/* Words for what records hold. */
const char *export_what(unsigned what);     /* enum cst_what */
const char *export_scope(unsigned scope);   /* enum cst_scope */
const char *export_choice(unsigned choice); /* enum cst_choice */
const char *export_stream(unsigned kind);   /* enum cst_stream_kind */
/* "graph", "flushed", "eager" or "open". */
const char *export_outcome(const struct model_op *op);
/* The driver function that the op was asked for by. */
const char *export_api(const struct cst_kind *kind, const struct cst_op *op);
/* Of memsets and copies; 0 of a record. */
uint64_t export_op_bytes(const struct cst_kind *kind, const struct cst_op *op);

#ifdef __cplusplus
}
#endif

#endif
