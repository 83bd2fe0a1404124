/*
 * hostloop: a CUDA program whose host is the bottleneck. It launches small kernels in a chosen
 * pattern and prints one JSON line. It knows nothing of cusplice; tools/gpu-check runs it plain and
 * preloaded.
 *
 * lay_out prepares the places of a step, so the timed loop does little but launch; --graph makes
 * graphs of these places. Threads share only the context. Each launch mixes its place, scalar and
 * shape into its stream's buffer: a lost, doubled, reordered or stale launch changes the checksum.
 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/bench/clock.h"
#include "harness/bench/core.h"
#include "harness/bench/gpu.h"
#include "harness/bench/hostloop.h"

enum {
    GRID = 2,
    GRIDS = 8,
    BLOCKS = 4,
    SHARED = 48 * 1024, /* SHARED: every kernel may have it */
    SPAN = 8            /* SPAN: bytes of a memset or copy */
};
enum { UPLOAD = 4, LARGE_UPLOAD = 16 * 1024 };
enum { TELLING = 20 /* the fewest steps with a reported median */ };

enum what { LAUNCH, SET, COPY };

/* One operation of a step. */
struct place {
    struct gpu_launch launch; /* in a step without changes */
    enum what what;
    unsigned stream;
    unsigned char *to, *from; /* destination of a memset or copy; source of a copy */
    unsigned number;
    bool scalar_changes, grid_changes, shared_changes, block_changes;
    gpu_event record; /* is recorded behind it; NULL: none */
    gpu_node node;    /* in the graph of its part */
};

/* Consecutive places that are issued at once: a graph, or one place outside of graphs. */
struct part {
    gpu_exec exec; /* NULL: places[first] itself */
    unsigned first, end, stream;
    bool changes;
};

struct run {
    const struct options *opt;
    unsigned number;
    gpu_stream streams[STREAMS_MAX];
    unsigned *state[STREAMS_MAX];
    struct place *places;
    struct part *parts;
    unsigned n_parts;
    gpu_event began_at, ended_at; /* of a step, on the GPU */
    gpu_event forks, joins; /* --fork: recorded in each layer, on the first and the second stream */
    void *uploaded;         /* whose contents count for nothing */
    uint64_t issued, random;
    pthread_barrier_t *warm;     /* where threads meet before the first counted step, or NULL */
    uint64_t *host, *wall, *gpu; /* ns of each counted step */
    enum core *core;             /* with --core: during the launches of each step */
    uint64_t began, ended;       /* ns: begin and end of the counted steps */
};

