/*
 * Writes the tables and the plot of `cusplice bench`. verb_bench.c calls it when all is measured.
 * A file gets its name when it is whole; it never replaces the trace.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/version.h"
#include "tools/bench/plot.h"
#include "tools/cli/bench.h"
#include "tools/cli/verb.h"
#include "tools/cli/width.h"
#include "tools/trace/beside.h"
#include "tools/whatif/facts.h"

enum { TEXT = 4096, NAME = 400 };

/* ---- texts ---- */

struct texts {
    char program[TEXT], driver[96], date[32];
};

/* Arguments with blanks between. */
static void add_argument(void *context, const char *name, const char *value) {
    char *program = context;
    size_t used = strlen(program);
    const char *slash = used ? NULL : strrchr(value, '/');
    (void)name;
    snprintf(program + used, TEXT - used, "%s%s", used ? " " : "", slash ? slash + 1 : value);
}

/* That of the kernel, such as 580.159.04; "" where it cannot be told. */
static void kernel_driver(char *out, size_t bytes) {
    char line[256] = "", *rest = line, *word;
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    *out = 0;
    if (file && fgets(line, sizeof line, file))
        while (!*out && (word = strsep(&rest, " \t\n")))
            if (strspn(word, "0123456789") >= 3 && strchr(word, '.') &&
                !word[strspn(word, "0123456789.")])
                snprintf(out, bytes, "%s", word);
    if (file)
        fclose(file);
}

static void make_texts(const struct bench_found *found, struct texts *texts) {
    char version[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    *texts->program = 0;
    whatif_facts_read(found->trace->facts, "argv", add_argument, texts->program);
    if (!*texts->program)
        snprintf(texts->program, sizeof texts->program, "(not known)");
    if (strncmp(found->facts->gpu, "NVIDIA", 6) == 0) /* no simulator */
        kernel_driver(version, sizeof version);
    snprintf(texts->driver, sizeof texts->driver, "%s%sCUDA %u.%u", version, *version ? ", " : "",
             found->facts->driver / 1000, found->facts->driver % 1000 / 10);
    strftime(texts->date, sizeof texts->date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &tm));
}

/* ---- tables ---- */

static const struct table_column columns[] = {
    {"cell", TABLE_COUNT},         {"strategy", TABLE_TEXT},
    {"segment_max", TABLE_COUNT},  {"breaks", TABLE_TEXT},
    {"step_ns", TABLE_NS},         {"noise_ns", TABLE_NS},
    {"p10_ns", TABLE_NS},          {"p90_ns", TABLE_NS},
    {"of_eager", TABLE_PERCENT},   {"eager_ns", TABLE_NS},
    {"in_graphs", TABLE_PERCENT},  {"folded", TABLE_REAL},
    {"graphs", TABLE_REAL},        {"wrong_sums", TABLE_COUNT},
    {"passes", TABLE_COUNT},       {"first_ten_of_eager", TABLE_PERCENT},
    {"gain_at_step", TABLE_PLACE},
};
enum { COLUMNS = sizeof columns / sizeof *columns };
/* Of no interest to people: cell, quantiles, passes. */
enum { IDLE = 1 << 0 | 1 << 6 | 1 << 7 | 1 << 14 };

static const struct table_column break_columns[] = {
    {"breaks", TABLE_TEXT}, {"kernel", TABLE_TEXT},   {"name", TABLE_TEXT},
    {"calls", TABLE_COUNT}, {"share", TABLE_PERCENT},
};
enum { BREAK_COLUMNS = sizeof break_columns / sizeof *break_columns, BREAK_IDLE = 1 << 2 };

static void fill_breaks(const struct bench_found *found, struct table *table) {
    const struct bench_lists *lists = found->lists;
    /* Sorted by list; the kernels of one stay in the order in which they were chosen. */
    table_init(table, "breaks", break_columns, BREAK_COLUMNS, "breaks");
    table->idle = BREAK_IDLE;
    for (unsigned i = 0; i < lists->n; i++)
        for (uint32_t k = 0; k < lists->lists[i].n; k++) {
            const struct bench_break *one = &lists->lists[i].kernels[k];
            union table_value *row = table_row(table);
            if (!row)
                return;
            row[0].text = lists->lists[i].label;
            row[1].text = one->base;
            row[2].text = one->name;
            row[3].number = (int64_t)one->calls;
            row[4].real = one->launches ? 100 * (double)one->calls / (double)lists->launches : 0;
        }
}

