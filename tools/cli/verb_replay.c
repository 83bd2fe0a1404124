/*
 * cusplice replay: plays a replayable trace again, by several strategies, and compares them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "tools/cli/library.h"
#include "tools/cli/run.h"
#include "tools/cli/trace_args.h"
#include "tools/cli/trust.h"
#include "tools/replay/run.h"
#include "tools/replay/whole.h"
#include "tools/trace/budget.h"
#include "tools/trace/table.h"
#include "tools/whatif/facts.h"
#include "tools/whatif/kernels.h"

static const char help[] =
    "Plays a trace of cusplice record --replayable again, on the GPU, without the program: its "
    "kernels, memsets and\n"
    "copies on memory with the same contents at the same addresses, by several strategies, each "
    "in a process of its\n"
    "own. Memory at the end is held against the recorded sums. What cannot be replayed is named "
    "before anything\n"
    "begins.\n"
    "\n"
    "A replay runs the GPU code that the trace holds, on this machine and as this user, and loads "
    "code from the files\n"
    "that it names. Play only traces of people whose programs you would run. A trace that belongs "
    "to another user, or\n"
    "that others may write, is asked about on a terminal, and wants --trust elsewhere. The options "
    "of a recording that\n"
    "name files or bound memory are never taken.\n"
    "\n"
    "      --strategy S      eager: the driver alone, without cusplice; piecewise, full,\n"
    "                        full_decode_only, full_and_piecewise: that mode, with the settings "
    "and rules of here and\n"
    "                        now; as-recorded: with those of the recording. May be repeated; "
    "default: eager,\n"
    "                        piecewise, full, as-recorded\n"
    "      --eager PATTERN   these kernels are never in a graph (a pattern as in [rules]; may be "
    "repeated)\n"
    "      --set KEY=VALUE   a setting for all strategies but eager\n"
    "      --repeat N        rounds of measuring, 1 to 10000 (default 10): in each, every strategy "
    "plays the trace\n"
    "                        as often as fits into 50 ms, but 20 times at most\n"
    "      --pace P          recorded (default): between calls the host takes the time that the "
    "program took;\n"
    "                        fastest: the time that it took in the fastest step; none: it issues "
    "as fast as it can\n"
    "      --trust           play it, whoever's it is\n"
    "      --format FORM     table (default), json, csv or md\n" CLI_BUDGET_HELP "  -h, --help\n"
    "\n"
    "step_ns is the median of the time for a step; a step ends where the host waits for the GPU "
    "and there was work\n"
    "for it. noise_ns is the median absolute deviation of that. in_graphs is of the measured "
    "passes.\n"
    "\n"
    "Exit status: 0; 1 where memory differs at the end, the trace cannot be replayed or a player "
    "fails; 2 for a bad\n"
    "option.\n";

enum { SETTINGS = 64, STRATEGIES = 6, PATTERNS = 16384, WARM = 8 };

static const char *const known[] = {
    "eager", "piecewise", "full", "as-recorded", "full_decode_only", "full_and_piecewise", NULL};
enum { EAGER, AS_RECORDED = 3, DEFAULTS = 4 };

static struct {
    unsigned strategies[STRATEGIES], n_strategies; /* of `known` */
    char *names[SETTINGS];
    const char *values[SETTINGS];
    unsigned n_settings;
    char eager[PATTERNS];
    struct table_view view;
    unsigned rounds;
    enum replay_pace pace;
    bool trusted;
    const char *trace;
} asked = {.rounds = 10};

/* ---- options ---- */

/* The place of a word in a list; -1, having said so: it is not in it. */
static int take_word(const char *option, const char *text, const char *const *list) {
    for (int i = 0; list[i]; i++)
        if (strcmp(text, list[i]) == 0)
            return i;
    cli_say("%s %s: no such value; the nearest is %s", option, text, cus_nearest(text, list));
    return -1;
}

