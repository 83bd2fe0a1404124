/*
 * Opens the file read-only, switches SQLite's risky features off, and interrupts a query that
 * takes too many steps. import_read.c calls it. It never writes to the database.
 */
#include "tools/trace/import_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/trace/format.h"
#include "tools/trace/budget.h"

/* A row has four bytes or more, SQLite takes some ten steps for a row of a hundred, and a value
 * that is no text becomes one of few bytes. */
enum { ROW_BYTES = 4, TEXT_TIMES = 4, STEPS_TIMES = 100, STEPS_LEAST = 10000000 };
enum { STEPS_AT_A_TIME = 100000, HEAP = 128 << 20 };

static const char *why_not(const char *path, struct import_bounds *bounds) {
    char head[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat is;
    if (fd < 0 || fstat(fd, &is) != 0) {
        const char *why = strerror(errno);
        if (fd >= 0)
            close(fd);
        return why;
    }
    bool file = S_ISREG(is.st_mode);
    uint64_t length = file ? (uint64_t)is.st_size : 0;
    ssize_t n = file ? read(fd, head, sizeof head) : 0;
    close(fd);
    *bounds = (struct import_bounds){length / ROW_BYTES, TEXT_TIMES * length,
                                     STEPS_LEAST + STEPS_TIMES * length};
    budget_read(length);
    if (n == sizeof head && memcmp(head, "SQLite format 3", sizeof head) == 0)
        return NULL;
    if (n >= 8 && memcmp(head, CST_MAGIC, 8) == 0)
        return "is a trace of cusplice already: nothing to import";
    return file ? "not an SQLite file (nsys export --type=sqlite REPORT.nsys-rep makes one)"
                : "it is no regular file";
}

static int count_steps(void *context) {
    struct import_bounds *bounds = context;
    bounds->steps -= bounds->steps < STEPS_AT_A_TIME ? bounds->steps : STEPS_AT_A_TIME;
    return bounds->steps == 0;
}

/* What the file says of its tables may not make SQLite do more than read rows. */
static bool restrain(sqlite3 *sqlite, struct import_bounds *bounds) {
    static const struct {
        int id, most;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, 16 << 20},
        {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
        {SQLITE_LIMIT_COLUMN, 512},
        {SQLITE_LIMIT_EXPR_DEPTH, 64},
        {SQLITE_LIMIT_COMPOUND_SELECT, 8},
        {SQLITE_LIMIT_VDBE_OP, 1 << 16},
        {SQLITE_LIMIT_FUNCTION_ARG, 16},
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_VARIABLE_NUMBER, 16},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    static const struct {
        int id, on;
    } settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
    };
    for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(sqlite, limits[i].id, limits[i].most);
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++)
        if (sqlite3_db_config(sqlite, settings[i].id, settings[i].on, (int *)NULL) != SQLITE_OK)
            return false;
    sqlite3_hard_heap_limit64(HEAP);
    sqlite3_progress_handler(sqlite, STEPS_AT_A_TIME, count_steps, bounds);
    return sqlite3_exec(sqlite, "PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON", NULL, NULL,
                        NULL) == SQLITE_OK;
}

/* A view runs whatever its author likes, a virtual table code: no profiler writes them under the
 * names that are read. False: there is one, or the file cannot be read. */
static bool has_tables_alone(sqlite3 *sqlite, const char *path, char *error, size_t bytes) {
    sqlite3_stmt *ask = NULL;
    const char *sql =
        "SELECT type, name FROM sqlite_master WHERE (type = 'view' OR (type = 'table' AND "
        "ifnull(rootpage, 0) = 0)) AND (name IN ('StringIds', 'META_DATA_EXPORT', "
        "'EXPORT_META_DATA') OR substr(name, 1, 6) = 'CUPTI_' OR substr(name, 1, 12) = "
        "'TARGET_INFO_' OR substr(name, 1, 9) = "
        "'CUSPLICE_') LIMIT 1";
    int result = sqlite3_prepare_v2(sqlite, sql, -1, &ask, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(ask);
    if (result == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(ask, 0);
        const char *name = (const char *)sqlite3_column_text(ask, 1);
        snprintf(error, bytes, "%s: its %s is a %s, and an export has tables alone: it is not read",
                 path, name ? name : "?", type && *type == 'v' ? "view" : "virtual table");
    } else if (result != SQLITE_DONE) {
        snprintf(error, bytes, "%s: cannot be read: %s", path, sqlite3_errmsg(sqlite));
    }
    sqlite3_finalize(ask);
    return result == SQLITE_DONE;
}

sqlite3 *import_open(const char *path, struct import_bounds *bounds, char *error, size_t bytes) {
    sqlite3 *sqlite = NULL;
    const char *why = why_not(path, bounds);
    if (why) {
        snprintf(error, bytes, "%s: %s", path, why);
        return NULL;
    }
    if (sqlite3_open_v2(path, &sqlite, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        !restrain(sqlite, bounds))
        snprintf(error, bytes, "%s: cannot be read: %s", path, sqlite3_errmsg(sqlite));
    else if (has_tables_alone(sqlite, path, error, bytes))
        return sqlite;
    sqlite3_close(sqlite);
    return NULL;
}
