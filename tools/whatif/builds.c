/*
 * Says how long a graph takes to build; the engine spreads builds over steps by it. The driver
 * calls it while a trace is played. It takes the most similar build that was recorded about that
 * time, or else the costs. It never waits.
 */
#include <stdlib.h>

#include "shim/stream/virtual.h"
#include "tools/whatif/clock.h"
#include "tools/whatif/cost.h"
#include "tools/whatif/driver.h"

enum { NEAR = 16 }; /* graphs before now, and as many from now on, that are compared */

static struct {
    const struct whatif_timing *timing;
    const struct cst_launch **built; /* in the order of time */
    size_t n;
    size_t next; /* the first one from now on */
} here;

static const struct cst_launch *built_by(const struct cst_record *event) {
    const struct cst_launch *launch = (const struct cst_launch *)event;
    return event->type == CST_LAUNCH && event->flags == CST_BUILT && launch->n ? launch : NULL;
}

void whatif_builds_start(const struct cst_trace *trace, const struct whatif_timing *timing) {
    size_t n = 0;
    for (size_t i = 0; i < trace->n_events; i++)
        n += built_by(trace->events[i]) != NULL;
    free(here.built);
    here.built = whatif_need(calloc(n + 1, sizeof *here.built));
    here.timing = timing;
    here.n = here.next = 0;
    for (size_t i = 0; i < trace->n_events; i++)
        if (built_by(trace->events[i]))
            here.built[here.n++] = built_by(trace->events[i]);
}

static uint64_t away(const struct cst_launch *launch) {
    uint64_t ns = launch->head.ns;
    return ns > cus_virtual.ns ? ns - cus_virtual.ns : cus_virtual.ns - ns;
}

/* The one most like it in size; of several the nearest in time. */
static const struct cst_launch *like(uint32_t nodes) {
    const struct cst_launch *best = NULL;
    double least = 0;
    while (here.next < here.n && here.built[here.next]->head.ns < cus_virtual.ns)
        here.next++;
    for (size_t i = here.next > NEAR ? here.next - NEAR : 0; i < here.n && i < here.next + NEAR;
         i++) {
        const struct cst_launch *it = here.built[i];
        double unlike = it->n > nodes ? (double)it->n / nodes : (double)nodes / it->n;
        if (!best || unlike < least || (unlike == least && away(it) < away(best))) {
            best = it;
            least = unlike;
        }
    }
    return best;
}

uint64_t whatif_build_ns(uint32_t nodes) {
    const struct cst_launch *launch = like(nodes);
    if (launch)
        return (uint64_t)launch->host_ns * nodes / launch->n;
    return here.timing ? (uint64_t)(here.timing->cost->host.built_node * nodes) : 0;
}