static bool take_strategy(const char *text) {
    int which = take_word("--strategy", text, known);
    for (unsigned i = 0; i < asked.n_strategies && which >= 0; i++)
        if (asked.strategies[i] == (unsigned)which)
            return true;
    if (which >= 0)
        asked.strategies[asked.n_strategies++] = (unsigned)which;
    return which >= 0;
}

static bool take_eager(const char *pattern) {
    return cli_add_pattern(asked.eager, sizeof asked.eager, pattern);
}

static bool take_set(const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        cli_say("--set %s: KEY=VALUE is expected", text);
        return false;
    }
    if (strncmp(text, "eager=", 6) == 0)
        return take_eager(equals + 1);
    if (strncmp(text, "mode=", 5) == 0) {
        cli_say("--set %s: the mode is what --strategy says", text);
        return false;
    }
    if (strncmp(text, "record", 6) == 0) {
        cli_say("--set %s: a replay is not recorded", text);
        return false;
    }
    char *name = strndup(text, (size_t)(equals - text));
    struct cus_options scratch;
    struct cus_setting setting = {"", name, equals + 1, "--set", 0};
    int problems = 0;
    if (!name || asked.n_settings == SETTINGS) {
        cli_say("--set %s: too many settings", text);
        free(name);
        return false;
    }
    memset(&scratch, 0, sizeof scratch);
    bool good = cus_options_set(&scratch, &setting, cli_problem, &problems);
    cus_options_free(&scratch);
    asked.names[asked.n_settings] = name;
    asked.values[asked.n_settings++] = equals + 1;
    return good;
}

static bool take_repeat(const char *text) {
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    asked.rounds = (unsigned)n;
    if (*text >= '0' && *text <= '9' && !*end && n >= 1 && n <= 10000)
        return true;
    cli_say("--repeat %s: a number from 1 to 10000 is expected", text);
    return false;
}

static bool take_pace(const char *text) {
    int pace = take_word("--pace", text, replay_paces);
    asked.pace = pace < 0 ? REPLAY_RECORDED : (enum replay_pace)pace;
    return pace >= 0;
}

static bool take_format(const char *text) {
    int format = take_word("--format", text, table_formats);
    asked.view.format = format < 0 ? TABLE_TEXTUAL : (enum table_format)format;
    return format >= 0;
}

static const struct {
    const char *name;
    bool (*take)(const char *text);
} options[] = {
    {"--strategy", take_strategy}, {"--eager", take_eager}, {"--set", take_set},
    {"--repeat", take_repeat},     {"--pace", take_pace},   {"--format", take_format},
};
enum { OPTIONS = sizeof options / sizeof *options };

/* 1: taken, 0: another one, -1: wrong, which was said. */
static int take_option(char **argv, int *at) {
    const char *value;
    for (unsigned i = 0; i < OPTIONS; i++) {
        int taken = cli_run_value(argv, at, options[i].name, NULL, &value);
        if (taken)
            return taken > 0 && options[i].take(value) ? 1 : -1;
    }
    return cli_budget_option(argv, at);
}

/* The exit status, or -1: go on. */
static int take_arguments(const struct cli_verb *self, int argc, char **argv) {
    const char *names[OPTIONS + 5] = {NULL};
    bool only_words = false;
    for (unsigned i = 0; i < OPTIONS; i++)
        names[i] = options[i].name;
    names[OPTIONS] = "--help";
    names[OPTIONS + 1] = "--max-memory";
    names[OPTIONS + 2] = "--max-seconds";
    names[OPTIONS + 3] = "--trust";
    for (int at = 1; at < argc; at++) {
        const char *word = argv[at];
        bool option = !only_words && word[0] == '-' && word[1];
        if (option && strcmp(word, "--") == 0) {
            only_words = true;
            continue;
        }
        if (option && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            cli_print_help(self);
            return 0;
        }
        if (option && strcmp(word, "--trust") == 0) {
            asked.trusted = true;
            continue;
        }
        int taken = option ? take_option(argv, &at) : 1;
        if (!taken)
            cli_say("unknown option %s; the nearest is %s", word, cus_nearest(word, names));
        if (taken <= 0)
            return 2;
        if (option)
            continue;
        if (asked.trace) {
            cli_say("one trace at a time: %s and %s", asked.trace, word);
            return 2;
        }
        asked.trace = word;
    }
    if (asked.trace)
        return -1;
    cli_say("a trace is missing: cusplice %s", self->synopsis);
    return 2;
}

