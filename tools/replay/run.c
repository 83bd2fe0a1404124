/*
 * Says what players do, in which order: checks, unmeasured passes, measured rounds over all
 * strategies in turn, checks again. The verbs replay and bench call it. It never runs a kernel in
 * this process.
 */
#include "tools/replay/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay/process.h"

enum {
    ROUND_NS = 50000000, /* a strategy's part of a round is about as long */
    PASSES_MAX = 20,
    WARM_STEPS = 64, /* before anything is measured: graphs grow over some steps */
    ERROR = 1400,
};

struct measuring {
    const struct replay_setup *setup;
    const struct replay_strategy *strategies;
    struct replay_process *players;
    struct replay_facts *facts;
    struct replay_measured *out;
    unsigned n;
    unsigned passes; /* in a round */
    unsigned turns;  /* of one player, that are over; each has one more than rounds */
    replay_say_fn *say;
};

/* ---- one player ---- */

const char *const replay_paces[] = {
    [REPLAY_RECORDED] = "recorded",
    [REPLAY_FASTEST] = "fastest",
    [REPLAY_UNPACED] = "none",
    NULL,
};

enum started { STARTED, NO_MEMORY, FAILED };

static void say_obstacles(struct measuring *m, const struct replay_process *player) {
    char text[ERROR];
    m->say("%s: cannot be replayed:", m->setup->trace);
    for (unsigned i = 0; replay_text(player, "obstacles", i, text, sizeof text); i++)
        m->say("  %s", text);
}

/* `alone`: no other player has memory of the GPU. */
static enum started start(struct measuring *m, unsigned i, bool alone, bool first) {
    struct replay_process *player = &m->players[i];
    char error[ERROR];
    if (!replay_begin(player, m->setup, &m->strategies[i], error, sizeof error) ||
        !replay_ask(player, NULL, error, sizeof error)) {
        m->say("%s: %s", m->strategies[i].name, error);
        return FAILED;
    }
    if (!replay_true(player, "ready")) {
        if (replay_true(player, "no_memory") && !alone)
            return NO_MEMORY;
        say_obstacles(m, player);
        return FAILED;
    }
    if (m->strategies[i].preload && !replay_number(player, "interface")) {
        m->say("%s: %s was not preloaded into the player", m->strategies[i].name,
               m->strategies[i].preload);
        return FAILED;
    }
    if (first)
        for (unsigned k = 0; replay_text(player, "warnings", k, error, sizeof error); k++)
            m->say("%s: %s", m->setup->trace, error);
    replay_text(player, "gpu", 0, m->facts->gpu, sizeof m->facts->gpu);
    m->facts->driver = (unsigned)replay_number(player, "driver");
    m->facts->ops = replay_number(player, "ops");
    m->facts->launches = replay_number(player, "launches");
    m->facts->steps = replay_number(player, "steps");
    m->facts->memory_bytes = replay_number(player, "memory_bytes");
    m->facts->checks = replay_number(player, "checks");
    return STARTED;
}

static bool ask(struct measuring *m, unsigned i, const char *line) {
    char error[ERROR];
    if (replay_ask(&m->players[i], line, error, sizeof error))
        return true;
    m->say("%s: %s", m->strategies[i].name, error);
    return false;
}

/* `line`: check or sums. */
static bool check(struct measuring *m, unsigned i, const char *line, const char *when) {
    struct replay_measured *out = &m->out[i];
    char where[256] = "";
    if (!ask(m, i, line))
        return false;
    uint64_t wrong = replay_number(&m->players[i], "wrong");
    if (wrong && !out->wrong) {
        size_t used = 0;
        for (unsigned k = 0;
             k < 3 && replay_text(&m->players[i], "where", k, where, sizeof where) &&
             used < sizeof out->where;
             k++)
            used += (size_t)snprintf(out->where + used, sizeof out->where - used, "%s%s",
                                     k ? ", " : "", where);
        m->say("%s: %" PRIu64 " of %" PRIu64 " sums of the memory at the end differ (%s): %s%s",
               m->strategies[i].name, wrong, m->facts->checks, when, out->where,
               wrong > 3 ? ", ..." : "");
    }
    out->wrong = wrong > out->wrong ? wrong : out->wrong;
    return true;
}

/* So many passes; they count where `measured`. The time of the shortest into *ns. */
static bool passes(struct measuring *m, unsigned i, unsigned n, bool measured, uint64_t *shortest) {
    struct replay_measured *out = &m->out[i];
    uint64_t ns[1024], whole[1024];
    char line[32];
    n = n < 1024 ? n : 1024;
    snprintf(line, sizeof line, "run %u\n", n);
    if (!ask(m, i, line))
        return false;
    if (replay_numbers(&m->players[i], "step_ns", ns, n) != n ||
        replay_numbers(&m->players[i], "ns", whole, n) != n || !m->facts->steps) {
        m->say("%s: the player's answer makes no sense", m->strategies[i].name);
        return false;
    }
    for (unsigned k = 0; k < n && shortest; k++)
        *shortest = whole[k] < *shortest ? whole[k] : *shortest;
    if (!measured)
        return true;
    double *all = realloc(out->ns, (out->n + n) * sizeof *all);
    if (!all) {
        m->say("not enough memory");
        return false;
    }
    out->ns = all;
    for (unsigned k = 0; k < n; k++)
        all[out->n++] = (double)ns[k];
    out->issued += replay_number(&m->players[i], "issued");
    out->in_graphs += replay_number(&m->players[i], "in_graphs");
    out->graph_launches += replay_number(&m->players[i], "graph_launches");
    out->steps += n * m->facts->steps;
    return true;
}

