/*
 * The queue of a stream, and the thread that empties it.
 *
 * A worker takes the first operation, waits for its dependencies, gives cusim.lock back, sleeps for
 * a random time, executes, takes the lock again, and advances the timeline. Until then the
 * operation stays in the queue. A stream has more than one worker only if programmatic launches may
 * begin before the kernel in front of them ends. Its dependencies are fixed when it is queued: the
 * legacy stream and the blocking streams of its context wait for each other, and the caller may add
 * more before it gives the lock back.
 */
#include "harness/sim/cusim.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

void cusim_op_depend(struct cusim_op *op, struct cusim_timeline *tl, uint64_t target) {
    if (tl->done >= target)
        return;
    if (op->n_deps == op->cap_deps) {
        unsigned capacity = op->cap_deps * 2;
        struct cusim_dep *deps = malloc(capacity * sizeof *deps);
        for (unsigned i = 0; i < op->n_deps; i++)
            deps[i] = op->deps[i];
        if (op->deps != op->inline_deps)
            free(op->deps);
        op->deps = deps;
        op->cap_deps = capacity;
    }
    op->deps[op->n_deps].tl = cusim_timeline_ref(tl);
    op->deps[op->n_deps++].target = target;
}

static void op_free(struct cusim_op *op) {
    for (unsigned i = 0; i < op->n_deps; i++)
        cusim_timeline_unref(op->deps[i].tl);
    if (op->deps != op->inline_deps)
        free(op->deps);
    cusim_work_unref(op->work);
    cusim_mark_unref(op->mark);
    if (op->run)
        cusim_graph_run_free(op->run);
    free(op);
}

/* A sleep takes some 50 us however short it is. So three of four short delays wait for those that
 * come next, and are slept together with them. */
void cusim_delay(void) {
    enum { SHORT_US = 50 };
    unsigned most = atomic_load_explicit(&cusim.options.delay_us, memory_order_relaxed);
    if (most == 0)
        return;
    struct cusim_thread *thread = cusim_thread_self();
    uint64_t random = cusim_random(&thread->random), us = thread->late_us += random % (most + 1u);
    bool later = us < SHORT_US && !cusim.options.weak && random >> 32 & 3;
    if (us == 0 || later)
        return;
    thread->late_us = 0;
    nanosleep(&(struct timespec){.tv_sec = (time_t)(us / 1000000),
                                 .tv_nsec = (long)(us % 1000000) * 1000},
              NULL);
}

/* The process ends while this thread has work left: it starts nothing more, and dies with the
 * process. */
void cusim_stop_if_exiting(void) {
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    while (cusim.exiting)
        pthread_cond_wait(&never, &cusim.lock);
}

static void execute(struct cusim_stream *stream, struct cusim_op *op, CUresult state) {
    cusim_delay();
    CUresult result = state == CUDA_SUCCESS ? op->late : CUDA_SUCCESS;
    cusim_activity_call(op->correlation);
    if (op->run) {
        if (state == CUDA_SUCCESS)
            cusim_graph_run_execute(op->run, stream, op->correlation);
    } else {
        if (op->work->type == CUSIM_WORK_RECORD && op->mark)
            op->mark->time_ns = cusim_now_ns(); /* read only after the timeline advanced */
        /* Before it runs: one that overlaps may end first. */
        if (state == CUDA_SUCCESS && cusim_log_on())
            cusim_work_log(op->work, stream->raw);
        cusim_grid_enter(&op->grid);
        CUresult ran = cusim_work_run(op->work, stream, state);
        cusim_grid_enter(NULL);
        if (result == CUDA_SUCCESS)
            result = ran;
    }
    if (result != CUDA_SUCCESS) {
        cusim_lock();
        if (stream->ctx->error == CUDA_SUCCESS)
            stream->ctx->error = result;
        cusim_unlock();
    }
    if (cusim.options.weak) /* effects show before completion does */
        cusim_delay();
}

static void stream_free(struct cusim_stream *stream) {
    cusim_handle_remove(
        stream); /* the context is gone; its address may have another object by now */
    if (stream->prev)
        stream->prev->next = stream->next;
    else
        stream->ctx->streams = stream->next;
    if (stream->next)
        stream->next->prev = stream->prev;
    cusim_timeline_unref(stream->tl);
    for (unsigned i = 0; i < stream->n_waits && i < CUSIM_WAITS; i++)
        cusim_timeline_unref(stream->waits[i].tl);
    pthread_cond_destroy(&stream->work_cond);
    free(stream->frontier);
    free(stream);
}

/* All before it have finished, or it overlaps with the kernel before it. */
static bool may_begin(const struct cusim_stream *stream, const struct cusim_op *op) {
    if (op == stream->head)
        return true;
    const struct cusim_op *before = stream->before;
    bool at_start =
        op->work->type == CUSIM_WORK_RECORD && op->work->event.fires == CUSIM_FIRES_AT_START;
    return op->overlaps &&
           (before->finished || (at_start ? before->grid.started : before->grid.triggered));
}

