/*
 * cusplice trim: writes a part of a trace as a trace of its own. main.c calls it; trace/trim.c
 * writes. It replaces a file with --force alone, and the trace never.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/trace/file.h"
#include "tools/cli/trace_args.h"
#include "tools/cli/verb.h"
#include "tools/trace/clean.h"
#include "tools/trace/json.h"
#include "tools/trace/text_file.h"
#include "tools/trace/trim.h"

static const char help[] = "Writes steps A to B of the busiest stream, of every other stream the "
                           "steps that begin in that\n"
                           "time, and what they need of definitions, into a new trace. Its facts "
                           "say what it was made from.\n"
                           "What a replay needs (cusplice record --replayable) goes along where "
                           "all steps do, and is left out otherwise.\n"
                           "\n" CLI_OPTIONS "\n"
                           "Where something fails no new file is left.\n";

static bool default_out(const char *path, char *out, size_t bytes) {
    size_t stem = strlen(path);
    if (stem > 4 && strcmp(path + stem - 4, ".cst") == 0)
        stem -= 4;
    return (size_t)snprintf(out, bytes, "%.*s.trim.cst", (int)stem, path) < bytes;
}

/* A JSON object: what the new trace is a part of. The caller frees it. */
static char *note_of(const struct look *look, const struct trace_args *args,
                     const struct selection *selection) {
    char *text = NULL, steps[32];
    size_t bytes;
    FILE *to = text_file_open(&text, &bytes);
    if (!to)
        return NULL;
    struct cus_json json = json_to(to, CUS_JSON_SPACED);
    cus_json_open(&json, NULL, '{');
    if (!args->bare)
        cus_json_text(&json, "from", look->trace->path);
    if (args->steps) {
        snprintf(steps, sizeof steps, "%u-%u", args->from, args->to);
        cus_json_text(&json, "steps", steps);
        cus_json_integer(&json, "stream", selection->stream);
    }
    cus_json_integer(&json, "ops_before", look->model->n_ops);
    cus_json_bool(&json, "closed", look->trace->closed);
    if (args->bare)
        cus_json_bool(&json, "bare", true);
    if ((args->steps || args->bare) && look->trace->replay.n_works)
        cus_json_text(&json, "replay", "left out");
    cus_json_close(&json, '}');
    text_file_close(to, &text);
    return text;
}

static int trim(const struct look *look, const struct trace_args *args,
                const struct selection *selection, const char *out) {
    struct trim_result result;
    char error[9000];
    char *note = note_of(look, args, selection);
    if (!note) {
        cli_say("not enough memory");
        return 1;
    }
    const struct trim_form form = {.packed = args->pack, .bare = args->bare};
    bool made = (args->out.force ? trim_replace : trim_write)(look, selection, note, form, out,
                                                              &result, error, sizeof error);
    free(note);
    if (!made) {
        cli_say("%s", error);
        return 1;
    }
    clean_print(stdout, "%s: %llu of %u ops, %llu bytes\n", out, (unsigned long long)result.ops,
                look->model->n_ops, (unsigned long long)result.bytes);
    if (result.cut)
        puts("it cannot be replayed: what a replay needs was left out");
    return fflush(stdout) == 0 ? 0 : 1;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    static const char *const needed[] = {"TRACE", NULL};
    struct trace_args args;
    struct look look;
    struct selection selection;
    char error[4600], path[CST_PATH];
    int status;
    status = trace_args_read(
        self, &args, argc, argv,
        TRACE_STEPS | TRACE_STREAM | TRACE_OUT | TRACE_PACK | TRACE_BARE | TRACE_FORCE, needed);
    if (status >= 0)
        return status;
    if (!args.steps && !args.pack && !args.bare) {
        cli_say("--steps A-B is missing (or --pack, or --bare)");
        return 2;
    }
    const char *out = args.out.path;
    if (out && strcmp(out, "-") == 0) {
        cli_say("-o -: a trace goes into a file, whose end says that it is whole");
        return 2;
    }
    if (!out && !default_out(args.words[0], path, sizeof path)) {
        cli_say("%s: the name is too long; -o FILE names the new one", args.words[0]);
        return 2;
    }
    if (!trace_args_open(&args, args.words[0], &look))
        return 1;
    status = 1;
    if (!select_steps(&look, args.stream, args.steps, args.from, args.to, &selection, error,
                      sizeof error))
        cli_say("%s", error);
    else if (!selection.steps)
        cli_say("%s: it has no ops", look.trace->path);
    else
        status = trim(&look, &args, &selection, out ? out : path);
    select_free(&selection);
    look_close(&look);
    return status;
}

const struct cli_verb cli_verb_trim = {
    .name = "trim",
    .synopsis = "trim [--steps A-B] [--stream N] [-o FILE] [--force] [--pack] [--bare] TRACE",
    .summary = "some steps of a trace as a trace of their own",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where the trace cannot be read or the new one not be written; 2 for a "
                     "bad option",
            .examples =
                "cusplice trim --steps 10-19 --pack T.cst\tTen steps, compressed, as T.trim.cst.\n"
                "cusplice trim --bare -o others.cst T.cst\tA trace that others may see.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "record repair",
            .takes = CLI_TAKES_TRACE,
        },
};
