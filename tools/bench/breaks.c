/*
 * Turns the text of a break list into the kernels of a trace that it names. verb_bench.c calls it.
 * Patterns mean what they mean in [rules]. It never changes the trace.
 */
#include "tools/bench/breaks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/plan/pattern.h"

enum { SUMS = 1 << 16 }; /* of launches that are told apart at most */

bool bench_lists_init(struct bench_lists *lists, const struct cst_trace *trace) {
    *lists = (struct bench_lists){.trace = trace};
    lists->kernels = whatif_replayed(trace, &lists->n_kernels);
    for (uint32_t i = 0; lists->kernels && i < lists->n_kernels; i++)
        lists->launches += lists->kernels[i].calls;
    return lists->kernels != NULL;
}

void bench_lists_free(struct bench_lists *lists) {
    for (unsigned i = 0; i < lists->n; i++) {
        free(lists->lists[i].label);
        free(lists->lists[i].eager);
        free(lists->lists[i].kernels);
        free(lists->lists[i].texts);
    }
    free(lists->kernels);
    lists->n = 0;
    lists->kernels = NULL;
}

/* ---- one list ---- */

static bool no_memory(char *error, size_t bytes) {
    snprintf(error, bytes, "not enough memory");
    return false;
}

/* A new list, with room for `room` kernels; NULL with a sentence. */
static struct bench_breaks *new_list(struct bench_lists *lists, const char *label, size_t room,
                                     char *error, size_t bytes) {
    if (lists->n == BENCH_LISTS) {
        snprintf(error, bytes, "more than %d break lists", BENCH_LISTS);
        return NULL;
    }
    struct bench_breaks *list = &lists->lists[lists->n];
    *list = (struct bench_breaks){.label = strdup(label),
                                  .kernels = calloc(room + 1, sizeof *list->kernels)};
    lists->n++;
    if (!list->label || !list->kernels) {
        no_memory(error, bytes);
        return NULL;
    }
    return list;
}

static bool has_kernel(const struct bench_breaks *list, const char *name) {
    for (uint32_t i = 0; i < list->n; i++)
        if (strcmp(list->kernels[i].name, name) == 0)
            return true;
    return false;
}

static void put_kernel(struct bench_breaks *list, const struct whatif_kernel *kernel) {
    if (has_kernel(list, kernel->name))
        return;
    list->kernels[list->n++] =
        (struct bench_break){kernel->name, kernel->base, kernel->calls, true};
    list->calls += kernel->calls;
}

static bool put_pattern(struct bench_breaks *list, const char *prefix, const char *pattern) {
    char *eager;
    if (asprintf(&eager, "%s%s%s%s", list->eager ? list->eager : "", list->eager ? ";" : "", prefix,
                 pattern) < 0)
        return false;
    free(list->eager);
    list->eager = eager;
    return true;
}

/* A pattern can stand for that name alone. */
static bool can_be_named(const struct whatif_kernel *kernel) {
    return !strpbrk(kernel->name, ";\n*?[\\");
}

/* ---- none, patterns ---- */

/* Memsets and copies, as they are in the recording. */
static uint64_t calls_of(const struct cst_trace *trace, const struct cus_pattern *pattern) {
    uint64_t calls = 0;
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct cst_record *event = trace->events[i];
        if (event->type != CST_OP)
            continue;
        const struct cst_kind *kind = trace->kinds[((const struct cst_op *)event)->kind];
        calls += kind->op != CST_OP_LAUNCH &&
                 cus_pattern_matches_api(pattern, cst_string(trace, kind->name));
    }
    return calls;
}

/* `list` has room for all kernels and one for each pattern. `text` lives as long as it. */
static bool add_pattern(struct bench_lists *lists, struct bench_breaks *list, const char *text,
                        char *error, size_t bytes) {
    char why[256];
    struct cus_pattern *pattern = cus_pattern_new(text, why, sizeof why);
    if (!pattern) {
        snprintf(error, bytes, "%s: %s", text, why);
        return false;
    }
    enum cus_pattern_sort sort = cus_pattern_sort_of(pattern);
    bool good = sort != CUS_PATTERN_LIB && whatif_matches(lists->trace, text, error, bytes);
    for (uint32_t i = 0; good && i < lists->n_kernels; i++)
        if (cus_pattern_matches(pattern, lists->kernels[i].name))
            put_kernel(list, &lists->kernels[i]);
    if (good && sort == CUS_PATTERN_API)
        list->kernels[list->n++] =
            (struct bench_break){text, text, calls_of(lists->trace, pattern), false};
    if (sort == CUS_PATTERN_LIB)
        snprintf(error, bytes,
                 "%s: a replay loads all code itself, so libraries cannot be told apart; name "
                 "kernels",
                 text);
    cus_pattern_free(pattern);
    return good && (put_pattern(list, "", text) || no_memory(error, bytes));
}

static bool add_patterns(struct bench_lists *lists, const char *text, char *error, size_t bytes) {
    size_t patterns = 1;
    for (const char *at = text; *at; at++)
        patterns += *at == ';';
    struct bench_breaks *list = new_list(lists, text, lists->n_kernels + patterns, error, bytes);
    char *rest, *pattern;
    bool good = list != NULL;
    if (good && !(list->texts = strdup(text)))
        good = no_memory(error, bytes);
    rest = good ? list->texts : NULL;
    while (good && (pattern = strsep(&rest, ";")))
        if (*pattern)
            good = add_pattern(lists, list, pattern, error, bytes);
    return good;
}

