/*
 * cusplice whatif: plays a trace by another configuration on the library's engine, and prints the
 * outcome. main.c calls it; tools/whatif does the work. It never needs a GPU or executes a kernel.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/config_name.h"
#include "tools/cli/redirect.h"
#include "tools/cli/settings.h"
#include "tools/cli/trace_args.h"
#include "tools/cli/trust.h"
#include "tools/cli/whatif.h"
#include "tools/trace/budget.h"
#include "tools/trace/facts.h"
#include "tools/trace/progress.h"
#include "tools/whatif/facts.h"
#include "tools/whatif/run.h"

static const char help[] = "Plays a trace (cusplice record) with other settings: the library's own "
                           "engine runs over the recorded launches,\n"
                           "on a driver that does nothing, and counts what it does. Nothing is "
                           "executed, no GPU is needed.\n"
                           "\n" CLI_OPTIONS "\n"
                           "The baseline is the trace by the options and rules that it was "
                           "recorded by; where it does not name them, by\n"
                           "those of here and now. `recorded` is what the recording itself says. "
                           "Counts are exactly those of a real run\n"
                           "where sizes of graphs do not follow the pace of the host "
                           "(segment_first = segment_max, a long hold_us); otherwise\n"
                           "they follow the pace at which the program was recorded. [step] "
                           "sections are not in traces: give them with -c.\n"
                           "Times are a model. step_us is how long a step takes from the end of "
                           "one wait for the GPU to the end of the next:\n"
                           "clocks of the host and of each stream go on while the trace is played, "
                           "by what the program did between its calls\n"
                           "and by the costs of a file that cusplice calibrate makes (h200.cost "
                           "says how); the median of the steps with as\n"
                           "many ops as most ops are in, but for their first half. "
                           "host_us_per_step and gpu_us_per_step are sums of costs\n"
                           "alone, us_per_step is the larger one. first_ten_us are the first ten "
                           "such steps of all, first_ten_of_plain is that in\n"
                           "per cent of what they take without the library, gain_at_step the first "
                           "step with 90 % of the gain (none: - or null).\n"
                           "Where there are GPU times, kernels, memsets and copies run as long as "
                           "they were measured; others are taken for small\n"
                           "kernels.\n";

enum { TRIES = 32, THREADS = 4096 };

static struct {
    const char *cost, *gpu_times, *trace;
    struct cli_settings settings;
    enum table_format format;
    bool sweep, wide;
    struct cli_redirect output;
} asked;

/* ---- options ---- */

static bool take_mode(const struct cli_option *self, const char *text) {
    return cli_settings_add(self->to, "--mode", "mode", 4, text);
}

static const struct cli_option options[] = {
    CLI_EAGER(cli_take_eager, &asked.settings, ""),
    CLI_MODE(take_mode, &asked.settings, ""),
    CLI_SET(cli_take_set, &asked.settings, ""),
    CLI_CONFIG(". Their rules take the place of the recorded ones"),
    CLI_FLAG("sweep", &asked.sweep,
             "what if one kernel were a break: tries each of the 32 that are launched most, and "
             "ranks them by predicted host time"),
    CLI_TEXT("cost", 0, &asked.cost, "FILE",
             "what things cost, in place of the built-in figures of one H200"),
    CLI_TEXT("gpu-times", 0, &asked.gpu_times, "FILE",
             "a trace of the same program with GPU times (record --gpu-times), which this one then "
             "need not have: ops of the same name and shape run as long"),
    CLI_FLAG(
        "wide", &asked.wide,
        "all counts and times. Otherwise the table has the most important ones, and those that "
        "differ"),
    CLI_FORMAT(cli_take_word, &asked.format, "; in JSON counts have the names of the stats file"),
    CLI_OUTPUT(cli_take_name, &asked.output.path, "; - is stdout, as without it"),
    CLI_FORCE(&asked.output.force),
    {0},
};

/* ---- what the recording says ---- */

