/*
 * A table of numbers and texts, sorted by a column and printed as text, CSV, JSON or Markdown.
 * Reports and verbs call it, on one thread. It knows nothing of traces.
 */
#ifndef CUSPLICE_TOOLS_TRACE_TABLE_H
#define CUSPLICE_TOOLS_TRACE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum table_unit {
    TABLE_COUNT,
    TABLE_PERCENT, /* 0 to 100, in `real` */
    TABLE_NS,
    TABLE_BYTES,
    TABLE_TEXT,
    TABLE_REAL,  /* a count with a fraction, in `real` */
    TABLE_PLACE, /* a number from 1 on; 0: there is none, and the cell is empty, `null` in JSON */
};

struct table_column {
    const char *key;
    enum table_unit unit;
};

union table_value {
    int64_t number;
    double real;
    const char *text; /* lives as long as the table; NULL: "" */
};

/* A number that is not known: `-` in a table, empty in CSV, `null` in JSON. It sorts as the
 * smallest. */
union table_value table_unknown(enum table_unit unit);
bool table_is_unknown(enum table_unit unit, union table_value value);

struct table {
    const char *name;
    const struct table_column *columns;
    unsigned n_columns;
    const char *sort; /* unless another is asked for; with '-' in front the other way round */
    union table_value *values;
    size_t n_rows, room;
    bool failed;   /* memory did not suffice */
    uint32_t idle; /* a bit for each column that says nothing here: people see it where they name
                      it, programs always */
    const char *spare; /* keys with commas between, for people: columns that go, in this order,
                          where the width does not suffice; NULL: none */
    struct table_note *notes;
    unsigned n_notes;
    bool notes_in_md;         /* as a list above it */
    const struct table *also; /* printed below as it is; in JSON its rows are an array of its name;
                                 not in CSV */
    struct table_text *texts;
};

/* Zeroed but for its name. */
void table_init(struct table *table, const char *name, const struct table_column *columns,
                unsigned n_columns, const char *sort);
void table_free(struct table *table);

/* A new row, zeroed: n_columns values. NULL where memory does not suffice. */
union table_value *table_row(struct table *table);
/* A copy that lives as long as the table. */
const char *table_keep(struct table *table, const char *text);
/* What the rows are made from: a `#` line, a member of "about" in JSON. */
void table_note(struct table *table, const char *key, const char *text);
void table_note_number(struct table *table, const char *key, int64_t number);

enum table_format { TABLE_TEXTUAL, TABLE_CSV, TABLE_JSON, TABLE_MD };
extern const char *const table_formats[]; /* "table", ..., in that order, then NULL */

struct table_view {
    enum table_format format;
    const char *sort;   /* a column's key; NULL: the table's own */
    const char *fields; /* keys with commas between; NULL: all */
    unsigned top;       /* rows at most; 0: all */
    unsigned width;     /* columns that a line of a table has; 0: no bound. Where `fields` are named
                           all of them stay, and only texts are shortened */
};

/* False where a field does not exist, with a sentence in `error`. */
bool table_check(const struct table *table, const struct table_view *view, char *error,
                 size_t bytes);
/* Sorts and prints. table_check must have been content. */
void table_print(struct table *table, const struct table_view *view, FILE *to);

/* Times and sizes have one unit in a column, for people: that in which the largest value has five
 * digits at most, in the column's head (`host_us` for host_ns, `bytes_KiB`). A field may be named
 * so as well, or without a unit. */

/* By itself: `2.50 us`, `4.0 KiB`, `33.3 %`, `17`. */
void table_human(enum table_unit unit, union table_value value, char *out, size_t bytes);

#endif