static void fill_facts(const struct bench_found *found, const struct texts *texts,
                       struct table *table) {
    const struct replay_facts *facts = found->facts;
    table_note(table, "program", texts->program);
    table_note(table, "gpu", facts->gpu);
    table_note(table, "driver", texts->driver);
    table_note(table, "cusplice", CUSPLICE_VERSION);
    table_note(table, "date", texts->date);
    table_note(table, "command", found->command);
    table_note(table, "trace", found->from);
    table_note_number(table, "steps", (int64_t)facts->steps);
    table_note_number(table, "calls", (int64_t)facts->ops);
    table_note_number(table, "kernels", (int64_t)facts->launches);
    table_note_number(table, "memory_bytes", (int64_t)facts->memory_bytes);
    table_note_number(table, "sums", (int64_t)facts->checks);
    table_note(table, "pace", replay_paces[found->pace]);
    table_note_number(table, "rounds", found->rounds);
    table_note_number(table, "batches", found->grid->batches);
    if (found->first)
        table_note_number(table, "segment_first", found->first);
}

static void fill(const struct bench_found *found, const struct texts *texts, struct table *table) {
    table_init(table, "bench", columns, COLUMNS, "-cell");
    table->spare = "wrong_sums,gain_at_step,noise_ns,folded,graphs,first_ten_of_eager,eager_ns";
    table->idle = IDLE;
    table->notes_in_md = true;
    fill_facts(found, texts, table);
    for (unsigned i = 0; i < found->grid->n; i++) {
        const struct bench_cell *cell = &found->grid->cells[i];
        const struct replay_measured *one = &cell->measured;
        double steps = one->steps ? (double)one->steps : 1;
        union table_value *row = table_row(table);
        if (!row)
            return;
        row[0].number = i + 1;
        row[1].text = bench_strategies[cell->strategy];
        row[2].number = cell->segment;
        row[3].text = cell->breaks ? cell->breaks->label : "";
        row[4].number = (int64_t)(one->median + 0.5);
        row[5].number = (int64_t)(one->deviation + 0.5);
        row[6].number = (int64_t)(one->p10 + 0.5);
        row[7].number = (int64_t)(one->p90 + 0.5);
        row[8].real = cell->eager > 0 ? 100 * one->median / cell->eager : NAN;
        row[9].number = (int64_t)(cell->eager + 0.5);
        row[10].real = one->issued ? 100 * (double)one->in_graphs / (double)one->issued : 0;
        row[11].real = (double)one->in_graphs / steps;
        row[12].real = (double)one->graph_launches / steps;
        row[13].number = (int64_t)one->wrong;
        row[14].number = one->n;
        row[15].real = one->first_of_eager > 0 ? 100 * one->first_of_eager : NAN;
        row[16].number = one->reached;
    }
}

/* ---- the plot ---- */

struct picture {
    struct plot plot;
    struct plot_series *series;
    struct plot_point *points;
    char (*names)[NAME];
};

/* A cell is compared with the plain driver of its batch, and the line is that of all batches: drawn
 * is what `of_eager` says, of that line. */
static double scale_of(const struct bench_found *found, const struct bench_cell *cell) {
    return cell->eager > 0 ? found->grid->cells[0].measured.median / cell->eager : 1;
}

