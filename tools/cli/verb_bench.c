/*
 * cusplice bench: measures one replayable trace over strategies, graph sizes and break lists.
 * main.c calls it. tools/bench and tools/replay do the work. It never takes a trace of another
 * user without --trust.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/bench.h"
#include "tools/cli/config_name.h"
#include "tools/cli/library.h"
#include "tools/cli/program.h"
#include "tools/cli/settings.h"
#include "tools/cli/trace_args.h"
#include "tools/cli/trust.h"
#include "tools/replay/whole.h"
#include "tools/trace/beside.h"
#include "tools/trace/budget.h"
#include "tools/trace/progress.h"
#include "tools/whatif/facts.h"

static const char help[] =
    "Plays a trace of cusplice record --replayable by several strategies, with graphs of several "
    "sizes and several\n"
    "lists of kernels that are kept out of them, and prints a table and a plot. TRACE is a file; "
    "in its place a\n"
    "scenario (harness/scenario) or a program is recorded into a folder that is removed.\n"
    "\n" CLI_OPTIONS "\n"
    "Cells are measured in batches, by players that take turns; one of each batch is the plain "
    "driver. step_ns is the\n"
    "median time of a step, noise_ns the median absolute deviation, of_eager compares with "
    "eager_ns, the plain driver\n"
    "in the same batch. first_ten_of_eager compares the first ten typical steps of all, in which "
    "graphs are made,\n"
    "gain_at_step is the first of them that has 90 % of the gain (empty: none has, or there is no "
    "gain).\n"
    "in_graphs is the share of ops, folded how many of a step, and graphs how many graph launches\n"
    "hold them. segment_max 0: the strategy has none of its own.\n";

enum { BREAKS = 32, COMMAND = 4096, WARM = 8, SAY_SECONDS = 60, TOP = 8, TOP_MAX = 50 };

static struct {
    struct bench_plan plan;
    bool strategies, formatted, force, trusted, wide;
    struct cli_settings settings;
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

/* A number in the range that the option of the library has. */
static bool take_setting(const char *option, const char *key, const char *text, unsigned *out) {
    bool good = cli_setting_fits(option, key, text);
    *out = good ? (unsigned)strtoul(text, NULL, 10) : 0;
    return good;
}

/* Tells each part of a list with commas between. */
static bool take_list(const struct cli_option *self, const char *text,
                      bool (*take)(const struct cli_option *self, const char *part)) {
    char *copy = strdup(text), *rest = copy, *part;
    bool good = copy != NULL;
    while (good && (part = strsep(&rest, ",")))
        good = take(self, part);
    free(copy);
    return good;
}

static bool take_strategy(const struct cli_option *self, const char *text) {
    unsigned which;
    struct cli_option one = *self;
    one.to = &which;
    bool good = cli_take_word(&one, text);
    if (good)
        asked.plan.strategies[which] = asked.strategies = true;
    return good;
}

static bool take_strategies(const struct cli_option *self, const char *text) {
    return take_list(self, text, take_strategy);
}

static bool take_segment(const struct cli_option *self, const char *text) {
    unsigned segment, at = asked.plan.n_segments;
    (void)self;
    if (!take_setting("--segments", "segment_max", text, &segment))
        return false;
    for (unsigned i = 0; i < asked.plan.n_segments; i++)
        if (asked.plan.segments[i] == segment)
            return true;
    if (at == BENCH_SEGMENTS) {
        cli_say("--segments: more than %d sizes", BENCH_SEGMENTS);
        return false;
    }
    for (; at && asked.plan.segments[at - 1] > segment; at--)
        asked.plan.segments[at] = asked.plan.segments[at - 1];
    asked.plan.segments[at] = segment;
    asked.plan.n_segments++;
    return true;
}

static bool take_segments(const struct cli_option *self, const char *text) {
    return take_list(self, text, take_segment);
}

/* The option's old name, for one version. */
static bool take_pieces(const struct cli_option *self, const char *text) {
    cli_say("--pieces is called --segments now; the next version has no --pieces");
    return take_segments(self, text);
}

static bool take_break(const struct cli_option *self, const char *text) {
    char error[600];
    (void)self;
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

static bool take_first(const struct cli_option *self, const char *text) {
    return take_setting("--first", "segment_first", text, self->to);
}

/* What the grid is made of has options of its own. */
static bool take_set(const struct cli_option *self, const char *text) {
    static const char *const own[][2] = {{"segment_max=", "segments"}, {"segment_first=", "first"}};
    for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(text, own[i][0], strlen(own[i][0])) == 0) {
            cli_say("--set %s: that is what --%s says", text, own[i][1]);
            return false;
        }
    return cli_take_set_played(self, text);
}

