/*
 * cusplice replay: plays a replayable trace by several strategies and compares them. main.c calls
 * it; tools/replay does the work. It never runs the code of another user's trace without --trust.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/config_name.h"
#include "tools/cli/library.h"
#include "tools/cli/redirect.h"
#include "tools/cli/settings.h"
#include "tools/cli/trace_args.h"
#include "tools/cli/trust.h"
#include "tools/cli/width.h"
#include "tools/replay/run.h"
#include "tools/replay/whole.h"
#include "tools/trace/budget.h"
#include "tools/trace/progress.h"
#include "tools/trace/table.h"
#include "tools/whatif/facts.h"

static const char help[] = "Plays a trace of cusplice record --replayable again, on the GPU, "
                           "without the program: its kernels, memsets and\n"
                           "copies on memory with the same contents at the same addresses, by "
                           "several strategies, each in a process of its\n"
                           "own. Memory at the end is held against the recorded sums. What cannot "
                           "be replayed is named before anything\n"
                           "begins.\n"
                           "\n"
                           "A replay runs the GPU code that the trace holds, on this machine and "
                           "as this user, and loads code from the files\n"
                           "that it names. Play only traces of people whose programs you would "
                           "run. A trace that belongs to another user, or\n"
                           "that others may write, is asked about on a terminal, and wants --trust "
                           "elsewhere. The options of a recording that\n"
                           "name files or bound memory are never taken.\n"
                           "\n" CLI_OPTIONS "\n"
                           "step_ns is the median of the time for a step; a step ends where the "
                           "host waits for the GPU and there was work\n"
                           "for it. noise_ns is the median absolute deviation of that. "
                           "first_ten_of_eager compares the first ten typical\n"
                           "steps of all, in which graphs are made, gain_at_step is the first of "
                           "them that has 90 % of the gain (empty: none\n"
                           "has, or there is no gain). in_graphs is of the measured passes.\n";

enum { STRATEGIES = 6, WARM = 8 };

static const char *const known[] = {
    "eager", "piecewise", "full", "as-recorded", "full_decode_only", "full_and_piecewise", NULL};
enum { EAGER, AS_RECORDED = 3, DEFAULTS = 4 };

static struct {
    unsigned strategies[STRATEGIES], n_strategies; /* of `known` */
    struct cli_settings settings;
    struct table_view view;
    unsigned rounds;
    enum replay_pace pace;
    bool trusted, wide;
    const char *trace;
    struct cli_redirect output;
} asked = {.rounds = 10};

/* ---- options ---- */

static bool take_strategy(const struct cli_option *self, const char *text) {
    unsigned which;
    struct cli_option one = *self;
    one.to = &which;
    if (!cli_take_word(&one, text))
        return false;
    for (unsigned i = 0; i < asked.n_strategies; i++)
        if (asked.strategies[i] == which)
            return true;
    asked.strategies[asked.n_strategies++] = which;
    return true;
}

static const struct cli_option options[] = {
    {.name = "strategy",
     .value = "a value",
     .take = take_strategy,
     .words = known,
     .arg = "S",
     .help =
         "eager: the driver alone, without cusplice; piecewise, full, full_decode_only, "
         "full_and_piecewise: that mode, with the settings and rules of here and now; "
         "as-recorded: with those of the recording. May be repeated; default: eager, piecewise, "
         "full, as-recorded"},
    {.name = "mode",
     .value = "a value",
     .take = take_strategy,
     .words = known,
     .arg = "MODE",
     .help = "the same as --strategy"},
    CLI_EAGER(cli_take_eager, &asked.settings, ""),
    CLI_SET(cli_take_set_played, &asked.settings, ". For all strategies but eager"),
    CLI_CONFIG(". For the strategies of here and now"),
    CLI_NUMBER("repeat", &asked.rounds, 1, 10000, "N",
               "rounds of measuring, 1 to 10000 (default 10): in each, every strategy plays the "
               "trace as often as fits into 50 ms, but 20 times at most"),
    CLI_WORD("pace", &asked.pace, replay_paces, "P",
             "recorded (default): between calls the host takes the time that the program took; "
             "fastest: the time that it took in the fastest step; none: it issues as fast as it "
             "can"),
    CLI_FLAG("trust", &asked.trusted, "play it, whoever's it is"),
    CLI_FORMAT(cli_take_word, &asked.view.format, ""),
    CLI_WIDE(&asked.wide),
    CLI_OUTPUT(cli_take_name, &asked.output.path, "; - is stdout, as without it"),
    CLI_FORCE(&asked.output.force),
    {0},
};

