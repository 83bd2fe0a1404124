/*
 * cusplice rules: proposes rules for a recorded program, as the text of a configuration file.
 * main.c calls it; rules_found.c gathers what the trace says of kernels, tools/whatif plays. It
 * never needs a GPU and changes no file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/rules_found.h"
#include "tools/cli/trace_args.h"
#include "tools/cli/whatif.h"
#include "tools/trace/budget.h"
#include "tools/trace/clean.h"
#include "tools/whatif/facts.h"
#include "tools/whatif/run.h"

static const char help[] =
    "Proposes rules for a recorded program, on stdout, as the text of a configuration file: paste "
    "it, or give the file\n"
    "to cusplice run -c. What is proposed stands as a rule; all other kernels stand in comments, "
    "with what a rule for\n"
    "them would cost.\n"
    "\n"
    "  never_defer   a kernel that waits for another GPU: a preset (nccl, peer) knows its name, or "
    "launches of it ran\n"
    "                ten times as long as others of the same shape (record --gpu-times)\n"
    "  eager         a kernel that makes a step cheaper for the host where it is a break, by "
    "cusplice whatif\n"
    "\n"
    "The 32 kernels with the most time on the GPU are looked at; without GPU times those that are "
    "launched most.\n"
    "\n" CLI_OPTIONS;

enum { GAIN = 50 /* a rule is proposed where it saves one in so many */, THREADS = 4096 };

struct proposing {
    struct trace_args *args;
    const struct look *look;
    struct whatif_cost cost;
    struct whatif_known known;
    char *recorded;
    double baseline; /* us of the host in a step; below 0: nothing could be played */
    double share;    /* of ops in graphs, in per cent */
};

static const char *cost_file;

static const struct cli_option options[] = {
    CLI_TEXT("cost", 0, &cost_file, "FILE", "what things cost, as for cusplice whatif"), {0}};

/* ---- what a rule would cost ---- */

static bool play(struct proposing *p, const char *eager, struct whatif_played *out) {
    const struct whatif_setup setup = {
        .recorded = p->recorded, .eager = eager, .timing = &p->known.timing};
    char error[512];
    if (whatif_run(p->look->trace, &setup, out, error, sizeof error))
        return true;
    cli_say("%s: %s", p->look->trace->path, error);
    return false;
}

static double host_us(const struct proposing *p, const struct whatif_played *played) {
    uint64_t steps = played->counters.steps ? played->counters.steps : 1;
    return whatif_cost_host(&p->cost, played) / 1000 / (double)steps;
}

static bool play_all(struct proposing *p, struct rules_found *found) {
    static struct whatif_played played;
    if (!play(p, NULL, &played))
        return false;
    p->baseline = host_us(p, &played);
    p->share = look_share(played.counters.in_graphs, p->look->model->n_ops);
    for (unsigned i = 0; i < found->n; i++) {
        struct rules_kernel *kernel = &found->kernels[i];
        char *eager = NULL;
        if (!rules_may_name(kernel->name))
            continue;
        if (asprintf(&eager, "mangled:%s", kernel->name) < 0)
            return false;
        bool done = play(p, eager, &played);
        free(eager);
        if (!done)
            return false;
        kernel->played = true;
        kernel->more_us = host_us(p, &played) - p->baseline;
    }
    return true;
}

/* ---- the file ---- */

static bool gains(const struct proposing *p, const struct rules_kernel *kernel) {
    return kernel->played && kernel->more_us * GAIN <= -p->baseline && kernel->more_us < -0.05;
}

/* A name that no pattern stands for is only told of. */
static void print_rule(const struct rules_kernel *kernel, const char *key, bool proposed) {
    if (!rules_may_name(kernel->name))
        clean_print(stdout, "# %s: no pattern stands for this name alone: %.200s%s\n", key,
                    kernel->name, strlen(kernel->name) > 200 ? " ..." : "");
    else
        clean_print(stdout, "%s%s = mangled:%s\n", proposed ? "" : "# ", key, kernel->name);
}