/* ---- strategies ---- */

static bool patterns_match(const struct cst_trace *trace) {
    char *list = strdup(asked.eager), *rest = list, *pattern, error[600];
    bool all = list != NULL;
    while (all && (pattern = strsep(&rest, ";")))
        if (*pattern && !whatif_matches(trace, pattern, error, sizeof error)) {
            cli_say("%s: --eager %s", trace->path, error);
            all = false;
        }
    free(list);
    return all;
}

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
            out[n].eager = *asked.eager ? asked.eager : NULL;
            out[n].names = (const char *const *)asked.names;
            out[n].values = asked.values;
            out[n].n_settings = asked.n_settings;
        }
        n++;
    }
    return n;
}

/* ---- what came of it ---- */

static const struct table_column columns[] = {
    {"strategy", TABLE_TEXT},     {"step_ns", TABLE_NS},       {"noise_ns", TABLE_NS},
    {"p10_ns", TABLE_NS},         {"p90_ns", TABLE_NS},        {"of_eager", TABLE_PERCENT},
    {"in_graphs", TABLE_PERCENT}, {"wrong_sums", TABLE_COUNT}, {"passes", TABLE_COUNT},
};
enum { COLUMNS = sizeof columns / sizeof *columns, OF_EAGER = 5 };

static int show(const struct replay_strategy *strategies, const struct replay_measured *measured,
                unsigned n, const struct replay_facts *facts) {
    struct table table = {0};
    double eager = 0;
    char error[256];
    /* All have as many passes: rows stay as they are. */
    table_init(&table, "replay", columns, COLUMNS, "passes");
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
    table.idle = eager > 0 ? 0 : 1u << OF_EAGER;
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
        row[5].real = eager > 0 ? 100 * one->median / eager : 0;
        row[6].real = one->issued ? 100 * (double)one->in_graphs / (double)one->issued : 0;
        row[7].number = (int64_t)one->wrong;
        row[8].number = one->n;
    }
    int status = 1;
    if (!table.failed && table_check(&table, &asked.view, error, sizeof error)) {
        table_print(&table, &asked.view, stdout);
        status = 0;
    }
    if (fflush(stdout) != 0 || ferror(stdout) || table.failed || status) {
        cli_say("the table could not be written");
        status = 1;
    }
    table_free(&table);
    return status;
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
                                 .warm = WARM};
    int status = 1;
    if (n) {
        bool done = replay_measure(&setup, strategies, n, &facts, measured, cli_say);
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
    int status = take_arguments(self, argc, argv);
    if (status >= 0)
        return status;
    struct cst_trace *trace = budget_open(asked.trace, error, sizeof error);
    if (!trace)
        cli_say("%s", error);
    bool may = trace && replay_whole(trace, cli_say) && cli_trust(trace, &asked.trusted);
    status = may && patterns_match(trace) ? replay(trace) : 1;
    cst_free(trace);
    for (unsigned i = 0; i < asked.n_settings; i++)
        free(asked.names[i]);
    return status;
}

const struct cli_verb cli_verb_replay = {
    "replay",
    "replay [--strategy S]... [--eager PATTERN]... [--set KEY=VALUE]... [--repeat N] [--pace "
    "recorded|fastest|none] [--trust] [--format table|json|csv|md] TRACE",
    "play a replayable trace again, by several strategies",
    help,
    run,
};