/* Cells of one strategy and break list stand together, by size. */
static void make_picture(const struct bench_found *found, struct picture *picture) {
    const struct bench_cell *before = NULL;
    for (unsigned i = 0; i < found->grid->n; i++) {
        const struct bench_cell *cell = &found->grid->cells[i];
        struct plot_series *series = &picture->series[picture->plot.n];
        if (!before || before->strategy != cell->strategy || before->breaks != cell->breaks) {
            char *name = picture->names[picture->plot.n++];
            snprintf(name, NAME, "%s%s%s%s", bench_strategies[cell->strategy],
                     cell->breaks ? ", breaks " : "", cell->breaks ? cell->breaks->label : "",
                     cell->strategy == BENCH_EAGER ? " (plain driver)" : "");
            *series = (struct plot_series){.name = name,
                                           .points = &picture->points[i],
                                           .level = !cell->segment,
                                           .baseline = cell->strategy == BENCH_EAGER};
        } else {
            series--;
        }
        series->n++;
        picture->points[i] = (struct plot_point){cell->segment, cell->measured.median,
                                                 cell->measured.deviation, scale_of(found, cell)};
        before = cell;
    }
    picture->plot.series = picture->series;
}

static bool draw(const struct bench_found *found, const struct texts *texts, FILE *to) {
    unsigned n = found->grid->n;
    char title[160], subtitle[400];
    struct picture picture = {.series = calloc(n, sizeof *picture.series),
                              .points = calloc(n, sizeof *picture.points),
                              .names = calloc(n, sizeof *picture.names)};
    bool good = picture.series && picture.points && picture.names;
    if (good) {
        make_picture(found, &picture);
        snprintf(title, sizeof title, "%.90s", texts->program);
        snprintf(subtitle, sizeof subtitle,
                 "%.80s, driver %s, cusplice %s, %.10s; medians of %u rounds beside the plain "
                 "driver, bars: median absolute deviation",
                 found->facts->gpu, texts->driver, CUSPLICE_VERSION, texts->date, found->rounds);
        picture.plot.title = title;
        picture.plot.subtitle = subtitle;
        plot_svg(&picture.plot, to);
    }
    free(picture.series);
    free(picture.points);
    free(picture.names);
    return good;
}

/* ---- files ---- */

bool cli_bench_writable(const char *option, const char *path, bool force, const char *of) {
    const char *const from[] = {of, NULL};
    struct beside beside;
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int error = *path ? beside_plan(&beside, path, force, from) : ENOENT;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1,
             slash ? path : ".");
    if (!error && access(folder, W_OK) != 0)
        error = errno;
    if (error)
        cli_say("%s %s: %s", option, path, beside_why(error));
    return !error;
}

struct output {
    const struct bench_found *found;
    const struct texts *texts;
    struct table *table; /* NULL: the plot */
    enum table_format format;
    unsigned width; /* of lines; 0: no bound */
};

static bool print(FILE *to, const void *context) {
    const struct output *output = context;
    struct table_view view = {.format = output->format, .width = output->width};
    if (!output->table)
        return draw(output->found, output->texts, to);
    table_print(output->table, &view, to);
    return !output->table->failed;
}

static bool write_file(const struct output *output, const char *path, bool force) {
    const char *const from[] = {output->found->trace->path, NULL};
    int error = beside_write(path, force, from, print, output);
    if (error)
        cli_say("%s: %s", path, beside_why(error));
    return !error;
}

static bool write_stdout(const struct output *output) {
    errno = 0;
    if (print(stdout, output) && fflush(stdout) == 0 && !ferror(stdout))
        return true;
    cli_say("the table could not be written: %s", strerror(errno ? errno : ENOMEM));
    return false;
}

bool cli_bench_show(const struct bench_found *found, const struct bench_output *outputs, unsigned n,
                    const char *svg, bool force) {
    static struct texts texts;
    struct table table = {0}, breaks = {0};
    make_texts(found, &texts);
    fill(found, &texts, &table);
    fill_breaks(found, &breaks);
    table.also = &breaks;
    bool good = !table.failed && !breaks.failed;
    if (!good)
        cli_say("not enough memory");
    for (unsigned i = 0; i < n && !(table.failed || breaks.failed); i++) {
        const struct output one = {found, &texts, &table, outputs[i].format,
                                   found->wide || outputs[i].path ? 0 : cli_width()};
        good &= outputs[i].path ? write_file(&one, outputs[i].path, force) : write_stdout(&one);
    }
    const struct output plot = {.found = found, .texts = &texts};
    if (svg)
        good &= write_file(&plot, svg, force);
    table_free(&table);
    table_free(&breaks);
    return good;
}
