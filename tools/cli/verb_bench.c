/*
 * cusplice bench: strategies against piece sizes and break lists, measured on one trace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "tools/cli/bench.h"
#include "tools/cli/library.h"
#include "tools/cli/run.h"
#include "tools/cli/trace_args.h"
#include "tools/cli/trust.h"
#include "tools/replay/whole.h"
#include "tools/trace/budget.h"
#include "tools/whatif/facts.h"

static const char help[] =
    "Plays a trace of cusplice record --replayable by several strategies, with graphs of several "
    "sizes and several\n"
    "lists of kernels that are kept out of them, and prints a table and a plot. TRACE is a file; "
    "in its place a\n"
    "scenario (harness/scenario) or a program is recorded into a folder that is removed.\n"
    "\n"
    "      --strategy LIST   with commas between, or repeated: eager (the driver alone: what all "
    "others are compared\n"
    "                        with, always measured), piecewise, full, as-recorded; default: all. "
    "piecewise is measured\n"
    "                        with each size and list, full with each size (it takes eager kernels "
    "into graphs),\n"
    "                        as-recorded as it was recorded\n"
    "      --pieces LIST     launches in a graph at most (piece_max); default: 4,16,64,256,1024\n"
    "      --break LIST      which kernels are kept out of graphs; may be repeated; default: none "
    "and every:10\n"
    "                          none       none but those of the configuration\n"
    "                          A;B;...    patterns, as in [rules]\n"
    "                          every:N    kernels, chosen by name, whose launches make up nearest "
    "to 1 in N of all\n"
    "                          sweep      each of the kernels that are launched most, a list of "
    "its own\n"
    "      --top K           so many kernels of sweep, 1 to 50 (default 8)\n"
    "      --first N         launches in the first graph of a step (piece_first)\n"
    "      --rounds N        rounds of measuring, 1 to 10000 (default 10)\n"
    "      --pace P          recorded (default): between calls the host takes the time that the "
    "program took;\n"
    "                        fastest: the time that it took in the fastest step; none: it issues "
    "as fast as it can\n"
    "      --format FORM     table (default), json, csv or md\n"
    "  -o, --output FILE     in place of stdout; may be repeated. Without --format its end says "
    "the format: .md, .csv,\n"
    "                        .json\n"
    "      --svg FILE        the plot: time of a step against the size of graphs\n"
    "      --force           replace files that are there, but never TRACE\n"
    "      --trust           play TRACE, whoever's it is: it runs the GPU code in it (cusplice "
    "replay --help)\n"
    "      --scenario NAME   record that scenario\n"
    "      --steps A-B       of it, or of the program, these steps alone\n" CLI_BUDGET_HELP
    "  -h, --help\n"
    "\n"
    "Cells are measured in batches, by players that take turns; one of each batch is the plain "
    "driver. step_ns is the\n"
    "median time of a step, noise_ns the median absolute deviation, of_eager compares with "
    "eager_ns, the plain driver\n"
    "in the same batch. in_graphs is the share of ops, folded how many of a step, and graphs how "
    "many graph launches\n"
    "hold them. piece_max 0: the strategy has none of its own.\n"
    "\n"
    "Exit status: 0; 1 where memory differs at the end, the trace cannot be replayed or something "
    "fails; 2 for a bad\n"
    "option.\n";

enum { BREAKS = 32, COMMAND = 4096, WARM = 8, SAY_SECONDS = 60, TOP = 8, TOP_MAX = 50 };

static struct {
    struct bench_plan plan;
    bool strategies, formatted, force, trusted;
    enum replay_pace pace;
    const char *breaks[BREAKS];
    unsigned n_breaks, top, rounds;
    enum table_format format;
    struct bench_output outputs[BENCH_OUTPUTS];
    unsigned n_outputs;
    const char *svg, *scenario, *steps, *trace;
    char **program;
    char command[COMMAND];
} asked = {.top = TOP, .rounds = 10};

/* ---- options ---- */

