/*
 * Plays one trace by several strategies, a player process for each, and measures them in turn. The
 * verbs replay and bench call it. It never prints: it tells sentences by a callback.
 */
#ifndef CUSPLICE_TOOLS_REPLAY_RUN_H
#define CUSPLICE_TOOLS_REPLAY_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/curve.h"

/* How long the host takes between calls: harness/player/README.md. */
enum replay_pace { REPLAY_RECORDED, REPLAY_FASTEST, REPLAY_UNPACED };
extern const char *const replay_paces[]; /* their words, and NULL */

/* How one of them plays. */
struct replay_strategy {
    const char *name;    /* what it is called in messages */
    const char *preload; /* LD_PRELOAD; NULL: the driver alone */
    const char *config;  /* a configuration file's text in place of all files and variables of here
                            and now; NULL: those. Both only where something is preloaded */
    const char *mode;    /* NULL: as that configuration says */
    const char *eager;   /* patterns with ';' between, in front of all rules; NULL: none */
    const char *const *names, *const *values; /* settings above all others */
    unsigned n_settings;
};

struct replay_setup {
    const char *player, *trace; /* files */
    bool trusted;               /* whoever's the trace is */
    enum replay_pace pace;
    unsigned rounds;           /* of measuring, each over all strategies */
    unsigned warm;             /* passes before, not measured, at least */
    void (*told)(double part); /* from 0 to 1: how far it is; NULL: nobody wants to know */
};

/* What the player says of the trace. */
struct replay_facts {
    char gpu[256];
    unsigned driver; /* 1000 * major + 10 * minor of its CUDA */
    uint64_t ops, launches, steps, memory_bytes, checks;
};

struct replay_measured {
    double *ns; /* of each pass the median of its typical steps, sorted; the caller's to free */
    unsigned n;
    double median, deviation, p10, p90; /* deviation: median absolute one */
    uint64_t issued, in_graphs;         /* ops of the measured passes; 0: nothing preloaded */
    uint64_t graph_launches, steps;     /* of the same */
    uint64_t curve[CUS_CURVE_MAX];      /* ns of the typical steps that were played first of all */
    unsigned n_curve;
    double first_ns;       /* of the first CUS_CURVE_FIRST of them */
    double first_of_eager; /* to that of the strategy without a library; 0: there is none */
    unsigned reached;      /* the first step that has nine tenths of the gain over that; 0: none */
    uint64_t wrong;        /* sums that differ, before or behind */
    char where[512];       /* the first of them */
};

/* Says a sentence to the user, as it happens. */
typedef void replay_say_fn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Plays the trace by all strategies at once, or one behind the other where the memory of the GPU
 * does not suffice. Wrong sums are no failure. False: it cannot be replayed, or something failed,
 * which was said; `out` is to be freed all the same. */
bool replay_measure(const struct replay_setup *setup, const struct replay_strategy *strategies,
                    unsigned n, struct replay_facts *facts, struct replay_measured *out,
                    replay_say_fn *say);
void replay_free(struct replay_measured *measured, unsigned n);

#endif
