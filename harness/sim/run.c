/*
 * Executes a launch of a graph.
 *
 * Runs are made and freed under cusim.lock. cusim_graph_run_execute is called on a stream's worker
 * without it. If the edges leave a choice, the seed decides, so that a missing edge changes
 * results. With weak order, helper threads run nodes that nothing orders at the same time.
 */
#include "harness/sim/graph.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Fixes event nodes at the call: a record gets its mark, a wait the latest recording. */
struct cusim_graph_run *cusim_graph_run_new(struct cusim_plan *plan) {
    struct cusim_graph_run *run = calloc(1, sizeof *run);
    run->plan = plan;
    plan->refs++;
    for (unsigned i = 0; i < plan->topology->n; i++) {
        const struct cusim_work *work = plan->work[i];
        bool record = work->type == CUSIM_WORK_RECORD;
        if ((!record && work->type != CUSIM_WORK_WAIT) || !plan->enabled[i] ||
            !cusim_handle_is(work->event.event, CUSIM_EVENT))
            continue;
        struct cusim_event *event = work->event.event;
        if (!run->marks)
            run->marks = calloc(plan->topology->n, sizeof *run->marks);
        if (record) {
            struct cusim_timeline *tl = cusim_timeline_new();
            run->marks[i] = cusim_mark_new(tl, 1);
            cusim_timeline_unref(tl);
            cusim_event_forget_capture(event);
            cusim_mark_unref(event->last);
            event->last = cusim_mark_ref(run->marks[i]);
        } else if (event->last) {
            run->marks[i] = cusim_mark_ref(event->last);
        }
    }
    return run;
}

/* Also called after a skipped launch, because other work may wait for its events. */
void cusim_graph_run_free(struct cusim_graph_run *run) {
    for (unsigned i = 0; run->marks && i < run->plan->topology->n; i++) {
        if (run->marks[i] && run->plan->work[i]->type == CUSIM_WORK_RECORD)
            cusim_timeline_advance(run->marks[i]->tl, 1);
        cusim_mark_unref(run->marks[i]);
    }
    free(run->marks);
    cusim_plan_unref(run->plan);
    free(run);
}

static CUresult run_step(struct cusim_graph_run *run, unsigned i, struct cusim_stream *stream) {
    const struct cusim_work *work = run->plan->work[i];
    struct cusim_mark *mark = run->marks ? run->marks[i] : NULL;
    if (!run->plan->enabled[i] || work->type == CUSIM_WORK_EMPTY)
        return CUDA_SUCCESS;
    if (i > 0)
        cusim_delay();
    if (mark) {
        cusim_lock();
        if (work->type == CUSIM_WORK_RECORD) {
            mark->time_ns = cusim_now_ns();
            cusim_timeline_advance(mark->tl, 1);
        } else {
            cusim_timeline_wait(mark->tl, mark->target);
        }
        cusim_unlock();
    }
    cusim_activity_node(i + 1);
    if (cusim_log_on())
        cusim_work_log(work, stream->raw);
    CUresult result = cusim_work_run(work, stream, CUDA_SUCCESS);
    if (result != CUDA_SUCCESS) {
        cusim_lock();
        if (stream->ctx->error == CUDA_SUCCESS)
            stream->ctx->error = result;
        cusim_unlock();
    }
    return result;
}

/* CUSIM_GRAPH_ERROR, for tests of tests: each N-th launch of a graph with two or more nodes is
 * wrong. drop:N omits the node that would begin last. swap:N begins with the second node, if the
 * nodes are in a row. early:N takes each edge for a programmatic one, which matters with weak
 * order. edge:N ignores an edge of each N-th launch of a graph with branches. patch:N loses one of
 * N changes of nodes, by chance. */
static enum { PLANT_NOTHING, PLANT_DROP, PLANT_SWAP, PLANT_EARLY, PLANT_EDGE, PLANT_PATCH } planted;
static unsigned long plant_every;
static pthread_once_t plant_once = PTHREAD_ONCE_INIT;

