/*
 * cusplice repair: makes a whole trace of what can be read of a damaged one. main.c calls it. It
 * never changes the damaged file, and says how much is missing.
 */
#include <inttypes.h>
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

static const char help[] =
    "Reads a trace that is damaged (a byte that changed, a hole, an end that is missing, a program "
    "that was killed)\n"
    "as far as it can be read, and writes that as a whole trace. Blocks that do not match their "
    "checksums are left out;\n"
    "only definitions in them (names of kernels, streams, threads) are taken, unchecked, since the "
    "rest refers to them.\n"
    "Where something is missing the new trace has a record of lost ops. It cannot be replayed.\n"
    "\n" CLI_OPTIONS;

static bool ends_with(const char *path, size_t bytes, const char *end) {
    size_t n = strlen(end);
    return bytes > n && memcmp(path + bytes - n, end, n) == 0;
}

static bool default_out(const char *path, char *out, size_t bytes) {
    size_t stem = strlen(path);
    if (ends_with(path, stem, ".partial"))
        stem -= strlen(".partial");
    if (ends_with(path, stem, ".cst"))
        stem -= strlen(".cst");
    return (size_t)snprintf(out, bytes, "%.*s.repaired.cst", (int)stem, path) < bytes;
}

static bool is_damaged(const struct cst_trace *trace) {
    const struct cst_damage *damage = &trace->damage;
    return damage->places || damage->records || damage->head || !trace->closed;
}

/* A JSON object for the facts of the new trace. The caller frees it. */
static char *note_of(const struct cst_trace *trace) {
    const struct cst_damage *damage = &trace->damage;
    char *text = NULL;
    size_t bytes;
    FILE *to = text_file_open(&text, &bytes);
    if (!to)
        return NULL;
    struct cus_json json = json_to(to, CUS_JSON_SPACED);
    cus_json_open(&json, NULL, '{');
    cus_json_text(&json, "from", trace->path);
    cus_json_bool(&json, "repaired", true);
    cus_json_bool(&json, "closed", trace->closed);
    cus_json_integer(&json, "damaged_places", (int64_t)damage->places);
    cus_json_integer(&json, "damaged_bytes", (int64_t)damage->bytes);
    cus_json_integer(&json, "lost_records", (int64_t)damage->records);
    cus_json_integer(&json, "lost_ops", (int64_t)damage->ops);
    cus_json_integer(&json, "unchecked_records", (int64_t)damage->unchecked);
    cus_json_close(&json, '}');
    text_file_close(to, &text);
    return text;
}

static void print_damage(const struct cst_trace *trace) {
    const struct cst_damage *damage = &trace->damage;
    if (damage->head)
        puts("  its first bytes were not those of a trace");
    if (damage->places)
        printf("  left out: %" PRIu64 " of %" PRIu64 " bytes, in %" PRIu64 " place%s\n",
               damage->bytes, trace->file_bytes, damage->places, damage->places == 1 ? "" : "s");
    if (damage->records)
        printf("  lost: at least %" PRIu64 " records, %" PRIu64 " of them ops\n", damage->records,
               damage->ops);
    if (damage->unchecked)
        printf("  taken from there without a checksum: %" PRIu64 " records\n", damage->unchecked);
    if (!trace->closed)
        puts("  the recording did not end in good order");
}

/* What a replay needs stays only where nothing is missing. */
static bool write_whole(const struct look *look, struct selection *selection,
                        const struct trace_args *args, const char *out,
                        struct trim_result *result) {
    char error[9000];
    char *note = note_of(look->trace);
    selection->ranged = true;
    const struct trim_form form = {.packed = args->pack};
    bool made = note && (args->out.force ? trim_replace : trim_write)(
                            look, selection, note, form, out, result, error, sizeof error);
    if (!made)
        cli_say("%s", note ? error : "not enough memory");
    free(note);
    return made;
}

static int repair(const struct look *look, struct trace_args *args, const char *out) {
    struct selection selection;
    struct trim_result result;
    char error[4600];
    if (!is_damaged(look->trace)) {
        clean_print(stdout, "%s: nothing is damaged, and no file was made\n", look->trace->path);
        return trace_args_end(args);
    }
    bool made = select_steps(look, 0, false, 0, 0, &selection, error, sizeof error);
    if (!made)
        cli_say("%s", error);
    else if (!look->model->n_ops)
        cli_say("%s: no op in it can be read", look->trace->path);
    made = made && look->model->n_ops && write_whole(look, &selection, args, out, &result);
    select_free(&selection);
    if (!made)
        return 1;
    clean_print(stdout, "%s: %llu ops, %llu bytes\n", out, (unsigned long long)result.ops,
                (unsigned long long)result.bytes);
    print_damage(look->trace);
    if (result.cut)
        puts("  it cannot be replayed: what a replay needs was left out");
    return trace_args_end(args);
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    static const char *const needed[] = {"TRACE", NULL};
    struct trace_args args;
    struct look look;
    char path[CST_PATH], error[4600];
    int status =
        trace_args_read(self, &args, argc, argv, TRACE_OUT | TRACE_PACK | TRACE_FORCE, needed);
    if (status >= 0)
        return status;
    if (args.out.path && !cli_redirect_is_file(&args.out)) {
        cli_say("-o -: a trace goes into a file, whose end says that it is whole");
        return 2;
    }
    if (!args.out.path && !default_out(args.words[0], path, sizeof path)) {
        cli_say("%s: the name is too long; -o FILE names the new one", args.words[0]);
        return 2;
    }
    if (!look_salvage(&look, args.words[0], error, sizeof error)) {
        cli_say("%s", error);
        return 1;
    }
    status = repair(&look, &args, args.out.path ? args.out.path : path);
    look_close(&look);
    return status;
}

const struct cli_verb cli_verb_repair = {
    .name = "repair",
    .synopsis = "repair [-o OUT] [--force] [--pack] TRACE",
    .summary = "what can be read of a damaged trace as a whole one",
    .help = help,
    .run = run,
    .page =
        {
            .exits =
                "0, also where nothing is damaged, which is said, and no file is made; 1 where "
                "nothing can be read or the new trace not be written; 2 for a bad option",
            .examples =
                "cusplice repair -o OUT.cst T.cst\tWhat can be read of T.cst, as OUT.cst.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "record info",
            .takes = CLI_TAKES_TRACE,
        },
};
