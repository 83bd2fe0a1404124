/*
 * Opens a stranger's database so that reading it reads tables only, bounded by the file's length.
 * import_read.c calls it, on one thread. It never runs what the database holds.
 */
#ifndef CUSPLICE_TOOLS_TRACE_IMPORT_OPEN_H
#define CUSPLICE_TOOLS_TRACE_IMPORT_OPEN_H

#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

/* What is left of what a file of its length can hold. The reader counts rows and text down; SQLite
 * is interrupted when there are no steps left. */
struct import_bounds {
    uint64_t rows, text /* bytes */, steps;
};

/* NULL, and a sentence in `error` that begins with the path. `bounds` lives as long as it. */
sqlite3 *import_open(const char *path, struct import_bounds *bounds, char *error, size_t bytes);

#endif