/* ---- every:N ---- */

/* Which kernels have `want` launches together, or nearest to that: a sum for each set of kernels,
 * with the last kernel by which it was first reached. */
static bool choose(const struct bench_lists *lists, struct bench_breaks *list, uint64_t want,
                   char *error, size_t bytes) {
    uint64_t unit = 2 * want / SUMS + 1, most = 2 * want / unit + 1;
    uint32_t *by = calloc(most + 1, sizeof *by); /* 1 + kernel; 0: not reached */
    uint32_t smallest = UINT32_MAX;
    if (!by)
        return no_memory(error, bytes);
    for (uint32_t i = 0; i < lists->n_kernels; i++) {
        uint64_t calls = (lists->kernels[i].calls + unit / 2) / unit;
        if (!can_be_named(&lists->kernels[i]))
            continue;
        smallest = i; /* they are sorted */
        calls = calls ? calls : 1;
        for (uint64_t sum = most; calls <= most && sum >= calls; sum--)
            if (!by[sum] && (sum == calls || by[sum - calls]))
                by[sum] = i + 1;
    }
    uint64_t at = (want + unit / 2) / unit, best = 0;
    for (uint64_t away = 0; !best && away <= most; away++)
        best = at > away && by[at - away]           ? at - away
               : at + away <= most && by[at + away] ? at + away
                                                    : 0;
    for (uint64_t sum = best; sum;) {
        const struct whatif_kernel *kernel = &lists->kernels[by[sum] - 1];
        uint64_t calls = (kernel->calls + unit / 2) / unit;
        put_kernel(list, kernel);
        sum -= calls ? calls : 1;
    }
    free(by);
    if (!best && smallest != UINT32_MAX)
        put_kernel(list, &lists->kernels[smallest]); /* each has more than twice as many */
    if (list->n)
        return true;
    snprintf(error, bytes, "the trace has no kernel that a pattern can name");
    return false;
}

static bool add_every(struct bench_lists *lists, const char *text, unsigned long n, char *error,
                      size_t bytes) {
    struct bench_breaks *list = new_list(lists, text, lists->n_kernels, error, bytes);
    uint64_t want = (lists->launches + n / 2) / n;
    if (!list || !choose(lists, list, want ? want : 1, error, bytes))
        return false;
    for (uint32_t i = 0; i < list->n; i++)
        if (!put_pattern(list, "mangled:", list->kernels[i].name))
            return no_memory(error, bytes);
    return true;
}

/* ---- sweep ---- */

static bool is_label(const struct bench_lists *lists, const char *label) {
    for (unsigned i = 0; i < lists->n; i++)
        if (strcmp(lists->lists[i].label, label) == 0)
            return true;
    return false;
}

static bool add_sweep(struct bench_lists *lists, unsigned top, char *error, size_t bytes) {
    unsigned found = 0;
    for (uint32_t i = 0; i < lists->n_kernels && found < top; i++) {
        const struct whatif_kernel *kernel = &lists->kernels[i];
        char label[BENCH_LABEL];
        if (!can_be_named(kernel))
            continue;
        snprintf(label, sizeof label, "%s", kernel->base);
        for (unsigned k = 2; is_label(lists, label); k++) /* kernels of one name and other types */
            snprintf(label, sizeof label, "%s#%u", kernel->base, k);
        struct bench_breaks *list = new_list(lists, label, 1, error, bytes);
        if (!list)
            return false;
        put_kernel(list, kernel);
        if (!put_pattern(list, "mangled:", kernel->name))
            return no_memory(error, bytes);
        found++;
    }
    if (!found)
        snprintf(error, bytes, "the trace has no kernel that a pattern can name");
    return found > 0;
}

/* ---- any ---- */

/* N of every:N; 0: it is none, with a sentence where it looks like one. */
static unsigned long every_of(const char *text, char *error, size_t bytes) {
    char *end = NULL;
    *error = 0;
    if (strncmp(text, "every:", 6) != 0)
        return 0;
    unsigned long n = strtoul(text + 6, &end, 10);
    if (text[6] >= '0' && text[6] <= '9' && !*end && n >= 2 && n <= 1000000)
        return n;
    snprintf(error, bytes, "%s: every:N with a number from 2 to 1000000 is expected", text);
    return 0;
}

bool bench_lists_form(const char *text, char *error, size_t bytes) {
    *error = 0;
    if (!text[strspn(text, ";")])
        snprintf(error, bytes,
                 "'%s': none, every:N, sweep or patterns with ';' between are expected", text);
    else
        every_of(text, error, bytes);
    return !*error;
}

bool bench_lists_add(struct bench_lists *lists, const char *text, unsigned top, char *error,
                     size_t bytes) {
    if (!bench_lists_form(text, error, bytes))
        return false;
    unsigned long n = every_of(text, error, bytes);
    if (strcmp(text, "sweep") == 0)
        return add_sweep(lists, top, error, bytes);
    if (is_label(lists, text))
        return true; /* asked for twice */
    if (n)
        return add_every(lists, text, n, error, bytes);
    if (strcmp(text, "none") == 0)
        return new_list(lists, text, 0, error, bytes) != NULL;
    return add_patterns(lists, text, error, bytes);
}

bool bench_lists_also(struct bench_lists *lists, const char *eager) {
    for (unsigned i = 0; i < lists->n; i++)
        if (!put_pattern(&lists->lists[i], "", eager))
            return false;
    return true;
}
