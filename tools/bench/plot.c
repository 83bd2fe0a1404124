/*
 * Draws the plot of `cusplice bench`; bench_show.c calls it. Markers and dashes tell series apart
 * without colour, and the axis of times begins at 0. This plotter needs no Python, which a user
 * may lack. harness/bench/plot.py draws other units and logarithmic axes, which only the harness
 * needs; one plotter for both would be larger than the two.
 */
#include "tools/bench/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "tools/trace/clean.h"

enum {
    LEFT = 76,
    TOP = 66,
    PLOT_WIDTH = 520,
    PLOT_HEIGHT = 340,
    LEGEND = LEFT + PLOT_WIDTH + 24, /* where it begins */
    LEGEND_WIDTH = 300,
    LEGEND_ROW = 20,
    BOTTOM = 60,
    NAME = 42, /* characters of a series' name */
    TITLE = 100,
    TICKS = 6,
    SIZES = 64, /* that are told apart on the axis */
};

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#56b4e9", "#e69f00", "#000000"};
static const char *const dashes[] = {"none", "8 3", "2 3",         "8 3 2 3",
                                     "12 4", "4 2", "12 3 2 3 2 3"};
/* Around 0 0, as a path. */
static const char *const markers[] = {
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", /* circle */
    "M-3.5 -3.5h7v7h-7z",                  /* square */
    "M0 -4.5L4.5 3.5H-4.5z",               /* triangle */
    "M0 -5L5 0L0 5L-5 0z",                 /* diamond */
    "M0 4.5L4.5 -3.5H-4.5z",               /* triangle on its top */
    "M-4 -4L4 4M-4 4L4 -4",                /* cross */
    "M-4.5 0H4.5M0 -4.5V4.5",              /* plus */
};
enum {
    COLOURS = sizeof colours / sizeof *colours,
    DASHES = sizeof dashes / sizeof *dashes,
    MARKERS = sizeof markers / sizeof *markers,
};

struct drawing {
    const struct plot *plot;
    FILE *to;
    uint32_t sizes[SIZES]; /* ascending */
    unsigned n_sizes;
    double unit; /* ns */
    const char *unit_name;
    double step, top; /* of the axis of times, in ns */
};

/* ---- text ---- */

static void label(FILE *to, double x, double y, const char *more, const char *text, unsigned most) {
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, more);
    clean_xml(to, text, most);
    fputs("</text>\n", to);
}

/* ---- scales ---- */

/* Times are made from what another process says. */
static double sane(double ns) {
    return ns > PLOT_MOST_NS ? PLOT_MOST_NS : ns > 0 ? ns : 0; /* what is no number is neither */
}