static void print_kernel(const struct proposing *p, const struct rules_found *found,
                         const struct rules_kernel *kernel) {
    char facts[400], *at = facts, *end = facts + sizeof facts;
    if (found->gpu_ns)
        at += snprintf(at, (size_t)(end - at), "%.1f %% of the GPU's time, ",
                       look_share(kernel->gpu_ns, found->gpu_ns));
    at += snprintf(at, (size_t)(end - at), "%" PRIu64 " launches", kernel->calls);
    if (kernel->reshaped)
        at += snprintf(at, (size_t)(end - at), ", another shape than before in %" PRIu64,
                       kernel->reshaped);
    if (kernel->slowest)
        at += snprintf(at, (size_t)(end - at), ", %.1f to %.1f us each", kernel->fast / 1e3,
                       kernel->slowest / 1e3);
    if (kernel->played)
        snprintf(at, (size_t)(end - at), "; as a break %+.1f us of the host a step (%+.1f %%)",
                 kernel->more_us, p->baseline > 0 ? 100 * kernel->more_us / p->baseline : 0);
    clean_print(stdout, "# %.120s: %s\n", kernel->base, facts);
}

static void print_section(const struct proposing *p, const struct rules_found *found, int which) {
    static const char *const heads[] = {
        "# These wait: nothing may be deferred behind them, and no graph holds them.",
        "# These make a step cheaper as breaks.",
        "# These are best left in graphs; what a rule would cost stands beside each.",
    };
    bool any = false;
    for (unsigned i = 0; i < found->n; i++) {
        const struct rules_kernel *kernel = &found->kernels[i];
        int of = *kernel->waits ? 0 : gains(p, kernel) ? 1 : 2;
        if (of != which)
            continue;
        if (!any)
            printf("\n%s\n", heads[which]);
        any = true;
        print_kernel(p, found, kernel);
        if (*kernel->waits)
            clean_print(stdout, "# it waits: %s\n", kernel->waits);
        print_rule(kernel, which == 0 ? "never_defer" : "eager", which < 2);
    }
}

static void print_file(const struct proposing *p, const struct rules_found *found) {
    const struct look *look = p->look;
    clean_print(stdout, "# Proposed by cusplice rules for %.400s\n", look->trace->path);
    printf("# %u ops in %u steps; %.1f us of the host a step and %.1f %% of ops in graphs, as "
           "recorded (cusplice whatif)\n",
           look->model->n_ops, look->model->n_steps, p->baseline, p->share);
    if (!p->recorded)
        puts("# the trace does not say by which options it was recorded: taken are those of here");
    if (!found->gpu_ns)
        puts("# no GPU times (record --gpu-times): kernels stand by the number of their launches");
    if (!found->presets)
        puts("# no presets are installed: kernels that wait for other GPUs are not known by name");
    if (found->all > found->n)
        printf("# %u kernels of %u are looked at\n", found->n, found->all);
    puts("[rules]");
    for (int section = 0; section < 3; section++)
        print_section(p, found, section);
}

static int propose(struct proposing *p) {
    static struct rules_found found;
    const struct cst_trace *trace = p->look->trace;
    bool guessed;
    /* Each thread of the recording gets one with a stack of its own. */
    budget_more((uint64_t)(trace->n_threads < THREADS ? trace->n_threads : THREADS) << 21);
    int status = 1;
    if (!rules_find(p->look, &found) || !cli_whatif_times(trace, NULL, &p->cost, &p->known)) {
        cli_say("%s: not enough memory", trace->path);
    } else if (!found.n) {
        cli_say("%s: it has no launches", trace->path);
    } else {
        p->recorded = whatif_facts_config(trace, true, &guessed);
        if (play_all(p, &found)) {
            print_file(p, &found);
            status = trace_args_end(p->args);
        }
    }
    free(p->recorded);
    free(p->known.gpu_ns);
    rules_free(&found);
    return status;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    struct trace_args args = {.names = NAMES_BASE};
    static struct proposing p;
    struct look look;
    const char *path;
    char error[1024];
    int status = cli_one_trace(self, argc, argv, options, &path);
    if (status >= 0)
        return status;
    if (!whatif_cost_read(cost_file, &p.cost, error, sizeof error)) {
        cli_say("--cost %s", error);
        return 1;
    }
    if (!trace_args_open(&args, path, &look))
        return 1;
    p.look = &look;
    p.args = &args;
    status = propose(&p);
    look_close(&look);
    return status;
}

const struct cli_verb cli_verb_rules = {
    .name = "rules",
    .synopsis = "rules [--cost FILE] TRACE",
    .summary = "rules that a trace speaks for, as a file",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where the trace cannot be read or played; 2 for a bad option",
            .examples = "cusplice rules T.cst >program.conf\tProposes rules for the recorded "
                        "program; then: cusplice run -c program.conf.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "record whatif config",
            .takes = CLI_TAKES_TRACE,
        },
};