static void plant_load(void) {
    static const char *const names[] = {"", "drop:", "swap:", "early:", "edge:", "patch:"};
    const char *text = getenv("CUSIM_GRAPH_ERROR");
    for (int i = PLANT_DROP; text && i <= PLANT_PATCH; i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0 &&
            (plant_every = strtoul(text + strlen(names[i]), NULL, 10)) > 0)
            planted = i;
}

static bool forks(const struct cusim_topology *t) {
    for (unsigned i = 0; i < t->n; i++)
        if (t->successors_at[i + 1] - t->successors_at[i] > 1)
            return true;
    return false;
}

/* The error of this launch. */
static int plant_now(const struct cusim_topology *t) {
    static atomic_ulong launches;
    pthread_once(&plant_once, plant_load);
    bool may =
        planted == PLANT_EDGE ? forks(t) : planted != PLANT_NOTHING && planted != PLANT_PATCH;
    return may && t->n > 1 && (launches++ + 1) % plant_every == 0 ? (int)planted : PLANT_NOTHING;
}

/* Under cusim.lock. */
bool cusim_patch_is_lost(void) {
    static uint64_t patches;
    pthread_once(&plant_once, plant_load);
    uint64_t state = cusim.options.seed + patches++;
    return planted == PLANT_PATCH && cusim_random(&state) % plant_every == 0;
}

static void run_in_a_row(struct cusim_graph_run *run, unsigned n, struct cusim_stream *stream,
                         int plant) {
    for (unsigned i = 0; i < n; i++) {
        unsigned step = plant == PLANT_SWAP && i < 2 ? 1 - i : i;
        if (plant == PLANT_DROP && i == n - 1)
            return;
        if (run_step(run, step, stream) != CUDA_SUCCESS)
            return;
    }
}

/* ---- branches ---- */

/* Where a launch stands; on the stack of its worker, under cusim.lock. */
struct progress {
    struct progress *next; /* of those that helpers see */
    struct cusim_graph_run *run;
    const struct cusim_topology *t;
    struct cusim_stream *stream;
    uint64_t correlation;
    int plant;
    unsigned lost; /* the edge that is ignored on purpose, or no edge's number */
    struct step {
        struct cusim_grid grid;
        struct progress *of;
        unsigned left; /* edges that keep it from beginning */
    } * steps;
    unsigned *ready, n_ready;
    unsigned begun, running;
    unsigned passed; /* see struct cusim_grid */
    bool stop;       /* a node failed, or is left out on purpose */
    pthread_cond_t changed;
};

enum { HELPERS = 16 };
static struct {
    pthread_cond_t cond;
    unsigned n, idle;
    struct progress *open;
} helpers = {.cond = PTHREAD_COND_INITIALIZER};

static bool may_run(const struct progress *p) {
    return p->n_ready > 0 && !p->stop;
}

static void loosen(struct progress *p, unsigned i) {
    if (--p->steps[i].left == 0)
        p->ready[p->n_ready++] = i;
}

static bool is_programmatic(const struct progress *p, unsigned edge) {
    return p->t->programmatic[edge] || p->plant == PLANT_EARLY;
}

static void *helper(void *unused);

/* Helpers take what the worker itself cannot run at the same time. */
static void call_help(struct progress *p) {
    if (!cusim.options.weak || !may_run(p))
        return;
    if (helpers.idle > 0) {
        pthread_cond_broadcast(&helpers.cond);
    } else if (helpers.n < HELPERS) {
        helpers.n++;
        cusim_thread_start(helper, NULL);
    }
}

static bool trigger(struct cusim_grid *grid) {
    struct step *step = (struct step *)((char *)grid - offsetof(struct step, grid));
    struct progress *p = step->of;
    unsigned i = (unsigned)(step - p->steps), were = p->n_ready;
    for (unsigned s = p->t->successors_at[i]; s < p->t->successors_at[i + 1]; s++)
        if (s != p->lost && is_programmatic(p, s))
            loosen(p, p->t->successors[s]);
    pthread_cond_broadcast(&p->changed);
    call_help(p);
    return p->n_ready > were;
}

