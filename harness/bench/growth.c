/*
 * A program of a chosen size: options set the launches of a step, the number of different steps,
 * streams and threads. It shows whether a launch costs the same however large the program is.
 *
 * It knows nothing of cusplice but the counters of cusplice.h. Each thread has its own streams and
 * memory. A step is `nodes` launches (chain.h) on one stream and a synchronisation; the streams
 * take turns. Callgrind counts only the measured steps with --instr-atstart=no
 * --toggle-collect='measured*'.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/bench/chain.h"
#include "harness/bench/clock.h"
#include "shim/include/cusplice.h"

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif
#ifndef CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_START_INSTRUMENTATION ((void)0)
#define CALLGRIND_STOP_INSTRUMENTATION ((void)0)
#endif

enum {
    DIGIT = 100,     /* of HANDLES functions: the choices for one launch of a prefix */
    SEGMENT_MB = 16, /* MiB of each block that --alloc-mb allocates */
    /* Times that a step comes as launches before the program makes graphs of it by hand: a
     * program that captures warms up first, and a driver remembers launches. */
    BY_LAUNCHES = 2,
    THREADS_MAX = 64,
};

/* How the steps that take turns differ. */
enum differ {
    DIFFER_PREFIX, /* in their first two launches; the rest is the same */
    DIFFER_ORDER,  /* in every launch: another sequence of functions */
    DIFFER_GRID,   /* in the grids of all launches; the functions are the same */
};
static const char *const differ_names[] = {"prefix", "order", "grid"};

static struct {
    unsigned nodes, signatures, streams, threads, steps, warmup, alloc_mb, seed;
    unsigned graphs; /* launches of a graph made by hand; 0: no graphs */
    enum differ differ;
    bool random;   /* choose the next signature at random */
    bool fill;     /* take all memory, once */
    bool allocate; /* allocate memory in each step: a call that covers all streams */
} opt = {.nodes = 1000, .signatures = 1, .streams = 1, .threads = 1, .seed = 1};

static CUcontext context;
static pthread_barrier_t barrier;

struct stream {
    CUstream handle;
    CUdeviceptr memory;
    CUgraphExec *execs;  /* graphs_each() for each signature, once the step has come */
    unsigned char *came; /* how often each signature came */
};

struct worker {
    unsigned number;
    struct stream *streams;
    uint64_t done; /* steps so far, with warm-up */
    uint64_t rng;
    uint64_t host_ns, wall_ns, worst_ns; /* of the measured steps; the longest of them */
};

/* The function of launch `i` in a step of this signature. */
static unsigned which(unsigned signature, unsigned i) {
    if (opt.differ == DIFFER_ORDER)
        return (unsigned)(chain_mix((uint64_t)signature << 32 | i) % HANDLES);
    if (opt.differ == DIFFER_PREFIX && i < 2)
        return (i ? signature / DIGIT : signature) % DIGIT;
    return (unsigned)(chain_mix(i) % HANDLES);
}

static void launch(const struct stream *s, unsigned signature, unsigned i) {
    unsigned grid = 1;
    if (opt.differ == DIFFER_GRID)
        grid += i % 2 ? signature % DIGIT : signature / DIGIT;
    chain_launch(chain_functions[which(signature, i)], grid, i, s->memory, s->handle);
}

static unsigned graphs_each(void) {
    return (opt.nodes + opt.graphs - 1) / opt.graphs;
}