/* ---- strategies ---- */

/* Is as-recorded among them? */
static bool takes_recorded(void) {
    for (unsigned i = 0; i < asked.n_strategies; i++)
        if (asked.strategies[i] == AS_RECORDED)
            return true;
    return asked.n_strategies == 0;
}

/* How many, into `out`; 0: something is missing, which was said. */
static unsigned plan(const struct cst_trace *trace, const char *preload, const char *recorded,
                     struct replay_strategy *out) {
    bool defaults = asked.n_strategies == 0;
    unsigned n = 0;
    for (unsigned i = 0; defaults && i < DEFAULTS; i++)
        asked.strategies[asked.n_strategies++] = i;
    for (unsigned i = 0; i < asked.n_strategies; i++) {
        unsigned which = asked.strategies[i];
        if (which == AS_RECORDED && !recorded) {
            cli_say("%s: it does not say by which options it was recorded: %s", trace->path,
                    defaults ? "as-recorded is left out" : "it cannot be played as recorded");
            if (defaults)
                continue;
            return 0;
        }
        out[n] = (struct replay_strategy){.name = known[which]};
        if (which != EAGER) {
            out[n].preload = preload;
            out[n].config = which == AS_RECORDED ? recorded : NULL;
            out[n].mode = which == AS_RECORDED ? NULL : known[which];
            out[n].eager = *asked.settings.eager ? asked.settings.eager : NULL;
            out[n].names = (const char *const *)asked.settings.names;
            out[n].values = asked.settings.values;
            out[n].n_settings = asked.settings.n;
        }
        n++;
    }
    return n;
}

/* ---- what came of it ---- */

static const struct table_column columns[] = {
    {"strategy", TABLE_TEXT},      {"step_ns", TABLE_NS},
    {"noise_ns", TABLE_NS},        {"p10_ns", TABLE_NS},
    {"p90_ns", TABLE_NS},          {"of_eager", TABLE_PERCENT},
    {"in_graphs", TABLE_PERCENT},  {"wrong_sums", TABLE_COUNT},
    {"passes", TABLE_COUNT},       {"first_ten_of_eager", TABLE_PERCENT},
    {"gain_at_step", TABLE_PLACE},
};
enum { COLUMNS = sizeof columns / sizeof *columns };
/* They compare with the plain driver. */
enum { OF_EAGER = 1 << 5 | 1 << 9 | 1 << 10 };

static int print(struct table *table) {
    const char *const from[] = {asked.trace, NULL};
    char error[256];
    if (!table->failed && table_check(table, &asked.view, error, sizeof error) &&
        cli_redirect_begin(&asked.output, from)) {
        table_print(table, &asked.view, stdout);
        if (cli_redirect_end(&asked.output, !table->failed) && !table->failed)
            return 0;
    }
    cli_say("the table could not be written");
    return 1;
}

