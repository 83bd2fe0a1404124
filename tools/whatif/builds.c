/*
 * How long it takes to build a graph: the engine spreads building by it.
 *
 * As in the recording, one graph behind the other, by their nodes: a program's first graphs take
 * longer than later ones, and a host is fast or slow by the hour. Where the recording built none,
 * as the costs say.
 */
#include "tools/whatif/clock.h"
#include "tools/whatif/cost.h"
#include "tools/whatif/driver.h"

static struct {
    const struct cst_trace *trace;
    const struct whatif_timing *timing;
    size_t next;                   /* event that was not looked at yet */
    const struct cst_launch *last; /* that was built; NULL: none was so far */
} here;

void whatif_builds_start(const struct cst_trace *trace, const struct whatif_timing *timing) {
    here.trace = trace;
    here.timing = timing;
    here.next = 0;
    here.last = NULL;
}

/* The next one of the recording; behind the last one that again. */
static const struct cst_launch *recorded(void) {
    while (here.next < here.trace->n_events) {
        const struct cst_record *event = here.trace->events[here.next++];
        const struct cst_launch *launch = (const struct cst_launch *)event;
        if (event->type == CST_LAUNCH && event->flags == CST_BUILT && launch->n) {
            here.last = launch;
            break;
        }
    }
    return here.last;
}

uint64_t whatif_build_ns(uint32_t nodes) {
    const struct cst_launch *launch = recorded();
    if (launch)
        return (uint64_t)launch->host_ns * nodes / launch->n;
    return here.timing ? (uint64_t)(here.timing->cost->host.built_node * nodes) : 0;
}
