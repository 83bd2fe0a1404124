/*
 * Sorts and prints tables. Reports and verbs call it, on one thread. It never prints a text but by
 * clean.h.
 */
#include "tools/trace/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/config.h"
#include "tools/trace/clean.h"
#include "tools/trace/json.h"

enum { COLUMNS_MAX = 32, HUMAN = 32 };

const char *const table_formats[] = {"table", "csv", "json", "md", NULL};

struct table_note {
    const char *key, *text; /* text NULL: a number */
    int64_t number;
};

struct table_text {
    struct table_text *next;
    char text[];
};

void table_init(struct table *table, const char *name, const struct table_column *columns,
                unsigned n_columns, const char *sort) {
    table->name = name;
    table->columns = columns;
    table->n_columns = n_columns;
    table->sort = sort;
}

void table_free(struct table *table) {
    while (table->texts) {
        struct table_text *next = table->texts->next;
        free(table->texts);
        table->texts = next;
    }
    free(table->values);
    free(table->notes);
}

union table_value *table_row(struct table *table) {
    if (table->n_rows == table->room) {
        size_t room = table->room ? 2 * table->room : 64;
        void *values = realloc(table->values, room * table->n_columns * sizeof *table->values);
        if (!values) {
            table->failed = true;
            return NULL;
        }
        table->values = values;
        table->room = room;
    }
    union table_value *row = table->values + table->n_rows++ * table->n_columns;
    memset(row, 0, table->n_columns * sizeof *row);
    return row;
}

const char *table_keep(struct table *table, const char *text) {
    size_t bytes = strlen(text) + 1;
    struct table_text *kept = malloc(sizeof *kept + bytes);
    if (!kept) {
        table->failed = true;
        return "";
    }
    memcpy(kept->text, text, bytes);
    kept->next = table->texts;
    table->texts = kept;
    return kept->text;
}

static void add_note(struct table *table, const char *key, const char *text, int64_t number) {
    void *notes = realloc(table->notes, (table->n_notes + 1) * sizeof *table->notes);
    if (!notes) {
        table->failed = true;
        return;
    }
    table->notes = notes;
    table->notes[table->n_notes++] =
        (struct table_note){key, text ? table_keep(table, text) : NULL, number};
}

void table_note(struct table *table, const char *key, const char *text) {
    add_note(table, key, text, 0);
}

void table_note_number(struct table *table, const char *key, int64_t number) {
    add_note(table, key, NULL, number);
}

/* ---- which columns ---- */

/* The column of that key, of `bytes` bytes; -1: there is none, and *nearest is the nearest. */
static int column_of(const struct table *table, const char *key, size_t bytes,
                     const char **nearest) {
    const char *keys[COLUMNS_MAX + 1] = {NULL};
    char word[64];
    for (unsigned i = 0; i < table->n_columns; i++) {
        keys[i] = table->columns[i].key;
        if (strlen(keys[i]) == bytes && memcmp(keys[i], key, bytes) == 0)
            return (int)i;
    }
    snprintf(word, sizeof word, "%.*s", (int)(bytes < 60 ? bytes : 60), key);
    *nearest = cus_nearest(word, keys);
    return -1;
}

/* Fills `columns`; returns how many, or 0 with a sentence in `error`. */
static unsigned choose(const struct table *table, const struct table_view *view, unsigned *columns,
                       char *error, size_t error_bytes) {
    unsigned n = 0;
    const char *nearest = "", *fields = view->fields;
    bool people = view->format == TABLE_TEXTUAL || view->format == TABLE_MD;
    if (!fields) {
        for (unsigned i = 0; i < table->n_columns; i++)
            if (!people || !(table->idle >> i & 1))
                columns[n++] = i;
        return n;
    }
    for (const char *at = fields;; at++) {
        size_t bytes = strcspn(at, ",");
        int column = column_of(table, at, bytes, &nearest);
        if (column < 0 || n == COLUMNS_MAX) {
            snprintf(error, error_bytes,
                     column < 0 ? "--fields: %s has no field '%.*s'; the nearest is '%s'"
                                : "--fields: %s: there are too many, from '%.*s' on",
                     table->name, (int)bytes, at, nearest);
            return 0;
        }
        columns[n++] = (unsigned)column;
        at += bytes;
        if (!*at)
            return n;
    }
}