/* Captures the launches into graphs one after another. */
static void capture(struct stream *s, unsigned signature, CUgraphExec *execs) {
    for (unsigned i = 0; i < opt.nodes;) {
        CUgraph graph;
        unsigned end = i + opt.graphs < opt.nodes ? i + opt.graphs : opt.nodes;
        OK(cu.cuStreamBeginCapture(s->handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        for (; i < end; i++)
            launch(s, signature, i);
        OK(cu.cuStreamEndCapture(s->handle, &graph));
        OK(cu.cuGraphInstantiateWithFlags(execs++, graph, 0));
        OK(cu.cuGraphDestroy(graph));
    }
}

static void issue(struct stream *s, unsigned signature) {
    if (!opt.graphs || s->came[signature] < BY_LAUNCHES) {
        for (unsigned i = 0; i < opt.nodes; i++)
            launch(s, signature, i);
        if (opt.graphs)
            s->came[signature]++;
        return;
    }
    CUgraphExec *execs = &s->execs[(size_t)signature * graphs_each()];
    if (!*execs)
        capture(s, signature, execs);
    for (unsigned i = 0; i < graphs_each(); i++)
        OK(cu.cuGraphLaunch(execs[i], s->handle));
}

/* Destroys all graphs made by hand; nothing may run. */
static void destroy(struct worker *w) {
    for (unsigned i = 0; opt.graphs && i < opt.streams; i++)
        for (size_t at = 0; at < (size_t)opt.signatures * graphs_each(); at++) {
            CUgraphExec *exec = &w->streams[i].execs[at];
            if (*exec)
                OK(cu.cuGraphExecDestroy(*exec));
            *exec = NULL;
        }
}

static void step(struct worker *w) {
    struct stream *s = &w->streams[w->done % opt.streams];
    uint64_t turn = w->done / opt.streams;
    if (opt.random)
        turn = w->rng = w->rng * 6364136223846793005u + 1442695040888963407u, turn >>= 33;
    w->done++;
    uint64_t start = now_ns();
    issue(s, (unsigned)(turn % opt.signatures));
    uint64_t launched = now_ns();
    if (opt.allocate) {
        CUdeviceptr p;
        OK(cu.cuMemAlloc(&p, sizeof(unsigned)));
        OK(cu.cuMemFree(p));
    }
    OK(cu.cuStreamSynchronize(s->handle));
    uint64_t end = now_ns();
    w->host_ns += launched - start;
    w->wall_ns += end - start;
    if (end - start > w->worst_ns)
        w->worst_ns = end - start;
}

/* Callgrind counts inside this name. */
__attribute__((noinline)) static void measured(struct worker *w) {
    for (unsigned i = 0; i < opt.steps; i++)
        step(w);
}

static uint64_t worst_warm_ns;

static void *work(void *arg) {
    struct worker *w = arg;
    OK(cu.cuCtxSetCurrent(context));
    for (unsigned i = 0; i < opt.warmup; i++)
        step(w);
    if (w->number == 0)
        worst_warm_ns = w->worst_ns;
    w->host_ns = w->wall_ns = w->worst_ns = 0;
    pthread_barrier_wait(&barrier); /* between the two the main thread reads the counters */
    pthread_barrier_wait(&barrier);
    measured(w);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void prepare(struct worker *w, unsigned number) {
    *w = (struct worker){.number = number, .rng = opt.seed + number};
    w->streams = calloc(opt.streams, sizeof *w->streams);
    for (unsigned i = 0; w->streams && i < opt.streams; i++) {
        OK(cu.cuStreamCreate(&w->streams[i].handle, CU_STREAM_NON_BLOCKING));
        w->streams[i].memory = chain_memory(number * 1000 + i);
        if (!opt.graphs)
            continue;
        w->streams[i].execs =
            calloc((size_t)opt.signatures * graphs_each(), sizeof *w->streams[i].execs);
        w->streams[i].came = calloc(opt.signatures, sizeof *w->streams[i].came);
        if (!w->streams[i].execs || !w->streams[i].came)
            chain_must(CUDA_ERROR_OUT_OF_MEMORY, "calloc");
    }
}

static uint64_t checksum(const struct worker *w) {
    uint64_t sum = 0;
    for (unsigned t = 0; t < opt.threads; t++)
        for (unsigned i = 0; i < opt.streams; i++)
            sum = chain_sum(sum, w[t].streams[i].memory);
    return sum;
}

/* Takes all memory that the driver gives, and returns it at once. */
static unsigned fill(void) {
    size_t free_now, total;
    OK(cu.cuMemGetInfo(&free_now, &total));
    unsigned most = (unsigned)(total / ((size_t)SEGMENT_MB << 20)), n = 0;
    CUdeviceptr *segments = calloc(most + 1, sizeof *segments);
    while (segments && n < most &&
           cu.cuMemAlloc(&segments[n], (size_t)SEGMENT_MB << 20) == CUDA_SUCCESS)
        n++;
    for (unsigned i = 0; i < n; i++)
        OK(cu.cuMemFree(segments[i]));
    free(segments);
    return n * SEGMENT_MB;
}

/* Allocates what the program itself needs of the GPU's memory, late: it must succeed. */
static void allocate(void) {
    for (unsigned mb = 0; mb < opt.alloc_mb; mb += SEGMENT_MB) {
        CUdeviceptr p;
        OK(cu.cuMemAlloc(&p, (size_t)SEGMENT_MB << 20));
    }
}

static long resident_kb(void) {
    long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    int got = f ? fscanf(f, "%ld %ld", &size, &pages) : 0;
    if (f)
        fclose(f);
    return got == 2 ? pages * (sysconf(_SC_PAGESIZE) / 1024) : 0;
}

static const char usage[] =
    "usage: growth [--nodes N] [--signatures N] [--streams N] [--threads N] [--steps N]\n"
    "              [--warmup N] [--differ prefix|order|grid] [--random] [--allocate] [--fill]\n"
    "              [--alloc-mb N] [--seed N]\n"
    "  --steps N      measured steps of each thread; 0: enough for about 100000 launches\n"
    "  --warmup N     steps before them; 0: 16 for each signature on each stream, and 24\n"
    "  --allocate     each step allocates memory and frees it, before it waits\n"
    "  --graphs N     graphs of N launches each, made by hand when a step comes the third time;\n"
    "                 destroyed where all memory is filled\n"
    "  --fill         between the two, all device memory is allocated and freed: filled_mb\n"
    "  --alloc-mb N   device memory in MiB that the program allocates between the two\n";

static void parse(int argc, char **argv) {
    struct {
        const char *name;
        unsigned *to, least, most;
    } numbers[] = {
        {"--nodes", &opt.nodes, 1, 10000000},       {"--signatures", &opt.signatures, 1, 10000},
        {"--streams", &opt.streams, 1, 4096},       {"--threads", &opt.threads, 1, THREADS_MAX},
        {"--steps", &opt.steps, 0, 1000000000},     {"--warmup", &opt.warmup, 0, 1000000000},
        {"--alloc-mb", &opt.alloc_mb, 0, 10000000}, {"--seed", &opt.seed, 0, 1000000000},
        {"--graphs", &opt.graphs, 0, 10000000},
    };
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool known = false;
        if (strcmp(argv[i], "--random") == 0) {
            opt.random = known = true;
        } else if (strcmp(argv[i], "--fill") == 0) {
            opt.fill = known = true;
        } else if (strcmp(argv[i], "--allocate") == 0) {
            opt.allocate = known = true;
        } else if (strcmp(argv[i], "--differ") == 0) {
            for (unsigned d = 0; d < sizeof differ_names / sizeof *differ_names; d++)
                if (strcmp(value, differ_names[d]) == 0) {
                    opt.differ = (enum differ)d;
                    known = true;
                }
            i++;
        } else {
            for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
                char *end;
                unsigned long number = strtoul(value, &end, 10);
                if (strcmp(argv[i], numbers[n].name) != 0)
                    continue;
                known = *value && !*end && number >= numbers[n].least && number <= numbers[n].most;
                *numbers[n].to = (unsigned)number;
            }
            i++;
        }
        if (!known) {
            fprintf(stderr, "growth: what is meant by %s %s?\n%s",
                    argv[i < argc ? i - 1 : argc - 1], value, usage);
            exit(2);
        }
    }
    uint64_t turns = (uint64_t)opt.signatures * opt.streams;
    if (!opt.warmup)
        opt.warmup = (unsigned)(16 * turns) + 24;
    if (!opt.steps) {
        uint64_t wanted = 100000 / opt.nodes + 1;
        opt.steps = (unsigned)(wanted > turns ? wanted : turns);
    }
}

int main(int argc, char **argv) {
    parse(argc, argv);
    context = chain_open();
    struct worker *w = calloc(opt.threads, sizeof *w);
    pthread_t threads[THREADS_MAX];
    pthread_barrier_init(&barrier, NULL, opt.threads + 1);
    for (unsigned t = 0; t < opt.threads; t++)
        prepare(&w[t], t);
    OK(cu.cuCtxSynchronize()); /* uploads are not ordered with these streams */
    size_t free_early = 0, all_memory;
    OK(cu.cuMemGetInfo(&free_early, &all_memory));
    for (unsigned t = 0; t < opt.threads; t++)
        if (pthread_create(&threads[t], NULL, work, &w[t])) {
            fprintf(stderr, "growth: no thread\n");
            return 3;
        }
    struct cusplice_counters before, after;
    pthread_barrier_wait(&barrier);
    cusplice_read_counters(&before, sizeof before);
    allocate();
    for (unsigned t = 0; opt.fill && t < opt.threads; t++)
        destroy(&w[t]);
    unsigned filled_mb = opt.fill ? fill() : 0;
    CALLGRIND_START_INSTRUMENTATION;
    uint64_t begin = now_ns();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    uint64_t all_ns = now_ns() - begin;
    CALLGRIND_STOP_INSTRUMENTATION;
    size_t known = cusplice_read_counters(&after, sizeof after);
    size_t free_late = 0;
    OK(cu.cuMemGetInfo(&free_late, &all_memory));
    long long device_kb =
        ((long long)free_early - (long long)free_late) / 1024 -
        (long long)((opt.alloc_mb + SEGMENT_MB - 1) / SEGMENT_MB) * SEGMENT_MB * 1024;
    for (unsigned t = 0; t < opt.threads; t++)
        pthread_join(threads[t], NULL);

    uint64_t host = 0, worst = 0;
    for (unsigned t = 0; t < opt.threads; t++) {
        host += w[t].host_ns;
        worst = w[t].worst_ns > worst ? w[t].worst_ns : worst;
    }
    double launches = (double)opt.threads * opt.steps * opt.nodes;
    printf("{\"nodes\": %u, \"signatures\": %u, \"streams\": %u, \"threads\": %u, \"steps\": %u, "
           "\"warmup\": %u, \"differ\": \"%s\", \"launches\": %.0f, \"host_ns\": %.2f, "
           "\"wall_ns\": %.2f, \"worst_step_us\": %.1f, \"worst_warm_step_us\": %.1f, "
           "\"rss_kb\": %ld, \"device_kb\": %lld, \"filled_mb\": %u, \"checksum\": \"%016llx\"",
           opt.nodes, opt.signatures, opt.streams, opt.threads, opt.steps, opt.warmup,
           differ_names[opt.differ], launches, (double)host / launches, (double)all_ns / launches,
           (double)worst / 1000, (double)worst_warm_ns / 1000, resident_kb(), device_kb, filled_mb,
           (unsigned long long)checksum(w));
    if (known) {
        double ops = (double)(after.launches - before.launches);
        printf(", \"in_graphs\": %.5f, \"patched\": %.5f, \"graph_launches\": %.5f, "
               "\"graph_bytes\": %llu, \"build_us\": %llu, \"build_us_warm\": %llu",
               (double)(after.in_graphs - before.in_graphs) / ops,
               (double)(after.patched_nodes - before.patched_nodes) / ops,
               (double)(after.graph_launches - before.graph_launches) / ops,
               (unsigned long long)after.graph_bytes,
               (unsigned long long)(after.build_us - before.build_us),
               (unsigned long long)before.build_us);
    }
    printf("}\n");
    return 0;
}
