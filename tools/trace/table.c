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

/* TEXT_WANTED: columns go until texts have so much. TEXT_LEAST: they are not shortened to less. */
enum { COLUMNS_MAX = 32, HUMAN = 32, HINT = 400, UNITS = 4, TEXT_WANTED = 28, TEXT_LEAST = 8 };

static const char *const times[UNITS] = {"ns", "us", "ms", "s"};
static const char *const sizes[UNITS] = {"B", "KiB", "MiB", "GiB"};

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

static bool is_timed(const struct table_column *column) {
    size_t bytes = strlen(column->key);
    return column->unit == TABLE_NS && bytes > 3 && strcmp(column->key + bytes - 3, "_ns") == 0;
}

/* Is it the column's key, as it is or with a unit that its head may have? */
static bool names_column(const struct table_column *column, const char *key, size_t bytes) {
    size_t stem = strlen(column->key) - (is_timed(column) ? 3 : 0);
    if (strlen(column->key) == bytes && memcmp(column->key, key, bytes) == 0)
        return true;
    if (bytes < stem + 2 || memcmp(column->key, key, stem) != 0 || key[stem] != '_')
        return false;
    const char *const *units = column->unit == TABLE_NS && is_timed(column) ? times
                               : column->unit == TABLE_BYTES                ? sizes
                                                                            : NULL;
    for (unsigned i = 0; units && i < UNITS; i++)
        if (strlen(units[i]) == bytes - stem - 1 &&
            memcmp(units[i], key + stem + 1, bytes - stem - 1) == 0)
            return true;
    return false;
}

/* The column of that key, of `bytes` bytes; -1: there is none, and `hint` says which may be meant.
 */
static int column_of(const struct table *table, const char *key, size_t bytes, char hint[HINT]) {
    const char *keys[COLUMNS_MAX + 1] = {NULL};
    char word[64];
    for (unsigned i = 0; i < table->n_columns; i++) {
        keys[i] = table->columns[i].key;
        if (names_column(&table->columns[i], key, bytes))
            return (int)i;
    }
    snprintf(word, sizeof word, "%.*s", (int)(bytes < 60 ? bytes : 60), key);
    const char *near = cus_near(word, keys);
    if (near) {
        snprintf(hint, HINT, "; the nearest is '%s'", near);
        return -1;
    }
    size_t used = (size_t)snprintf(hint, HINT, "; its fields are %s", keys[0]);
    for (unsigned i = 1; i < table->n_columns && used < HINT; i++)
        used += (size_t)snprintf(hint + used, HINT - used, ", %s", keys[i]);
    return -1;
}

