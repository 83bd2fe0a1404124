/*
 * Creates the tables of schema.h beside the final name, and inserts rows. export_sqlite.c calls
 * it, on one thread. It never reads a row.
 */
#include "tools/trace/database.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "tools/trace/intern.h"

struct database {
    sqlite3 *sqlite;
    sqlite3_stmt *insert[SCHEMA_N];
    struct intern texts; /* of StringIds */
    bool failed;
    char why[256];
    struct beside beside;
};

#define NAME(name, columns) #name,
#define COLUMNS(name, columns) columns,
static const char *const names[] = {SCHEMA_TABLES(NAME)};
static const char *const columns[] = {SCHEMA_TABLES(COLUMNS)};

static void fail(struct database *database, const char *why) {
    if (!database->failed)
        snprintf(database->why, sizeof database->why, "%s", why);
    database->failed = true;
}

static void check(struct database *database, int result) {
    if (result == SQLITE_OK || result == SQLITE_DONE || database->failed)
        return;
    int error = sqlite3_system_errno(database->sqlite);
    if ((result & 0xff) == SQLITE_FULL)
        fail(database, strerror(ENOSPC));
    else
        fail(database, (result & 0xff) == SQLITE_IOERR && error ? strerror(error)
                                                                : sqlite3_errmsg(database->sqlite));
}

void database_run(struct database *database, const char *sql) {
    if (!database->failed)
        check(database, sqlite3_exec(database->sqlite, sql, NULL, NULL, NULL));
}

bool database_failed(const struct database *database) {
    return database->failed;
}

static unsigned count_columns(const char *text) {
    unsigned n = 1;
    for (; *text; text++)
        n += *text == ',';
    return n;
}

static void make_tables(struct database *database) {
    char sql[2048];
    for (unsigned i = 0; i < SCHEMA_N && !database->failed; i++) {
        snprintf(sql, sizeof sql, "CREATE TABLE %s (%s)", names[i], columns[i]);
        database_run(database, sql);
        int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (?", names[i]);
        for (unsigned j = count_columns(columns[i]); j > 1; j--)
            n += snprintf(sql + n, sizeof sql - (size_t)n, ",?");
        snprintf(sql + n, sizeof sql - (size_t)n, ")");
        if (!database->failed)
            check(database,
                  sqlite3_prepare_v2(database->sqlite, sql, -1, &database->insert[i], NULL));
    }
}

struct database *database_open(const char *path, bool force, const char *const *from, char *error,
                               size_t bytes) {
    struct database *database = calloc(1, sizeof *database);
    if (!database) {
        snprintf(error, bytes, "not enough memory");
        return NULL;
    }
    int fd = beside_open(&database->beside, path, force, from);
    if (fd < 0) {
        snprintf(error, bytes, "%s", beside_why(errno));
        free(database);
        return NULL;
    }
    close(fd);
    check(database, sqlite3_open_v2(database->beside.partial, &database->sqlite,
                                    SQLITE_OPEN_READWRITE, NULL));
    database_run(database, "PRAGMA journal_mode = OFF");
    database_run(database, "PRAGMA synchronous = OFF");
    database_run(database, "PRAGMA locking_mode = EXCLUSIVE");
    database_run(database, "BEGIN");
    make_tables(database);
    return database;
}

int64_t database_string(struct database *database, const char *text) {
    bool made;
    if (database->failed)
        return 0;
    int64_t id = intern_add(&database->texts, text, strlen(text), &made);
    if (!id)
        fail(database, "not enough memory");
    if (made)
        database_row(database, SCHEMA_StringIds, "it", id, text);
    return id;
}

int64_t database_row(struct database *database, enum schema_table table, const char *format, ...) {
    sqlite3_stmt *insert = database->insert[table];
    va_list args;
    if (database->failed)
        return 0;
    va_start(args, format);
    for (int i = 1; *format; i++, format++) {
        const char *text;
        int64_t id;
        switch (*format) {
        case 'i':
            sqlite3_bind_int64(insert, i, va_arg(args, int64_t));
            break;
        case 'n':
            id = va_arg(args, int64_t);
            if (id == DATABASE_NULL)
                sqlite3_bind_null(insert, i);
            else
                sqlite3_bind_int64(insert, i, id);
            break;
        case 't':
            sqlite3_bind_text(insert, i, va_arg(args, const char *), -1, SQLITE_TRANSIENT);
            break;
        case 's':
        case 'S':
            text = va_arg(args, const char *);
            id = (text && *text) || *format == 'S' ? database_string(database, text) : 0;
            if (id)
                sqlite3_bind_int64(insert, i, id);
            else
                sqlite3_bind_null(insert, i);
            break;
        default:
            sqlite3_bind_null(insert, i);
        }
    }
    va_end(args);
    int result = sqlite3_step(insert);
    if (result != SQLITE_DONE)
        check(database, result);
    sqlite3_reset(insert);
    return sqlite3_last_insert_rowid(database->sqlite);
}

bool database_close(struct database *database, uint64_t *size, char *error, size_t bytes) {
    struct stat is;
    database_run(database, "COMMIT");
    for (unsigned i = 0; i < SCHEMA_N; i++)
        sqlite3_finalize(database->insert[i]);
    int result = sqlite3_close(database->sqlite);
    if (result != SQLITE_OK)
        fail(database, sqlite3_errstr(result));
    intern_free(&database->texts);
    if (database->failed) {
        beside_remove(&database->beside);
    } else {
        int named = beside_name(&database->beside);
        if (named)
            fail(database, beside_why(named));
    }
    bool done = !database->failed;
    *size = done && stat(database->beside.path, &is) == 0 ? (uint64_t)is.st_size : 0;
    if (!done)
        snprintf(error, bytes, "%s", database->why);
    free(database);
    return done;
}
