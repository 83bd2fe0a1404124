/*
 * Allocates the host memory that copies write to: one block for each block of the program, as long
 * as the written part. Runs when all ops are known; never calls the driver.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "harness/player/player.h"

bool player_take(struct player *p, uint64_t bytes, const char *what) {
    bool fits = bytes <= p->may_take - p->taken;
    if (fits)
        p->taken += bytes;
    else
        notes_add(&p->obstacles,
                  "its %s would take more of the host's memory than it may (%" PRIu64
                  " MiB in all): --max-memory MIB raises that",
                  what, p->may_take >> 20);
    return fits;
}

static int by_span(const void *a, const void *b) {
    const struct cst_span *x = ((const struct player_host *)a)->span,
                          *y = ((const struct player_host *)b)->span;
    return x < y ? -1 : x > y;
}

static struct player_host host_of(const struct player_op *op) {
    uint64_t address = op->copy.span ? op->work->to : 0;
    return (struct player_host){op->copy.span, address, address + op->copy.bytes, NULL};
}

static bool is_download(const struct player_op *op) {
    return op->what == PLAYER_DOWNLOAD && op->copy.bytes;
}

void player_hosts(struct player *p) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_ops; i++)
        n += is_download(&p->ops[i]);
    p->hosts = player_need(calloc(n + 1, sizeof *p->hosts));
    n = 0;
    for (size_t i = 0; i < p->n_ops; i++)
        if (is_download(&p->ops[i]))
            p->hosts[n++] = host_of(&p->ops[i]);
    qsort(p->hosts, n, sizeof *p->hosts, by_span);
    for (size_t i = 0; i < n; i++) {
        struct player_host *last = p->n_hosts ? &p->hosts[p->n_hosts - 1] : NULL, it = p->hosts[i];
        if (!last || last->span != it.span) {
            p->hosts[p->n_hosts++] = it;
            continue;
        }
        last->from = it.from < last->from ? it.from : last->from;
        last->to = it.to > last->to ? it.to : last->to;
    }
    for (size_t i = 0; i < p->n_hosts; i++)
        if (!player_take(p, p->hosts[i].to - p->hosts[i].from, "copies to the host"))
            return;
    for (size_t i = 0; i < p->n_ops; i++)
        if (is_download(&p->ops[i])) {
            struct player_host asked = {.span = p->ops[i].copy.span};
            const struct player_host *host =
                bsearch(&asked, p->hosts, p->n_hosts, sizeof asked, by_span);
            p->ops[i].copy.host = (void *)(uintptr_t)(host - p->hosts);
        }
}