/* Fills `columns`; returns how many, or 0 with a sentence in `error`. */
static unsigned choose(const struct table *table, const struct table_view *view, unsigned *columns,
                       char *error, size_t error_bytes) {
    unsigned n = 0;
    char hint[HINT] = "";
    const char *fields = view->fields;
    bool people = view->format == TABLE_TEXTUAL || view->format == TABLE_MD;
    if (!fields) {
        for (unsigned i = 0; i < table->n_columns; i++)
            if (!people || !(table->idle >> i & 1))
                columns[n++] = i;
        return n;
    }
    for (const char *at = fields;; at++) {
        size_t bytes = strcspn(at, ",");
        int column = column_of(table, at, bytes, hint);
        if (column < 0 || n == COLUMNS_MAX) {
            snprintf(error, error_bytes,
                     column < 0 ? "--fields: %s has no field '%.*s'%s"
                                : "--fields: %s: there are too many, from '%.*s' on%s",
                     table->name, (int)bytes, at, hint);
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
    const char *key = sort ? sort : table->sort;
    char hint[HINT] = "";
    *reversed = *key == '-';
    key += *reversed;
    int column = column_of(table, key, strlen(key), hint);
    if (column < 0)
        snprintf(error, bytes, "--sort: %s has no field '%s'%s", table->name, key, hint);
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
    unsigned *columns;
    unsigned steps[COLUMNS_MAX]; /* the unit of each column, by its place in `times` or `sizes` */
    unsigned n;
    const size_t *rows;
    size_t n_rows, width;
    bool all; /* columns were named, and none goes */
};

static union table_value value_of(const struct printing *p, size_t row, unsigned i) {
    return p->table->values[p->rows[row] * p->table->n_columns + p->columns[i]];
}

static const struct table_column *column(const struct printing *p, unsigned i) {
    return &p->table->columns[p->columns[i]];
}

static bool has_unit(const struct table_column *column) {
    return is_timed(column) || column->unit == TABLE_BYTES;
}

/* In which unit the largest value of each column has five digits at most. */
static void choose_units(struct printing *p) {
    for (unsigned i = 0; i < p->n; i++) {
        double most = 0, base = column(p, i)->unit == TABLE_NS ? 1000 : 1024;
        p->steps[i] = 0;
        for (size_t row = 0; has_unit(column(p, i)) && row < p->n_rows; row++) {
            union table_value known = value_of(p, row, i);
            double value = table_is_unknown(column(p, i)->unit, known) ? 0 : (double)known.number;
            value = value < 0 ? -value : value;
            most = value > most ? value : most;
        }
        for (; p->steps[i] + 1 < UNITS && most >= 99999.5; most /= base)
            p->steps[i]++;
    }
}

static void in_unit(int64_t number, double base, unsigned step, char out[HUMAN]) {
    double real = (double)number;
    for (unsigned i = 0; i < step; i++)
        real /= base;
    if (step)
        snprintf(out, HUMAN, "%.1f", real);
    else
        snprintf(out, HUMAN, "%" PRId64, number);
}

static void head(const struct printing *p, unsigned i, char out[2 * HUMAN]) {
    const struct table_column *it = column(p, i);
    size_t bytes = strlen(it->key);
    if (!has_unit(it))
        snprintf(out, 2 * HUMAN, "%s", it->key);
    else if (is_timed(it))
        snprintf(out, 2 * HUMAN, "%.*s_%s", (int)(bytes - 3), it->key, times[p->steps[i]]);
    else
        snprintf(out, 2 * HUMAN, p->steps[i] ? "%s_%s" : "%s", it->key, sizes[p->steps[i]]);
}

static void cell(const struct printing *p, size_t row, unsigned i, char human[HUMAN],
                 const char **text) {
    union table_value value = value_of(p, row, i);
    *text = human;
    if (column(p, i)->unit == TABLE_TEXT)
        *text = value.text ? value.text : "";
    else if (has_unit(column(p, i)) && !table_is_unknown(column(p, i)->unit, value))
        in_unit(value.number, column(p, i)->unit == TABLE_NS ? 1000 : 1024, p->steps[i], human);
    else
        table_human(column(p, i)->unit, value, human, HUMAN);
}

static void print_notes(const struct printing *p, bool md) {
    for (unsigned i = 0; i < p->table->n_notes; i++) {
        const struct table_note *note = &p->table->notes[i];
        char number[HUMAN];
        snprintf(number, sizeof number, "%" PRId64, note->number);
        const char *text = note->text ? note->text : number;
        if (!md) {
            clean_comment(p->to, p->width, "%s: %s", note->key, text);
            continue;
        }
        fprintf(p->to, "- %s: ", note->key);
        clean_md(p->to, text);
        putc('\n', p->to);
    }
}

static void measure(const struct printing *p, size_t *width) {
    char human[HUMAN], key[2 * HUMAN];
    const char *text;
    for (unsigned i = 0; i < p->n; i++) {
        head(p, i, key);
        width[i] = strlen(key);
        for (size_t row = 0; row < p->n_rows; row++) {
            cell(p, row, i, human, &text);
            size_t columns = clean_columns(text);
            width[i] = columns > width[i] ? columns : width[i];
        }
    }
}

/* How many columns a line has too many. `least`: a text needs no more than TEXT_WANTED. */
static size_t excess(const struct printing *p, const size_t *width, bool least) {
    size_t sum = 2 * (p->n - 1);
    for (unsigned i = 0; i < p->n; i++)
        sum += least && column(p, i)->unit == TABLE_TEXT && width[i] > TEXT_WANTED ? TEXT_WANTED
                                                                                   : width[i];
    return sum > p->width ? sum - p->width : 0;
}

static void drop(struct printing *p, size_t *width, unsigned i) {
    p->n--;
    memmove(p->columns + i, p->columns + i + 1, (p->n - i) * sizeof *p->columns);
    memmove(p->steps + i, p->steps + i + 1, (p->n - i) * sizeof *p->steps);
    memmove(width + i, width + i + 1, (p->n - i) * sizeof *width);
}

/* Spare columns go until texts of TEXT_WANTED fit, and are named. Then the longest texts are
 * shortened. */
static void fit(struct printing *p, size_t *width) {
    size_t over;
    char left[HINT] = "";
    for (const char *spare = p->all ? NULL : p->table->spare; spare && *spare;) {
        size_t bytes = strcspn(spare, ",");
        for (unsigned i = 0; i < p->n && excess(p, width, true); i++)
            if (strncmp(column(p, i)->key, spare, bytes) == 0 && !column(p, i)->key[bytes]) {
                size_t used = strlen(left);
                snprintf(left + used, sizeof left - used, "%s%.*s", used ? ", " : "", (int)bytes,
                         spare);
                drop(p, width, i);
            }
        spare += bytes + (spare[bytes] == ',');
    }
    if (*left)
        clean_comment(p->to, p->width, "left out here (--wide has all): %s", left);
    while ((over = excess(p, width, false))) {
        unsigned longest = p->n;
        for (unsigned i = 0; i < p->n; i++)
            if (column(p, i)->unit == TABLE_TEXT && width[i] > TEXT_LEAST &&
                (longest == p->n || width[i] > width[longest]))
                longest = i;
        if (longest == p->n)
            return;
        size_t room = width[longest] - TEXT_LEAST;
        width[longest] -= over < room ? over : room;
    }
}

static void print_table(struct printing *p) {
    size_t width[COLUMNS_MAX];
    char human[HUMAN], key[2 * HUMAN];
    const char *text;
    print_notes(p, false);
    measure(p, width);
    if (p->width)
        fit(p, width);
    for (size_t row = 0; row <= p->n_rows; row++) { /* row 0: the keys */
        for (unsigned i = 0; i < p->n; i++) {
            if (row)
                cell(p, row - 1, i, human, &text);
            else
                head(p, i, key), text = key;
            fputs(i ? "  " : "", p->to);
            if (column(p, i)->unit != TABLE_TEXT)
                fprintf(p->to, "%*s", (int)width[i], text);
            else if (i + 1 < p->n || clean_columns(text) > width[i])
                clean_cell(p->to, text, width[i]);
            else
                clean_text(p->to, text);
        }
        putc('\n', p->to);
    }
}

static void print_md(struct printing *p) {
    char human[HUMAN], key[2 * HUMAN];
    const char *text;
    if (p->table->notes_in_md && p->table->n_notes) {
        print_notes(p, true);
        putc('\n', p->to);
    }
    for (unsigned i = 0; i < p->n; i++) {
        head(p, i, key);
        fprintf(p->to, "%s%s", i ? " | " : "| ", key);
    }
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
    p->width = view->width;
    p->all = view->fields != NULL;
    choose_units(p);
}

void table_print(struct table *table, const struct table_view *view, FILE *to) {
    unsigned columns[COLUMNS_MAX], also_columns[COLUMNS_MAX];
    const struct table *second = table->also && table->also->n_rows ? table->also : NULL;
    struct table_view all = {.format = view->format, .width = view->width};
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
        for (struct printing *one = &p; one; one = one == &p && second ? &also : NULL) {
            if (one == &also)
                putc('\n', to);
            (view->format == TABLE_MD ? print_md : print_table)(one);
        }
    }
    free(rows);
    free(also_rows);
}
