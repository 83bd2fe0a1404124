/*
 * cusplice rules: proposes rules for a recorded program, as the text of a configuration file.
 * main.c calls it; rules_found.c gathers what the trace says of kernels, tools/whatif plays,
 * rules_show.c prints. It never needs a GPU and changes no file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/rules_found.h"
#include "tools/cli/trace_args.h"
#include "tools/cli/whatif.h"
#include "tools/trace/budget.h"
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

enum { THREADS = 4096 };

struct proposing {
    struct trace_args *args;
    const struct look *look;
    struct whatif_cost cost;
    struct whatif_known known;
    char *recorded;
    struct rules_played played;
};

static const char *cost_file;
static struct cli_redirect output;

static const struct cli_option options[] = {
    CLI_TEXT("cost", 0, &cost_file, "FILE", "what things cost, as for cusplice whatif"),
    CLI_OUTPUT(cli_take_name, &output.path, "; - is stdout, as without it"),
    CLI_FORCE(&output.force),
    {0}};

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
    p->played.baseline = host_us(p, &played);
    p->played.share = look_share(played.counters.in_graphs, p->look->model->n_ops);
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
        kernel->more_us = host_us(p, &played) - p->played.baseline;
    }
    return true;
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
        p->played.guessed = !p->recorded;
        if (play_all(p, &found)) {
            const char *const from[] = {trace->path, NULL};
            if (trace_args_begin(p->args, from)) {
                rules_show(p->look, &found, &p->played, stdout);
                status = trace_args_end(p->args);
            }
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
    args.out = output;
    p.args = &args;
    status = propose(&p);
    look_close(&look);
    return status;
}

const struct cli_verb cli_verb_rules = {
    .name = "rules",
    .synopsis = "rules [--cost FILE] [-o FILE] [--force] TRACE",
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