/* Where it is drawn. */
static double drawn(const struct plot_point *point, double ns) {
    double scale = sane(point->scale);
    return sane(scale > 0 ? sane(ns) * scale : ns);
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void scale_sizes(struct drawing *d) {
    for (unsigned i = 0; i < d->plot->n; i++) {
        const struct plot_series *series = &d->plot->series[i];
        for (unsigned k = 0; k < series->n && !series->level; k++) {
            bool known = d->n_sizes == SIZES;
            for (unsigned s = 0; s < d->n_sizes; s++)
                known |= d->sizes[s] == series->points[k].x;
            if (!known)
                d->sizes[d->n_sizes++] = series->points[k].x;
        }
    }
    qsort(d->sizes, d->n_sizes, sizeof *d->sizes, by_size);
}

/* 1, 2 or 5 times a power of ten. */
static double round_step(double step) {
    double power = pow(10, floor(log10(step)));
    double part = step / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static void scale_times(struct drawing *d) {
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
    double most = 0;
    unsigned unit = 0;
    for (unsigned i = 0; i < d->plot->n; i++)
        for (unsigned k = 0; k < d->plot->series[i].n; k++) {
            const struct plot_point *point = &d->plot->series[i].points[k];
            most = fmax(most, drawn(point, point->ns) + drawn(point, point->noise));
        }
    most = most > 1e-6 ? most : 1; /* of the smallest numbers no step can be made */
    d->step = round_step(most / TICKS);
    d->top = d->step * ceil(most / d->step);
    while (unit < 3 && d->top >= 2 * units[unit + 1].ns)
        unit++;
    d->unit = units[unit].ns;
    d->unit_name = units[unit].name;
}

static double place_y(const struct drawing *d, double ns) {
    return TOP + PLOT_HEIGHT * (1 - fmin(fmax(ns, 0), d->top) / d->top);
}

/* Sizes double from place to place; half a place is left at either side. */
static double place_x(const struct drawing *d, uint32_t size) {
    double first = log2(d->sizes[0]), last = log2(d->sizes[d->n_sizes - 1]);
    double part = last > first ? (log2(size) - first) / (last - first) : 0.5;
    return LEFT + 30 + part * (PLOT_WIDTH - 80);
}

/* ---- axes ---- */

static void draw_axes(const struct drawing *d) {
    char text[64];
    fprintf(d->to,
            "<g class=\"axes\" stroke=\"#000\" fill=\"none\">\n"
            "<path d=\"M%d %dV%dH%d\"/>\n",
            LEFT, TOP, TOP + PLOT_HEIGHT, LEFT + PLOT_WIDTH);
    for (double ns = 0; ns <= d->top * 1.0001; ns += d->step)
        fprintf(d->to, "<path d=\"M%d %.1fh-5\"/><path stroke=\"#ddd\" d=\"M%d %.1fH%d\"/>\n", LEFT,
                place_y(d, ns), LEFT + 1, place_y(d, ns), LEFT + PLOT_WIDTH);
    for (unsigned i = 0; i < d->n_sizes; i++)
        fprintf(d->to, "<path d=\"M%.1f %dv5\"/>\n", place_x(d, d->sizes[i]), TOP + PLOT_HEIGHT);
    fputs("</g>\n<g class=\"ticks\">\n", d->to);
    for (double ns = 0; ns <= d->top * 1.0001; ns += d->step) {
        snprintf(text, sizeof text, "%.6g", ns / d->unit);
        label(d->to, LEFT - 9, place_y(d, ns) + 4, " text-anchor=\"end\"", text, sizeof text);
    }
    for (unsigned i = 0; i < d->n_sizes; i++) {
        snprintf(text, sizeof text, "%" PRIu32, d->sizes[i]);
        label(d->to, place_x(d, d->sizes[i]), TOP + PLOT_HEIGHT + 20, " text-anchor=\"middle\"",
              text, sizeof text);
    }
    snprintf(text, sizeof text, "time of a step (%s)", d->unit_name);
    fprintf(d->to, "<g transform=\"translate(20 %d) rotate(-90)\">", TOP + PLOT_HEIGHT / 2);
    label(d->to, 0, 0, " text-anchor=\"middle\"", text, sizeof text);
    fputs("</g>\n", d->to);
    label(d->to, LEFT + PLOT_WIDTH / 2.0, TOP + PLOT_HEIGHT + 44, " text-anchor=\"middle\"",
          "launches in a segment at most (segment_max)", 80);
    fputs("</g>\n", d->to);
}

/* ---- series ---- */

/* Its place among those that have no baseline's look. */
static void begin_series(const struct drawing *d, const struct plot_series *series,
                         unsigned place) {
    fputs("<g class=\"series\" data-name=\"", d->to);
    clean_xml(d->to, series->name, UINT32_MAX);
    fprintf(d->to, "\" stroke=\"%s\" fill=\"none\" stroke-width=\"1.6\">\n",
            series->baseline ? "#444" : colours[place % COLOURS]);
}

static const char *dashes_of(const struct plot_series *series, unsigned place) {
    return series->baseline ? "6 4" : dashes[place % DASHES];
}

static void draw_marker(const struct drawing *d, const struct plot_series *series, unsigned place,
                        double x, double y) {
    const char *marker = series->baseline ? "M0 -4V4" : markers[place % MARKERS];
    bool hollow = place / MARKERS % 2 != 0;
    fprintf(d->to,
            "<path class=\"marker\" transform=\"translate(%.1f %.1f)\" fill=\"%s\" d=\"%s\"/>\n", x,
            y, hollow || series->baseline ? "#fff" : colours[place % COLOURS], marker);
}

static void draw_point(const struct drawing *d, const struct plot_series *series, unsigned place,
                       const struct plot_point *point, double x) {
    double ns = sane(point->ns), noise = sane(point->noise);
    double at = drawn(point, ns), by = drawn(point, noise);
    double low = place_y(d, at - by), high = place_y(d, at + by);
    fprintf(d->to,
            "<g class=\"point\" data-x=\"%" PRIu32 "\" data-ns=\"%.0f\" data-noise=\"%.0f\">",
            series->level ? 0 : point->x, floor(ns + 0.5), floor(noise + 0.5));
    fprintf(d->to, "<path class=\"error\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh6M%.1f %.1fh6\"/>", x, low,
            high, x - 3, low, x - 3, high);
    draw_marker(d, series, place, x, place_y(d, at));
    fputs("</g>\n", d->to);
}

static void draw_series(const struct drawing *d, const struct plot_series *series, unsigned place) {
    const char *dash = dashes_of(series, place);
    begin_series(d, series, place);
    if (series->level) {
        double y = place_y(d, drawn(&series->points[0], series->points[0].ns));
        fprintf(d->to, "<path class=\"line\" stroke-dasharray=\"%s\" d=\"M%d %.1fH%d\"/>\n", dash,
                LEFT, y, LEFT + PLOT_WIDTH);
        draw_point(d, series, place, &series->points[0],
                   LEFT + PLOT_WIDTH - (series->baseline ? 10 : 10 + 8 * (1 + place % 2)));
    } else {
        fprintf(d->to, "<path class=\"line\" stroke-dasharray=\"%s\" d=\"", dash);
        for (unsigned i = 0; i < series->n; i++)
            fprintf(d->to, "%s%.1f %.1f", i ? "L" : "M", place_x(d, series->points[i].x),
                    place_y(d, drawn(&series->points[i], series->points[i].ns)));
        fputs("\"/>\n", d->to);
        for (unsigned i = 0; i < series->n; i++)
            draw_point(d, series, place, &series->points[i], place_x(d, series->points[i].x));
    }
    fputs("</g>\n", d->to);
}

static void draw_legend(const struct drawing *d, const struct plot_series *series, unsigned place,
                        unsigned row) {
    double y = TOP + 6 + row * LEGEND_ROW;
    fprintf(d->to,
            "<g stroke=\"%s\" fill=\"none\" stroke-width=\"1.6\"><path stroke-dasharray=\"%s\" "
            "d=\"M%d %.1fh36\"/>\n",
            series->baseline ? "#444" : colours[place % COLOURS], dashes_of(series, place), LEGEND,
            y);
    draw_marker(d, series, place, LEGEND + 18, y);
    fputs("</g>\n", d->to);
    label(d->to, LEGEND + 44, y + 4, "", series->name, NAME);
}

/* ---- all ---- */

static void draw(const struct drawing *d, bool legend) {
    unsigned place = 0, row = 0;
    if (legend)
        fputs("<g class=\"legend\">\n", d->to);
    for (unsigned i = 0; i < d->plot->n; i++) {
        const struct plot_series *series = &d->plot->series[i];
        if (!series->n)
            continue;
        if (legend)
            draw_legend(d, series, place, row++);
        else
            draw_series(d, series, place);
        place += !series->baseline;
    }
    if (legend)
        fputs("</g>\n", d->to);
}

void plot_svg(const struct plot *plot, FILE *to) {
    struct drawing d = {.plot = plot, .to = to};
    int legend = 12 + LEGEND_ROW * (int)plot->n;
    int width = LEGEND + LEGEND_WIDTH;
    int height = TOP + BOTTOM + (legend > PLOT_HEIGHT ? legend : PLOT_HEIGHT);
    scale_sizes(&d);
    scale_times(&d);
    fprintf(to,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<title>",
            width, height, width, height);
    clean_xml(to, plot->title, TITLE);
    fprintf(to, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
    label(to, LEFT, 24, " font-size=\"15\" font-weight=\"bold\"", plot->title, TITLE);
    label(to, LEFT, 44, "", plot->subtitle, 2 * TITLE);
    draw_axes(&d);
    draw(&d, false);
    draw(&d, true);
    fputs("</svg>\n", to);
}