static int sort_column(const struct table *table, const char *sort, bool *reversed, char *error,
                       size_t bytes) {
    const char *key = sort ? sort : table->sort, *nearest = "";
    *reversed = *key == '-';
    key += *reversed;
    int column = column_of(table, key, strlen(key), &nearest);
    if (column < 0)
        snprintf(error, bytes, "--sort: %s has no field '%s'; the nearest is '%s'", table->name,
                 key, nearest);
    return column;
}

bool table_check(const struct table *table, const struct table_view *view, char *error,
                 size_t bytes) {
    unsigned columns[COLUMNS_MAX];
    bool reversed;
    return choose(table, view, columns, error, bytes) &&
           sort_column(table, view->sort, &reversed, error, bytes) >= 0;
}

/* ---- the order ---- */

static bool is_real(enum table_unit unit) {
    return unit == TABLE_PERCENT || unit == TABLE_REAL;
}

union table_value table_unknown(enum table_unit unit) {
    if (is_real(unit))
        return (union table_value){.real = NAN};
    return (union table_value){.number = INT64_MIN};
}

bool table_is_unknown(enum table_unit unit, union table_value value) {
    if (unit == TABLE_TEXT)
        return false;
    return is_real(unit) ? isnan(value.real) : value.number == INT64_MIN;
}

struct order {
    unsigned column, n_columns;
    enum table_unit unit;
    bool reversed;
    const union table_value *values;
};

/* Texts from A on, numbers from the largest on; rows that are equal as they were. */
static int by_column(const void *a, const void *b, void *context) {
    const struct order *order = context;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    union table_value x = order->values[i * order->n_columns + order->column];
    union table_value y = order->values[j * order->n_columns + order->column];
    int result;
    if (is_real(order->unit)) {
        x.real = isnan(x.real) ? -INFINITY : x.real;
        y.real = isnan(y.real) ? -INFINITY : y.real;
    }
    if (order->unit == TABLE_TEXT)
        result = strcmp(x.text ? x.text : "", y.text ? y.text : "");
    else if (is_real(order->unit))
        result = (x.real < y.real) - (x.real > y.real);
    else
        result = (x.number < y.number) - (x.number > y.number);
    if (order->reversed)
        result = -result;
    return result ? result : (i > j) - (i < j);
}

/* ---- printing ---- */

void table_human(enum table_unit unit, union table_value value, char *out, size_t bytes) {
    static const char *const times[] = {"ns", "us", "ms", "s"};
    static const char *const sizes[] = {"B", "KiB", "MiB", "GiB"};
    double real = is_real(unit) ? value.real : (double)value.number;
    double base = unit == TABLE_NS ? 1000 : 1024, size = real < 0 ? -real : real;
    unsigned step = 0;
    if (table_is_unknown(unit, value)) {
        snprintf(out, bytes, "-");
    } else if (unit == TABLE_PLACE && !value.number) {
        *out = 0;
    } else if (unit == TABLE_COUNT || unit == TABLE_PLACE) {
        snprintf(out, bytes, "%" PRId64, value.number);
    } else if (unit == TABLE_PERCENT) {
        snprintf(out, bytes, "%.1f %%", real);
    } else if (unit == TABLE_REAL) {
        snprintf(out, bytes, "%.2f", real);
    } else {
        while (step < 3 && size >= base)
            size /= base, real /= base, step++;
        const char *name = unit == TABLE_NS ? times[step] : sizes[step];
        snprintf(out, bytes, step ? "%.2f %s" : "%.0f %s", real, name);
    }
}

struct printing {
    const struct table *table;
    FILE *to;
    const unsigned *columns;
    unsigned n;
    const size_t *rows;
    size_t n_rows;
};