static int take_word(const char *option, const char *text, const char *const *list) {
    for (int i = 0; list[i]; i++)
        if (strcmp(text, list[i]) == 0)
            return i;
    cli_say("%s %s: no such value; the nearest is %s", option, text, cus_nearest(text, list));
    return -1;
}

static bool take_number(const char *option, const char *text, unsigned long most, unsigned *out) {
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    *out = (unsigned)n;
    if (*text >= '0' && *text <= '9' && !*end && n >= 1 && n <= most)
        return true;
    cli_say("%s %s: a number from 1 to %lu is expected", option, text, most);
    return false;
}

/* A number in the range that the option of the library has. */
static bool take_setting(const char *option, const char *key, const char *text, unsigned *out) {
    struct cus_options scratch;
    struct cus_setting setting = {"", key, text, option, 0};
    int problems = 0;
    memset(&scratch, 0, sizeof scratch);
    bool good = cus_options_set(&scratch, &setting, cli_problem, &problems);
    cus_options_free(&scratch);
    *out = good ? (unsigned)strtoul(text, NULL, 10) : 0;
    return good;
}

/* Tells each part of a list with commas between. */
static bool take_list(const char *text, bool (*take)(const char *part)) {
    char *copy = strdup(text), *rest = copy, *part;
    bool good = copy != NULL;
    while (good && (part = strsep(&rest, ",")))
        good = take(part);
    free(copy);
    return good;
}

static bool take_strategy(const char *text) {
    int which = take_word("--strategy", text, bench_strategies);
    if (which >= 0)
        asked.plan.strategies[which] = asked.strategies = true;
    return which >= 0;
}

static bool take_strategies(const char *text) {
    return take_list(text, take_strategy);
}

static bool take_piece(const char *text) {
    unsigned piece, at = asked.plan.n_pieces;
    if (!take_setting("--pieces", "piece_max", text, &piece))
        return false;
    for (unsigned i = 0; i < asked.plan.n_pieces; i++)
        if (asked.plan.pieces[i] == piece)
            return true;
    if (at == BENCH_PIECES) {
        cli_say("--pieces: more than %d sizes", BENCH_PIECES);
        return false;
    }
    for (; at && asked.plan.pieces[at - 1] > piece; at--)
        asked.plan.pieces[at] = asked.plan.pieces[at - 1];
    asked.plan.pieces[at] = piece;
    asked.plan.n_pieces++;
    return true;
}

static bool take_pieces(const char *text) {
    return take_list(text, take_piece);
}

static bool take_break(const char *text) {
    char error[600];
    if (asked.n_breaks == BREAKS) {
        cli_say("--break %s: more than %d lists", text, BREAKS);
        return false;
    }
    asked.breaks[asked.n_breaks++] = text;
    if (bench_lists_form(text, error, sizeof error))
        return true;
    cli_say("--break %s", error);
    return false;
}

static bool take_top(const char *text) {
    return take_number("--top", text, TOP_MAX, &asked.top);
}

static bool take_first(const char *text) {
    return take_setting("--first", "piece_first", text, &asked.plan.first);
}

static bool take_rounds(const char *text) {
    return take_number("--rounds", text, 10000, &asked.rounds);
}

static bool take_pace(const char *text) {
    int pace = take_word("--pace", text, replay_paces);
    asked.pace = pace < 0 ? REPLAY_RECORDED : (enum replay_pace)pace;
    return pace >= 0;
}

static bool take_format(const char *text) {
    int format = take_word("--format", text, table_formats);
    asked.formatted = true;
    asked.format = format < 0 ? TABLE_TEXTUAL : (enum table_format)format;
    return format >= 0;
}

static bool take_output(const char *text) {
    if (asked.n_outputs == BENCH_OUTPUTS) {
        cli_say("--output %s: more than %d files", text, BENCH_OUTPUTS);
        return false;
    }
    asked.outputs[asked.n_outputs++].path = text;
    return true;
}

