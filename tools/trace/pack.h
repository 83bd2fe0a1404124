/*
 * Compresses the blocks of a trace file in place of the old file. verb_record.c calls it after a
 * replayable recording. It never changes what the trace says.
 */
#ifndef CUSPLICE_TOOLS_TRACE_PACK_H
#define CUSPLICE_TOOLS_TRACE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Packs each block of a whole trace that gets shorter by it; what the trace says stays as it is.
 * The packed file takes the place of the other at once. False with a sentence in `error`: the trace
 * is as it was. */
bool pack_file(const char *path, char *error, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