static bool trigger(struct cusim_grid *grid) {
    const struct cusim_op *op =
        (const struct cusim_op *)((char *)grid - offsetof(struct cusim_op, grid));
    pthread_cond_broadcast(grid->changed);
    return op->next && op->next->overlaps;
}

static void begin(struct cusim_stream *stream, struct cusim_op *op) {
    bool early = op != stream->head && !stream->before->finished;
    op->grid.behind = early;
    /* When an event fires early, the kernel goes on later: who waits for the event may begin. */
    op->grid.early = early && op->work->type != CUSIM_WORK_RECORD;
    stream->fresh = op->next;
    stream->before = op;
}

/* The timeline advances over all that finished in a row. */
static void finish(struct cusim_stream *stream, struct cusim_op *op) {
    op->finished = true;
    if (op->mark && op->mark->tl != stream->tl)
        cusim_timeline_advance(op->mark->tl, op->mark->target);
    cusim_grid_passed(&op->grid);
    if (op->next)
        op->next->grid.behind = 0;
    while ((op = stream->head) && op->finished) {
        stream->head = op->next;
        if (!stream->head) {
            stream->tail = NULL;
            cusim.n_busy--;
        }
        if (stream->before == op)
            stream->before = NULL;
        cusim_timeline_advance(stream->tl, op->seq);
        op_free(op);
    }
    if (stream->n_workers > 1)
        pthread_cond_broadcast(&stream->work_cond);
}

/* Nothing may begin: waits until that may have changed. */
static void idle(struct cusim_stream *stream) {
    if (!stream->fresh && cusim_log_on()) {
        cusim_unlock();
        cusim_log_flush();
        cusim_lock();
        if (stream->fresh || (stream->closing && !stream->head))
            return;
    }
    stream->n_idle++;
    pthread_cond_wait(&stream->work_cond, &cusim.lock);
    stream->n_idle--;
}

/* Streams get connections in turn. */
static void join_connection(struct cusim_stream *stream, struct cusim_op *op) {
    struct cusim_ctx *ctx = stream->ctx;
    if (cusim.options.connections == 0)
        return;
    if (!stream->connection) {
        stream->connection = &ctx->connections[ctx->connected++ % cusim.options.connections];
        if (!stream->connection->begun)
            stream->connection->begun = cusim_timeline_new();
    }
    op->ticket = ++stream->connection->submitted;
}

/* Those behind it in the connection may begin. */
static void begun(struct cusim_stream *stream, const struct cusim_op *op) {
    if (op->ticket > 0)
        cusim_timeline_advance(stream->connection->begun, op->ticket);
}

static void *worker(void *argument) {
    struct cusim_stream *stream = argument;
    struct cusim_thread *self = cusim_thread_self();
    self->in_worker = true;
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
    cusim_lock();
    self->random = stream->random++;
    while (stream->head || !stream->closing) {
        struct cusim_op *op = stream->fresh;
        if (!op || !may_begin(stream, op)) {
            idle(stream);
            continue;
        }
        begin(stream, op);
        for (unsigned i = 0; i < op->n_deps; i++)
            cusim_timeline_wait(op->deps[i].tl, op->deps[i].target);
        if (op->ticket > 0)
            cusim_timeline_wait(stream->connection->begun, op->ticket - 1);
        /* The connection itself waits for a value. */
        bool blocks = op->work->type == CUSIM_WORK_WAIT_VALUE;
        if (!blocks)
            begun(stream, op);
        cusim_stop_if_exiting();
        CUresult state = stream->ctx->error;
        cusim_unlock();
        execute(stream, op, state);
        cusim_lock();
        if (blocks)
            begun(stream, op);
        finish(stream, op);
    }
    if (--stream->n_workers == 0)
        stream_free(stream);
    cusim_unlock();
    return NULL;
}

void cusim_thread_start(void *(*run)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 8u << 20);
    sigfillset(&all); /* only the program's threads handle its signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!started)
        abort(); /* without a thread for the work nothing later could be right */
}

static bool overlaps(const struct cusim_stream *stream, const struct cusim_work *work) {
    bool early = work->type == CUSIM_WORK_RECORD ? work->event.fires != CUSIM_FIRES_BEHIND
                                                 : cusim_work_overlaps(work);
    return early && cusim.options.weak && stream->tail &&
           stream->tail->work->type == CUSIM_WORK_KERNEL;
}

