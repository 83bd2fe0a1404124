/*
 * Experiment 1: what a record node costs the host and the GPU, against records between launches.
 * Only the thread of the trial runs it. Forms alternate within a round; the medians are printed.
 */
#include "tests/gpu/facts/facts.h"

#include <stdio.h>

enum { KERNELS = 100, HOST_ROUNDS = 150, GPU_ROUNDS = 40, FORMS = 6, PIECES = 12 };

struct form {
    const char *name;
    CUgraphExec execs[PIECES + 1];
    int count;
    CUevent between[PIECES]; /* recorded behind each exec; NULL: not */
    double host[HOST_ROUNDS], gpu[GPU_ROUNDS];
};
static struct form forms[FORMS];

static CUgraphExec with_records(int records, unsigned flags) {
    struct fact_chain chain = fact_chain();
    for (int i = 0; i < KERNELS; i++) {
        fact_chain_touch(&chain);
        if ((i + 1) * records / KERNELS > i * records / KERNELS)
            fact_chain_record(&chain, fact_event(flags));
    }
    return fact_chain_exec(&chain);
}

static void launch(struct form *form) {
    for (int i = 0; i < form->count; i++) {
        cu.cuGraphLaunch(form->execs[i], lab.a);
        if (form->between[i % PIECES])
            cu.cuEventRecord(form->between[i % PIECES], lab.a);
    }
}

static void forms_make(void) {
    static const struct {
        const char *name;
        int records;
        unsigned flags;
    } made[] = {{"0", 0, 0},
                {"12 timed", 12, 0},
                {"12 untimed", 12, CU_EVENT_DISABLE_TIMING},
                {"100 timed", 100, 0},
                {"100 untimed", 100, CU_EVENT_DISABLE_TIMING}};
    for (int f = 0; f < FORMS - 1; f++) {
        forms[f].name = made[f].name;
        forms[f].execs[0] = with_records(made[f].records, made[f].flags);
        forms[f].count = 1;
    }
    struct form *pieces = &forms[FORMS - 1];
    pieces->name = "12 graphs and 12 timed cuEventRecord";
    pieces->count = PIECES;
    for (int i = 0; i < PIECES; i++) {
        pieces->execs[i] = fact_touches((i + 1) * KERNELS / PIECES - i * KERNELS / PIECES);
        pieces->between[i] = fact_event(0);
    }
}

static void rounds_run(void) {
    CUevent begin = fact_event(0), end = fact_event(0);
    for (int r = -5; r < HOST_ROUNDS; r++) {
        for (int f = 0; f < FORMS; f++) {
            fact_step("launching");
            double from = fact_now_us();
            launch(&forms[f]);
            if (r >= 0)
                forms[f].host[r] = fact_now_us() - from;
            CALL(cuStreamSynchronize, (lab.a));
        }
    }
    for (int r = 0; r < GPU_ROUNDS; r++) {
        for (int f = 0; f < FORMS; f++) {
            float ms = 0;
            CALL(cuEventRecord, (begin, lab.a));
            launch(&forms[f]);
            CALL(cuEventRecord, (end, lab.a));
            CALL(cuStreamSynchronize, (lab.a));
            CALL(cuEventElapsedTime, (&ms, begin, end));
            forms[f].gpu[r] = ms * 1000.0;
        }
    }
}

static void cost(int arg) {
    (void)arg;
    char text[600];
    int used = 0;
    forms_make();
    rounds_run();
    for (int f = 0; f < FORMS; f++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s: host %.2f, GPU %.1f",
                         f ? "; " : "", forms[f].name, fact_median(forms[f].host, HOST_ROUNDS),
                         fact_median(forms[f].gpu, GPU_ROUNDS));
    fact_say("%s", text);
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
