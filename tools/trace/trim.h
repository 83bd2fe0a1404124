/*
 * Writes a part of a trace as a trace of its own. verb_trim.c and verb_repair.c call it. It never
 * writes into a file that is there.
 */
#ifndef CUSPLICE_TOOLS_TRACE_TRIM_H
#define CUSPLICE_TOOLS_TRACE_TRIM_H

#include "tools/trace/select.h"

struct trim_result {
    uint64_t ops, bytes;
    bool cut; /* it could be replayed, and the part cannot */
};

struct trim_form {
    bool packed;
    /* For others to see: without the command line, paths, names of threads, params of ops, what
     * the driver said of memory, and what a replay needs. Names of kernels stay. */
    bool bare;
};

/* Writes what is selected, with the definitions that it needs, to `path`, which must not be there.
 * `note`: what the facts say of it, a JSON object. Kinds are numbered anew; threads, streams and
 * strings keep their numbers. What a replay needs goes along where all is selected. False with a
 * sentence in `error`; then nothing is left. */
bool trim_write(const struct look *look, const struct selection *selection, const char *note,
                struct trim_form form, const char *path, struct trim_result *result, char *error,
                size_t bytes);
/* The same, over a file that may be there, but never over the trace that is read. */
bool trim_replace(const struct look *look, const struct selection *selection, const char *note,
                  struct trim_form form, const char *path, struct trim_result *result, char *error,
                  size_t bytes);

#endif
