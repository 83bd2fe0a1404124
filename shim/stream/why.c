/*
 * Collects facts for the reports from engines and rules. Runs at exit, on the thread that writes
 * the stats file, or on the watchdog. Takes one engine's lock at a time, then the list lock; a
 * thread that drops an engine's segments takes the list lock too. Never calls the driver, never
 * allocates.
 */
#include <stdio.h>

#include "shim/base/clock.h"
#include "shim/stats/tally.h"
#include "shim/stream/access.h"
#include "shim/stream/advice.h"
#include "shim/stream/state.h"
#include "shim/stream/why.h"

/* The largest segments that went with their stream, context or code. */
static struct cus_report_segment kept[CUS_REPORT_SEGMENTS]; /* list_lock */
static unsigned n_kept;                                     /* list_lock */
static uint64_t gone, gone_ops, gone_bytes;                 /* list_lock */

static struct cus_report_segment note(const struct cus_segment *segment, bool went) {
    struct cus_report_segment note = {.ops = segment->n,
                                      .variants = segment->n_variants,
                                      .launches = segment->fired,
                                      .gone = went};
    for (const struct cus_variant *it = segment->newest; it; it = it->older)
        note.bytes += cus_exec_bytes(it->exec);
    snprintf(note.first, sizeof note.first, "%s", segment->places[0].kind->name);
    snprintf(note.last, sizeof note.last, "%s", segment->places[segment->n - 1].kind->name);
    return note;
}

void cus_why_keep_segments(struct cus_engine *engine) {
    cus_lock_take(&cus_process.list_lock);
    for (const struct cus_segment *segment = engine->view.segments; segment;
         segment = segment->next) {
        struct cus_report_segment one = note(segment, true);
        if (!one.variants)
            continue;
        cus_report_add_segment(kept, &n_kept, &one);
        gone++;
        gone_ops += one.ops;
        gone_bytes += one.bytes;
    }
    cus_lock_give(&cus_process.list_lock);
}

void cus_why_drop(void) {
    n_kept = 0;
    gone = gone_ops = gone_bytes = 0;
}

/* Is this step the first of its sort? Most of its ops made new nodes, and the plan had not
 * forgotten these nodes because of another step. */
static bool is_first(const struct cus_engine *engine, uint64_t ops, uint64_t fresh) {
    return fresh * 2 >= ops && !engine->view.again;
}

/* A step ended, and the next one begins. */
static void time_step(struct cus_engine *engine, uint64_t ops, uint64_t in_graphs) {
    struct cus_learning *learning = &engine->learning;
    if (!cus_learning_counts(learning, ops))
        return;
    uint64_t began = engine->timed_ns;
    uint64_t now = cus_learning_wants(learning) ? cus_clock_ns() : 0;
    struct cus_learning_step step = {.ops = (uint32_t)(ops < UINT32_MAX ? ops : UINT32_MAX),
                                     .in_graphs = (uint32_t)in_graphs};
    if (began && now) {
        struct cus_account account =
            cus_account_since(cus_engine_account(engine), engine->building.began);
        step.ns = now - began;
        step.saved_ns = cus_account_balance(&account);
    }
    cus_learning_add(learning, &step);
    if (cus_learning_wants(learning))
        engine->timed_ns = now ? now : cus_clock_ns();
    else
        engine->timed_ns = 0;
}

void cus_step_covered(struct cus_engine *engine) {
    uint64_t ops = cus_engine_ops(engine) - engine->step_at;
    uint64_t graphs = engine->counters.in_graphs - engine->step_graphs;
    uint64_t fresh = engine->view.new_nodes - engine->step_new;
    engine->step_at += ops;
    engine->step_graphs += graphs;
    engine->step_new += fresh;
    if (ops)
        time_step(engine, ops, graphs);
    if (!ops || ops * 2 < engine->step_longest)
        return;
    if (ops > engine->step_longest * 2)
        engine->step_number = engine->step_covered = 0; /* earlier steps only led up to this one */
    if (ops > engine->step_longest)
        engine->step_longest = ops;
    if (!engine->step_number || !is_first(engine, ops, fresh))
        engine->step_number++;
    if (!engine->step_covered && graphs * 100 >= ops * 95)
        engine->step_covered = engine->step_number;
}

/* Engine lock held. */
static void add_segments(struct cus_report *report, struct cus_engine *engine) {
    for (struct cus_segment *segment = engine->view.segments; segment; segment = segment->next) {
        struct cus_report_segment one = note(segment, false);
        cus_segment_tally(segment);
        if (!one.variants)
            continue;
        report->segments++;
        report->segment_ops += one.ops;
        report->segment_bytes += one.bytes;
        cus_report_add_segment(report->largest, &report->n_segments, &one);
    }
}

static void add_rules(struct cus_report *report) {
    const struct cus_rules *rules = cus_rules();
    const struct cus_rule *rule;
    for (unsigned i = 0; (rule = cus_rules_get(rules, i)); i++) {
        if (cus_rules_matched(rules, i))
            continue;
        if (report->n_rules == CUS_REPORT_RULES) {
            report->more_rules++;
            continue;
        }
        struct cus_report_rule *to = &report->rules[report->n_rules++];
        to->policy = cus_policy_name(rule->policy);
        to->pattern = rule->pattern;
        to->file = rule->file;
        to->line = rule->line;
        cus_report_nearest(rule->pattern, to->nearest);
    }
}

uint64_t cus_why_let_pass(void) {
    uint64_t sum = 0;
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++)
        for (unsigned type = 0; type < CUS_OP_TYPES; type++)
            sum += __atomic_load_n(&cus_process.engines[i]->passed[type], __ATOMIC_RELAXED);
    return sum;
}

void cus_engine_report(struct cus_report *report, const struct cus_counters *counters,
                       const char *(*api_name)(unsigned row)) {
    *report = (struct cus_report){.counters = counters,
                                  .mode = cus_mode_name(cus_options()->mode),
                                  .off = __atomic_load_n(&cus_process.off_why, __ATOMIC_ACQUIRE)};
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        if (!cus_engine_take_in_time(engine))
            continue;
        add_segments(report, engine);
        uint64_t ops = engine->closed ? 0 : cus_engine_ops(engine) - engine->earlier_ops;
        if (ops > most) {
            most = ops;
            report->first_step_in_graphs = engine->step_covered;
            report->learned = cus_learning_sum(&engine->learning);
        }
        report->nodes += cus_plan_nodes(cus_engine_plan(engine));
        cus_engine_unlock(engine);
    }
    cus_lock_take(&cus_process.list_lock);
    report->gone = gone;
    report->gone_ops = gone_ops;
    report->gone_bytes = gone_bytes;
    if (cus_process.step_ops > most) {
        report->first_step_in_graphs = cus_process.step_covered;
        report->learned = cus_process.learned;
    }
    for (unsigned i = 0; i < n_kept; i++)
        cus_report_add_segment(report->largest, &report->n_segments, &kept[i]);
    cus_lock_give(&cus_process.list_lock);
    report->host_bytes = cus_mem_held();
    report->host_bytes_most = cus_mem_most();
    report->host_refused = cus_mem_refused();
    cus_advice_facts(&report->cache);
    cus_report_breaks(report, counters, cus_why_let_pass(), api_name);
    cus_report_shapes(report);
    add_rules(report);
}
