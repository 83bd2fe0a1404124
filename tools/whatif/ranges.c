/*
 * Answers what an address is: the last answer in the trace before now whose range holds it. An
 * answer from later counts only where none came before, since another configuration asks sooner.
 * The driver calls it, one thread at a time. It never invents a range.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/base/uthash.h"
#include "tools/whatif/driver.h"

/* A range that is in force: those of one context do not overlap. */
struct live {
    uint32_t context;
    uint64_t start, end;
    const struct cst_range *range;
};

/* The last answer about one address. */
struct exact {
    struct {
        uint64_t address, context;
    } key;
    const struct cst_range *range;
    UT_hash_handle hh;
};

enum { AHEAD = 65536 /* answers of the future that are looked through */ };

static struct {
    const struct cst_trace *trace;
    size_t taken; /* of trace->ranges */
    struct live *live;
    size_t n, room;
    struct exact *exact;
} here;

void whatif_range_start(const struct cst_trace *trace) {
    here.trace = trace;
}

/* The first range that ends behind the address. */
static size_t place_of(uint32_t context, uint64_t address) {
    size_t low = 0, high = here.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct live *at = &here.live[middle];
        if (at->context < context || (at->context == context && at->end <= address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_range(const struct cst_range *range) {
    return range->result == 0 && range->size && range->start + range->size > range->start;
}

static void put_live(const struct cst_range *range) {
    uint64_t end = range->start + range->size;
    size_t at = place_of(range->context, range->start), behind = at;
    while (behind < here.n && here.live[behind].context == range->context &&
           here.live[behind].start < end)
        behind++;
    if (here.n == here.room) {
        here.room = here.room ? 2 * here.room : 64;
        here.live = whatif_need(realloc(here.live, here.room * sizeof *here.live));
    }
    memmove(here.live + at + 1, here.live + behind, (here.n - behind) * sizeof *here.live);
    here.n = here.n - (behind - at) + 1;
    here.live[at] = (struct live){range->context, range->start, end, range};
}

static struct exact *find_exact(uint32_t context, uint64_t address) {
    struct exact *found, probe;
    memset(&probe, 0, sizeof probe);
    probe.key.address = address;
    probe.key.context = context;
    HASH_FIND(hh, here.exact, &probe.key, sizeof probe.key, found);
    return found;
}

static void put_exact(const struct cst_range *range) {
    struct exact *entry = find_exact(range->context, range->asked);
    if (!entry) {
        entry = whatif_need(calloc(1, sizeof *entry));
        entry->key.address = range->asked;
        entry->key.context = range->context;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (_Exit(WHATIF_NO_MEMORY))
        HASH_ADD(hh, here.exact, key, sizeof entry->key, entry);
    }
    entry->range = range;
}

static bool is_about(const struct cst_range *range, uint32_t context, uint64_t address) {
    return range->context == context &&
           (range->asked == address ||
            (has_range(range) && address >= range->start && address - range->start < range->size));
}

bool whatif_range_find(uint32_t context, uint64_t address, uint64_t ns, struct cst_range *answer) {
    const struct cst_trace *trace = here.trace;
    for (; here.taken < trace->n_ranges && trace->ranges[here.taken]->head.ns <= ns; here.taken++) {
        const struct cst_range *range = trace->ranges[here.taken];
        if (has_range(range))
            put_live(range);
        put_exact(range);
    }
    const struct cst_range *found = NULL;
    size_t at = place_of(context, address);
    if (at < here.n && here.live[at].context == context && here.live[at].start <= address)
        found = here.live[at].range;
    const struct exact *exact = find_exact(context, address);
    if (exact && (!found || exact->range->head.ns > found->head.ns))
        found = exact->range;
    for (size_t i = here.taken; !found && i < trace->n_ranges && i - here.taken < AHEAD; i++)
        if (is_about(trace->ranges[i], context, address))
            found = trace->ranges[i];
    if (found)
        *answer = *found;
    return found;
}
