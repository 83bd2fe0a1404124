/*
 * A program that goes through phases: good ones, which do the same again and again, and bad ones,
 * in which nothing or next to nothing comes again. Shows what something that is put under it gains
 * in the good ones, loses in the bad ones, and holds up while it learns.
 *
 * It knows nothing of cusplice but cusplice.h, whose counters it prints where they are there. It is
 * not linked to libcuda: it comes by the driver as the CUDA runtime does (dlopen, then
 * cuGetProcAddress), so it runs on a GPU and on the simulator. One thread, one stream; a step is
 * some launches and a synchronisation. What is launched follows from the phases and the seed alone,
 * and every launch is one of a linear map over the stream's memory, two of which do not commute:
 * the checksum shows a launch that is lost, doubled or out of order.
 *
 * Nothing but a step is inside its time: the counters are read between steps.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

#include "shim/include/cusplice.h"

extern const unsigned char growth_kernels_fatbin[];

enum {
    HANDLES = 128,  /* functions that are told apart: the same code, loaded so often */
    CHOICE = 50,    /* of them, among which a bad phase chooses */
    SOME = 12,      /* launches of a run in phase `runs`; so many runs there are */
    TRIPLE_OF = 16, /* launches, three of which come again in phase `three` */
    WORDS = 32,
    PHASES_MAX = 64,
    TENTHS = 10,
    LISTED = 64, /* steps of a phase whose times are listed one by one */
    LATE_NS = 1000000000,
};

enum kind {
    GOOD,   /* the same launches in each step */
    NONE,   /* in an order that never repeats */
    SHORT,  /* three launches, then the wait */
    THREE,  /* the same three launches now and then among those of NONE */
    RUNS,   /* known runs of launches in an order that never repeats */
    SHAPES, /* the same launches in each step, their grids at random */
    KINDS
};
static const char *const kind_names[KINDS] = {"good", "none", "short", "three", "runs", "shapes"};

struct phase {
    enum kind kind;
    unsigned steps;
    uint64_t wall_ns, host_ns, ops;
    uint64_t late_wall_ns, late_ops; /* of the steps that began a second and more after the program
                                        began to launch */
    uint64_t tenth_ns[TENTHS], tenth_ops[TENTHS];
    uint64_t worst_ns;
    unsigned worst_at;
    struct listed {
        uint64_t ns;
        double in_graphs; /* of the step's launches */
        unsigned long long build_us;
    } listed[LISTED];
    struct cusplice_counters before, after;
};

static struct {
    unsigned ops;
    uint64_t rng;
    struct phase phases[PHASES_MAX];
    unsigned n_phases;
} opt = {.ops = 240, .rng = 1};

#define CALLS(X)                                                                                   \
    X(cuInit, 2000)                                                                                \
    X(cuDeviceGet, 2000)                                                                           \
    X(cuDevicePrimaryCtxRetain, 7000)                                                              \
    X(cuCtxSetCurrent, 4000)                                                                       \
    X(cuCtxSynchronize, 2000)                                                                      \
    X(cuModuleLoadData, 2000)                                                                      \
    X(cuModuleGetFunction, 2000)                                                                   \
    X(cuMemAlloc, 3020)                                                                            \
    X(cuMemcpyDtoH, 3020)                                                                          \
    X(cuMemcpyHtoD, 3020)                                                                          \
    X(cuStreamCreate, 2000)                                                                        \
    X(cuStreamSynchronize, 2000)                                                                   \
    X(cuLaunchKernel, 4000)

static struct {
#define FIELD(name, version) __typeof__(&name) name;
    CALLS(FIELD)
#undef FIELD
} cu;

static CUfunction functions[HANDLES];
static CUstream stream;
static CUdeviceptr memory;
static bool counted; /* the library's counters are there */
static uint64_t began_ns;

static void must(CUresult code, const char *call) {
    if (code == CUDA_SUCCESS)
        return;
    fprintf(stderr, "phases: %s: error %d\n", call, (int)code);
    exit(3);
}
#define OK(call) must((call), #call)

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void find_driver(void) {
    typedef CUresult look_up_fn(const char *, void **, int, cuuint64_t,
                                CUdriverProcAddressQueryResult *);
    static const struct {
        const char *name;
        int version;
        void **where;
    } entries[] = {
#define ENTRY(name, version) {#name, version, (void **)&cu.name},
        CALLS(ENTRY)
#undef ENTRY
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    look_up_fn *look_up = library ? (look_up_fn *)dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (!look_up) {
        fprintf(stderr, "phases: there is no CUDA driver of version 12.0 or later\n");
        exit(3);
    }
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        CUdriverProcAddressQueryResult found;
        OK(look_up(entries[i].name, entries[i].where, entries[i].version, 0, &found));
        if (!*entries[i].where) {
            fprintf(stderr, "phases: the driver has no %s\n", entries[i].name);
            exit(3);
        }
    }
}

static uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

static unsigned chance(unsigned below) {
    opt.rng = opt.rng * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((opt.rng >> 33) % below);
}

/* Launch `i` of something that is the same each time. */
static void launch(unsigned function, unsigned grid, unsigned i) {
    CUdeviceptr x = memory;
    unsigned a = 2 * i + 1, b = i;
    int n = WORDS;
    void *params[] = {&x, &a, &b, &n};
    OK(cu.cuLaunchKernel(functions[function], grid, 1, 1, WORDS, 1, 1, 0, stream, params, NULL));
}

static unsigned fixed(unsigned i) {
    return (unsigned)(mix(i) % HANDLES);
}

/* Returns how many launches the step had. */
static unsigned step(enum kind kind) {
    unsigned n = kind == SHORT ? 3 : opt.ops, run = 0;
    for (unsigned i = 0; i < n; i++)
        switch (kind) {
        case NONE:
            launch(chance(CHOICE), 1, i);
            break;
        case THREE:
            if (i % TRIPLE_OF < 3)
                launch(CHOICE + i % TRIPLE_OF, 1, i % TRIPLE_OF);
            else
                launch(chance(CHOICE), 1, i);
            break;
        case RUNS:
            if (i % SOME == 0)
                run = chance(SOME) * SOME;
            launch(fixed(1000 + run + i % SOME), 1, run + i % SOME);
            break;
        case SHAPES: /* blocks beyond the first do nothing */
            launch(fixed(i), 1 + chance(100), i);
            break;
        default:
            launch(fixed(i), 1, i);
        }
    return n;
}

/* tools/hotpath takes the counters whenever this is called. */
__attribute__((noinline)) static void phases_mark(void) {
    __asm__ volatile("");
}

static void play(struct phase *p) {
    struct cusplice_counters last = {0}, now = {0};
    cusplice_read_counters(&last, sizeof last);
    p->before = last;
    for (unsigned i = 0; i < p->steps; i++) {
        uint64_t start = now_ns();
        unsigned ops = step(p->kind);
        uint64_t launched = now_ns();
        OK(cu.cuStreamSynchronize(stream));
        uint64_t ns = now_ns() - start;
        p->wall_ns += ns;
        p->host_ns += launched - start;
        p->ops += ops;
        if (start - began_ns >= LATE_NS) {
            p->late_wall_ns += ns;
            p->late_ops += ops;
        }
        unsigned tenth = (unsigned)((uint64_t)i * TENTHS / p->steps);
        p->tenth_ns[tenth] += ns;
        p->tenth_ops[tenth] += ops;
        if (ns > p->worst_ns) {
            p->worst_ns = ns;
            p->worst_at = i;
        }
        if (i >= LISTED)
            continue;
        p->listed[i].ns = ns;
        if (!counted)
            continue;
        cusplice_read_counters(&now, sizeof now);
        p->listed[i].in_graphs = (double)(now.in_graphs - last.in_graphs) / ops;
        p->listed[i].build_us = (unsigned long long)(now.build_us - last.build_us);
        last = now;
    }
    cusplice_read_counters(&p->after, sizeof p->after);
}

static double each(uint64_t sum, uint64_t n) {
    return n ? (double)sum / (double)n : 0;
}

static void print_list(const struct phase *p) {
    unsigned n = p->steps < LISTED ? p->steps : LISTED, first = 0, most = 0;
    printf(", \"step_us\": [");
    for (unsigned i = 0; i < n; i++)
        printf("%s%.1f", i ? ", " : "", (double)p->listed[i].ns / 1000);
    printf("]");
    if (!counted)
        return;
    printf(", \"step_in_graphs\": [");
    for (unsigned i = 0; i < n; i++) {
        printf("%s%.3f", i ? ", " : "", p->listed[i].in_graphs);
        if (!first && p->listed[i].in_graphs > 0)
            first = i + 1;
        if (!most && p->listed[i].in_graphs >= 0.95)
            most = i + 1;
    }
    printf("], \"step_build_us\": [");
    for (unsigned i = 0; i < n; i++)
        printf("%s%llu", i ? ", " : "", p->listed[i].build_us);
    printf("], \"first_replay\": %u, \"mostly_replayed\": %u", first, most);
}