static void *need(size_t n, size_t size) {
    void *memory = calloc(n, size);
    if (!memory) {
        fputs("hostloop: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* ---- what a step is ---- */

static bool each(unsigned every, unsigned place) {
    return every && place % every == every - 1;
}

static unsigned buffers(const struct options *o) {
    return o->fork ? 3 : o->streams;
}

/* Each stream has a buffer. The second stream of --fork has two, for even and odd layers, and the
 * first launch of the first stream in a layer works on the buffer of the layer before. A fork or
 * join that is lost changes the result so, and nothing races. */
static unsigned buffer_of(const struct options *o, unsigned number, unsigned stream) {
    const unsigned layer = number / LAYER;
    if (!o->fork || (!stream && number % LAYER))
        return stream;
    return 1 + (layer + !stream) % 2;
}

/* The operation of a place never changes, except in the random pattern. */
static struct place place_of(const struct run *run, unsigned number) {
    const struct options *o = run->opt;
    unsigned stream = number / o->run % o->streams;
    struct place p = {
        .what = each(o->memset_every, number) ? SET
                : each(o->copy_every, number) ? COPY
                                              : LAUNCH,
        .stream = stream,
        .number = number,
        .scalar_changes = each(o->scalar_every, number),
        .grid_changes = each(o->grid_every, number),
        .shared_changes = each(o->shared_every, number),
        .block_changes = each(o->block_every, number),
        .launch = {.state = run->state[buffer_of(o, number, stream)],
                   .grid = GRID,
                   .block = BLOCK,
                   .scalar = number},
    };
    p.launch.kernel =
        each(o->eager_every, number) ? EAGER : (number * 7 + number / 11) % o->kernels;
    /* Two different spans of the buffer. */
    unsigned spans = WORDS * sizeof(unsigned) / SPAN, to = number * 5 % spans;
    p.to = (unsigned char *)p.launch.state + to * SPAN;
    p.from = (unsigned char *)p.launch.state + (to + 3) % spans * SPAN;
    return p;
}

/* The launch of a place in a step. */
static inline struct gpu_launch launch_of(const struct place *p, unsigned step) {
    struct gpu_launch l = p->launch;
    if (p->scalar_changes)
        l.scalar += step * 2246822519u;
    if (p->grid_changes)
        l.grid = 1 + (p->number + step) % GRIDS;
    if (p->shared_changes)
        l.shared = step * 4 % SHARED;
    if (p->block_changes)
        l.block = BLOCK * (1 + (p->number + step) % BLOCKS);
    return l;
}

static inline bool changes(const struct place *p) {
    return p->scalar_changes || p->grid_changes || p->shared_changes || p->block_changes;
}

static gpu_node add_node(gpu_graph graph, gpu_node behind, const struct place *p) {
    switch (p->what) {
    case SET:
        return gpu_graph_set(graph, behind, p->to, (int)(p->number & 0xff), SPAN);
    case COPY:
        return gpu_graph_copy(graph, behind, p->to, p->from, SPAN);
    default:
        return gpu_graph_launch(graph, behind, &p->launch);
    }
}

static bool is_eager(const struct place *p) {
    return p->what == LAUNCH && p->launch.kernel == EAGER;
}

/* Tells whether a place ends the part before it. A whole graph takes everything: each stream is
 * a branch. */
static bool cuts(const struct options *o, const struct part *part, const struct place *p) {
    return o->segment &&
           (p->number - part->first == o->segment || p->stream != part->stream || is_eager(p));
}

/* The first operation of each stream in a layer is also behind the last one of the other stream in
 * the layer before: `ended` of both. */
static void add_fork(gpu_graph graph, const gpu_node ended[2], const struct place *p) {
    if (p->number % LAYER < 2 && ended[!p->stream])
        gpu_graph_edge(graph, ended[!p->stream], p->node);
}

static struct part part_from(struct run *run, unsigned first) {
    const struct options *o = run->opt;
    struct part part = {.first = first, .end = first + 1, .stream = run->places[first].stream};
    if (o->segment && is_eager(&run->places[first]))
        return part;
    gpu_graph graph = gpu_graph_new();
    gpu_node last[STREAMS_MAX] = {NULL}, ended[2] = {NULL};
    for (part.end = first; part.end < o->launches; part.end++) {
        struct place *p = &run->places[part.end];
        if (part.end > first && cuts(o, &part, p))
            break;
        if (o->fork && p->number % LAYER == 0)
            memcpy(ended, last, sizeof ended);
        last[p->stream] = p->node = add_node(graph, last[p->stream], p);
        if (o->fork)
            add_fork(graph, ended, p);
        if (p->record)
            last[p->stream] = gpu_graph_record(graph, p->node, p->record);
        part.changes |= changes(p);
    }
    part.exec = gpu_exec_new(graph, run->streams[part.stream]);
    return part;
}

static void lay_out(struct run *run) {
    const struct options *o = run->opt;
    run->places = need(o->launches, sizeof *run->places);
    for (unsigned number = 0; number < o->launches; number++) {
        struct place *place = &run->places[number];
        unsigned record = number / (o->record_every ? o->record_every : 1);
        *place = place_of(run, number);
        if (!each(o->record_every, number))
            continue;
        /* The one that was recorded `record_events` records before, or a new one. */
        place->record = o->record_events && record >= o->record_events
                            ? place[-(ptrdiff_t)(o->record_events * o->record_every)].record
                            : gpu_event_new(o->record_timed);
    }
    if (!o->graph)
        return;
    run->parts = need(o->launches, sizeof *run->parts);
    for (unsigned at = 0; at < o->launches; at = run->parts[run->n_parts - 1].end)
        run->parts[run->n_parts++] = part_from(run, at);
}

/* ---- steps ---- */

/* Around a launch: memory of one of three sizes. Three of four launches work on it, so that most
 * addresses change; its contents count for nothing. */
static void issue_with_memory(struct run *run, const struct place *p, unsigned step) {
    gpu_stream stream = run->streams[p->stream];
    struct gpu_launch l = launch_of(p, step);
    void *memory = gpu_alloc(stream, (size_t)2048 << 2 * ((p->number + step) % 3));
    if (p->number % 4 != 3)
        l.state = memory;
    gpu_launch(stream, &l);
    gpu_free(stream, memory);
    run->issued++;
}

static inline void issue(struct run *run, const struct place *p, unsigned step) {
    gpu_stream stream = run->streams[p->stream];
    if (p->what == SET) {
        gpu_set(stream, p->to, (int)(p->number & 0xff), SPAN);
    } else if (p->what == COPY) {
        gpu_copy(stream, p->to, p->from, SPAN);
    } else if (run->opt->alloc) {
        issue_with_memory(run, p, step);
    } else {
        struct gpu_launch l = launch_of(p, step);
        gpu_launch(stream, &l);
        run->issued++;
    }
    if (p->record)
        gpu_event_record(p->record, stream);
}

static void issue_random(struct run *run, unsigned number) {
    run->random = run->random * 6364136223846793005u + 1442695040888963407u;
    struct gpu_launch l = run->places[number].launch;
    l.kernel = (run->random >> 33) % run->opt->random;
    gpu_launch(run->streams[0], &l);
    run->issued++;
}

/* The second stream is forked before a layer's first launch, and joined behind the last. */
static void issue_layers(struct run *run, unsigned step) {
    gpu_stream first = run->streams[0], second = run->streams[1];
    for (unsigned i = 0; i < run->opt->launches; i++) {
        if (i % LAYER == 0) {
            gpu_event_record(run->forks, first);
            gpu_event_wait(run->forks, second);
        }
        issue(run, &run->places[i], step);
        if (i % LAYER == LAYER - 1) {
            gpu_event_record(run->joins, second);
            gpu_event_wait(run->joins, first);
        }
    }
}

/* Values that change, from the stack, after a third and after two thirds of a step. */
static void issue_upload(struct run *run, unsigned place, unsigned step) {
    const unsigned third = run->opt->launches / 3;
    unsigned char values[LARGE_UPLOAD];
    if (place != third && place != 2 * third)
        return;
    memset(values, (int)step, sizeof values);
    gpu_upload(run->streams[0], run->uploaded, values, place == third ? UPLOAD : LARGE_UPLOAD);
}

static void issue_part(struct run *run, const struct part *part, unsigned step) {
    if (!part->exec) {
        issue(run, &run->places[part->first], step);
        return;
    }
    for (unsigned at = part->first; part->changes && at < part->end; at++) {
        const struct place *p = &run->places[at];
        if (p->what == LAUNCH && changes(p)) {
            struct gpu_launch l = launch_of(p, step);
            gpu_exec_patch(part->exec, p->node, &l);
        }
    }
    gpu_exec_launch(part->exec, run->streams[part->stream]);
}

static void issue_step(struct run *run, unsigned step) {
    if (run->opt->graph)
        for (unsigned i = 0; i < run->n_parts; i++)
            issue_part(run, &run->parts[i], step);
    else if (run->opt->random)
        for (unsigned i = 0; i < run->opt->launches; i++)
            issue_random(run, i);
    else if (run->opt->fork)
        issue_layers(run, step);
    else
        for (unsigned i = 0; i < run->opt->launches; i++) {
            if (run->opt->upload)
                issue_upload(run, i, step);
            issue(run, &run->places[i], step);
        }
    gpu_checked();
}

/* A program that runs several of these in turn stops all but one, each between two steps. */
static volatile sig_atomic_t over;

static void on_over(int number) {
    (void)number;
    over = 1;
}

static void stop_if_over(void) {
    if (!over)
        return;
    over = 0;
    raise(SIGSTOP);
}

static void stop_before_first(void) {
    signal(SIGUSR2, on_over);
    raise(SIGSTOP);
}

/* Runs steps that end in a synchronisation. */
static void run_steps(struct run *run) {
    const struct options *o = run->opt;
    for (unsigned step = 0; step < o->warmup + o->steps; step++) {
        if (step == o->warmup) {
            if (run->warm)
                pthread_barrier_wait(run->warm);
            if (o->stops)
                stop_before_first();
            run->began = now_ns();
        }
        stop_if_over();
        const double before = o->core ? core_ratio() : 0;
        uint64_t begin = now_ns(), issued;
        if (o->events)
            gpu_event_record(run->began_at, run->streams[0]);
        issue_step(run, step);
        if (o->events)
            gpu_event_record(run->ended_at, run->streams[0]);
        issued = now_ns();
        const double behind = o->core ? core_ratio() : 0;
        /* With --fork the second stream is joined. */
        for (unsigned i = 0; i < (o->fork ? 1 : o->streams); i++)
            gpu_stream_wait(run->streams[i]);
        if (step < o->warmup)
            continue;
        run->host[step - o->warmup] = issued - begin;
        run->core[step - o->warmup] = core_between(before, behind);
        run->wall[step - o->warmup] = now_ns() - begin;
        if (o->events)
            run->gpu[step - o->warmup] =
                (uint64_t)(gpu_event_us(run->began_at, run->ended_at) * 1e3);
    }
    run->ended = now_ns();
}

static void *thread_steps(void *arg) {
    gpu_thread();
    run_steps(arg);
    return NULL;
}

/* Runs the same steps in each of several threads. Returns the time from the moment when all
 * threads were warm to the end of the last thread's last step. */
static uint64_t run_threads(struct run *runs, unsigned n) {
    pthread_t threads[THREADS_MAX];
    pthread_barrier_t warm;
    pthread_barrier_init(&warm, NULL, n);
    for (unsigned i = 0; i < n; i++) {
        runs[i].warm = &warm;
        if (pthread_create(&threads[i], NULL, thread_steps, &runs[i])) {
            fputs("hostloop: no thread\n", stderr);
            exit(2);
        }
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&warm);
    uint64_t began = runs[0].began, ended = runs[0].ended;
    for (unsigned i = 1; i < n; i++) {
        began = runs[i].began < began ? runs[i].began : began;
        ended = runs[i].ended > ended ? runs[i].ended : ended;
    }
    return ended - began;
}

/* ---- what is said of them ---- */

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t quantile(const uint64_t *sorted, unsigned n, double q) {
    return sorted[(unsigned)(q * (n - 1) + 0.5)];
}

/* With --core: prints how many steps found their core as `found`, and the host's median time of
 * an operation if there are enough steps. */
static void say_core(const struct run *run, enum core found, const char *name) {
    uint64_t *host = need(run->opt->steps, sizeof *host);
    unsigned n = 0;
    for (unsigned i = 0; i < run->opt->steps; i++)
        if (run->core[i] == found)
            host[n++] = run->host[i];
    qsort(host, n, sizeof *host, by_value);
    printf("\"steps_%s\": %u, ", name, n);
    if (n >= TELLING)
        printf("\"host_%s_ns\": %.2f, ", name, (double)quantile(host, n, 0.5) / run->opt->launches);
    free(host);
}

static long resident_kb(void) {
    long pages = 0, rss = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%ld %ld", &pages, &rss) != 2)
            rss = 0;
        fclose(f);
    }
    return rss * (sysconf(_SC_PAGESIZE) / 1024);
}

static uint64_t checksum(const struct run *run, uint64_t hash) {
    for (unsigned s = 0; s < buffers(run->opt); s++) {
        unsigned host[WORDS];
        gpu_read(host, run->state[s]);
        for (unsigned i = 0; i < sizeof host; i++)
            hash = (hash ^ ((const unsigned char *)host)[i]) * 1099511628211u;
    }
    return hash;
}

static const char *mode_of(const struct options *o) {
    return o->threads        ? "threads"
           : o->loop         ? "loop"
           : o->segment      ? "segments"
           : o->graph        ? "graph"
           : o->fork         ? "forked"
           : o->streams > 1  ? "streams"
           : o->random       ? "random"
           : o->alloc        ? "alloc"
           : o->record_every ? "recorded"
           : o->upload       ? "uploads"
           : o->eager_every  ? "eager"
           : o->scalar_every ? "patched"
                             : "plain";
}

/* The first stream of --fork is the one of --stream, and the second does not block. */
static gpu_stream new_stream(const struct options *o, unsigned number) {
    const bool nonblocking =
        o->threads || o->stream == STREAM_NONBLOCKING || (o->fork ? number > 0 : o->streams > 1);
    return !nonblocking && o->stream == STREAM_LEGACY ? NULL : gpu_stream_new(nonblocking);
}

/* Makes buffers, streams and samples of one thread's steps; its part begins at `samples`. */
static void prepare(struct run *run, const struct options *o, struct run *all, unsigned samples) {
    run->opt = o;
    run->random = 42;
    run->host = all->host + samples, run->wall = all->wall + samples, run->gpu = all->gpu + samples;
    run->core = all->core + samples;
    for (unsigned s = 0; s < buffers(o); s++)
        run->state[s] = gpu_buffer();
    for (unsigned s = 0; s < o->streams; s++)
        run->streams[s] = new_stream(o, s);
    if (o->fork)
        run->forks = gpu_event_new(0), run->joins = gpu_event_new(0);
    if (o->upload)
        run->uploaded = gpu_memory(LARGE_UPLOAD);
    if (o->events)
        run->began_at = gpu_event_new(1), run->ended_at = gpu_event_new(1);
    gpu_wait();
    /* Run every kernel once before the measurement: the first launch loads code and takes
     * memory. */
    for (unsigned k = 0; run == all && k <= KERNELS; k++) {
        struct gpu_launch l = {
            .state = run->state[0], .kernel = k, .grid = GRID, .block = BLOCK, .scalar = k};
        gpu_launch(run->streams[0], &l);
        run->issued++;
    }
    gpu_wait();
    lay_out(run);
}

int main(int argc, char **argv) {
    struct options opt;
    options_parse(argc, argv, &opt);
    const struct options *o = &opt;
    unsigned n_runs = o->threads ? o->threads : 1, samples = o->loop ? 1 : n_runs * o->steps;
    struct run *runs = need(n_runs, sizeof *runs);
    runs[0].host = need(samples, sizeof(uint64_t));
    runs[0].wall = need(samples, sizeof(uint64_t));
    runs[0].gpu = need(samples, sizeof(uint64_t));
    runs[0].core = need(samples, sizeof(enum core));
    gpu_start();
    for (unsigned i = 0; i < n_runs; i++)
        prepare(&runs[i], o, runs, i * o->steps);

    size_t device_before = gpu_used();
    long rss_before = resident_kb(), rss_quarter = 0;
    uint64_t begin = now_ns(), together = 0, *host = runs[0].host, *wall = runs[0].wall;
    if (o->threads) {
        together = run_threads(runs, o->threads);
    } else if (o->loop) {
        for (unsigned turn = 0; turn < o->turns; turn++) {
            issue_step(&runs[0], turn);
            if (turn == o->turns / 4)
                rss_quarter = resident_kb();
        }
        host[0] = (now_ns() - begin) / o->turns;
        gpu_wait();
        wall[0] = (now_ns() - begin) / o->turns;
    } else {
        run_steps(&runs[0]);
    }
    uint64_t total = now_ns() - begin;
    long rss_end = resident_kb();
    size_t device_after = gpu_used();
    struct rusage usage_now;
    getrusage(RUSAGE_SELF, &usage_now);

    uint64_t sum = 14695981039346656037u, issued = 0;
    for (unsigned i = 0; i < n_runs; i++) {
        issued += runs[i].issued;
        sum = checksum(&runs[i], sum);
    }
    printf("{\"program\": \"hostloop\", ");
    if (o->core) {
        say_core(&runs[0], CORE_ALONE, "alone");
        say_core(&runs[0], CORE_BESIDE, "beside");
    }
    qsort(host, samples, sizeof *host, by_value);
    qsort(wall, samples, sizeof *wall, by_value);
    qsort(runs[0].gpu, samples, sizeof *runs[0].gpu, by_value);
    uint64_t median = quantile(wall, samples, 0.5);
    /* With several threads: the rate of kernels of all threads together. */
    double kernel = o->threads ? (double)together / ((double)samples * o->launches)
                               : (double)median / o->launches;
    printf("\"api\": \"%s\", \"mode\": \"%s\", \"threads\": %u, "
           "\"streams\": %u, \"launches\": %u, \"steps\": %u, \"graphs\": %u, ",
           gpu_api, mode_of(o), n_runs, o->streams, o->launches, o->loop ? o->turns : o->steps,
           runs[0].n_parts);
    printf("\"median_ms\": %.6f, \"p10_ms\": %.6f, \"p90_ms\": %.6f, \"wall_ns\": %.1f, "
           "\"host_ns\": %.2f, \"host_p10_ns\": %.2f, \"host_p90_ns\": %.2f, \"gpu_us\": %.3f, "
           "\"total_ms\": %.3f, ",
           median / 1e6, quantile(wall, samples, 0.1) / 1e6, quantile(wall, samples, 0.9) / 1e6,
           kernel, (double)quantile(host, samples, 0.5) / o->launches,
           (double)quantile(host, samples, 0.1) / o->launches,
           (double)quantile(host, samples, 0.9) / o->launches,
           quantile(runs[0].gpu, samples, 0.5) / 1e3, total / 1e6);
    if (o->alloc)
        printf("\"pool_kb\": %llu, ", (unsigned long long)gpu_pool_most() / 1024);
    printf("\"issued\": %llu, \"rss_before_kb\": %ld, \"rss_quarter_kb\": %ld, "
           "\"rss_end_kb\": %ld, \"rss_max_kb\": %ld, \"device_kb\": %lld, "
           "\"checksum\": \"%016llx\"}\n",
           (unsigned long long)issued, rss_before, rss_quarter, rss_end, (long)usage_now.ru_maxrss,
           ((long long)device_after - (long long)device_before) / 1024, (unsigned long long)sum);
    return 0;
}