static union table_value value_of(const struct printing *p, size_t row, unsigned i) {
    return p->table->values[p->rows[row] * p->table->n_columns + p->columns[i]];
}

static const struct table_column *column(const struct printing *p, unsigned i) {
    return &p->table->columns[p->columns[i]];
}

static void cell(const struct printing *p, size_t row, unsigned i, char human[HUMAN],
                 const char **text) {
    union table_value value = value_of(p, row, i);
    *text = human;
    if (column(p, i)->unit == TABLE_TEXT)
        *text = value.text ? value.text : "";
    else
        table_human(column(p, i)->unit, value, human, HUMAN);
}

static void print_notes(const struct printing *p, bool md) {
    for (unsigned i = 0; i < p->table->n_notes; i++) {
        const struct table_note *note = &p->table->notes[i];
        fprintf(p->to, "%c %s: ", md ? '-' : '#', note->key);
        if (note->text)
            (md ? clean_md : clean_text)(p->to, note->text);
        else
            fprintf(p->to, "%" PRId64, note->number);
        putc('\n', p->to);
    }
}

static void print_table(const struct printing *p) {
    size_t width[COLUMNS_MAX];
    char human[HUMAN];
    const char *text;
    print_notes(p, false);
    for (unsigned i = 0; i < p->n; i++) {
        width[i] = strlen(column(p, i)->key);
        for (size_t row = 0; row < p->n_rows; row++) {
            cell(p, row, i, human, &text);
            size_t columns = clean_columns(text);
            width[i] = columns > width[i] ? columns : width[i];
        }
    }
    for (size_t row = 0; row <= p->n_rows; row++) { /* row 0: the keys */
        for (unsigned i = 0; i < p->n; i++) {
            bool left = column(p, i)->unit == TABLE_TEXT, last = i + 1 == p->n;
            if (row)
                cell(p, row - 1, i, human, &text);
            else
                text = column(p, i)->key;
            fputs(i ? "  " : "", p->to);
            if (!left)
                fprintf(p->to, "%*s", (int)width[i], text);
            else if (last)
                clean_text(p->to, text);
            else
                clean_cell(p->to, text, width[i]);
        }
        putc('\n', p->to);
    }
}

static void print_md(const struct printing *p) {
    char human[HUMAN];
    const char *text;
    if (p->table->notes_in_md && p->table->n_notes) {
        print_notes(p, true);
        putc('\n', p->to);
    }
    for (unsigned i = 0; i < p->n; i++)
        fprintf(p->to, "%s%s", i ? " | " : "| ", column(p, i)->key);
    fputs(" |\n", p->to);
    for (unsigned i = 0; i < p->n; i++)
        fprintf(p->to, "%s%s", i ? " | " : "| ", column(p, i)->unit == TABLE_TEXT ? "---" : "---:");
    fputs(" |\n", p->to);
    for (size_t row = 0; row < p->n_rows; row++) {
        for (unsigned i = 0; i < p->n; i++) {
            cell(p, row, i, human, &text);
            fputs(i ? " | " : "| ", p->to);
            if (column(p, i)->unit == TABLE_TEXT)
                clean_md(p->to, text);
            else
                fputs(text, p->to);
        }
        fputs(" |\n", p->to);
    }
}

static void print_csv(const struct printing *p) {
    for (unsigned i = 0; i < p->n; i++)
        fprintf(p->to, "%s%s", i ? "," : "", column(p, i)->key);
    putc('\n', p->to);
    for (size_t row = 0; row < p->n_rows; row++) {
        for (unsigned i = 0; i < p->n; i++) {
            union table_value value = value_of(p, row, i);
            if (i)
                putc(',', p->to);
            if (column(p, i)->unit == TABLE_TEXT)
                clean_csv(p->to, value.text ? value.text : "");
            else if (table_is_unknown(column(p, i)->unit, value))
                continue;
            else if (is_real(column(p, i)->unit))
                fprintf(p->to, "%.6g", value.real);
            else if (column(p, i)->unit != TABLE_PLACE || value.number)
                fprintf(p->to, "%" PRId64, value.number);
        }
        putc('\n', p->to);
    }
}

