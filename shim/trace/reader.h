/*
 * Reading a trace file whole: definitions by id, events in the order of time. For tools and tests;
 * not part of the library. A file is never trusted: what does not hold together is refused with
 * where and why, and only a torn tail (a program that was killed) is not a mistake.
 */
#ifndef CUSPLICE_TRACE_READER_H
#define CUSPLICE_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/trace/format.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cst_trace {
    const char *path;
    uint32_t version;
    const char *facts; /* JSON object; "{}" where there is none */
    bool closed;       /* the recording ended in good order */
    uint64_t torn;     /* bytes at the end that are no whole block, left out */

    /* By id; NULL where there is none of that id. Ids of a trace are dense: below 4 n + 1024. */
    const struct cst_thread **threads;
    const struct cst_stream **streams;
    const struct cst_kind **kinds;
    uint32_t n_threads, n_streams, n_kinds; /* length of the tables, not the number of entries */

    /* Everything but definitions: first by time, what has one time as it stands in the file. What a
     * call set off (FLUSH, LAUNCH) stands behind it. */
    const struct cst_record **events;
    size_t n_events;
    const struct cst_range **ranges; /* in the order of time */
    size_t n_ranges;
    const struct cst_gpu **gpu; /* in the order in which it began */
    size_t n_gpu;
    const struct cst_gpu_stream **gpu_streams; /* in no order */
    size_t n_gpu_streams;
    uint64_t ops, lost_records, lost_ops;
    uint64_t begin_ns, end_ns; /* of the first and last event; 0 where there is none */
    struct cst_text *texts;    /* private */
    uint32_t n_texts;
    void *memory; /* private */
};

/* Returns NULL and a sentence in `error` (path, where, what is wrong, what to do) where the file
 * cannot be read. Every id in a record of the result refers to something that is there (or is 0 or
 * CST_NONE where format.h allows that), and every record is as long as its type says. */
struct cst_trace *cst_open(const char *path, char *error, size_t bytes);
void cst_free(struct cst_trace *trace);

/* The string of that id; "" for 0 and for ids that are not defined. */
const char *cst_string(const struct cst_trace *trace, uint32_t id);

static inline const uint8_t *cst_op_params(const struct cst_op *op) {
    return (const uint8_t *)(op + 1);
}
static inline const struct cst_argument *cst_kind_arguments(const struct cst_kind *kind) {
    return (const struct cst_argument *)(const void *)(kind + 1);
}
static inline const struct cst_attribute *cst_kind_attributes(const struct cst_kind *kind) {
    return (const struct cst_attribute *)(const void *)(cst_kind_arguments(kind) +
                                                        kind->n_arguments);
}

#ifdef __cplusplus
}
#endif

#endif