static int show(const struct replay_strategy *strategies, const struct replay_measured *measured,
                unsigned n, const struct replay_facts *facts) {
    struct table table = {0};
    double eager = 0;
    /* All have as many passes: rows stay as they are. */
    table_init(&table, "replay", columns, COLUMNS, "passes");
    table.spare = "passes,p10_ns,p90_ns,gain_at_step,noise_ns";
    table_note(&table, "trace", asked.trace);
    table_note(&table, "gpu", facts->gpu);
    table_note_number(&table, "steps", (int64_t)facts->steps);
    table_note_number(&table, "calls", (int64_t)facts->ops);
    table_note_number(&table, "kernels", (int64_t)facts->launches);
    table_note_number(&table, "memory_bytes", (int64_t)facts->memory_bytes);
    table_note_number(&table, "sums", (int64_t)facts->checks);
    table_note(&table, "pace", replay_paces[asked.pace]);
    for (unsigned i = 0; i < n; i++)
        if (!strategies[i].preload)
            eager = measured[i].median;
    table.idle = eager > 0 ? 0 : OF_EAGER;
    for (unsigned i = 0; i < n; i++) {
        const struct replay_measured *one = &measured[i];
        union table_value *row = table_row(&table);
        if (!row)
            break;
        row[0].text = strategies[i].name;
        row[1].number = (int64_t)(one->median + 0.5);
        row[2].number = (int64_t)(one->deviation + 0.5);
        row[3].number = (int64_t)(one->p10 + 0.5);
        row[4].number = (int64_t)(one->p90 + 0.5);
        row[5].real = eager > 0 ? 100 * one->median / eager : NAN;
        row[6].real = one->issued ? 100 * (double)one->in_graphs / (double)one->issued : 0;
        row[7].number = (int64_t)one->wrong;
        row[8].number = one->n;
        row[9].real = one->first_of_eager > 0 ? 100 * one->first_of_eager : NAN;
        row[10].number = one->reached;
    }
    int status = print(&table);
    table_free(&table);
    return status;
}

static void tell(double part) {
    progress("replay", (uint64_t)(part * 1000), 1000);
}

static int replay(const struct cst_trace *trace) {
    char library[4096], player[4096];
    struct replay_strategy strategies[STRATEGIES];
    struct replay_measured measured[STRATEGIES];
    struct replay_facts facts;
    bool guessed;
    if (!cli_library_find(library, sizeof library) || !cli_player_find(player, sizeof player))
        return 1;
    char *preload = cli_library_preload(library, getenv("LD_PRELOAD"));
    char *recorded = whatif_facts_config(trace, true, &guessed);
    if (takes_recorded())
        cli_say_not_taken(trace);
    unsigned n = preload ? plan(trace, preload, recorded, strategies) : 0;
    budget_lift(); /* players use what the driver needs */
    struct replay_setup setup = {.player = player,
                                 .trace = asked.trace,
                                 .trusted = asked.trusted,
                                 .pace = asked.pace,
                                 .rounds = asked.rounds,
                                 .warm = WARM,
                                 .told = tell};
    int status = 1;
    if (n) {
        bool done = replay_measure(&setup, strategies, n, &facts, measured, cli_say);
        progress_clear();
        if (done)
            status = show(strategies, measured, n, &facts);
        for (unsigned i = 0; i < n; i++)
            status |= measured[i].wrong != 0;
        replay_free(measured, n);
    }
    free(preload);
    free(recorded);
    return status;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    char error[4600];
    int status = cli_one_trace(self, argc, argv, options, &asked.trace);
    if (status >= 0)
        return status;
    if (!cli_config_use())
        return 1;
    asked.view.width = asked.wide || cli_redirect_is_file(&asked.output) ? 0 : cli_width();
    struct cst_trace *trace = budget_open(asked.trace, error, sizeof error);
    if (!trace)
        cli_say("%s", error);
    bool may = trace && replay_whole(trace, cli_say) && cli_trust(trace, &asked.trusted);
    status = may && cli_settings_match(&asked.settings, trace) ? replay(trace) : 1;
    cst_free(trace);
    cli_settings_free(&asked.settings);
    return status;
}

const struct cli_verb cli_verb_replay = {
    .name = "replay",
    .synopsis =
        "replay [--strategy S]... [--eager PATTERN]... [--set KEY=VALUE]... [-c FILE]... [--repeat "
        "N] [--pace recorded|fastest|none] [--trust] [--format table|json|csv|md] [--wide] [-o "
        "FILE] TRACE",
    .summary = "play a replayable trace again, by several strategies",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where memory differs at the end, the trace cannot be replayed or a "
                     "player fails; 2 for a bad option",
            .examples = "cusplice replay R.cst\tAll strategies, each in a process of its own.\n"
                        "cusplice replay --strategy piecewise --eager 'attention*' R.cst\tThe "
                        "price of one rule.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "record bench whatif",
            .takes = CLI_TAKES_TRACE,
        },
};
