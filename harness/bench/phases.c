/*
 * A program with phases: in good ones the same launches repeat, in bad ones little or nothing
 * repeats. It shows what a preloaded library gains, loses, and costs while it learns.
 *
 * It knows nothing of cusplice but the counters of cusplice.h. One thread, one stream; a step is
 * some launches (chain.h) and a synchronisation. A step in which SIGSTOP stopped the program is not
 * timed. With --past half of the steps bypass the library, because two processes differ by more
 * than the library costs.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/chain.h"
#include "harness/bench/clock.h"
#include "shim/include/cusplice.h"

enum {
    CHOICE = 50,    /* of HANDLES functions: a bad phase chooses among these */
    SOME = 12,      /* launches of a run in phase `runs`, and the number of runs */
    TRIPLE_OF = 16, /* launches, three of which repeat in phase `three` */
    PHASES_MAX = 64,
    TENTHS = 10,
    LISTED = 64, /* steps of a phase whose times are listed one by one */
    BLOCK = 8,   /* steps, some milliseconds, on one way; */
    ROUND = 4,   /* blocks: under the library, past it, past it, under it */
};

enum kind {
    GOOD,   /* the same launches in each step */
    NONE,   /* in an order that never repeats */
    SHORT,  /* three launches, then the wait */
    THREE,  /* the same three launches now and then among launches of NONE */
    RUNS,   /* known runs of launches in an order that never repeats */
    SHAPES, /* the same launches in each step with random grids */
    KINDS
};
static const char *const kind_names[KINDS] = {"good", "none", "short", "three", "runs", "shapes"};

struct phase {
    enum kind kind;
    unsigned steps;
    uint64_t wall_ns, host_ns, ops;  /* of the timed steps; */
    uint64_t late_wall_ns, late_ops; /* of those after the program's first second */
    uint64_t launched;               /* ops of all steps except those past the library */
    unsigned stopped;                /* steps that were not timed */
    uint64_t tenth_ns[TENTHS], tenth_ops[TENTHS];
    struct rounds {
        double *over; /* for each whole round: time under the library over time past it; sorted at
                         the end */
        unsigned n;
        uint64_t there_ns, past_ns;         /* of the current round, */
        uint64_t all_there_ns, all_past_ns; /* and of all whole rounds */
        bool whole;                         /* no step of the round came too early or was stopped */
    } rounds;
    uint64_t worst_ns;
    unsigned worst_at;
    struct listed {
        uint64_t ns;
        double in_graphs; /* part of the step's launches */
        unsigned long long build_us;
    } listed[LISTED];
    unsigned n_listed;
    struct cusplice_counters before, after;
};

static struct {
    unsigned ops;
    uint64_t rng;
    struct phase phases[PHASES_MAX];
    unsigned n_phases;
    unsigned early_ms;
    bool meet, past;
} opt = {.ops = 240, .rng = 1, .early_ms = 1000};

static CUstream stream;
static CUdeviceptr memory;
static bool counted; /* the library's counters exist */
static uint64_t timed_ns;
static struct chain_way there, past; /* with --past */
static volatile sig_atomic_t continued, released;

static void on_continue(int number) {
    (void)number;
    continued = 1;
}

static void on_release(int number) {
    (void)number;
    released = 1;
}

/* Stops the process until another one has seen this and continues it. */
static void meet(void) {
    while (!released)
        raise(SIGSTOP);
    released = 0;
}

static unsigned chance(unsigned below) {
    opt.rng = opt.rng * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((opt.rng >> 33) % below);
}

/* Launch `i` of a sequence that is the same each time. */
static void launch(unsigned function, unsigned grid, unsigned i) {
    chain_launch(chain_functions[function], grid, i, memory, stream);
}

static unsigned fixed(unsigned i) {
    return (unsigned)(chain_mix(i) % HANDLES);
}

/* Issues a step, and returns its number of launches. */
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

/* Each call makes tools/hotpath take the counters. */
__attribute__((noinline)) static void phases_mark(void) {
    __asm__ volatile("");
}

static bool is_late(void) {
    return timed_ns >= (uint64_t)opt.early_ms * 1000000;
}