/* How long its first steps took. */
static bool learn(struct measuring *m, unsigned i) {
    struct replay_measured *out = &m->out[i];
    if (!ask(m, i, "curve\n"))
        return false;
    size_t n = replay_numbers(&m->players[i], "ns", out->curve, CUS_CURVE_MAX);
    if (!n || n > CUS_CURVE_MAX) {
        m->say("%s: the player's answer makes no sense", m->strategies[i].name);
        return false;
    }
    out->n_curve = (unsigned)n;
    return true;
}

/* One more turn of a player is over. */
static void tell(struct measuring *m) {
    m->turns++;
    if (m->setup->told)
        m->setup->told((double)m->turns / ((double)m->n * (m->setup->rounds + 1)));
}

/* ---- players from `from` up to `to` ---- */

static bool prepare(struct measuring *m, unsigned from, unsigned to) {
    uint64_t steps = m->facts->steps ? m->facts->steps : 1;
    unsigned warm = (unsigned)(WARM_STEPS / steps);
    warm = warm > m->setup->warm ? warm : m->setup->warm;
    for (unsigned i = from; i < to; i++) {
        uint64_t shortest = UINT64_MAX;
        if (!check(m, i, "check\n", "first pass") || !passes(m, i, warm, false, &shortest))
            return false;
        if (!m->passes) /* one number for all strategies */
            m->passes = shortest >= ROUND_NS ? 1 : (unsigned)(ROUND_NS / (shortest + 1)) + 1;
        m->passes = m->passes < PASSES_MAX ? m->passes : PASSES_MAX;
        tell(m);
    }
    return true;
}

static bool measure(struct measuring *m, unsigned from, unsigned to) {
    for (unsigned round = 0; round < m->setup->rounds; round++)
        for (unsigned i = from; i < to; i++) {
            if (!passes(m, i, m->passes, true, NULL))
                return false;
            tell(m);
        }
    for (unsigned i = from; i < to; i++)
        if (!check(m, i, "sums\n", "last measured pass") || !learn(m, i))
            return false;
    return true;
}

static void end(struct measuring *m, unsigned from, unsigned to) {
    for (unsigned i = from; i < to; i++)
        replay_end(&m->players[i]);
}

static bool one_by_one(struct measuring *m) {
    m->turns = 0;
    for (unsigned i = 0; i < m->n; i++) {
        bool done =
            start(m, i, true, i == 0) == STARTED && prepare(m, i, i + 1) && measure(m, i, i + 1);
        end(m, i, i + 1);
        if (!done)
            return false;
    }
    return true;
}

/* ---- the figures ---- */

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of sorted numbers; between two of them where it lies so. */
static double quantile(const double *sorted, unsigned n, double part) {
    double at = part * (n - 1);
    unsigned low = (unsigned)at;
    return low + 1 < n ? sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]) : sorted[n - 1];
}

static bool figures(struct replay_measured *out) {
    double *away = malloc((out->n + 1) * sizeof *away);
    if (!away || !out->n) {
        free(away);
        return false;
    }
    qsort(out->ns, out->n, sizeof *out->ns, by_number);
    out->median = quantile(out->ns, out->n, 0.5);
    out->p10 = quantile(out->ns, out->n, 0.1);
    out->p90 = quantile(out->ns, out->n, 0.9);
    for (unsigned i = 0; i < out->n; i++)
        away[i] = fabs(out->ns[i] - out->median);
    qsort(away, out->n, sizeof *away, by_number);
    out->deviation = quantile(away, out->n, 0.5);
    free(away);
    return true;
}

/* Against the strategy without a library, which played as many passes. */
static void curves(const struct replay_strategy *strategies, struct replay_measured *out,
                   unsigned n) {
    const struct replay_measured *plain = NULL;
    for (unsigned i = 0; i < n; i++) {
        out[i].first_ns = (double)cus_curve_first(out[i].curve, out[i].n_curve);
        if (!strategies[i].preload)
            plain = &out[i];
    }
    for (unsigned i = 0; plain && i < n; i++) {
        if (plain->first_ns > 0)
            out[i].first_of_eager = out[i].first_ns / plain->first_ns;
        out[i].reached = cus_curve_reached(out[i].curve, out[i].n_curve, (uint64_t)plain->median,
                                           (uint64_t)out[i].median);
    }
}

bool replay_measure(const struct replay_setup *setup, const struct replay_strategy *strategies,
                    unsigned n, struct replay_facts *facts, struct replay_measured *out,
                    replay_say_fn *say) {
    struct measuring m = {.setup = setup,
                          .strategies = strategies,
                          .players = calloc(n, sizeof *m.players),
                          .facts = facts,
                          .out = out,
                          .n = n,
                          .say = say};
    memset(out, 0, n * sizeof *out);
    memset(facts, 0, sizeof *facts);
    if (!m.players) {
        say("not enough memory");
        return false;
    }
    for (unsigned i = 0; i < n; i++)
        m.players[i].to = m.players[i].from = -1;
    enum started all = STARTED;
    for (unsigned i = 0; i < n && all == STARTED; i++)
        all = start(&m, i, i == 0, i == 0);
    bool done = all == STARTED && prepare(&m, 0, n) && measure(&m, 0, n);
    end(&m, 0, n);
    if (all == NO_MEMORY) {
        say("the GPU has not memory for all strategies at once: one behind the other");
        done = one_by_one(&m);
    }
    free(m.players);
    for (unsigned i = 0; done && i < n; i++)
        if (!figures(&out[i])) {
            say("not enough memory");
            done = false;
        }
    if (done)
        curves(strategies, out, n);
    return done;
}

void replay_free(struct replay_measured *measured, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        free(measured[i].ns);
}
