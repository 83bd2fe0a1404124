/*
 * Writing a trace file: blocks with their checksums, under PATH.partial until it is closed in good
 * order. Used by the library's writer thread and by the tools. System calls and nothing else: no
 * stdio, no allocation but the sink's buffer. Not thread-safe.
 */
#ifndef CUSPLICE_TRACE_FILE_H
#define CUSPLICE_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/base/file.h"
#include "shim/trace/format.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CST_PATH = 4096, CST_SINK = 1 << 20 /* bytes of records that make a block */ };

struct cst_out {
    int fd;
    struct cus_file_id id;
    int error; /* errno of the first call that failed; nothing is written behind it */
    uint64_t bytes;
    char path[CST_PATH], partial[CST_PATH + 16];
};

/* Makes PATH.partial (0600, never through a link, never over a file that is there) and writes the
 * head of the file. Returns 0 or an errno. */
int cst_out_open(struct cst_out *out, const char *path);
/* What the format calls a check of bytes that stand in no block of their own. */
uint64_t cst_checksum(const void *at, size_t bytes);
/* Appends a block. `raw` is what the payload unpacks to where `flags` say that it is packed. */
void cst_out_block(struct cst_out *out, uint32_t type, uint32_t flags, const void *payload,
                   size_t bytes, size_t raw);
/* Writes the end block and gives the file its name, unless a file has it already (EEXIST). Returns
 * 0 or the first error; then PATH.partial stays, with what could be written. */
int cst_out_close(struct cst_out *out);
/* Removes PATH.partial. */
void cst_out_abandon(struct cst_out *out);

/* Records on their way into blocks. */
struct cst_sink {
    struct cst_out *out;
    uint8_t *buffer; /* CST_SINK bytes, the caller's */
    size_t used;
};

/* Room for a record of this type and so many bytes (rounded up to 8), zeroed but for its type and
 * length. */
void *cst_sink_add(struct cst_sink *sink, enum cst_type type, size_t bytes);
/* Whole records, as they stand in a file. */
void cst_sink_put(struct cst_sink *sink, const void *records, size_t bytes);
/* What is gathered so far becomes a block. */
void cst_sink_flush(struct cst_sink *sink);
/* Defines a string; at most 65,000 bytes of it are kept. */
void cst_sink_string(struct cst_sink *sink, uint32_t id, const char *text);

#ifdef __cplusplus
}
#endif

#endif