_Static_assert((int)CST_OP_WAIT == CUS_OP_WAIT && (int)CST_OP_TYPES == CUS_OP_TYPES,
               "a file has the numbers of format.h");

static void read_outcomes(const struct cst_trace *trace, struct whatif_recorded *out) {
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct cst_record *event = trace->events[i];
        if (event->type == CST_OP) {
            const struct cst_op *op = (const struct cst_op *)event;
            out->ops[trace->kinds[op->kind]->op]++;
            out->eager += event->flags == CST_EAGER;
            out->host_ns += op->host_ns;
        } else if (event->type == CST_FLUSH) {
            out->eager += ((const struct cst_flush *)event)->n;
        } else if (event->type == CST_LAUNCH) {
            const struct cst_launch *launch = (const struct cst_launch *)event;
            out->graph_launches++;
            out->in_graphs += launch->n;
            out->patched_nodes += launch->patched;
            out->exact += event->flags == CST_EXACT;
            out->patched += event->flags == CST_PATCHED;
        }
    }
}

static void take_from(void *context, const char *name, const char *value) {
    if (strcmp(name, "record_from") == 0)
        *(uint64_t *)context = strtoull(value, NULL, 10);
}

/* ---- playing ---- */

static unsigned plays, plays_done;

static bool play(const struct cst_trace *trace, const struct whatif_setup *setup,
                 struct whatif_played *out) {
    char error[512];
    progress_part((double)plays_done / plays, (double)(plays_done + 1) / plays);
    plays_done++;
    if (whatif_run(trace, setup, out, error, sizeof error))
        return true;
    cli_say("%s: %s", trace->path, error);
    return false;
}

static const struct whatif_found *compared;

static int by_host(const void *a, const void *b) {
    double x = whatif_cost_host(compared->cost, &((const struct whatif_try *)a)->played);
    double y = whatif_cost_host(compared->cost, &((const struct whatif_try *)b)->played);
    return x < y ? -1 : x > y;
}

static bool sweep(struct whatif_found *found, const struct whatif_setup *setup,
                  struct whatif_kernel *kernels) {
    found->tries = calloc(TRIES, sizeof *found->tries);
    if (!found->tries) {
        cli_say("not enough memory");
        return false;
    }
    for (uint32_t i = 0; i < found->kernels && found->n_tries < TRIES; i++) {
        char *eager;
        if (strpbrk(kernels[i].name, ";\n*?[\\"))
            continue; /* no pattern stands for that name alone */
        if (asprintf(&eager, "mangled:%s%s%s", kernels[i].name, setup->eager ? ";" : "",
                     setup->eager ? setup->eager : "") < 0)
            return false;
        struct whatif_setup one = *setup;
        one.eager = eager;
        struct whatif_try *it = &found->tries[found->n_tries++];
        it->kernel = &kernels[i];
        bool played = play(found->trace, &one, &it->played);
        free(eager);
        if (!played)
            return false;
    }
    compared = found;
    qsort(found->tries, found->n_tries, sizeof *found->tries, by_host);
    return true;
}

/* What the first steps are compared with. */
static bool play_plain(struct whatif_found *found) {
    const char *name = "mode", *off = "off";
    const struct whatif_setup plain = {.recorded = "",
                                       .names = &name,
                                       .values = &off,
                                       .n_settings = 1,
                                       .timing = &found->known.timing};
    return !found->baseline.times.steps || play(found->trace, &plain, &found->plain);
}

