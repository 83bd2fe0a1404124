/*
 * A SQLite database that is being written: one transaction, one prepared statement for each table.
 * export_sqlite.c calls it, on one thread. An error sticks until database_close tells it. It never
 * opens a database that exists.
 */
#ifndef CUSPLICE_TOOLS_TRACE_DATABASE_H
#define CUSPLICE_TOOLS_TRACE_DATABASE_H

#include <stddef.h>
#include <stdint.h>

#include "tools/trace/beside.h"
#include "tools/trace/schema.h"

#ifdef __cplusplus
extern "C" {
#endif

struct database;

/* NULL, and `error`, where it cannot be made. `from`: as for beside_open. */
struct database *database_open(const char *path, bool force, const char *const *from, char *error,
                               size_t bytes);
#define DATABASE_NULL INT64_MIN

/* One row; `format` has a letter for each column: i (int64_t), n (the same, and DATABASE_NULL is
 * NULL: for numbers that are no trace's), t (const char *), 0 (NULL, no argument), s (const char *
 * that is put into StringIds, whose id is what the column gets; NULL and "" are NULL), S (the same,
 * but "" has an id too). Returns the row's number. */
int64_t database_row(struct database *database, enum schema_table table, const char *format, ...);
/* The id of a text in StringIds. */
int64_t database_string(struct database *database, const char *text);
void database_run(struct database *database, const char *sql);
bool database_failed(const struct database *database);
/* Commits and names the file, or removes it and says why. Frees. `size` gets its bytes. */
bool database_close(struct database *database, uint64_t *size, char *error, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
