/* Reads hostloop's command line. The main thread calls it before anything else. */
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/gpu.h"
#include "harness/bench/hostloop.h"

static const char usage_text[] =
    "usage: hostloop [--launches N] [--steps N] [--warmup N] [--kernels N]\n"
    "                [--stream own|nonblocking|legacy] [--events] [--core]\n"
    "                [--eager-every N] [--scalar-every N] [--grid-every N] [--shared-every N]\n"
    "                [--block-every N] [--memset-every N] [--copy-every N] [--alloc]\n"
    "                [--record-every N [--record-events N] [--record-timed]] [--upload]\n"
    "                [--graph [--segment N]] [--streams N [--run N]] [--threads N] [--stops]\n"
    "       hostloop --random N              launches in an order that never repeats\n"
    "       hostloop --loop N --turns N      never synchronises before the end\n"
    "       hostloop --fork LAYERS           two streams, forked and joined in each layer\n";

static void wrong(void) {
    fputs(usage_text, stderr);
    exit(2);
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

/* The numeric options: name, place, bounds. */
static const struct numeric {
    const char *name;
    size_t at;
    unsigned low, high;
} numerics[] = {
#define NUMERIC(name, field, low, high) {name, offsetof(struct options, field), low, high},
    NUMERIC("launches", launches, 1, 1000000) NUMERIC("steps", steps, 1, 1000000) NUMERIC(
        "warmup", warmup, 0, 1000000) NUMERIC("kernels", kernels, 1, KERNELS)
        NUMERIC("eager-every", eager_every, 1, 1000000) NUMERIC(
            "scalar-every", scalar_every, 1, 1000000) NUMERIC("grid-every", grid_every, 1, 1000000)
            NUMERIC("shared-every", shared_every, 1, 1000000)
                NUMERIC("block-every", block_every, 1, 1000000) NUMERIC("memset-every",
                                                                        memset_every, 1, 1000000)
                    NUMERIC("copy-every", copy_every, 1, 1000000) NUMERIC("loop", loop, 1, 1000000)
                        NUMERIC("record-every", record_every, 1, 1000000)
                            NUMERIC("record-events", record_events, 1, 1000000)
                                NUMERIC("turns", turns, 4, 100000000)
                                    NUMERIC("random", random, 1, KERNELS)
                                        NUMERIC("streams", streams, 1, STREAMS_MAX)
                                            NUMERIC("run", run, 1, 1000000)
                                                NUMERIC("threads", threads, 1, THREADS_MAX)
                                                    NUMERIC("segment", segment, 1, 1000000)
                                                        NUMERIC("fork", fork, 1, 100000)
#undef NUMERIC
};
enum { NUMERICS = sizeof numerics / sizeof *numerics };

static enum stream_kind stream_kind(const char *word) {
    static const char *const words[] = {"own", "nonblocking", "legacy"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i]))
            return (enum stream_kind)i;
    wrong();
    return STREAM_OWN;
}

void options_parse(int argc, char **argv, struct options *o) {
    struct option names[NUMERICS + 10] = {{0}};
    for (unsigned i = 0; i < NUMERICS; i++)
        names[i] = (struct option){numerics[i].name, 1, NULL, 256 + (int)i};
    names[NUMERICS] = (struct option){"graph", 0, NULL, 'g'};
    names[NUMERICS + 1] = (struct option){"events", 0, NULL, 'e'};
    names[NUMERICS + 2] = (struct option){"stream", 1, NULL, 's'};
    names[NUMERICS + 3] = (struct option){"help", 0, NULL, 'h'};
    names[NUMERICS + 4] = (struct option){"stops", 0, NULL, 'z'};
    names[NUMERICS + 5] = (struct option){"core", 0, NULL, 'c'};
    names[NUMERICS + 6] = (struct option){"alloc", 0, NULL, 'a'};
    names[NUMERICS + 7] = (struct option){"record-timed", 0, NULL, 'r'};
    names[NUMERICS + 8] = (struct option){"upload", 0, NULL, 'u'};
    *o = (struct options){.launches = 1000,
                          .steps = 300,
                          .warmup = 50,
                          .kernels = 8,
                          .turns = 10000,
                          .streams = 1,
                          .run = 1};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c >= 256) {
            const struct numeric *n = &numerics[c - 256];
            *(unsigned *)((char *)o + n->at) = number(optarg, n->low, n->high);
        } else if (c == 'g') {
            o->graph = true;
        } else if (c == 'e') {
            o->events = true;
        } else if (c == 'a') {
            o->alloc = true;
        } else if (c == 'u') {
            o->upload = true;
        } else if (c == 'r') {
            o->record_timed = true;
        } else if (c == 'c') {
            o->core = true;
        } else if (c == 'z') {
            o->stops = true;
        } else if (c == 's') {
            o->stream = stream_kind(optarg);
        } else if (c == 'h') {
            fputs(usage_text, stdout);
            exit(0);
        } else {
            wrong();
        }
    }
    /* Refuses combinations without meaning. Streams and threads have their own non-blocking
     * streams. A loop has no steps, and an order that never repeats has no graph. Segments are
     * graphs. --stops stops between steps, and --core measures the steps of one thread. The streams
     * and launches of --fork are given. */
    if (optind != argc || (o->threads && (o->loop || o->stream || o->streams > 1)) ||
        (o->streams > 1 && o->stream) || (o->random && o->graph) || (o->segment && !o->graph) ||
        ((o->record_events || o->record_timed) && !o->record_every) ||
        ((o->alloc || o->upload) && (o->graph || o->random)) ||
        (o->events && (o->loop || o->threads || o->streams > 1)) ||
        ((o->stops || o->core) && (o->loop || o->threads)) ||
        (o->fork && (o->loop || o->random || o->threads || o->streams > 1 || o->run > 1 ||
                     o->segment || o->alloc || o->upload)))
        wrong();
    if (o->loop)
        o->launches = o->loop;
    if (o->fork)
        o->launches = o->fork * LAYER, o->streams = 2;
}