/* The recorded configuration, and the same without its rules where others are given. */
static bool find_out(struct whatif_found *found, struct whatif_kernel *kernels) {
    char *recorded = whatif_facts_config(found->trace, true, &found->guessed_rules);
    cli_say_not_taken(found->trace);
    bool unused;
    const char *config = cli_config_given();
    char *without = config ? whatif_facts_config(found->trace, false, &unused) : NULL;
    const struct whatif_setup baseline = {.recorded = recorded, .timing = &found->known.timing};
    const struct whatif_setup hypothesis = {
        .recorded = config ? without : recorded,
        .config = config,
        .names = (const char *const *)asked.settings.names,
        .values = asked.settings.values,
        .n_settings = asked.settings.n,
        .eager = *asked.settings.eager ? asked.settings.eager : NULL,
        .timing = &found->known.timing,
    };
    char *facts = facts_line(found->trace->facts);
    found->imported = facts && facts_imported(facts);
    free(facts);
    found->no_options = !recorded;
    found->guessed_rules &= recorded != NULL;
    found->asked = config || asked.settings.n || *asked.settings.eager;
    plays = 2 + found->asked + (asked.sweep ? found->kernels < TRIES ? found->kernels : TRIES : 0);
    bool done = play(found->trace, &baseline, &found->baseline) && play_plain(found) &&
                (!found->asked || play(found->trace, &hypothesis, &found->hypothesis)) &&
                (!asked.sweep || sweep(found, &hypothesis, kernels));
    free(recorded);
    free(without);
    return done;
}

static int show(const struct whatif_found *found) {
    const char *const from[] = {asked.trace, NULL};
    if (!cli_redirect_begin(&asked.output, from))
        return 1;
    cli_whatif_show(found, asked.format, asked.wide);
    return cli_redirect_end(&asked.output, true) ? 0 : 1;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    char error[1024];
    static struct whatif_cost cost;
    static struct whatif_found found;
    int status = cli_one_trace(self, argc, argv, options, &asked.trace);
    if (status >= 0)
        return status;
    if (!whatif_cost_read(asked.cost, &cost, error, sizeof error)) {
        cli_say("--cost %s", error);
        return 1;
    }
    struct cst_trace *trace = budget_open_once(asked.trace, false, error, sizeof error);
    if (!trace) {
        cli_say("%s", error);
        return 1;
    }
    struct cst_trace *other =
        asked.gpu_times ? budget_open_once(asked.gpu_times, false, error, sizeof error) : NULL;
    if (asked.gpu_times && (!other || !other->n_gpu)) {
        cli_say("--gpu-times %s%s", other ? asked.gpu_times : error,
                other ? ": there are none in it; record with --gpu-times" : "");
        cst_free(other);
        cst_free(trace);
        return 1;
    }
    /* Each thread of the recording gets one with a stack of its own. */
    budget_more((uint64_t)(trace->n_threads < THREADS ? trace->n_threads : THREADS) << 21);
    found.trace = trace;
    found.cost = &cost;
    status = 1;
    struct whatif_kernel *kernels = whatif_kernels(trace, &found.kernels);
    read_outcomes(trace, &found.recorded);
    whatif_facts_read(trace->facts, "options", take_from, &found.from);
    if (!kernels || !cli_whatif_times(trace, other, &cost, &found.known))
        cli_say("%s: not enough memory", trace->path);
    else if (cli_settings_match(&asked.settings, trace) && find_out(&found, kernels)) {
        progress_clear();
        status = show(&found);
    }
    free(found.tries);
    free(kernels);
    free(found.known.gpu_ns);
    cst_free(other);
    cst_free(trace);
    cli_settings_free(&asked.settings);
    return status;
}

const struct cli_verb cli_verb_whatif = {
    .name = "whatif",
    .synopsis =
        "whatif [--eager PATTERN]... [--mode M] [--set KEY=VALUE]... [-c FILE]... [--sweep] "
        "[--cost FILE] [--gpu-times FILE] [--wide] [--format table|json|csv|md] [-o FILE] TRACE",
    .summary = "what would become of a recorded program with other settings",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where the trace cannot be read or played, or a pattern matches nothing; "
                     "2 for a bad option",
            .examples =
                "cusplice whatif --mode full T.cst\tThe recorded program in another mode.\n"
                "cusplice whatif --eager 'attention*' T.cst\tWhat it costs to keep these kernels "
                "out of graphs.\n"
                "cusplice whatif --sweep T.cst\tWhich kernel would be the cheapest break.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "record calibrate rules replay",
            .takes = CLI_TAKES_TRACE,
        },
};
