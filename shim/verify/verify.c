/*
 * Verifies one launch. Runs on a program thread, allocates, and waits for the GPU many times.
 */
#include "shim/verify/verify.h"

#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/graph/issue.h"
#include "shim/verify/device.h"
#include "shim/verify/gate.h"
#include "shim/verify/plant.h"
#include "shim/verify/report.h"

/* The checksums of all ranges after each of these runs. */
enum run { BASE, GRAPH, AGAIN, EAGER, TWICE, RUNS };

struct job {
    const struct cus_verify *v;
    struct cus_saver *saver;
    struct cus_range_list list;
    uint64_t *sums;     /* RUNS times list.n */
    const uint64_t *at; /* the sums of memory as it is now */
    uint8_t *enabled;   /* of nodes, before the search; NULL: unknown */
    bool lost;          /* the driver failed: no further result counts */
    bool ops_stand;     /* memory holds what all ops did */
    bool part;          /* memory holds what a part of the ops or of the graph did: it must be
                         * restored */
    CUresult result;
    CUresult error; /* by which the context was lost */
};

static uint64_t *sums_of(struct job *job, enum run run) {
    return job->sums + (size_t)run * job->list.n;
}

/* Waits once more after a failure: nothing may be in flight, whatever the driver says. If that
 * fails too, the context is lost. */
static bool wait(struct job *job) {
    if (job->v->driver->cuStreamSynchronize(job->v->stream) != CUDA_SUCCESS) {
        job->error = job->v->driver->cuStreamSynchronize(job->v->stream);
        job->lost = true;
    }
    return !job->lost;
}

/* Restores saved memory if it has changed. False: it was not restored, and its contents stay. If
 * a thread came in meanwhile, it may have written what would be restored. */
static bool set_back(struct job *job) {
    const uint64_t *base = sums_of(job, BASE);
    bool done = true, moved = true, forced = cus_gate_forced();
    job->lost |= forced;
    if (job->at != base && !job->part && forced)
        return false;
    if (job->at != base)
        done = cus_saver_restore(job->saver, &job->list, job->at, base, &moved);
    job->lost |= !done;
    if (!done && !moved)
        return false;
    job->at = base;
    job->ops_stand = false;
    return true;
}

static bool sum_up(struct job *job, enum run run) {
    job->lost = job->lost || !cus_saver_sums(job->saver, &job->list, sums_of(job, run));
    job->at = sums_of(job, run);
    return !job->lost;
}

/* Issues the first `n` ops one by one. The program receives the result of the last op's call. */
static bool issue(struct job *job, uint32_t n, enum run run) {
    if (!set_back(job))
        return false;
    for (uint32_t i = 0; i < n; i++)
        job->result = cus_issue(job->v->driver, job->v->ops[i].kind, job->v->ops[i].requested,
                                job->v->stream);
    job->at = sums_of(job, run);
    job->ops_stand = n == job->v->n;
    job->part = n < job->v->n;
    return wait(job) && sum_up(job, run);
}

/* The context was lost: by op `op`, or by the graph (-1). */
static void report_lost(const struct job *job, int op) {
    const struct cus_verify *v = job->v;
    cus_report_lost(&(struct cus_loss){.error = job->error,
                                       .stream = v->stream_id,
                                       .ops = v->n,
                                       .op = op,
                                       .first = v->ops[op < 0 ? 0 : op].kind,
                                       .last = v->ops[v->n - 1].kind});
}

/* Issues the ops one by one and waits behind each, so that one that loses the context is known.
 * False: nothing can be said of the graph, and what the ops did stands. */
static bool try_each(struct job *job) {
    for (uint32_t i = 0; i < job->v->n; i++) {
        job->result = cus_issue(job->v->driver, job->v->ops[i].kind, job->v->ops[i].requested,
                                job->v->stream);
        if (!job->lost && !wait(job) && job->error != CUDA_SUCCESS)
            report_lost(job, (int)i);
    }
    job->ops_stand = true;
    return !job->lost && sum_up(job, EAGER);
}

/* `n` as for cut_off. */
static bool launch(struct job *job, uint32_t n, enum run run) {
    if (!set_back(job) || job->lost ||
        cus_exec_launch(job->v->driver, job->v->exec, job->v->stream) != CUDA_SUCCESS)
        return false;
    job->part = n < job->v->n;
    return wait(job) && sum_up(job, run);
}

/* The first range that is the same each time the ops are issued, and differs after the graph;
 * -1: none. `again` may be GRAPH itself. */