static void print_json_rows(const struct printing *p, const char *name, struct cus_json *json) {
    cus_json_open(json, name, '[');
    for (size_t row = 0; row < p->n_rows; row++) {
        if (row)
            putc(',', p->to);
        json->follows = false;
        fputs("\n  ", p->to);
        cus_json_open(json, NULL, '{');
        for (unsigned i = 0; i < p->n; i++) {
            union table_value value = value_of(p, row, i);
            const char *key = column(p, i)->key;
            if (column(p, i)->unit == TABLE_TEXT)
                cus_json_text(json, key, value.text ? value.text : "");
            else if (table_is_unknown(column(p, i)->unit, value) ||
                     (column(p, i)->unit == TABLE_PLACE && !value.number))
                cus_json_raw(json, key, "null");
            else if (is_real(column(p, i)->unit))
                json_real(json, key, value.real);
            else
                cus_json_integer(json, key, value.number);
        }
        cus_json_close(json, '}');
    }
    cus_json_close(json, ']');
}

static void print_json(const struct printing *p, const struct printing *also) {
    struct cus_json json = json_to(p->to, CUS_JSON_SPACED);
    cus_json_open(&json, NULL, '{');
    cus_json_text(&json, "report", p->table->name);
    cus_json_open(&json, "about", '{');
    for (unsigned i = 0; i < p->table->n_notes; i++) {
        const struct table_note *note = &p->table->notes[i];
        if (note->text)
            cus_json_text(&json, note->key, note->text);
        else
            cus_json_integer(&json, note->key, note->number);
    }
    cus_json_close(&json, '}');
    print_json_rows(p, "rows", &json);
    if (also)
        print_json_rows(also, p->table->also->name, &json);
    cus_json_close(&json, '}');
    cus_json_end(&json);
}

/* `rows`: as many numbers as the table has rows. */
static void arrange(struct printing *p, const struct table *table, const struct table_view *view,
                    FILE *to, unsigned *columns, size_t *rows) {
    char error[1];
    struct order order = {.n_columns = table->n_columns, .values = table->values};
    for (size_t i = 0; i < table->n_rows; i++)
        rows[i] = i;
    order.column = (unsigned)sort_column(table, view->sort, &order.reversed, error, sizeof error);
    order.unit = table->columns[order.column].unit;
    qsort_r(rows, table->n_rows, sizeof *rows, by_column, &order);
    *p = (struct printing){.table = table, .to = to, .columns = columns, .rows = rows};
    p->n = choose(table, view, columns, error, sizeof error);
    p->n_rows = view->top && view->top < table->n_rows ? (size_t)view->top : table->n_rows;
}

void table_print(struct table *table, const struct table_view *view, FILE *to) {
    unsigned columns[COLUMNS_MAX], also_columns[COLUMNS_MAX];
    const struct table *second = table->also && table->also->n_rows ? table->also : NULL;
    struct table_view all = {.format = view->format};
    struct printing p, also;
    size_t *rows = malloc((table->n_rows + 1) * sizeof *rows);
    size_t *also_rows = second ? malloc(second->n_rows * sizeof *also_rows) : NULL;
    if (!rows || (second && !also_rows)) {
        table->failed = true;
        free(rows);
        return;
    }
    arrange(&p, table, view, to, columns, rows);
    if (second)
        arrange(&also, second, &all, to, also_columns, also_rows);
    switch (view->format) {
    case TABLE_JSON:
        print_json(&p, second ? &also : NULL);
        break;
    case TABLE_CSV:
        print_csv(&p);
        break;
    case TABLE_MD:
    case TABLE_TEXTUAL:
        for (const struct printing *one = &p; one; one = one == &p && second ? &also : NULL) {
            if (one == &also)
                putc('\n', to);
            (view->format == TABLE_MD ? print_md : print_table)(one);
        }
    }
    free(rows);
    free(also_rows);
}