static void finish(struct progress *p, unsigned i) {
    struct cusim_grid *grid = &p->steps[i].grid;
    cusim_grid_passed(grid);
    for (unsigned s = p->t->successors_at[i]; s < p->t->successors_at[i + 1]; s++) {
        if (s == p->lost)
            continue;
        p->steps[p->t->successors[s]].grid.behind--;
        if (!grid->triggered || !is_programmatic(p, s))
            loosen(p, p->t->successors[s]);
    }
}

/* Runs one node that is ready. Gives the lock back meanwhile. */
static void run_one(struct progress *p) {
    unsigned pick = (unsigned)(cusim_random(&cusim_thread_self()->random) % p->n_ready),
             i = p->ready[pick];
    struct cusim_grid *grid = &p->steps[i].grid;
    p->ready[pick] = p->ready[--p->n_ready];
    if (++p->begun == p->t->n && p->plant == PLANT_DROP) {
        p->stop = true;
        return;
    }
    grid->early = grid->behind > 0;
    p->running++;
    call_help(p);
    cusim_stop_if_exiting();
    cusim_unlock();
    cusim_activity_call(p->correlation);
    cusim_grid_enter(grid);
    CUresult result = run_step(p->run, i, p->stream);
    cusim_grid_enter(NULL);
    cusim_lock();
    p->running--;
    p->stop |= result != CUDA_SUCCESS;
    finish(p, i);
    pthread_cond_broadcast(&p->changed);
}

static void *helper(void *unused) {
    (void)unused;
    struct cusim_thread *self = cusim_thread_self();
    self->in_worker = true;
    cusim_lock();
    self->random = cusim.options.seed ^ helpers.n;
    for (;;) {
        struct progress *p = helpers.open;
        while (p && !may_run(p))
            p = p->next;
        if (p) {
            run_one(p);
            continue;
        }
        helpers.idle++;
        pthread_cond_wait(&helpers.cond, &cusim.lock);
        helpers.idle--;
    }
    return NULL;
}

static void run_branches(struct progress *p) {
    const struct cusim_topology *t = p->t;
    p->steps = calloc(t->n + 1, sizeof *p->steps);
    p->ready = malloc((t->n + 1) * sizeof *p->ready);
    pthread_cond_init(&p->changed, NULL);
    unsigned edges = t->successors_at[t->n];
    p->lost = p->plant == PLANT_EDGE
                  ? (unsigned)(cusim_random(&cusim_thread_self()->random) % edges)
                  : edges;
    for (unsigned i = 0; i < t->n; i++) {
        unsigned behind = t->indegree[i] - (p->lost < edges && t->successors[p->lost] == i);
        p->steps[i] = (struct step){.grid = {.changed = &p->changed,
                                             .passed = &p->passed,
                                             .behind = behind,
                                             .trigger = trigger},
                                    .of = p,
                                    .left = behind};
        if (behind == 0)
            p->ready[p->n_ready++] = i;
    }
    cusim_lock();
    p->next = helpers.open;
    helpers.open = p;
    while (may_run(p) || p->running > 0)
        if (may_run(p))
            run_one(p);
        else
            pthread_cond_wait(&p->changed, &cusim.lock);
    struct progress **at = &helpers.open;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    cusim_unlock();
    pthread_cond_destroy(&p->changed);
    free(p->steps);
    free(p->ready);
}

void cusim_graph_run_execute(struct cusim_graph_run *run, struct cusim_stream *stream,
                             uint64_t correlation) {
    const struct cusim_topology *t = run->plan->topology;
    int plant = plant_now(t);
    if (t->linear && plant != PLANT_EARLY) {
        run_in_a_row(run, t->n, stream, plant);
        return;
    }
    run_branches(&(struct progress){
        .run = run, .t = t, .stream = stream, .correlation = correlation, .plant = plant});
}
