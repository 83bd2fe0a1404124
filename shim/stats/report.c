/*
 * Ranks and words the report. Runs at exit on the thread that writes the stats file, and on the
 * watchdog while a viewer asks. Holds the locks of its caller. Allocates nothing, calls no driver
 * and uses no stdio stream.
 */
#include "shim/stats/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/clean.h"
#include "shim/base/config.h"
#include "shim/stats/tally.h"

enum { CHANGED_MIN = 8, LEARNED_MIN = 20 };

static void copy_name(char *to, const char *name) {
    snprintf(to, CUS_REPORT_NAME, "%s", name);
}

/* The program may be counting meanwhile. */
static uint64_t count(const uint64_t *counter) {
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* ---- breaks ---- */

static uint64_t cost(const struct cus_report_break *one) {
    return one->launches + one->runs;
}

/* Ties have an order that does not depend on the run. */
static bool before(const struct cus_report_break *a, const struct cus_report_break *b) {
    if (cost(a) != cost(b))
        return cost(a) > cost(b);
    int names = strcmp(a->name, b->name);
    return names ? names < 0 : strcmp(a->reason, b->reason) < 0;
}

static void add_break(struct cus_report *report, const struct cus_report_break *one) {
    if (!cost(one))
        return;
    unsigned at = report->n_breaks;
    if (at == CUS_REPORT_BREAKS) {
        const struct cus_report_break *last = &report->breaks[--at];
        bool stays = before(one, last);
        const struct cus_report_break *goes = stays ? last : one;
        report->more_breaks++;
        report->more_launches += goes->launches;
        report->more_runs += goes->runs;
        if (!stays)
            return;
    } else {
        report->n_breaks++;
    }
    for (; at && before(one, &report->breaks[at - 1]); at--)
        report->breaks[at] = report->breaks[at - 1];
    report->breaks[at] = *one;
}

static void add_tally(struct cus_report *report, const struct cus_tally *tally, enum cus_why why,
                      uint64_t more) {
    struct cus_report_break one = {
        .by = !*tally->name   ? "other"
              : tally->kernel ? "kernel"
                              : "memory",
        .reason = cus_why_key(why),
        .what = cus_why_what(why),
        .advice = cus_why_advice(why),
        .launches = count(&tally->alone[why]) + count(&tally->cut_ops[why]) + more,
        .runs = count(&tally->cuts[why]),
    };
    copy_name(one.name, tally->name);
    add_break(report, &one);
}

static void add_row(struct cus_report *report, const struct cus_counters *counters, unsigned row,
                    const char *(*api_name)(unsigned row)) {
    struct cus_report_break one = {.launches = counters->cut_ops[row], .runs = counters->cuts[row]};
    if (!cost(&one))
        return;
    if (row < CUS_API_ROWS_MAX) {
        const char *name = api_name ? api_name(row) : NULL;
        if (name)
            copy_name(one.name, name);
        else
            snprintf(one.name, sizeof one.name, "api_%u", row);
        one.by = "call";
        one.reason = "api";
        one.what = cus_call_what(one.name);
        one.advice = cus_call_advice(one.name);
    } else {
        one.by = "other";
        one.reason = cus_cause_key(row - CUS_API_ROWS_MAX);
        one.what = cus_cause_what(row - CUS_API_ROWS_MAX);
        one.advice = cus_cause_advice(row - CUS_API_ROWS_MAX);
    }
    add_break(report, &one);
}

void cus_report_breaks(struct cus_report *report, const struct cus_counters *counters,
                       uint64_t let_pass, const char *(*api_name)(unsigned row)) {
    report->n_breaks = report->more_breaks = 0;
    report->more_launches = report->more_runs = 0;
    unsigned at = 0;
    for (struct cus_tally *tally = NULL; (tally = cus_tally_next(tally, &at));)
        for (unsigned why = 0; why < CUS_WHYS; why++) {
            uint64_t more = 0;
            if (tally == &cus_tally_none && why == CUS_WHY_DEMOTED) {
                uint64_t suspended = count(&tally->alone[CUS_WHY_SUSPENDED]);
                more = let_pass > suspended ? let_pass - suspended : 0;
            }
            add_tally(report, tally, (enum cus_why)why, more);
        }
    for (unsigned row = 0; row < CUS_CAUSES; row++)
        add_row(report, counters, row, api_name);
}

/* ---- shapes ---- */

static void add_shape(struct cus_report *report, const struct cus_report_shape *one) {
    unsigned at = report->n_shapes;
    if (at == CUS_REPORT_SHAPES) {
        if (report->shapes[--at].changed >= one->changed)
            return;
    } else {
        report->n_shapes++;
    }
    for (; at && (report->shapes[at - 1].changed < one->changed ||
                  (report->shapes[at - 1].changed == one->changed &&
                   strcmp(report->shapes[at - 1].name, one->name) > 0));
         at--)
        report->shapes[at] = report->shapes[at - 1];
    report->shapes[at] = *one;
}

void cus_report_shapes(struct cus_report *report) {
    unsigned at = 0;
    report->n_shapes = 0;
    for (struct cus_tally *tally = NULL; (tally = cus_tally_next(tally, &at));) {
        if (!*tally->name || !tally->kernel)
            continue;
        struct cus_report_shape one = {.launches = count(&tally->in_graphs)};
        for (unsigned why = 0; why < CUS_WHYS; why++)
            one.launches += count(&tally->alone[why]);
        one.changed = count(&tally->reshaped) + count(&tally->alone[CUS_WHY_SHAPE]);
        if (one.changed < CHANGED_MIN || one.changed * 2 < one.launches)
            continue;
        copy_name(one.name, tally->name);
        add_shape(report, &one);
    }
}

/* ---- rules ---- */

/* The edit distance between a name and the letters of a pattern. If the pattern has a star, only
 * as much of the name's beginning or end counts. */
static unsigned far(const char *word, bool star, const char *name) {
    unsigned least = cus_distance(word, name);
    size_t letters = strlen(word), bytes = strlen(name);
    if (!star || bytes <= letters)
        return least;
    char head[CUS_REPORT_NAME];
    snprintf(head, sizeof head, "%.*s", (int)letters, name);
    unsigned ends[2] = {cus_distance(word, head), cus_distance(word, name + bytes - letters)};
    for (int i = 0; i < 2; i++)
        least = ends[i] < least ? ends[i] : least;
    return least;
}

void cus_report_nearest(const char *pattern, char nearest[CUS_REPORT_NAME]) {
    char word[CUS_REPORT_NAME];
    size_t used = 0;
    for (const char *at = strncmp(pattern, "re:", 3) == 0 ? pattern + 3 : pattern;
         *at && used + 1 < sizeof word; at++)
        if (!strchr("*?^$", *at))
            word[used++] = *at;
    word[used] = 0;
    const char *best = "";
    unsigned at = 0, least = 0;
    for (struct cus_tally *tally = NULL; (tally = cus_tally_next(tally, &at));) {
        if (!tally->kernel || tally->name[0] == '(')
            continue;
        unsigned now = far(word, strchr(pattern, '*') != NULL, tally->name);
        if (!*best || now < least || (now == least && strcmp(tally->name, best) < 0)) {
            least = now;
            best = tally->name;
        }
    }
    copy_name(nearest, best);
}

/* ---- segments ---- */

void cus_report_add_segment(struct cus_report_segment *largest, unsigned *n,
                            const struct cus_report_segment *segment) {
    for (unsigned i = 0; i < *n; i++) {
        struct cus_report_segment *old = &largest[i];
        if (!segment->gone || !old->gone || old->ops != segment->ops ||
            old->variants != segment->variants || strcmp(old->first, segment->first) != 0 ||
            strcmp(old->last, segment->last) != 0)
            continue;
        old->launches += segment->launches; /* it was built again after its stream or code went */
        return;
    }
    unsigned at = *n;
    if (at == CUS_REPORT_SEGMENTS) {
        if (largest[--at].bytes >= segment->bytes)
            return;
    } else {
        ++*n;
    }
    for (; at && largest[at - 1].bytes < segment->bytes; at--)
        largest[at] = largest[at - 1];
    largest[at] = *segment;
}

/* ---- text ---- */

struct text {
    char *at, *end;
    bool full;
};

static void put(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *text, const char *fmt, ...) {
    size_t room = (size_t)(text->end - text->at);
    va_list args;
    if (text->full)
        return;
    va_start(args, fmt);
    int bytes = vsnprintf(text->at, room, fmt, args);
    va_end(args);
    text->full = bytes < 0 || (size_t)bytes >= room;
    if (text->full) {
        *text->at = 0;
    } else if (bytes) {
        bool line = text->at[bytes - 1] == '\n';
        text->at += cus_clean(text->at, (size_t)bytes - line) + line;
    }
}

typedef unsigned long long ull;

static void put_coverage(struct text *text, const struct cus_counters *c) {
    uint64_t ops = 0, eager = 0;
    for (unsigned type = 0; type < CUS_OP_TYPES; type++)
        ops += c->ops[type];
    for (unsigned why = 0; why < CUS_EAGERS; why++)
        eager += c->eager_by[why];
    put(text, "  coverage: %.1f %% of %llu ops in graphs\n",
        ops ? 100.0 * (double)c->in_graphs / (double)ops : 0.0, (ull)ops);
    put(text, "    %llu ops in %llu graph launches", (ull)c->in_graphs, (ull)c->graph_launches);
    if (c->graph_launches)
        put(text, ", %.1f ops each", (double)c->in_graphs / (double)c->graph_launches);
    put(text, "; %llu ops one by one; %llu steps\n", (ull)eager, (ull)c->steps);
}

/* After fewer than LEARNED_MIN steps, the late ones say little. */
static void put_learned(struct text *text, const struct cus_learned *learned) {
    if (!learned->percent || learned->steps < LEARNED_MIN)
        return;
    put(text, "  learning: steps 2 to 11 took %u %% of the time of plain ones (%s)",
        learned->percent, learned->plain_seen ? "those without graphs" : "an estimate");
    if (learned->gain_at)
        put(text, "; nine tenths of the gain from step %u on\n", learned->gain_at);
    else
        put(text, "; no gain in the steps' time\n");
}

static void put_off(struct text *text, const struct cus_report *report) {
    if (report->off)
        put(text, "  nothing was deferred from some moment on: %s\n", report->off);
}

static void put_breaks(struct text *text, const struct cus_report *report) {
    unsigned n = report->n_breaks < CUS_REPORT_SHOWN ? report->n_breaks : CUS_REPORT_SHOWN;
    put(text,
        "  costliest breaks, by launches issued one by one because of them + runs of graphs that "
        "they ended:%s\n",
        n ? "" : " none");
    for (unsigned i = 0; i < n; i++) {
        const struct cus_report_break *one = &report->breaks[i];
        put(text, "    %u. %llu + %llu  %s%s%s\n", i + 1, (ull)one->launches, (ull)one->runs,
            one->name, *one->name ? ": " : "", one->what);
        unsigned same = 0;
        while (strcmp(report->breaks[same].advice, one->advice) != 0)
            same++;
        if (same < i)
            put(text, "       to do: as for %u\n", same + 1);
        else
            put(text, "       to do: %s\n", one->advice);
    }
    unsigned more = report->n_breaks - n + report->more_breaks;
    if (more)
        put(text, "    and %u more, each smaller\n", more);
}

static void put_rules(struct text *text, const struct cus_report *report) {
    put(text, "  rules that matched no kernel:%s\n", report->n_rules ? "" : " none");
    for (unsigned i = 0; i < report->n_rules; i++) {
        const struct cus_report_rule *rule = &report->rules[i];
        put(text, "    %s = %s  (%s", rule->policy, rule->pattern, rule->file);
        if (rule->line)
            put(text, ":%d", rule->line);
        if (*rule->nearest)
            put(text, "); the nearest kernel is %s\n", rule->nearest);
        else
            put(text, "); no kernel was met\n");
    }
    if (report->more_rules)
        put(text, "    and %u more\n", report->more_rules);
}

static void put_shapes(struct text *text, const struct cus_report *report) {
    put(text, "  kernels whose shape changes at half of their launches or more:%s\n",
        report->n_shapes ? "" : " none");
    for (unsigned i = 0; i < report->n_shapes; i++)
        put(text, "    %s: %llu of %llu launches\n", report->shapes[i].name,
            (ull)report->shapes[i].changed, (ull)report->shapes[i].launches);
    if (report->n_shapes)
        put(text, "      to do: pad the size that changes to a few values, or raise variants so "
                  "that each has a graph\n");
}

static void put_segments(struct text *text, const struct cus_report *report) {
    put(text,
        "  graphs: %llu segment%s of %llu ops hold%s %llu bytes; %llu bytes at most (estimates)\n",
        (ull)report->segments, report->segments == 1 ? "" : "s", (ull)report->segment_ops,
        report->segments == 1 ? "s" : "", (ull)report->segment_bytes,
        (ull)report->counters->graph_bytes);
    if (report->gone)
        put(text,
            "    gone before, with their stream or code: %llu segments, %llu ops, %llu bytes\n",
            (ull)report->gone, (ull)report->gone_ops, (ull)report->gone_bytes);
    for (unsigned i = 0; i < report->n_segments; i++) {
        const struct cus_report_segment *segment = &report->largest[i];
        put(text, "    %llu bytes, %u ops, %u variant%s, launched %llu times%s: %s ... %s\n",
            (ull)segment->bytes, segment->ops, segment->variants, segment->variants == 1 ? "" : "s",
            (ull)segment->launches, segment->gone ? ", gone" : "", segment->first, segment->last);
    }
}

size_t cus_report_text(const struct cus_report *report, char *text, size_t bytes) {
    struct text out = {text, text + bytes, bytes == 0};
    put(&out, "cusplice: why (mode %s)\n", report->mode);
    put_coverage(&out, report->counters);
    put_learned(&out, &report->learned);
    put_off(&out, report);
    put_breaks(&out, report);
    put_rules(&out, report);
    put_shapes(&out, report);
    put_segments(&out, report);
    while (out.full && out.at > text && out.at[-1] != '\n')
        --out.at;
    if (bytes)
        *out.at = 0;
    return (size_t)(out.at - text);
}
