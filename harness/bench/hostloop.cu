/*
 * hostloop: a CUDA program whose host is the bottleneck. It launches small kernels one after
 * another, in one of several patterns, and prints one JSON line: the time of a step, the host's
 * part of it, memory, and a checksum of the result. It is an ordinary CUDA program and knows
 * nothing of cusplice; tools/gpu-check runs it as it is and preloaded and compares.
 *
 * One thread, or several that share nothing but the context (--threads): each has a stream and a
 * buffer of its own and does the same steps. Every launch mixes its place's scalar, its kernel's
 * own constant and its grid into the same small buffer, so that a launch that is lost, doubled, out
 * of order, or that runs with a stale argument or grid changes the checksum.
 */
#include <cuda_runtime.h>
#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 64, BLOCK = 32, GRID = 2, GRIDS = 8, KERNELS = 50, THREADS = 64 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t status_ = (call);                                                              \
        if (status_ != cudaSuccess) {                                                              \
            fprintf(stderr, "hostloop: %s: %s (line %d)\n", #call, cudaGetErrorString(status_),    \
                    __LINE__);                                                                     \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

/*
 * The smallest kernel whose effect depends on everything about the launch. Kernels with an odd
 * constant exclusive-or into the buffer and the others add: the two do not commute, so the order of
 * launches counts, and neither waits for what it reads. The loop goes over the grid, so that any
 * grid is right, and the grid itself is part of the result.
 */
__device__ static void mix(unsigned *state, unsigned words, unsigned scalar, unsigned own) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
         i += gridDim.x * blockDim.x) {
        unsigned value = (scalar + own) * 2654435761u + gridDim.x * 40503u + i;
        if (own & 1)
            atomicXor(&state[i], value);
        else
            atomicAdd(&state[i], value);
    }
}

/* Fifty kernels under fifty names; the same body, told apart by a constant. */
#define TENS(X) ROW(X, 1) ROW(X, 2) ROW(X, 3) ROW(X, 4) ROW(X, 5)
#define ROW(X, t) X(t##0) X(t##1) X(t##2) X(t##3) X(t##4) X(t##5) X(t##6) X(t##7) X(t##8) X(t##9)
#define DEFINE(n)                                                                                  \
    extern "C" __global__ void bench_small_##n(unsigned *state, unsigned words, unsigned scalar) { \
        mix(state, words, scalar, 1##n);                                                           \
    }
TENS(DEFINE)

/* The one that an eager rule can name. */
extern "C" __global__ void bench_eager(unsigned *state, unsigned words, unsigned scalar) {
    mix(state, words, scalar, 77u);
}

typedef void (*kernel_fn)(unsigned *, unsigned, unsigned);
#define NAME(n) bench_small_##n,
static const kernel_fn kernels[KERNELS] = {TENS(NAME)};

struct options {
    unsigned launches, steps, warmup, kernels;
    unsigned eager_every, scalar_every, grid_every;
    unsigned loop, turns, random;
    unsigned threads; /* 0: the main thread does it all */
    bool graph;
    unsigned stream; /* 0: a stream of its own, 1: one that does not wait for the legacy stream, 2:
                        the legacy stream */
};