static void print_phase(const struct phase *p) {
    printf(
        "{\"kind\": \"%s\", \"steps\": %u, \"ops\": %llu, \"wall_ns\": %.2f, \"host_ns\": %.2f, "
        "\"late_wall_ns\": %.2f, \"late_ops\": %llu, \"worst_step_us\": %.1f, \"worst_step\": %u",
        kind_names[p->kind], p->steps, (unsigned long long)p->ops, each(p->wall_ns, p->ops),
        each(p->host_ns, p->ops), each(p->late_wall_ns, p->late_ops),
        (unsigned long long)p->late_ops, (double)p->worst_ns / 1000, p->worst_at);
    printf(", \"tenth_ns\": [");
    for (unsigned i = 0; i < TENTHS; i++)
        printf("%s%.2f", i ? ", " : "", each(p->tenth_ns[i], p->tenth_ops[i]));
    printf("]");
    if (counted)
        printf(", \"in_graphs\": %.5f, \"graph_launches\": %llu, \"patched\": %llu, "
               "\"build_us\": %llu",
               each(p->after.in_graphs - p->before.in_graphs, p->ops),
               (unsigned long long)(p->after.graph_launches - p->before.graph_launches),
               (unsigned long long)(p->after.patched_nodes - p->before.patched_nodes),
               (unsigned long long)(p->after.build_us - p->before.build_us));
    print_list(p);
    printf("}");
}

static const char usage[] =
    "usage: phases [--ops N] [--seed N] PHASE:STEPS...\n"
    "  --ops N   launches in a step (240)\n"
    "  PHASE     good: the same launches in each step; none: in an order that never repeats;\n"
    "            short: three launches in a step; three: three that come again among 16;\n"
    "            runs: known runs of 12 in an order that never repeats; shapes: random grids\n";

static bool read_number(const char *text, unsigned least, unsigned *out) {
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (!*text || *end || number < least || number > 1000000000)
        return false;
    *out = (unsigned)number;
    return true;
}

static bool add_phase(const char *text) {
    const char *colon = strchr(text, ':');
    struct phase *p = &opt.phases[opt.n_phases];
    if (!colon || opt.n_phases == PHASES_MAX || !read_number(colon + 1, 1, &p->steps))
        return false;
    for (int kind = 0; kind < KINDS; kind++)
        if (strlen(kind_names[kind]) == (size_t)(colon - text) &&
            strncmp(kind_names[kind], text, (size_t)(colon - text)) == 0) {
            p->kind = (enum kind)kind;
            opt.n_phases++;
            return true;
        }
    return false;
}

static void parse(int argc, char **argv) {
    unsigned seed = 1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool ops = strcmp(argv[i], "--ops") == 0;
        if (ops || strcmp(argv[i], "--seed") == 0) {
            if (read_number(value, ops, ops ? &opt.ops : &seed)) {
                i++;
                continue;
            }
        } else if (add_phase(argv[i])) {
            continue;
        }
        fprintf(stderr, "phases: what is meant by %s?\n%s", argv[i], usage);
        exit(2);
    }
    if (!opt.n_phases) {
        fprintf(stderr, "%s", usage);
        exit(2);
    }
    opt.rng = seed;
}

static uint64_t checksum(void) {
    unsigned words[WORDS];
    uint64_t sum = 0;
    OK(cu.cuMemcpyDtoH(words, memory, sizeof words));
    for (unsigned j = 0; j < WORDS; j++)
        sum = mix(sum ^ words[j]);
    return sum;
}

/* Each function is launched once before anything is measured: the first launch of one loads code.
 */
static void touch_functions(void) {
    for (unsigned i = 0; i < HANDLES; i++)
        launch(i, 1, i);
    OK(cu.cuStreamSynchronize(stream));
}

int main(int argc, char **argv) {
    CUdevice device;
    CUcontext context;
    unsigned words[WORDS];
    parse(argc, argv);
    find_driver();
    OK(cu.cuInit(0));
    OK(cu.cuDeviceGet(&device, 0));
    OK(cu.cuDevicePrimaryCtxRetain(&context, device));
    OK(cu.cuCtxSetCurrent(context));
    for (unsigned i = 0; i < HANDLES; i++) {
        CUmodule module;
        OK(cu.cuModuleLoadData(&module, growth_kernels_fatbin));
        OK(cu.cuModuleGetFunction(&functions[i], module, "chain"));
    }
    for (unsigned j = 0; j < WORDS; j++)
        words[j] = j;
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cu.cuMemAlloc(&memory, sizeof words));
    OK(cu.cuMemcpyHtoD(memory, words, sizeof words));
    OK(cu.cuCtxSynchronize()); /* uploads do not order themselves with such streams */
    touch_functions();
    struct cusplice_counters unused;
    counted = cusplice_read_counters(&unused, sizeof unused) > 0;
    began_ns = now_ns();
    for (unsigned i = 0; i < opt.n_phases; i++) {
        if (i + 1 == opt.n_phases)
            phases_mark();
        play(&opt.phases[i]);
    }
    phases_mark();
    printf("{\"ops\": %u, \"checksum\": \"%016llx\", \"phases\": [", opt.ops,
           (unsigned long long)checksum());
    for (unsigned i = 0; i < opt.n_phases; i++) {
        printf("%s", i ? ", " : "");
        print_phase(&opt.phases[i]);
    }
    printf("]}\n");
    return 0;
}