static int first_difference(struct job *job, enum run again) {
    const uint64_t *graph = sums_of(job, GRAPH), *more = sums_of(job, again);
    const uint64_t *eager = sums_of(job, EAGER), *twice = sums_of(job, TWICE);
    for (uint32_t i = 0; i < job->list.n; i++)
        if (eager[i] == twice[i] && graph[i] != eager[i] && more[i] != eager[i])
            return (int)i;
    return -1;
}

static bool same(struct job *job, enum run a, enum run b) {
    return memcmp(sums_of(job, a), sums_of(job, b), job->list.n * sizeof *job->sums) == 0;
}

/* ---- the first op that differs ---- */

/* Switches the graph's nodes so that it does its first `n` ops and no other. */
static bool cut_off(struct job *job, uint32_t n) {
    for (uint32_t i = 0; i < job->v->n; i++)
        if (job->enabled[i] && !cus_exec_enable(job->v->driver, job->v->exec, i, i < n))
            return false;
    return true;
}

/* True: the first `n` ops give different results as a graph than one by one; or, with `graph`
 * false, one by one at two times. With `graph`, ranges that all ops together do not leave the
 * same twice do not count. */
static bool differs_at(struct job *job, uint32_t n, bool graph, const bool *stable) {
    if (graph ? !cut_off(job, n) || !launch(job, n, GRAPH) : !issue(job, n, GRAPH))
        return false;
    if (!issue(job, n, AGAIN))
        return false;
    const uint64_t *a = sums_of(job, GRAPH), *b = sums_of(job, AGAIN);
    for (uint32_t i = 0; i < job->list.n; i++)
        if (a[i] != b[i] && (!graph || stable[i]))
            return true;
    return false;
}

/* Searches by halves: the ops before `low` give the same result, those before `high` differ. */
static int find_op(struct job *job, bool graph, const bool *stable) {
    uint32_t low = 0, high = job->v->n;
    while (high - low > 1 && !job->lost) {
        uint32_t middle = low + (high - low) / 2;
        if (differs_at(job, middle, graph, stable))
            high = middle;
        else
            low = middle;
    }
    return job->lost ? -1 : (int)high - 1;
}

static bool know_enabled(struct job *job) {
    const struct cus_verify *v = job->v;
    job->enabled = v->driver->cuGraphNodeGetEnabled && v->driver->cuGraphNodeSetEnabled
                       ? cus_mem_alloc(v->n)
                       : NULL;
    for (uint32_t i = 0; job->enabled && i < v->n; i++)
        job->enabled[i] = cus_exec_enabled(v->driver, v->exec, i);
    return job->enabled != NULL;
}

static void report_difference(struct job *job, int range) {
    const struct cus_verify *v = job->v;
    struct cus_difference found = {.stream = v->stream_id,
                                   .ops = v->n,
                                   .op = -1,
                                   .made = v->made,
                                   .range = job->list.ranges[range]};
    bool *stable = cus_mem_alloc(job->list.n * sizeof *stable);
    for (uint32_t i = 0; stable && i < job->list.n; i++)
        stable[i] = sums_of(job, EAGER)[i] == sums_of(job, TWICE)[i];
    if (stable && know_enabled(job)) {
        found.op = find_op(job, true, stable);
        cut_off(job, v->n);
    }
    if (found.op >= 0)
        found.what = v->ops[found.op];
    cus_mem_free(stable);
    cus_report_difference(&found);
}

/* Once per kernel: a graph with a known kernel of this sort is not searched again. */
static void report_unstable(struct job *job) {
    const struct cus_verify *v = job->v;
    for (uint32_t i = 0; i < v->n; i++)
        if (cus_report_is_unstable(v->ops[i].kind->name))
            return;
    int op = find_op(job, false, NULL);
    if (op >= 0)
        cus_report_unstable(v->ops[op].kind->name);
}

/* ---- one verified launch ---- */

/* Chooses what memory to save. False: the launch is not verified, for the reason *why. */
static bool choose_memory(struct job *job, bool *all, enum cus_unverified *why) {
    const struct cus_verify *v = job->v;
    uint64_t budget = (uint64_t)cus_options()->verify_mb << 20;
    *why = CUS_UNVERIFIED_HOST_MEMORY;
    *all = true;
    cus_memory_all(v->driver, v->context, &job->list);
    if (!cus_memory_of_ops(v->driver, v->ops, v->n, &job->list))
        return false;
    if (job->list.failed || cus_memory_bytes(&job->list, false) > budget) {
        *all = false;
        cus_memory_free(&job->list);
        if (!cus_memory_of_ops(v->driver, v->ops, v->n, &job->list))
            return false;
    }
    cus_memory_tidy(&job->list);
    *why = job->list.failed ? CUS_UNVERIFIED_NO_MEMORY : CUS_UNVERIFIED_BUDGET;
    return !job->list.failed && cus_memory_bytes(&job->list, false) <= budget;
}

