/*
 * cusplice dump: prints a trace as JSON lines, or one step as a drawing for Graphviz. main.c calls
 * it; trace/dump.c and dot.c write. It never changes the trace.
 */
#include <stdio.h>

#include "tools/cli/trace_args.h"
#include "tools/cli/verb.h"
#include "tools/trace/dump.h"

static const char help[] =
    "One JSON object a line on stdout: a header (facts, threads, streams), then each event in the\n"
    "order of time, `ns` from the first one on: op (with its outcome: graph, eager, flushed or "
    "open,\n"
    "and where the trace has it when it ran: gpu_begin_ns, gpu_ns), call, flush, graph, segment, "
    "lost.\n"
    "cusplice export --jsonl OUT writes the same into a file.\n"
    "\n" CLI_OPTIONS;

/* The step to draw when none was named: the stream's last that was waited for, else its last. */
static uint32_t last_step(const struct look *look, uint32_t stream) {
    const struct model_stream *s = &look->model->streams[stream];
    for (uint32_t i = s->n_steps; i > 0; i--)
        if (look->model->steps[s->steps[i - 1]].end)
            return s->steps[i - 1];
    return s->n_steps ? s->steps[s->n_steps - 1] : CST_NONE;
}

static int draw(const struct look *look, struct trace_args *args,
                const struct selection *selection) {
    const struct model_stream *s = &look->model->streams[selection->stream];
    uint32_t step = args->step ? s->steps[args->from] : last_step(look, selection->stream);
    if (step == CST_NONE) {
        cli_say("%s: there is no step to draw", look->trace->path);
        return 1;
    }
    if (!trace_args_begin(args, (const char *const[]){look->trace->path, NULL}))
        return 1;
    dump_dot(look, step, stdout);
    return trace_args_end(args);
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    static const char *const needed[] = {"TRACE", NULL};
    struct trace_args args;
    struct look look;
    struct selection selection;
    char error[4600];
    int status;
    status = trace_args_read(self, &args, argc, argv,
                             TRACE_STEPS | TRACE_STREAM | TRACE_NAMES | TRACE_DOT | TRACE_STEP |
                                 TRACE_LINES | TRACE_FORCE,
                             needed);
    if (status >= 0)
        return status;
    if (args.step && !args.dot) {
        cli_say("--step goes with --dot; --steps %u is for lines", args.from);
        return 2;
    }
    if (args.dot && !args.step && args.steps) {
        cli_say("--dot draws one step: --step %u", args.from);
        return 2;
    }
    status = 1;
    if (!trace_args_open(&args, args.words[0], &look))
        return 1;
    if (!select_steps(&look, args.stream, args.steps, args.from, args.to, &selection, error,
                      sizeof error)) {
        cli_say("%s", error);
    } else if (args.dot) {
        status = draw(&look, &args, &selection);
    } else if (trace_args_begin(&args, (const char *const[]){look.trace->path, NULL})) {
        dump_lines(&look, &selection, args.stream, stdout);
        status = trace_args_end(&args);
    }
    select_free(&selection);
    look_close(&look);
    return status;
}

const struct cli_verb cli_verb_dump = {
    .name = "dump",
    .synopsis = "dump [--steps A-B] [--stream N] [--names FORM] [--dot [--step N]] [-o FILE] TRACE",
    .summary = "a trace as JSON lines, or a step as a drawing",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where the trace cannot be read or has no such step; 2 for a bad option",
            .examples = "cusplice dump -o T.jsonl T.cst\tAll events, a line each.\n"
                        "cusplice dump --dot --step 7 -o 7.dot T.cst\tOne step as a drawing for "
                        "Graphviz.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "info report export",
            .takes = CLI_TAKES_TRACE,
        },
};
