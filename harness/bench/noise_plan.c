#include "harness/bench/noise_plan.h"

#include <math.h>

/* SplitMix64: each state gives a good number, that of a small seed too. */
static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t between(uint64_t *state, uint64_t from, uint64_t to) {
    return from + draw(state) % (to - from + 1);
}

/* Until the next of events that come so often in a second, each whenever it likes. */
static uint64_t gap(uint64_t *state, double often) {
    double share = (double)((draw(state) >> 11) + 1) / (double)(UINT64_C(1) << 53);
    return (uint64_t)(-log(share) * 1e9 / often);
}

/* What comes behind the one that was last. */
static void go_on(struct noise_plan *plan, enum noise_kind kind) {
    const struct noise_options *o = &plan->options;
    struct noise_event *next = &plan->next[kind];
    uint64_t *random = &plan->random[kind], end = next->at_ns + next->for_ns;
    switch (kind) {
    case NOISE_STOP:
        next->at_ns = o->stops > 0 ? end + gap(random, o->stops) : UINT64_MAX;
        next->for_ns = between(random, o->from_ns, o->to_ns);
        break;
    case NOISE_SLOW:
        next->at_ns = UINT64_MAX;
        if (o->slow) {
            next->at_ns = end + (end ? between(random, o->slow_from_ns, o->slow_to_ns) : 0);
            next->for_ns = between(random, o->slow_from_ns, o->slow_to_ns);
        }
        break;
    default:
        next->at_ns = o->moves > 0 ? end + gap(random, o->moves) : UINT64_MAX;
        next->pick = draw(random);
    }
}

void noise_plan_begin(struct noise_plan *plan, const struct noise_options *options) {
    *plan = (struct noise_plan){.options = *options};
    for (unsigned i = 0; i < NOISE_KINDS; i++) {
        plan->random[i] = options->seed * NOISE_KINDS + i;
        draw(&plan->random[i]);
        plan->next[i].kind = (enum noise_kind)i;
        go_on(plan, (enum noise_kind)i);
    }
}

struct noise_event noise_plan_next(struct noise_plan *plan) {
    unsigned first = 0;
    for (unsigned i = 1; i < NOISE_KINDS; i++)
        if (plan->next[i].at_ns < plan->next[first].at_ns)
            first = i;
    struct noise_event event = plan->next[first];
    if (event.at_ns != UINT64_MAX)
        go_on(plan, (enum noise_kind)first);
    return event;
}
