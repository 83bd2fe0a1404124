/*
 * Makes a trace of a profile: an SQLite file from `nsys export` or `cusplice export`.
 * verb_import.c calls it. It never changes the database.
 */
#ifndef CUSPLICE_TOOLS_TRACE_IMPORT_H
#define CUSPLICE_TOOLS_TRACE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/trace/format.h"

#ifdef __cplusplus
extern "C" {
#endif

struct import_options {
    const char *from, *to;
    bool force;
    bool graphs;  /* kernels that ran in the program's own graphs count as launched one by one */
    uint64_t pid; /* 0: the one that there is */
};

struct import_counts {
    uint64_t ops, calls;
    uint64_t in_calls;   /* executions that belong to a call which is no op (synchronous copies) */
    uint64_t in_graphs;  /* ops in graphs of the program, left out */
    uint64_t migrations; /* of pages of managed memory, left out */
    uint64_t uncalled;   /* other executions that no call asked for, left out */
    uint64_t unknown;    /* calls in no table, taken as barriers */
    char unknown_name[128];
};

/* False, and a sentence in `error`, with nothing left of the output. */
bool import_file(const struct import_options *options, struct import_counts *counts, char *error,
                 size_t bytes);

/* ---- between reading and writing ---- */

struct import_op {
    int64_t start, end;
    int64_t correlation; /* -1: none */
    int64_t name;        /* of StringIds; kernels alone */
    int64_t variant;     /* what else tells one kernel from another: the id of its full name */
    uint32_t device, context, stream;
    uint8_t type;     /* enum cst_op_type */
    uint8_t in_graph; /* a graph ran it */
    uint8_t copy;     /* ENUM_CUDA_MEMCPY_OPER */
    uint8_t cooperative, pageable;
    uint32_t dims[7]; /* of kernels */
    uint32_t cluster[3];
    uint64_t bytes;    /* of memsets and copies */
    uint64_t event[2]; /* of a record or wait, from cusplice: its params */
};

struct import_call {
    int64_t start, end, thread, correlation, name, result;
    int64_t stream; /* CST_NONE: not known. What comes from cusplice: its id there */
    int64_t event;  /* CUPTI's number of the event; 0: not known */
    uint8_t what;   /* 0: by its name; else enum cst_what, from cusplice */
    uint8_t scope, abi;
    bool expanded; /* the launch of a graph whose ops stand in its place */
    uint64_t value;
};

struct import_stream {
    uint32_t device, context, stream;
    uint32_t kind, flags;
    int32_t priority;
};

struct import_text {
    int64_t id;
    char *text;
};

struct import_data {
    struct import_op *ops;
    struct import_call *calls; /* runtime and driver */
    struct import_call *made;  /* own files: CUSPLICE_CALL, in place of what names say */
    struct import_stream *streams;
    struct import_text *texts; /* by id: those that ops and calls name */
    size_t n_ops, n_calls, n_made, n_streams, n_texts;
    uint64_t migrations; /* rows of copies that were migrations of pages */
    bool correlated;     /* executions say which call asked for them; 0: none */
    bool gpu_times;      /* start and end are when it ran */
    bool own;            /* of cusplice export */
    bool mangled;        /* names of kernels are */
    bool stream_kinds;   /* are known */
    int64_t base;        /* added to times */
    uint64_t pid;
    char exporter[128], schema[64], gpu[128];
};

bool import_read(const struct import_options *options, struct import_data *data, char *error,
                 size_t bytes);
void import_free(struct import_data *data);
const char *import_text(const struct import_data *data, int64_t id);

/* The trace's facts, as JSON; its length. */
enum { IMPORT_FACTS = 32768 }; /* a path and three short texts, in escapes of six bytes */
size_t import_facts(const struct import_options *options, const struct import_data *data,
                    const struct import_counts *counts, char json[IMPORT_FACTS]);

#ifdef __cplusplus
}
#endif

#endif
