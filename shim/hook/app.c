/*
 * What a program tells cusplice through shim/include/cusplice.h.
 *
 * Any thread, also before cuInit and inside callbacks: there the thread has no deferred ops, so
 * nothing is done. Holds no lock.
 */
#define CUSPLICE_INSIDE
#define CUSPLICE_WEAK __attribute__((visibility("default")))
#include "shim/include/cusplice.h"

#include <string.h>

#include "shim/base/mem.h"
#include "shim/hook/guard.h"
#include "shim/stream/engine.h"

#include "shim/base/forbid.h"

_Static_assert(sizeof(struct cusplice_counters) % sizeof(uint64_t) == 0, "64-bit words");

int cusplice_interface_(void) {
    return CUSPLICE_INTERFACE;
}

static void issue(bool step) {
    struct cus_guard guard;
    if (!cus_guard_enter(&guard))
        return;
    cus_engine_force_break(CUS_CAUSE_APP);
    if (step)
        cus_engine_step_end(NULL);
    cus_guard_leave(&guard);
}

void cusplice_mark_step_(void) {
    issue(true);
}

void cusplice_force_break_(void) {
    issue(false);
}

void cusplice_suspend_(void) {
    cus_engine_suspend(true);
    issue(false);
}

void cusplice_resume_(void) {
    cus_engine_suspend(false);
}

/* The counters stay 0 if there is no memory. */
static void read_known(struct cusplice_counters *known) {
    struct cus_counters *all =
        cus_mem_alloc(sizeof *all); /* too large for a stack of unknown size */
    if (!all)
        return;
    cus_engine_counters(all);
    known->launches = all->ops[CUS_OP_LAUNCH];
    known->memsets = all->ops[CUS_OP_MEMSET];
    known->copies = all->ops[CUS_OP_COPY];
    known->records = all->ops[CUS_OP_RECORD];
    known->waits = all->ops[CUS_OP_WAIT];
    known->in_graphs = all->in_graphs;
    for (unsigned why = 0; why < CUS_EAGERS; why++)
        known->eager += all->eager_by[why];
    known->graph_launches = all->graph_launches;
    known->steps = all->steps;
    known->patched_nodes = all->patched_nodes;
    known->graph_bytes = all->graph_bytes;
    known->build_us = all->build_ns / 1000;
    cus_mem_free(all);
}

size_t cusplice_read_counters_(struct cusplice_counters *counters, size_t bytes) {
    struct cusplice_counters known = {0};
    struct cus_guard guard;
    if (!counters)
        return 0;
    if (cus_guard_enter(&guard)) {
        read_known(&known);
        cus_guard_leave(&guard);
    }
    size_t common = bytes < sizeof known ? bytes : sizeof known;
    memset(counters, 0, bytes);
    memcpy(counters, &known, common);
    return common;
}