static void time_step(struct phase *p, unsigned i, unsigned ops, uint64_t ns, uint64_t host_ns) {
    p->wall_ns += ns;
    p->host_ns += host_ns;
    p->ops += ops;
    if (is_late()) {
        p->late_wall_ns += ns;
        p->late_ops += ops;
    }
    timed_ns += ns;
    unsigned tenth = (unsigned)((uint64_t)i * TENTHS / p->steps);
    p->tenth_ns[tenth] += ns;
    p->tenth_ops[tenth] += ops;
    if (ns > p->worst_ns) {
        p->worst_ns = ns;
        p->worst_at = i;
    }
}

/* Tells whether the step goes past the library. */
static bool goes_past(unsigned i) {
    unsigned block = i / BLOCK % ROUND;
    return opt.past && (block == 1 || block == 2);
}

/* Adds a step to its round. Steps past the library are in no other figure. */
static void add_to_round(struct rounds *rounds, unsigned i, uint64_t ns, bool counts) {
    unsigned at = i % (BLOCK * ROUND);
    if (at == 0) {
        rounds->there_ns = rounds->past_ns = 0;
        rounds->whole = true;
    }
    *(goes_past(i) ? &rounds->past_ns : &rounds->there_ns) += ns;
    rounds->whole = rounds->whole && counts;
    if (at < BLOCK * ROUND - 1 || !rounds->whole)
        return;
    rounds->over[rounds->n++] = (double)rounds->there_ns / (double)rounds->past_ns;
    rounds->all_there_ns += rounds->there_ns;
    rounds->all_past_ns += rounds->past_ns;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void begin_rounds(struct phase *p) {
    p->rounds.over = malloc((p->steps / (BLOCK * ROUND) + 1) * sizeof *p->rounds.over);
    if (!p->rounds.over) {
        fprintf(stderr, "phases: no memory\n");
        exit(3);
    }
}

/* Lists one of the first steps; `last` has the counters after the step before. */
static void list_step(struct phase *p, unsigned ops, uint64_t ns, struct cusplice_counters *last) {
    struct cusplice_counters now = {0};
    struct listed *listed = &p->listed[p->n_listed++];
    listed->ns = ns;
    if (!counted)
        return;
    cusplice_read_counters(&now, sizeof now);
    listed->in_graphs = (double)(now.in_graphs - last->in_graphs) / ops;
    listed->build_us = (unsigned long long)(now.build_us - last->build_us);
    *last = now;
}

static void play(struct phase *p) {
    struct cusplice_counters last = {0};
    cusplice_read_counters(&last, sizeof last);
    p->before = last;
    if (opt.past)
        begin_rounds(p);
    for (unsigned i = 0; i < p->steps; i++) {
        bool goes = goes_past(i);
        if (opt.past && i % BLOCK == 0)
            chain_go(goes ? past : there);
        continued = 0;
        uint64_t start = now_ns();
        unsigned ops = step(p->kind);
        uint64_t launched = now_ns();
        OK(cu.cuStreamSynchronize(stream));
        uint64_t ns = now_ns() - start;
        if (opt.past)
            add_to_round(&p->rounds, i, ns, !continued && is_late());
        if (goes) {
            timed_ns += continued ? 0 : ns;
            continue;
        }
        p->launched += ops;
        if (continued)
            p->stopped++;
        else
            time_step(p, i, ops, ns, launched - start);
        if (p->n_listed < LISTED)
            list_step(p, ops, continued ? 0 : ns, &last);
    }
    cusplice_read_counters(&p->after, sizeof p->after);
    if (opt.past) {
        chain_go(there);
        qsort(p->rounds.over, p->rounds.n, sizeof *p->rounds.over, by_size);
    }
}

static double each(uint64_t sum, uint64_t n) {
    return n ? (double)sum / (double)n : 0;
}

static void print_list(const struct phase *p) {
    unsigned n = p->n_listed, first = 0, most = 0;
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

/* Prints the median and the quartiles of the rounds, and the ratio of their total times. */
static void print_rounds(const struct rounds *rounds) {
    printf(", \"rounds\": %u", rounds->n);
    if (rounds->n)
        printf(", \"over_past\": %.5f, \"over_past_quarters\": [%.5f, %.5f], "
               "\"over_past_mean\": %.5f",
               rounds->over[rounds->n / 2], rounds->over[rounds->n / 4],
               rounds->over[rounds->n * 3 / 4], each(rounds->all_there_ns, rounds->all_past_ns));
}

static void print_phase(const struct phase *p) {
    printf("{\"kind\": \"%s\", \"steps\": %u, \"ops\": %llu, \"wall_ns\": %.2f, \"host_ns\": %.2f, "
           "\"late_wall_ns\": %.2f, \"late_ops\": %llu, \"stopped\": %u, \"worst_step_us\": %.1f, "
           "\"worst_step\": %u",
           kind_names[p->kind], p->steps, (unsigned long long)p->launched, each(p->wall_ns, p->ops),
           each(p->host_ns, p->ops), each(p->late_wall_ns, p->late_ops),
           (unsigned long long)p->late_ops, p->stopped, (double)p->worst_ns / 1000, p->worst_at);
    printf(", \"tenth_ns\": [");
    for (unsigned i = 0; i < TENTHS; i++)
        printf("%s%.2f", i ? ", " : "", each(p->tenth_ns[i], p->tenth_ops[i]));
    printf("]");
    if (counted)
        printf(", \"in_graphs\": %.5f, \"graph_launches\": %llu, \"patched\": %llu, "
               "\"build_us\": %llu",
               each(p->after.in_graphs - p->before.in_graphs, p->launched),
               (unsigned long long)(p->after.graph_launches - p->before.graph_launches),
               (unsigned long long)(p->after.patched_nodes - p->before.patched_nodes),
               (unsigned long long)(p->after.build_us - p->before.build_us));
    if (opt.past)
        print_rounds(&p->rounds);
    print_list(p);
    printf("}");
}

static const char usage[] =
    "usage: phases [--ops N] [--seed N] [--early MS] [--meet] [--past] PHASE:STEPS...\n"
    "  --ops N   launches in a step (240)\n"
    "  --early MS  the program's first milliseconds, which late_wall_ns and rounds leave out "
    "(1000)\n"
    "  --meet    stop (SIGSTOP) before each phase, until SIGUSR1: somebody sends it when others "
    "are as far\n"
    "  --past    every other eight steps go to the driver itself, past what was put before it: "
    "over_past\n"
    "            is the median, over rounds of 32 steps, of the time of the others to that of "
    "these\n"
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
        bool ops = strcmp(argv[i], "--ops") == 0, early = strcmp(argv[i], "--early") == 0;
        if (ops || early || strcmp(argv[i], "--seed") == 0) {
            if (read_number(value, ops, ops ? &opt.ops : early ? &opt.early_ms : &seed)) {
                i++;
                continue;
            }
        } else if (strcmp(argv[i], "--meet") == 0) {
            opt.meet = true;
            continue;
        } else if (strcmp(argv[i], "--past") == 0) {
            opt.past = true;
            continue;
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

/* Launches each function once before the measurement, because the first launch of a function
 * loads code. */
static void touch_functions(void) {
    for (unsigned i = 0; i < HANDLES; i++)
        launch(i, 1, i);
    OK(cu.cuStreamSynchronize(stream));
}

int main(int argc, char **argv) {
    parse(argc, argv);
    signal(SIGCONT, on_continue);
    signal(SIGUSR1, on_release);
    chain_open();
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    memory = chain_memory(0);
    OK(cu.cuCtxSynchronize()); /* uploads are not ordered with these streams */
    touch_functions();
    if (opt.past) {
        past = chain_way_past();
        there = chain_go(past);
        chain_go(there);
    }
    struct cusplice_counters unused;
    counted = cusplice_read_counters(&unused, sizeof unused) > 0;
    for (unsigned i = 0; i < opt.n_phases; i++) {
        if (i + 1 == opt.n_phases)
            phases_mark();
        if (opt.meet)
            meet();
        play(&opt.phases[i]);
    }
    phases_mark();
    printf("{\"ops\": %u, \"checksum\": \"%016llx\"", opt.ops,
           (unsigned long long)chain_sum(0, memory));
    if (opt.past) /* in a plain process both ways should be the same */
        printf(", \"one_way\": %d", there.launch == past.launch && there.wait == past.wait);
    printf(", \"phases\": [");
    for (unsigned i = 0; i < opt.n_phases; i++) {
        printf("%s", i ? ", " : "");
        print_phase(&opt.phases[i]);
    }
    printf("]}\n");
    return 0;
}
