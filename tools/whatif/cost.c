/*
 * Reads and writes cost files, and adds costs up. The verbs whatif and calibrate, clock.c and
 * builds.c call it. It never accepts a file that lacks an old key.
 */
#include "tools/whatif/cost.h"

#include <errno.h>
#include <ini.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/config.h"
#include "shim/base/file.h"

static const char built_in[] =
#include "tools/whatif/h200.inc"
    ;

static const struct key {
    const char *section, *name;
    size_t at;
    bool older; /* has been there from the beginning */
    const char *text;
} keys[] = {
#define X(section, name, older, text)                                                              \
    {#section, #name, offsetof(struct whatif_cost, section.name), older, text},
    WHATIF_COSTS(X)
#undef X
};
enum { KEYS = sizeof keys / sizeof keys[0] };

static double *value_of(struct whatif_cost *cost, unsigned key) {
    return (double *)(void *)((char *)cost + keys[key].at);
}

struct reading {
    struct whatif_cost *cost;
    bool seen[KEYS];
    char wrong[256]; /* with the line that the reader is at; "": nothing is */
};

/* 0 where the line is wrong; the reader goes on, and says which was the first. */
static int take(void *context, const char *section, const char *name, const char *value) {
    struct reading *r = context;
    const char *names[KEYS + 1] = {NULL};
    char *end;
    for (unsigned i = 0; i < KEYS; i++) {
        names[i] = keys[i].name;
        if (strcmp(section, keys[i].section) != 0 || strcmp(name, keys[i].name) != 0)
            continue;
        double ns = strtod(value, &end);
        if (end == value || *end || !isfinite(ns) || ns < 0) {
            if (!*r->wrong)
                snprintf(r->wrong, sizeof r->wrong, "%s: nanoseconds are expected, not '%s'", name,
                         value);
            return 0;
        }
        *value_of(r->cost, i) = ns;
        r->seen[i] = true;
        return 1;
    }
    const char *near = cus_near(name, names);
    if (!*r->wrong)
        snprintf(r->wrong, sizeof r->wrong, "no key '%s' in [%s]%s%s%s", name, section,
                 near ? " (nearest: " : "", near ? near : "", near ? ")" : "");
    return 0;
}

/* What a file of the time before these keys does not say. */
static void fill_in(const bool *seen, struct whatif_cost *cost) {
    char error[256];
    struct whatif_cost other;
    bool whole = true;
    for (unsigned i = 0; i < KEYS; i++)
        whole &= seen[i];
    if (whole || !whatif_cost_read(NULL, &other, error, sizeof error))
        return;
    /* What other keys of the file comprise, since it has no key for it. */
    other.host.graph_node = other.host.graph_other = other.host.let_through = 0;
    other.host.eager_memset = other.host.eager_copy = cost->host.eager_launch;
    /* What means something beside other values of the same machine only. */
    other.gpu.measured_more = other.gpu.memset_more = 0;
    other.recorder.eager_launch = other.recorder.eager_launch_gpu = 0;
    other.recorder.matched_launch = other.recorder.matched_launch_gpu = 0;
    for (unsigned i = 0; i < KEYS; i++)
        if (!seen[i])
            *value_of(cost, i) = *value_of(&other, i);
}

bool whatif_cost_read(const char *path, struct whatif_cost *cost, char *error, size_t bytes) {
    memset(cost, 0, sizeof *cost);
    cost->name = path ? path : "h200.cost";
    struct reading r = {.cost = cost};
    const char *why = NULL;
    int fd = path ? cus_file_open_settings(path, &why) : -1;
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (path && !file) {
        snprintf(error, bytes, "%s: %s", path, cus_file_why(why));
        if (fd >= 0)
            close(fd);
        return false;
    }
    int line = file ? ini_parse_file(file, take, &r) : ini_parse_string(built_in, take, &r);
    if (file)
        fclose(file);
    if (line) {
        snprintf(error, bytes, "%s:%d: %s", cost->name, line,
                 *r.wrong ? r.wrong : "neither [section] nor key = nanoseconds");
        return false;
    }
    for (unsigned i = 0; i < KEYS; i++)
        if (!r.seen[i] && keys[i].older) {
            snprintf(error, bytes, "%s: [%s] %s is missing", cost->name, keys[i].section,
                     keys[i].name);
            return false;
        }
    if (path)
        fill_in(r.seen, cost);
    const double small = cost->gpu.small_kernel;
    if (small > cost->gpu.graph_kernel || small > cost->gpu.eager_kernel) {
        snprintf(error, bytes,
                 "%s: [gpu] small_kernel is a part of graph_kernel and of eager_kernel, so not "
                 "more than either",
                 cost->name);
        return false;
    }
    return true;
}

bool whatif_cost_write(FILE *file, const struct whatif_cost *cost,
                       const struct whatif_cost *noise) {
    const char *section = "";
    struct whatif_cost values = *cost, apart = *noise;
    for (unsigned i = 0; i < KEYS; i++) {
        if (strcmp(section, keys[i].section) != 0)
            fprintf(file, "%s[%s]\n", *section ? "\n" : "", keys[i].section);
        section = keys[i].section;
        fprintf(file, "# %s", keys[i].text);
        if (*value_of(&apart, i) >= 0)
            fprintf(file, " Measurements were %.3g apart.\n", *value_of(&apart, i));
        else
            fputs(" Not measured.\n", file);
        fprintf(file, "%s = %.6g\n", keys[i].name, *value_of(&values, i));
    }
    return !ferror(file);
}

double whatif_cost_launch(const struct whatif_cost *cost, struct whatif_nodes nodes) {
    return cost->host.graph_launch + cost->host.graph_node * nodes.all +
           cost->host.graph_other * nodes.others + cost->host.graph_record * nodes.records;
}

double whatif_cost_host(const struct whatif_cost *cost, const struct whatif_played *played) {
    const struct whatif_asked *asked = &played->asked;
    double in_graphs = (double)played->counters.in_graphs;
    return cost->host.eager_launch * (double)(asked->own + asked->issued - asked->records) +
           cost->host.eager_record * (double)asked->records +
           cost->host.matched_launch * (in_graphs + (double)asked->issued) +
           cost->host.graph_launch * (double)asked->graph_launches +
           cost->host.graph_node * in_graphs +
           cost->host.graph_other * (double)asked->graph_others +
           cost->host.graph_record * (double)asked->graph_records +
           cost->host.patched_node * (double)asked->patched +
           cost->host.built_node * (double)asked->captured;
}

double whatif_cost_gpu(const struct whatif_cost *cost, const struct whatif_played *played,
                       const struct whatif_measured *measured) {
    const struct whatif_asked *asked = &played->asked;
    double more = cost->gpu.small_kernel + cost->gpu.measured_more;
    return cost->gpu.eager_kernel * (double)(asked->own + asked->issued - asked->records) +
           cost->gpu.graph_kernel * (double)(played->counters.in_graphs - asked->graph_records) +
           cost->gpu.record * (double)(asked->records + asked->graph_records) +
           cost->gpu.graph_seam * (double)asked->graph_launches + (double)measured->ns -
           more * (double)measured->ops;
}
