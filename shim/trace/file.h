/*
 * Writes a trace file: blocks with checksums, under PATH.partial until the file is closed in good
 * order. The library's writer thread and the tools use it. Only system calls: no stdio, and no
 * allocation except the sink's buffer. Not thread-safe.
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
    int error; /* errno of the first call that failed; nothing is written after it */
    uint64_t bytes;
    char path[CST_PATH], partial[CST_PATH + 16];
};

/* Makes PATH.partial (mode 0600, never through a link, never over an existing file) and writes
 * the head of the file. Returns 0 or an errno. */
int cst_out_open(struct cst_out *out, const char *path);
/* The checksum that the format uses for bytes that have no block of their own. */
uint64_t cst_checksum(const void *at, size_t bytes);
/* Appends a block. If `flags` say that the payload is packed, `raw` is its unpacked size. */
void cst_out_block(struct cst_out *out, uint32_t type, uint32_t flags, const void *payload,
                   size_t bytes, size_t raw);
/* Writes the end block and gives the file its name, unless a file with that name exists
 * (EEXIST). Returns 0 or the first error. After an error PATH.partial stays, with what could be
 * written. */
int cst_out_close(struct cst_out *out);
/* Removes PATH.partial. */
void cst_out_abandon(struct cst_out *out);

/* Collects records into blocks. */
struct cst_sink {
    struct cst_out *out;
    uint8_t *buffer; /* CST_SINK bytes of the caller's */
    size_t used;
    size_t full; /* bytes that end a block, at most CST_SINK; 0: CST_SINK. Longer records have a
                  * block of their own */
};

/* Room for a record of this type with `bytes` bytes (rounded up to 8), zeroed except for its
 * type and length. */
void *cst_sink_add(struct cst_sink *sink, enum cst_type type, size_t bytes);
/* Adds whole records in the form of the file. */
void cst_sink_put(struct cst_sink *sink, const void *records, size_t bytes);
/* Writes what was collected so far as a block. */
void cst_sink_flush(struct cst_sink *sink);
/* Defines a string, of which at most 65,000 bytes are kept. */
void cst_sink_string(struct cst_sink *sink, uint32_t id, const char *text);

#ifdef __cplusplus
}
#endif

#endif
