/*
 * Experiment 1: what a record node costs the host and the GPU, against records between launches.
 * Only the thread of the trial runs it.
 */
#include "tests/gpu/facts/facts.h"

#include <stdio.h>

enum { KERNELS = 100, FORMS = 6, PIECES = 12 };

/* What a form launches. */
struct work {
    CUgraphExec execs[PIECES];
    int count;
    CUevent between[PIECES]; /* recorded behind each exec; NULL: not */
};

static CUgraphExec with_records(int records, unsigned flags) {
    struct fact_chain chain = fact_chain();
    for (int i = 0; i < KERNELS; i++) {
        fact_chain_touch(&chain);
        if ((i + 1) * records / KERNELS > i * records / KERNELS)
            fact_chain_record(&chain, fact_event(flags));
    }
    return fact_chain_exec(&chain);
}

static void launch(const void *data) {
    const struct work *work = data;
    for (int i = 0; i < work->count; i++) {
        cu.cuGraphLaunch(work->execs[i], lab.a);
        if (work->between[i])
            cu.cuEventRecord(work->between[i], lab.a);
    }
}

static void cost(int arg) {
    (void)arg;
    static const struct {
        const char *name;
        int records;
        unsigned flags;
    } made[FORMS - 1] = {{"0", 0, 0},
                         {"12 timed", 12, 0},
                         {"12 untimed", 12, CU_EVENT_DISABLE_TIMING},
                         {"100 timed", 100, 0},
                         {"100 untimed", 100, CU_EVENT_DISABLE_TIMING}};
    struct work works[FORMS] = {{.count = 0}}, *pieces = &works[FORMS - 1];
    struct fact_form forms[FORMS];
    for (int f = 0; f < FORMS - 1; f++) {
        works[f].execs[0] = with_records(made[f].records, made[f].flags);
        works[f].count = 1;
        forms[f] = (struct fact_form){.name = made[f].name, .run = launch, .work = &works[f]};
    }
    forms[FORMS - 1] = (struct fact_form){
        .name = "12 graphs and 12 timed cuEventRecord", .run = launch, .work = pieces};
    pieces->count = PIECES;
    for (int i = 0; i < PIECES; i++) {
        pieces->execs[i] = fact_touches((i + 1) * KERNELS / PIECES - i * KERNELS / PIECES);
        pieces->between[i] = fact_event(0);
    }
    fact_forms(forms, FORMS);
    fact_detail("us a launch of %d kernels, by record nodes", KERNELS);
}

/* One cuEventRecord, one cuGraphExecEventRecordNodeSetEvent, one cuEventQuery. */
static void calls(int arg) {
    (void)arg;
    enum { TIMES = 500 };
    static double record[TIMES], set[TIMES], same[TIMES], query[TIMES];
    CUevent events[2] = {fact_event_done(0), fact_event_done(0)};
    struct fact_chain chain = fact_chain();
    for (int i = 0; i < KERNELS; i++)
        fact_chain_touch(&chain);
    CUgraphNode node = fact_chain_record(&chain, events[0]);
    CUgraphExec exec = fact_chain_exec(&chain);
    for (int i = 0; i < TIMES; i++) {
        fact_step("measuring calls");
        double from = fact_now_us();
        cu.cuEventRecord(events[0], lab.a);
        record[i] = fact_now_us() - from;
        from = fact_now_us();
        cu.cuGraphExecEventRecordNodeSetEvent(exec, node, events[(i + 1) & 1]);
        set[i] = fact_now_us() - from;
        from = fact_now_us();
        cu.cuGraphExecEventRecordNodeSetEvent(exec, node, events[(i + 1) & 1]);
        same[i] = fact_now_us() - from;
        CALL(cuGraphLaunch, (exec, lab.a));
        CALL(cuStreamSynchronize, (lab.a));
        from = fact_now_us();
        cu.cuEventQuery(events[0]);
        query[i] = fact_now_us() - from;
    }
    fact_say("cuEventRecord %.0f ns, SetEvent %.0f ns", 1000 * fact_median(record, TIMES),
             1000 * fact_median(set, TIMES));
    fact_detail("SetEvent to the same event %.0f ns; cuEventQuery %.0f ns; a graph of %d kernels",
                1000 * fact_median(same, TIMES), 1000 * fact_median(query, TIMES), KERNELS);
}

const struct fact_trial fact_record_cost[] = {
    {"record-cost", cost, 0, 0},
    {"record-calls", calls, 0, 0},
    {0},
};