static bool take_svg(const char *text) {
    asked.svg = text;
    return true;
}

static bool take_scenario(const char *text) {
    asked.scenario = text;
    return true;
}

static bool take_steps(const char *text) {
    asked.steps = text;
    return true;
}

static const struct {
    const char *name, *brief;
    bool (*take)(const char *text);
} options[] = {
    {"--strategy", NULL, take_strategies}, {"--pieces", NULL, take_pieces},
    {"--break", NULL, take_break},         {"--top", NULL, take_top},
    {"--first", NULL, take_first},         {"--rounds", NULL, take_rounds},
    {"--pace", NULL, take_pace},           {"--format", NULL, take_format},
    {"--output", "-o", take_output},       {"--svg", NULL, take_svg},
    {"--scenario", NULL, take_scenario},   {"--steps", NULL, take_steps},
};
enum { OPTIONS = sizeof options / sizeof *options };

/* 1: taken, 0: another one, -1: wrong, which was said. */
static int take_option(char **argv, int *at) {
    const char *value;
    if (strcmp(argv[*at], "--force") == 0)
        return asked.force = true;
    if (strcmp(argv[*at], "--trust") == 0)
        return asked.trusted = true;
    for (unsigned i = 0; i < OPTIONS; i++) {
        int taken = cli_run_value(argv, at, options[i].name, options[i].brief, &value);
        if (taken)
            return taken > 0 && options[i].take(value) ? 1 : -1;
    }
    return cli_budget_option(argv, at);
}

static bool is_safe(const char *word) {
    return *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789-_=+.,:/@%")];
}

/* The line as a shell would take it. */
static void keep_command(int argc, char **argv) {
    size_t used = (size_t)snprintf(asked.command, COMMAND, "cusplice");
    for (int i = 0; i < argc && used < COMMAND; i++) {
        const char *quote = is_safe(argv[i]) ? "" : "'";
        used += (size_t)snprintf(asked.command + used, COMMAND - used, " %s%s%s", quote, argv[i],
                                 quote);
    }
}

/* Exactly one of a trace, a scenario and a program. */
static int check_source(const struct cli_verb *self) {
    int sources = !!asked.trace + !!asked.scenario + !!asked.program;
    if (sources == 0)
        cli_say("a trace is missing, or --scenario NAME, or -- PROGRAM: cusplice %s",
                self->synopsis);
    else if (sources > 1)
        cli_say("one of them: a trace, --scenario NAME, -- PROGRAM");
    else if (asked.trace && asked.steps)
        cli_say("--steps %s: the steps of a trace are those that it has; this is for what is "
                "recorded now",
                asked.steps);
    else
        return -1;
    return 2;
}

static void set_defaults(void) {
    static const char *const pieces[] = {"4", "16", "64", "256", "1024"};
    for (unsigned i = 0; !asked.strategies && i < BENCH_STRATEGIES; i++)
        asked.plan.strategies[i] = true;
    for (unsigned i = 0; !asked.plan.n_pieces && i < sizeof pieces / sizeof *pieces; i++)
        asked.plan.pieces[i] = (unsigned)atoi(pieces[i]);
    if (!asked.plan.n_pieces)
        asked.plan.n_pieces = sizeof pieces / sizeof *pieces;
    if (!asked.n_breaks) {
        asked.breaks[asked.n_breaks++] = "none";
        asked.breaks[asked.n_breaks++] = "every:10";
    }
    if (!asked.n_outputs)
        asked.outputs[asked.n_outputs++].path = NULL;
}

static enum table_format format_of(const char *path) {
    const char *end = path ? strrchr(path, '.') : NULL;
    for (int i = 0; end && !asked.formatted && table_formats[i]; i++)
        if (strcmp(end + 1, table_formats[i]) == 0)
            return (enum table_format)i;
    return asked.format;
}