/* Allocates the sums, saves memory and sums it up. */
static bool begin(struct job *job, bool *all, enum cus_unverified *why) {
    if (!(job->saver = cus_saver_get(job->v->driver, job->v->context))) {
        *why = CUS_UNVERIFIED_DRIVER;
        return false;
    }
    if (!choose_memory(job, all, why))
        return false;
    *why = CUS_UNVERIFIED_NOTHING;
    if (job->list.n == 0)
        return false;
    *why = CUS_UNVERIFIED_NO_MEMORY;
    if (!(job->sums = cus_mem_alloc(RUNS * job->list.n * sizeof *job->sums)) ||
        !cus_saver_save(job->saver, &job->list))
        return false;
    *why = CUS_UNVERIFIED_DRIVER;
    return sum_up(job, BASE);
}

/* The sums differ. Runs graph and ops once more, to tell a fault of the graph from kernels that
 * do not give the same result twice. */
static enum cus_proof judge(struct job *job, struct cus_verify_counts *counts) {
    if (!launch(job, job->v->n, AGAIN) || !issue(job, job->v->n, TWICE)) {
        counts->unjudged = 1;
        return CUS_PROOF_GOOD;
    }
    int range = first_difference(job, AGAIN);
    if (range >= 0) {
        counts->differing = 1;
        report_difference(job, range);
    } else {
        counts->unstable = 1;
        report_unstable(job);
    }
    return range >= 0 ? CUS_PROOF_BAD : CUS_PROOF_GOOD;
}

/* Nothing can be said of the graph. */
static void count_unjudged(const struct job *job, struct cus_verify_counts *counts) {
    if (job->error != CUDA_SUCCESS)
        cus_report_skip(CUS_UNVERIFIED_LOST);
    else
        counts->unjudged = 1;
}

static enum cus_proof run(struct job *job, struct cus_verify_counts *counts) {
    if (!try_each(job) || !set_back(job)) {
        count_unjudged(job, counts);
        return CUS_PROOF_GOOD;
    }
    if (job->lost ||
        cus_exec_launch(job->v->driver, job->v->exec, job->v->stream) != CUDA_SUCCESS) {
        cus_report_skip(CUS_UNVERIFIED_LAUNCH);
        return CUS_PROOF_NONE;
    }
    if (!wait(job) || cus_gate_forced() || !sum_up(job, GRAPH)) {
        if (job->error != CUDA_SUCCESS)
            report_lost(job, -1);
        count_unjudged(job, counts);
        return CUS_PROOF_LAUNCHED;
    }
    if (!issue(job, job->v->n, EAGER)) {
        counts->unjudged = 1;
        return CUS_PROOF_GOOD;
    }
    if (!same(job, GRAPH, EAGER))
        return judge(job, counts);
    counts->same = 1;
    return CUS_PROOF_GOOD;
}

enum cus_proof cus_verify(const struct cus_verify *verify, CUresult *result) {
    struct cus_verify planted_in = *verify;
    struct job job = {.v = &planted_in};
    struct cus_verify_counts counts = {0};
    enum cus_unverified why;
    enum cus_proof proof = CUS_PROOF_NONE;
    uint64_t start = cus_clock_ns();
    bool all = false;
    if (begin(&job, &all, &why)) {
        struct cus_planted planted;
        counts.planted = cus_plant(&planted_in, cus_saver_stream(job.saver), &planted);
        proof = run(&job, &counts);
        /* Memory may still hold what was saved, or what a part of the ops did. */
        if (proof > CUS_PROOF_LAUNCHED && !job.ops_stand)
            issue(&job, verify->n, EAGER);
        cus_unplant(&planted_in, &planted);
        counts.checked = counts.same + counts.differing + counts.unstable;
        counts.ops = counts.checked ? verify->n : 0;
        counts.bytes = cus_memory_bytes(&job.list, false) + cus_memory_bytes(&job.list, true);
        counts.all_memory = counts.checked && all;
        counts.by_pointers = counts.checked && !all;
    } else {
        cus_report_skip(why);
    }
    counts.ns = cus_clock_ns() - start;
    cus_report_count(&counts);
    *result = job.result;
    cus_mem_free(job.enabled);
    cus_mem_free(job.sums);
    cus_memory_free(&job.list);
    return proof;
}
