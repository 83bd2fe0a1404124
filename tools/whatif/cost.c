/* The cost model and its file. */
#include "tools/whatif/cost.h"

#include <errno.h>
#include <ini.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/config.h"

static const char built_in[] =
#include "tools/whatif/h200.inc"
    ;

static const struct key {
    const char *section, *name;
    size_t at;
} keys[] = {
    {"host", "eager_launch", offsetof(struct whatif_cost, eager_launch)},
    {"host", "matched_launch", offsetof(struct whatif_cost, matched_launch)},
    {"host", "graph_launch", offsetof(struct whatif_cost, graph_launch)},
    {"host", "patched_node", offsetof(struct whatif_cost, patched_node)},
    {"host", "built_node", offsetof(struct whatif_cost, built_node)},
    {"gpu", "graph_kernel", offsetof(struct whatif_cost, graph_kernel)},
    {"gpu", "graph_seam", offsetof(struct whatif_cost, graph_seam)},
    {"gpu", "eager_kernel", offsetof(struct whatif_cost, eager_kernel)},
    {"gpu", "small_kernel", offsetof(struct whatif_cost, small_kernel)},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

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
        memcpy((char *)r->cost + keys[i].at, &ns, sizeof ns);
        r->seen[i] = true;
        return 1;
    }
    if (!*r->wrong)
        snprintf(r->wrong, sizeof r->wrong, "no key '%s' in [%s] (nearest: %s)", name, section,
                 cus_nearest(name, names));
    return 0;
}

bool whatif_cost_read(const char *path, struct whatif_cost *cost, char *error, size_t bytes) {
    memset(cost, 0, sizeof *cost);
    cost->name = path ? path : "h200.cost";
    struct reading r = {.cost = cost};
    FILE *file = NULL;
    if (path && !(file = fopen(path, "r"))) {
        snprintf(error, bytes, "%s: %s", path, strerror(errno));
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
        if (!r.seen[i]) {
            snprintf(error, bytes, "%s: [%s] %s is missing", cost->name, keys[i].section,
                     keys[i].name);
            return false;
        }
    if (cost->small_kernel > cost->graph_kernel || cost->small_kernel > cost->eager_kernel) {
        snprintf(error, bytes,
                 "%s: [gpu] small_kernel is a part of graph_kernel and of eager_kernel, so not "
                 "more than either",
                 cost->name);
        return false;
    }
    return true;
}

double whatif_cost_host(const struct whatif_cost *cost, const struct whatif_played *played) {
    const struct whatif_asked *asked = &played->asked;
    double withheld = (double)(played->counters.in_graphs + asked->issued);
    return cost->eager_launch * (double)(asked->own + asked->issued) +
           cost->matched_launch * withheld + cost->graph_launch * (double)asked->graph_launches +
           cost->patched_node * (double)asked->patched + cost->built_node * (double)asked->captured;
}

double whatif_cost_gpu(const struct whatif_cost *cost, const struct whatif_played *played,
                       const struct whatif_measured *measured) {
    const struct whatif_asked *asked = &played->asked;
    return cost->eager_kernel * (double)(asked->own + asked->issued) +
           cost->graph_kernel * (double)played->counters.in_graphs +
           cost->graph_seam * (double)asked->graph_launches + (double)measured->ns -
           cost->small_kernel * (double)measured->ops;
}