static bool take_format(const struct cli_option *self, const char *text) {
    asked.formatted = true;
    return cli_take_word(self, text);
}

static bool take_output(const struct cli_option *self, const char *text) {
    (void)self;
    if (asked.n_outputs == BENCH_OUTPUTS) {
        cli_say("--output %s: more than %d files", text, BENCH_OUTPUTS);
        return false;
    }
    asked.outputs[asked.n_outputs++].path = strcmp(text, "-") == 0 ? NULL : text;
    return true;
}

static const struct cli_option options[] = {
    {.name = "strategy",
     .value = "a value",
     .take = take_strategies,
     .words = bench_strategies,
     .arg = "LIST",
     .help = "with commas between, or repeated: eager (the driver alone: what all others are "
             "compared with, always measured), piecewise, full, as-recorded; default: all. "
             "piecewise is measured with each size and list, full with each size (it takes eager "
             "kernels into graphs), as-recorded as it was recorded"},
    {.name = "mode",
     .value = "a value",
     .take = take_strategies,
     .words = bench_strategies,
     .arg = "MODE",
     .help = "the same as --strategy"},
    CLI_OPTION("segments", 0, take_segments, NULL, "LIST",
               "launches in a graph at most (segment_max); default: 4,16,64,256,1024"),
    CLI_OLD("pieces", 0, take_pieces, NULL),
    CLI_OPTION("break", 0, take_break, NULL, "LIST",
               "which kernels are kept out of graphs; may be repeated; default: none and every:10\n"
               "none: none but those of the configuration and of --eager\n"
               "A;B;...: patterns, as in [rules]\n"
               "every:N: kernels, chosen by name, whose launches make up nearest to 1 in N of all\n"
               "sweep: each of the kernels that are launched most, a list of its own"),
    CLI_EAGER(cli_take_eager, &asked.settings,
              ". With each break list, and for all strategies but eager"),
    CLI_SET(take_set, &asked.settings, ". For all strategies but eager"),
    CLI_CONFIG(". For the strategies but as-recorded"),
    CLI_NUMBER("top", &asked.top, 1, TOP_MAX, "K", "so many kernels of sweep, 1 to 50 (default 8)"),
    CLI_OPTION("first", 0, take_first, &asked.plan.first, "N",
               "launches in the first graph of a step (segment_first)"),
    CLI_NUMBER("rounds", &asked.rounds, 1, 10000, "N",
               "rounds of measuring, 1 to 10000 (default 10)"),
    CLI_WORD("pace", &asked.pace, replay_paces, "P",
             "recorded (default): between calls the host takes the time that the program took; "
             "fastest: the time that it took in the fastest step; none: it issues as fast as it "
             "can"),
    CLI_FORMAT(take_format, &asked.format, ""),
    CLI_WIDE(&asked.wide),
    CLI_OUTPUT(take_output, NULL,
               "; - is stdout, as without it; may be repeated. Without --format its end says the "
               "format: .md, .csv, .json"),
    CLI_TEXT("svg", 0, &asked.svg, "FILE", "the plot: time of a step against the size of graphs"),
    CLI_FORCE(&asked.force),
    CLI_FLAG("trust", &asked.trusted,
             "play TRACE, whoever's it is: it runs the GPU code in it (cusplice replay --help)"),
    CLI_TEXT("scenario", 0, &asked.scenario, "NAME", "record that scenario"),
    CLI_TEXT("steps", 0, &asked.steps, "A-B", "of it, or of the program, these steps alone"),
    {0},
};

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
    static const char *const segments[] = {"4", "16", "64", "256", "1024"};
    for (unsigned i = 0; !asked.strategies && i < BENCH_STRATEGIES; i++)
        asked.plan.strategies[i] = true;
    for (unsigned i = 0; !asked.plan.n_segments && i < sizeof segments / sizeof *segments; i++)
        asked.plan.segments[i] = (unsigned)atoi(segments[i]);
    if (!asked.plan.n_segments)
        asked.plan.n_segments = sizeof segments / sizeof *segments;
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
    char program[4096] = "";
    bool good = true;
    if (asked.program)
        cli_program_find(asked.program[0], program, sizeof program);
    const char *from = asked.trace ? asked.trace : *program ? program : NULL;
    for (unsigned i = 0; i < asked.n_outputs && good; i++) {
        struct bench_output *output = &asked.outputs[i];
        output->format = format_of(output->path);
        if (!output->path)
            continue;
        good = cli_bench_writable("--output", output->path, asked.force, from);
        for (unsigned k = 0; k <= i && good; k++) {
            const char *other = k < i ? asked.outputs[k].path : asked.svg;
            if (other && beside_same(output->path, other)) {
                cli_say("--output %s: named twice", output->path);
                good = false;
            }
        }
    }
    return good && (!asked.svg || cli_bench_writable("--svg", asked.svg, asked.force, from));
}