struct cusim_op *cusim_enqueue(struct cusim_stream *stream, struct cusim_work *work) {
    struct cusim_op *op = calloc(1, sizeof *op);
    op->deps = op->inline_deps;
    op->cap_deps = sizeof op->inline_deps / sizeof op->inline_deps[0];
    op->work = work;
    op->late = cusim_take_late();
    op->seq = ++stream->submitted;
    op->correlation = ++cusim.calls;
    if (stream->legacy) {
        for (struct cusim_stream *s = stream->ctx->streams; s; s = s->next)
            if (s != stream && !(s->flags & CU_STREAM_NON_BLOCKING))
                cusim_op_depend(op, s->tl, s->submitted);
    } else if (!(stream->flags & CU_STREAM_NON_BLOCKING) && stream->ctx->legacy) {
        cusim_op_depend(op, stream->ctx->legacy->tl, stream->ctx->legacy->submitted);
    }
    join_connection(stream, op);
    op->grid = (struct cusim_grid){
        .changed = &stream->work_cond, .passed = &stream->passed, .trigger = trigger};
    op->overlaps = overlaps(stream, work);
    op->grid.tells_start = cusim_work_tells_start(work);
    if (!stream->fresh) {
        stream->fresh = op;
        stream->before = stream->tail;
    }
    if (stream->tail) {
        stream->tail->next = op;
    } else {
        stream->head = op;
        cusim.n_busy++;
    }
    stream->tail = op;
    if (stream->n_workers == 0 || (op->overlaps && stream->n_workers < CUSIM_WORKERS)) {
        stream->n_workers++;
        cusim_thread_start(worker, stream);
    } else if (stream->n_idle > 0) {
        pthread_cond_broadcast(&stream->work_cond); /* grids wait here, too */
    }
    return op;
}

CUresult cusim_submit(struct cusim_stream *stream, struct cusim_work *work) {
    if (stream->capture)
        return cusim_capture_work(stream, work);
    cusim_enqueue(stream, work);
    return CUDA_SUCCESS;
}

struct cusim_stream *cusim_stream_new(struct cusim_ctx *ctx, unsigned flags, int priority) {
    static uint64_t next_raw;
    struct cusim_stream *stream = calloc(1, sizeof *stream);
    stream->ctx = ctx;
    stream->id = cusim_new_id();
    stream->raw = next_raw++;
    stream->random = cusim.options.seed ^ (stream->raw + 1) * 0x2545f4914f6cdd1du;
    stream->flags = flags;
    stream->priority = priority;
    stream->tl = cusim_timeline_new();
    pthread_cond_init(&stream->work_cond, NULL);
    stream->next = ctx->streams;
    if (ctx->streams)
        ctx->streams->prev = stream;
    ctx->streams = stream;
    return stream;
}

void cusim_stream_close(struct cusim_stream *stream) {
    if (stream->capture)
        cusim_capture_stream_gone(stream);
    stream->closing = true;
    if (stream->n_workers == 0)
        stream_free(stream);
    else
        pthread_cond_broadcast(&stream->work_cond);
}

void cusim_stream_note_wait(struct cusim_stream *stream, struct cusim_timeline *tl,
                            uint64_t target) {
    struct cusim_dep *wait = &stream->waits[stream->n_waits % CUSIM_WAITS];
    if (stream->n_waits++ >= CUSIM_WAITS)
        cusim_timeline_unref(wait->tl);
    *wait = (struct cusim_dep){cusim_timeline_ref(tl), target};
}

bool cusim_stream_waits_for(const struct cusim_stream *stream, const struct cusim_timeline *tl,
                            uint64_t target) {
    for (unsigned i = 0; i < stream->n_waits && i < CUSIM_WAITS; i++)
        if (stream->waits[i].tl == tl && stream->waits[i].target >= target)
            return true;
    return false;
}

bool cusim_stream_done(struct cusim_stream *stream) {
    if (stream->tl->done < stream->submitted)
        return false;
    if (stream->legacy)
        for (struct cusim_stream *s = stream->ctx->streams; s; s = s->next)
            if (!(s->flags & CU_STREAM_NON_BLOCKING) && s->tl->done < s->submitted)
                return false;
    return true;
}

void cusim_stream_wait(struct cusim_stream *stream) {
    if (!stream->legacy) {
        cusim_timeline_wait(stream->tl, stream->submitted);
        return;
    }
    struct cusim_dep *deps = NULL;
    size_t n = 0, capacity = 0;
    for (struct cusim_stream *s = stream->ctx->streams; s; s = s->next) {
        if ((s->flags & CU_STREAM_NON_BLOCKING) || s->tl->done >= s->submitted)
            continue;
        if (n == capacity)
            deps = realloc(deps, (capacity = capacity ? capacity * 2 : 16) * sizeof *deps);
        deps[n].tl = cusim_timeline_ref(s->tl);
        deps[n++].target = s->submitted;
    }
    for (size_t i = 0; i < n; i++) {
        cusim_timeline_wait(deps[i].tl, deps[i].target);
        cusim_timeline_unref(deps[i].tl);
    }
    free(deps);
}