static bool check_files(void) {
    bool good = true;
    for (unsigned i = 0; i < asked.n_outputs && good; i++) {
        struct bench_output *output = &asked.outputs[i];
        output->format = format_of(output->path);
        if (!output->path)
            continue;
        good = cli_bench_writable("--output", output->path, asked.force, asked.trace);
        for (unsigned k = 0; k <= i && good; k++) {
            const char *other = k < i ? asked.outputs[k].path : asked.svg;
            if (other && strcmp(output->path, other) == 0) {
                cli_say("--output %s: named twice", output->path);
                good = false;
            }
        }
    }
    return good && (!asked.svg || cli_bench_writable("--svg", asked.svg, asked.force, asked.trace));
}

/* The exit status, or -1: go on. */
static int take_arguments(const struct cli_verb *self, int argc, char **argv) {
    const char *names[OPTIONS + 6] = {NULL};
    for (unsigned i = 0; i < OPTIONS; i++)
        names[i] = options[i].name;
    names[OPTIONS] = "--help";
    names[OPTIONS + 1] = "--force";
    names[OPTIONS + 2] = "--max-memory";
    names[OPTIONS + 3] = "--max-seconds";
    names[OPTIONS + 4] = "--trust";
    keep_command(argc, argv);
    for (int at = 1; at < argc; at++) {
        const char *word = argv[at];
        bool option = word[0] == '-' && word[1];
        if (strcmp(word, "--") == 0) {
            asked.program = argv[at + 1] ? &argv[at + 1] : NULL;
            break;
        }
        if (option && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            cli_print_help(self);
            return 0;
        }
        int taken = option ? take_option(argv, &at) : 1;
        if (!taken)
            cli_say("unknown option %s; the nearest is %s", word, cus_nearest(word, names));
        if (taken <= 0)
            return 2;
        if (!option && asked.trace) {
            cli_say("one trace at a time: %s and %s", asked.trace, word);
            return 2;
        }
        if (!option)
            asked.trace = word;
    }
    int status = check_source(self);
    if (status >= 0)
        return status;
    set_defaults();
    return check_files() ? -1 : 1;
}

/* ---- what is measured ---- */

static bool make_lists(const struct cst_trace *trace, struct bench_lists *lists) {
    char error[1024];
    if (!bench_lists_init(lists, trace)) {
        cli_say("%s: not enough memory", trace->path);
        return false;
    }
    if (!lists->launches)
        return true; /* memsets and copies alone: there is nothing to keep out of graphs */
    for (unsigned i = 0; i < asked.n_breaks; i++) {
        unsigned before = lists->n;
        if (!bench_lists_add(lists, asked.breaks[i], asked.top, error, sizeof error)) {
            cli_say("%s: --break %s", trace->path, error);
            return false;
        }
        if (strncmp(asked.breaks[i], "every:", 6) == 0 && lists->n > before) {
            const struct bench_breaks *list = &lists->lists[before];
            cli_say("%s: %s%s, %.1f %% of all launches", list->label, list->kernels[0].base,
                    list->n > 1 ? " and others" : "",
                    100 * (double)list->calls / (double)lists->launches);
        }
    }
    return true;
}

static void tell(unsigned done, unsigned of) {
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\rcusplice: %u of %u cells measured%s", done, of, done == of ? "\n" : "");
}

static void say_how_long(const struct bench_grid *grid, const struct cst_trace *trace,
                         const struct replay_setup *setup) {
    double seconds = bench_grid_seconds(grid, trace, setup);
    if (seconds > SAY_SECONDS)
        cli_say("%u cells in %u batches: about %.1f minutes", grid->n, grid->batches, seconds / 60);
}

