/*
 * One launch, verified. Runs on a program thread; allocates; waits for the GPU many times.
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

/* Checksums of all ranges after a run. */
enum run { BASE, GRAPH, AGAIN, EAGER, TWICE, RUNS };

struct job {
    const struct cus_verify *v;
    struct cus_saver *saver;
    struct cus_range_list list;
    uint64_t *sums;     /* RUNS times list.n */
    const uint64_t *at; /* what memory is now */
    uint8_t *enabled;   /* nodes, as they are; NULL: not known */
    bool lost;          /* the driver failed: nothing can be judged any more */
    bool ops_stand;     /* what memory holds is what the ops did */
    bool part;          /* it is what a part of them did, or of the graph: it cannot stay so */
    CUresult result;
};

static uint64_t *sums_of(struct job *job, enum run run) {
    return job->sums + (size_t)run * job->list.n;
}

/* Where it fails, once more: nothing may be in flight, whatever the driver says. */
static bool wait(struct job *job) {
    if (job->v->driver->cuStreamSynchronize(job->v->stream) != CUDA_SUCCESS) {
        job->v->driver->cuStreamSynchronize(job->v->stream);
        job->lost = true;
    }
    return !job->lost;
}

/* Memory as it was saved, if it is not. False: it is not, and what it holds stays. Whoever came in
 * meanwhile may have written what would be set back. */
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

/* The first `n` ops, one by one; what the program is told is what the last op says. */
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

/* `n` as for cut_off. */
static bool launch(struct job *job, uint32_t n, enum run run) {
    if (!set_back(job) || job->lost ||
        cus_exec_launch(job->v->driver, job->v->exec, job->v->stream) != CUDA_SUCCESS)
        return false;
    job->part = n < job->v->n;
    return wait(job) && sum_up(job, run);
}

/* The first range that is the same whenever the ops are issued, and another after the graph; -1:
 * there is none. `again` may be GRAPH itself. */
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

/* Makes the graph do its first `n` ops and no other. */
static bool cut_off(struct job *job, uint32_t n) {
    for (uint32_t i = 0; i < job->v->n; i++)
        if (job->enabled[i] && !cus_exec_enable(job->v->driver, job->v->exec, i, i < n))
            return false;
    return true;
}

/* Do the first `n` ops differ, as a graph (or, `graph` false, from themselves)? Ranges that the
 * whole of the ops does not leave the same twice are not looked at. */
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

/* By halves: the ops before `low` are the same, those before `high` differ. */
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

/* Once for each kernel: a graph with one that is known is not searched again. */
static void report_unstable(struct job *job) {
    const struct cus_verify *v = job->v;
    for (uint32_t i = 0; i < v->n; i++)
        if (cus_report_is_unstable(v->ops[i].kind->name))
            return;
    int op = find_op(job, false, NULL);
    if (op >= 0)
        cus_report_unstable(v->ops[op].kind->name);
}

/* ---- the whole ---- */

/* Chooses what to save. False: not verified, and why. */
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

/* Room for the sums, memory saved and summed. */
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

/* Not the same: what is the graph's fault and what the kernels' way? */
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

static enum cus_proof run(struct job *job, struct cus_verify_counts *counts) {
    if (cus_exec_launch(job->v->driver, job->v->exec, job->v->stream) != CUDA_SUCCESS) {
        cus_report_skip(CUS_UNVERIFIED_LAUNCH);
        return CUS_PROOF_NONE;
    }
    if (!wait(job) || cus_gate_forced() || !sum_up(job, GRAPH)) {
        counts->unjudged = 1;
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
        /* Memory may be as it was saved, or what a part of the ops did. */
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