/* The exit status, or -1: go on. */
static int take_arguments(const struct cli_verb *self, int argc, char **argv) {
    const struct cli_option *const tables[] = {options, cli_budget_options, NULL};
    struct cli_words words;
    keep_command(argc, argv);
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    if (words.options > 1) {
        cli_say("one trace at a time: %s and %s", words.at[0], words.at[1]);
        return 2;
    }
    asked.trace = words.options ? words.at[0] : NULL;
    asked.program = words.n > words.options ? words.at + words.options : NULL;
    status = check_source(self);
    if (status >= 0)
        return status;
    set_defaults();
    return cli_config_use() && check_files() ? -1 : 1;
}

/* ---- what is measured ---- */

static bool make_lists(const struct cst_trace *trace, struct bench_lists *lists) {
    char error[1024];
    const char *eager = *asked.settings.eager ? asked.settings.eager : NULL;
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
    if (eager && !bench_lists_also(lists, eager)) {
        cli_say("%s: not enough memory", trace->path);
        return false;
    }
    return true;
}

static void tell(double part) {
    progress("bench", (uint64_t)(part * 1000), 1000);
}

/* Where the results are, to whoever waited for them at a terminal. On stdout they are seen. */
static void say_written(void) {
    char text[BENCH_OUTPUTS * 256] = "";
    size_t used = 0;
    for (unsigned i = 0; i <= asked.n_outputs; i++) {
        const char *path = i < asked.n_outputs ? asked.outputs[i].path : asked.svg;
        if (path && used < sizeof text)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", path);
    }
    if (used && isatty(STDERR_FILENO))
        cli_say("wrote %s", text);
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
                                      .wide = asked.wide,
                                      .first = asked.plan.first,
                                      .pace = asked.pace};
    bool good = bench_grid_make(&grid, &asked.plan, lists);
    if (!good)
        cli_say("not enough memory");
    budget_lift(); /* players use what the driver needs */
    if (good)
        say_how_long(&grid, trace, &setup);
    good = good && bench_grid_measure(&grid, &asked.plan, &setup, &facts, cli_say, tell);
    progress_clear();
    good = good && cli_bench_show(&found, asked.outputs, asked.n_outputs, asked.svg, asked.force);
    if (good)
        say_written();
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
    if (!cli_trust(trace, &asked.trusted)) {
        cst_free(trace);
        return 1;
    }
    int status = 1;
    char *preload = cli_library_find(library, sizeof library)
                        ? cli_library_preload(library, getenv("LD_PRELOAD"))
                        : NULL;
    asked.plan.preload = preload;
    asked.plan.eager = *asked.settings.eager ? asked.settings.eager : NULL;
    asked.plan.names = (const char *const *)asked.settings.names;
    asked.plan.values = asked.settings.values;
    asked.plan.n_settings = asked.settings.n;
    if (preload && cli_settings_match(&asked.settings, trace) && take_recorded(trace) &&
        make_lists(trace, &lists))
        status = measure(trace, &lists, from);
    bench_lists_free(&lists);
    cli_settings_free(&asked.settings);
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
    .name = "bench",
    .synopsis =
        "bench [--strategy LIST] [--segments LIST] [--break LIST]... [--top K] [--first N] "
        "[--rounds N] [--pace recorded|fastest|none] [--eager PATTERN]... [--set KEY=VALUE]... [-c "
        "FILE]... [--trust] [--format table|json|csv|md] [--wide] [-o FILE]... [--svg FILE] "
        "[--force] TRACE | [--steps A-B] (--scenario NAME | -- PROGRAM ARGS...)",
    .summary = "measure a trace by strategies, sizes of graphs and break lists",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where memory differs at the end, the trace cannot be replayed or "
                     "something fails; 2 for a bad option",
            .examples = "cusplice bench --rounds 2 --svg T.svg -o T.md R.cst\tA quick look at the "
                        "default grid, as a table and as a plot.\n"
                        "cusplice bench --strategy piecewise --segments 8,64 --break none "
                        "R.cst\tTwo sizes of graphs.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "record replay",
            .takes = CLI_TAKES_TRACE,
        },
};