struct run {
    struct options opt;
    cudaStream_t stream;
    unsigned *state;
    uint64_t issued;
    uint64_t random;
    pthread_barrier_t *warm; /* where threads meet before the first step that counts, or NULL */
    uint64_t *host, *wall;   /* ns of each step that counts */
    uint64_t began, ended;   /* ns: of the steps that count */
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Launches place `place` of step `step`. Which kernel stands at a place never changes, except in
 * the random pattern. */
static inline void launch(struct run *run, unsigned step, unsigned place) {
    const struct options *o = &run->opt;
    unsigned grid = GRID, scalar = place;
    kernel_fn kernel;
    if (o->random) {
        run->random = run->random * 6364136223846793005u + 1442695040888963407u;
        kernel = kernels[(run->random >> 33) % o->random];
    } else if (o->eager_every && place % o->eager_every == o->eager_every - 1) {
        kernel = bench_eager;
    } else {
        kernel = kernels[(place * 7 + place / 11) % o->kernels];
    }
    if (o->scalar_every && place % o->scalar_every == o->scalar_every - 1)
        scalar = place + step * 2246822519u;
    if (o->grid_every && place % o->grid_every == o->grid_every - 1)
        grid = 1 + (place / o->grid_every + step) % GRIDS;
    kernel<<<grid, BLOCK, 0, run->stream>>>(run->state, WORDS, scalar);
    run->issued++;
}

static void issue_step(struct run *run, unsigned step) {
    for (unsigned place = 0; place < run->opt.launches; place++)
        launch(run, step, place);
    CHECK(cudaGetLastError());
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t quantile(uint64_t *sorted, unsigned n, double q) {
    unsigned i = (unsigned)(q * (n - 1) + 0.5);
    return sorted[i];
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

static size_t device_used(void) {
    size_t free_bytes = 0, total = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    return total - free_bytes;
}

static uint64_t checksum(const struct run *run, uint64_t hash) {
    unsigned host[WORDS];
    CHECK(cudaMemcpy(host, run->state, sizeof host, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < sizeof host; i++)
        hash = (hash ^ ((const unsigned char *)host)[i]) * 1099511628211u;
    return hash;
}

/* Steps that end in a synchronisation, either launched one by one or as one graph that the program
 * captured itself. */
static void run_steps(struct run *run) {
    const struct options *o = &run->opt;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    if (o->graph) {
        CHECK(cudaStreamBeginCapture(run->stream, cudaStreamCaptureModeThreadLocal));
        issue_step(run, 0);
        CHECK(cudaStreamEndCapture(run->stream, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        CHECK(cudaGraphUpload(exec, run->stream));
        CHECK(cudaStreamSynchronize(run->stream));
        run->issued = 0;
    }
    for (unsigned step = 0; step < o->warmup + o->steps; step++) {
        if (step == o->warmup) {
            if (run->warm)
                pthread_barrier_wait(run->warm);
            run->began = now_ns();
        }
        uint64_t begin = now_ns(), issued;
        if (exec)
            CHECK(cudaGraphLaunch(exec, run->stream));
        else
            issue_step(run, step);
        issued = now_ns();
        CHECK(cudaStreamSynchronize(run->stream));
        if (step >= o->warmup) {
            run->host[step - o->warmup] = issued - begin;
            run->wall[step - o->warmup] = now_ns() - begin;
        }
    }
    run->ended = now_ns();
    if (exec) {
        CHECK(cudaGraphExecDestroy(exec));
        CHECK(cudaGraphDestroy(graph));
    }
}

static void make_buffer(struct run *run) {
    CHECK(cudaMalloc(&run->state, WORDS * sizeof *run->state));
    CHECK(cudaMemset(run->state, 1, WORDS * sizeof *run->state));
}

static void *thread_steps(void *run) {
    run_steps((struct run *)run);
    return NULL;
}

/* The same steps in each of several threads. Returns the time from the moment when all were warm to
 * the end of the last one's last step. */
static uint64_t run_threads(struct run *runs, unsigned n) {
    pthread_t threads[THREADS];
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

static void usage(FILE *to) {
    fputs("usage: hostloop [--launches N] [--steps N] [--warmup N] [--kernels N] [--stream "
          "own|nonblocking|legacy]\n"
          "                [--graph | --eager-every N | --scalar-every N --grid-every N | --random "
          "N]\n"
          "                [--threads N]            each with a non-blocking stream of its own\n"
          "       hostloop --loop N --turns N      never synchronises before the end\n",
          to);
}

static unsigned number(const char *text, unsigned low, unsigned high) {
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    if (!*text || *end || v < low || v > high) {
        fprintf(stderr, "hostloop: %s: a number from %u to %u is wanted\n", text, low, high);
        exit(2);
    }
    return (unsigned)v;
}

static void parse(int argc, char **argv, struct options *o) {
    static const struct option names[] = {
        {"launches", 1, NULL, 'l'}, {"steps", 1, NULL, 's'},        {"warmup", 1, NULL, 'w'},
        {"kernels", 1, NULL, 'k'},  {"graph", 0, NULL, 'g'},        {"eager-every", 1, NULL, 'e'},
        {"loop", 1, NULL, 'L'},     {"scalar-every", 1, NULL, 'c'}, {"grid-every", 1, NULL, 'd'},
        {"turns", 1, NULL, 't'},    {"random", 1, NULL, 'r'},       {"stream", 1, NULL, 'S'},
        {"threads", 1, NULL, 'T'},  {"help", 0, NULL, 'h'},         {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (c) {
        case 'l':
            o->launches = number(optarg, 1, 1000000);
            break;
        case 's':
            o->steps = number(optarg, 1, 1000000);
            break;
        case 'w':
            o->warmup = number(optarg, 0, 1000000);
            break;
        case 'k':
            o->kernels = number(optarg, 1, KERNELS);
            break;
        case 'g':
            o->graph = true;
            break;
        case 'e':
            o->eager_every = number(optarg, 1, 1000000);
            break;
        case 'c':
            o->scalar_every = number(optarg, 1, 1000000);
            break;
        case 'd':
            o->grid_every = number(optarg, 1, 1000000);
            break;
        case 'L':
            o->loop = number(optarg, 1, 1000000);
            break;
        case 't':
            o->turns = number(optarg, 4, 100000000);
            break;
        case 'r':
            o->random = number(optarg, 1, KERNELS);
            break;
        case 'T':
            o->threads = number(optarg, 1, THREADS);
            break;
        case 'S':
            if (!strcmp(optarg, "own"))
                o->stream = 0;
            else if (!strcmp(optarg, "nonblocking"))
                o->stream = 1;
            else if (!strcmp(optarg, "legacy"))
                o->stream = 2;
            else {
                usage(stderr);
                exit(2);
            }
            break;
        case 'h':
            usage(stdout);
            exit(0);
        default:
            usage(stderr);
            exit(2);
        }
    }
    /* A hand-written graph is frozen: with new scalars or grids it would compute something else. */
    if (optind != argc || (o->threads && (o->graph || o->loop || o->stream)) ||
        (o->graph &&
         (o->scalar_every || o->grid_every || o->random || o->loop || o->stream == 2))) {
        usage(stderr);
        exit(2);
    }
    if (o->loop)
        o->launches = o->loop;
}

int main(int argc, char **argv) {
    struct run run = {};
    run.opt.launches = 1000, run.opt.steps = 300, run.opt.warmup = 50, run.opt.kernels = 8,
    run.opt.turns = 10000;
    run.random = 42;
    parse(argc, argv, &run.opt);
    const struct options *o = &run.opt;

    unsigned samples = o->loop ? 1 : o->threads ? o->threads * o->steps : o->steps;
    uint64_t *host = (uint64_t *)calloc(samples, sizeof *host),
             *wall = (uint64_t *)calloc(samples, sizeof *wall);
    struct run *runs = (struct run *)calloc(THREADS, sizeof *runs);
    if (!host || !wall || !runs)
        return 2;
    run.host = host, run.wall = wall;
    make_buffer(&run);
    if (o->stream == 0)
        CHECK(cudaStreamCreate(&run.stream));
    else if (o->stream == 1)
        CHECK(cudaStreamCreateWithFlags(&run.stream, cudaStreamNonBlocking));
    for (unsigned i = 0; i < o->threads; i++) {
        runs[i] = run;
        runs[i].host = host + i * o->steps, runs[i].wall = wall + i * o->steps;
        make_buffer(&runs[i]);
        CHECK(cudaStreamCreateWithFlags(&runs[i].stream, cudaStreamNonBlocking));
    }
    CHECK(cudaDeviceSynchronize());

    /* Every kernel runs once before the measurement: code is loaded at the first launch, and memory
     * is taken for it. */
    for (unsigned k = 0; k < KERNELS; k++)
        kernels[k]<<<GRID, BLOCK, 0, run.stream>>>(run.state, WORDS, k);
    bench_eager<<<GRID, BLOCK, 0, run.stream>>>(run.state, WORDS, 0);
    CHECK(cudaDeviceSynchronize());

    size_t device_before = device_used();
    long rss_before = resident_kb(), rss_quarter = 0;
    uint64_t begin = now_ns(), together = 0;
    if (o->threads) {
        together = run_threads(runs, o->threads);
    } else if (o->loop) {
        for (unsigned turn = 0; turn < o->turns; turn++) {
            for (unsigned place = 0; place < o->loop; place++)
                launch(&run, turn, place);
            if (turn == o->turns / 4)
                rss_quarter = resident_kb();
        }
        CHECK(cudaGetLastError());
        host[0] = (now_ns() - begin) / o->turns;
        CHECK(cudaDeviceSynchronize());
        wall[0] = (now_ns() - begin) / o->turns;
    } else {
        run_steps(&run);
    }
    uint64_t total = now_ns() - begin;
    long rss_end = resident_kb();
    size_t device_after = device_used();
    struct rusage usage_now;
    getrusage(RUSAGE_SELF, &usage_now);

    uint64_t sum = checksum(&run, 14695981039346656037u);
    for (unsigned i = 0; i < o->threads; i++) {
        run.issued += runs[i].issued;
        sum = checksum(&runs[i], sum);
    }

    const char *mode = o->threads        ? "threads"
                       : o->loop         ? "loop"
                       : o->graph        ? "graph"
                       : o->random       ? "random"
                       : o->eager_every  ? "eager"
                       : o->scalar_every ? "patched"
                                         : "plain";
    qsort(host, samples, sizeof *host, by_value);
    qsort(wall, samples, sizeof *wall, by_value);
    uint64_t median = quantile(wall, samples, 0.5);
    /* Several threads: how fast kernels came by, all threads together. */
    double each = o->threads ? (double)together / ((double)samples * o->launches)
                             : (double)median / o->launches;
    printf("{\"program\": \"hostloop\", \"mode\": \"%s\", \"threads\": %u, \"launches\": %u, "
           "\"steps\": %u, "
           "\"median_ms\": %.6f, "
           "\"p10_ms\": %.6f, \"p90_ms\": %.6f, \"wall_ns\": %.1f, \"host_ns\": %.1f, "
           "\"total_ms\": %.3f, "
           "\"issued\": %llu, \"rss_before_kb\": %ld, \"rss_quarter_kb\": %ld, \"rss_end_kb\": "
           "%ld, \"rss_max_kb\": %ld, "
           "\"device_kb\": %lld, \"checksum\": \"%016llx\"}\n",
           mode, o->threads ? o->threads : 1, o->launches, o->loop ? o->turns : o->steps,
           median / 1e6, quantile(wall, samples, 0.1) / 1e6, quantile(wall, samples, 0.9) / 1e6,
           each, (double)quantile(host, samples, 0.5) / o->launches, total / 1e6,
           (unsigned long long)run.issued + KERNELS + 1, rss_before, rss_quarter, rss_end,
           (long)usage_now.ru_maxrss, ((long long)device_after - (long long)device_before) / 1024,
           (unsigned long long)sum);
    return 0;
}