static int measure(const struct cst_trace *trace, const struct bench_lists *lists,
                   const char *from) {
    char player[4096];
    struct bench_grid grid;
    struct replay_facts facts;
    if (!cli_player_find(player, sizeof player))
        return 1;
    const struct replay_setup setup = {.player = player,
                                       .trace = trace->path,
                                       .trusted = asked.trusted,
                                       .pace = asked.pace,
                                       .rounds = asked.rounds,
                                       .warm = WARM};
    const struct bench_found found = {.grid = &grid,
                                      .lists = lists,
                                      .facts = &facts,
                                      .trace = trace,
                                      .command = asked.command,
                                      .from = from,
                                      .rounds = asked.rounds,
                                      .first = asked.plan.first,
                                      .pace = asked.pace};
    bool good = bench_grid_make(&grid, &asked.plan, lists);
    if (!good)
        cli_say("not enough memory");
    budget_lift(); /* players use what the driver needs */
    if (good)
        say_how_long(&grid, trace, &setup);
    good = good && bench_grid_measure(&grid, &asked.plan, &setup, &facts, cli_say, tell) &&
           cli_bench_show(&found, asked.outputs, asked.n_outputs, asked.svg, asked.force);
    for (unsigned i = 0; i < grid.n; i++)
        good &= grid.cells[i].measured.wrong == 0;
    bench_grid_free(&grid);
    return good ? 0 : 1;
}

static bool take_recorded(const struct cst_trace *trace) {
    bool guessed;
    if (!asked.plan.strategies[BENCH_AS_RECORDED])
        return true;
    asked.plan.recorded = whatif_facts_config(trace, true, &guessed);
    cli_say_not_taken(trace);
    if (asked.plan.recorded)
        return true;
    cli_say("%s: it does not say by which options it was recorded: %s", trace->path,
            asked.strategies ? "it cannot be played as recorded" : "as-recorded is left out");
    asked.plan.strategies[BENCH_AS_RECORDED] = false;
    return !asked.strategies;
}

static int bench(const char *path, const char *from) {
    char library[4096], error[4600];
    struct bench_lists lists = {0};
    struct cst_trace *trace = budget_open(path, error, sizeof error);
    if (!trace || !replay_whole(trace, cli_say)) {
        if (!trace)
            cli_say("%s", error);
        cst_free(trace);
        return 1;
    }
    if (!replay_whole(trace, cli_say) || !cli_trust(trace, &asked.trusted)) {
        cst_free(trace);
        return 1;
    }
    int status = 1;
    char *preload = cli_library_find(library, sizeof library)
                        ? cli_library_preload(library, getenv("LD_PRELOAD"))
                        : NULL;
    asked.plan.preload = preload;
    if (preload && take_recorded(trace) && make_lists(trace, &lists))
        status = measure(trace, &lists, from);
    bench_lists_free(&lists);
    free((void *)(uintptr_t)asked.plan.recorded);
    free(preload);
    cst_free(trace);
    return status;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    char path[512], from[400];
    int status = take_arguments(self, argc, argv);
    if (status >= 0)
        return status;
    if (asked.trace)
        return bench(asked.trace, asked.trace);
    status = cli_bench_record(asked.scenario, asked.program, asked.steps, path, sizeof path);
    if (status)
        return status;
    snprintf(from, sizeof from, "recorded for this%s%s", asked.steps ? ", steps " : "",
             asked.steps ? asked.steps : "");
    status = bench(path, from);
    cli_bench_forget();
    return status;
}

const struct cli_verb cli_verb_bench = {
    "bench",
    "bench [--strategy LIST] [--pieces LIST] [--break LIST]... [--top K] [--first N] [--rounds N] "
    "[--pace recorded|fastest|none] [--trust] [--format table|json|csv|md] [-o FILE]... [--svg "
    "FILE] [--force] "
    "TRACE | [--steps A-B] (--scenario NAME | -- PROGRAM ARGS...)",
    "measure a trace by strategies, sizes of graphs and break lists",
    help,
    run,
};
