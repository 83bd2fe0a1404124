/*
 * cusplice top: shows what the library does in a running process, from the page that the process
 * keeps (shim/stats/page.h). main.c calls it. It reads pages of this user's processes only and
 * trusts none; it removes those of dead processes.
 */
#include "tools/cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/process.h"
#include "shim/base/process_rank.h"
#include "tools/cli/screen.h"
#include "tools/cli/top.h"
#include "tools/trace/json.h"

enum { EXIT_BAD = 2 };

static const char help[] =
    "Shows what the library does in a process: launches, their share in graphs, graph launches, "
    "host time saved,\n"
    "what broke the runs of launches, what graphs hold. Without PID: the process that there is; of "
    "several, one table\n"
    "(on a terminal) or a list. It goes on until the process ends, or until q is pressed. On a "
    "terminal it shows what fits the window, in colours unless NO_COLOR is set; with TERM=dumb "
    "plain text.\n"
    "\n" CLI_OPTIONS "\n"
    "Rates are those between two looks. \"Host time saved\" is an estimate: ops in graphs times "
    "the host time of a\n"
    "launch issued by itself, less graph launches times that of a graph launch, both medians of "
    "launches that were\n"
    "timed in the process. What it costs to match a launch, some tens of ns, is not taken off.\n"
    "\n"
    "Processes of this user alone, on this machine and in this container, which were started by "
    "cusplice run, or\n"
    "with live = yes, and have deferred launches; modes off and observe have nothing to show. "
    "Pages are in\n"
    "$XDG_RUNTIME_DIR, else in /dev/shm.\n";

/* ---- looking ---- */

struct view {
    long pid;
    const char *path;
    int fd;
    bool once, json, all, answered;
    bool silent;       /* at the last look */
    uint64_t interval; /* ns */
    struct cus_page page;
    struct cus_page_facts before; /* at_ns is 0: there is nothing before */
};

enum answer { ANSWERED, SILENT, ENDED, BROKEN, LEFT };

/* Asks, and waits for the answer. */
static enum answer look(struct view *view) {
    const char *why;
    uint32_t answers = view->page.answers;
    uint64_t begun = cus_clock_ns(), pause = CLI_TOP_SECOND / 1000;
    cus_page_ask(view->fd, &view->page);
    for (;;) {
        if (!cli_top_is_alive(view->pid, &view->page))
            return ENDED;
        struct cus_page copy;
        if (!cus_page_read(view->fd, &copy, &why)) {
            cli_screen_end();
            cli_say("%s %s", view->path, why);
            return BROKEN;
        }
        if (copy.answers != answers) {
            if (view->answered)
                view->before = view->page.facts;
            view->page = copy;
            view->answered = true;
            return ANSWERED;
        }
        if (cus_clock_ns() - begun > 3 * CLI_TOP_SECOND)
            return SILENT;
        if (cli_screen_wait(pause))
            return LEFT;
        pause = pause < CLI_TOP_SECOND / 50 ? pause * 2 : pause;
    }
}

/* ---- showing ---- */

typedef unsigned long long ull;

static void put_breaks(FILE *to, const struct cus_page_facts *facts) {
    fprintf(to, "breaks so far (launches issued one by one + runs of graphs ended):%s\n",
            facts->n_breaks ? "" : " none");
    int launches = 0, runs = 0; /* how many digits they have */
    for (unsigned i = 0; i < facts->n_breaks; i++) {
        const struct cus_page_break *one = &facts->breaks[i];
        int digits = snprintf(NULL, 0, "%llu", (ull)one->launches);
        launches = digits > launches ? digits : launches;
        digits = snprintf(NULL, 0, "%llu", (ull)one->runs);
        runs = digits > runs ? digits : runs;
    }
    for (unsigned i = 0; i < facts->n_breaks; i++) {
        const struct cus_page_break *one = &facts->breaks[i];
        fprintf(to, "  %*llu + %-*llu  " CLI_BOLD "%s" CLI_PLAIN "%s%s\n", launches,
                (ull)one->launches, runs, (ull)one->runs, one->name, *one->name ? ": " : "",
                one->what);
    }
    if (facts->more_breaks)
        fprintf(to, "  and %u more\n", facts->more_breaks);
}

/* What matters most is in front: 40 columns show each line's first figures. */
static void put_figures(FILE *to, const struct view *view) {
    const struct cus_page_facts *facts = &view->page.facts;
    struct cli_top_rates rates = cli_top_rates(facts, &view->before);
    char now[4][32] = {"", "", "", ""};
    double share = cli_top_share(facts->in_graphs, facts->ops);
    if (rates.seconds > 0) {
        snprintf(now[0], sizeof now[0], "%.0f /s", rates.ops);
        snprintf(now[1], sizeof now[1], "%.1f %%", rates.share);
        snprintf(now[2], sizeof now[2], "%.0f /s", rates.graphs);
        snprintf(now[3], sizeof now[3], "%.1f ms/s", rates.saved * 1e3);
    }
    fprintf(to, CLI_DIM "%-16s%11s%13s\n", "", rates.seconds > 0 ? "now" : "", "so far");
    fprintf(to, "%-16s%11s%13llu\n", "launches", now[0], (ull)facts->ops);
    fprintf(to, "%-16s%s%11s%s%11.1f %%\n", "in graphs", cli_top_colour(rates.share), now[1],
            cli_top_colour(share), share);
    fprintf(to, "%-16s%11s%13llu\n", "graph launches", now[2], (ull)facts->graph_launches);
    if (facts->launch_ns && facts->graph_ns)
        fprintf(to, "%-16s%11s%11.3f s  (%llu ns a launch, %llu a graph)\n", "host time saved",
                now[3], cli_top_saved(facts, facts->in_graphs, facts->graph_launches),
                (ull)facts->launch_ns, (ull)facts->graph_ns);
    else
        fprintf(to, "%-16s%11s%13s\n", "host time saved", "", "not known yet");
    fprintf(
        to, "graphs hold about %.1f MiB of %.0f, %.1f at most; %llu built, %llu nodes patched\n",
        (double)facts->graph_bytes / 1048576, (double)facts->graph_bytes_limit / 1048576,
        (double)facts->graph_bytes_most / 1048576, (ull)facts->built, (ull)facts->patched_nodes);
}

static const char silence[] = "does not answer: it is stopped, busy in the driver, or has become "
                              "another program";

static void print_text(const struct view *view) {
    FILE *to = cli_screen_frame();
    fprintf(to, CLI_BOLD "cusplice top: %s (pid %ld, mode %s)" CLI_PLAIN CLI_HINT "  q quits\n",
            view->page.program, view->pid, view->page.facts.mode);
    if (view->silent)
        fprintf(to, CLI_RED "%s\n", silence);
    put_figures(to, view);
    put_breaks(to, &view->page.facts);
    cli_screen_show();
}

void cli_top_put(struct cus_json *json, long pid, const struct cus_page *page,
                 const struct cus_page_facts *before) {
    const struct cus_page_facts *facts = &page->facts;
    struct cli_top_rates rates = cli_top_rates(facts, before);
    cus_json_open(json, NULL, '{');
    cus_json_integer(json, "pid", (int)pid);
    if (page->rank && page->rank <= CUS_PROCESS_RANK_MAX + 1)
        cus_json_number(json, "rank", page->rank - 1);
    cus_json_text(json, "program", page->program);
    cus_json_text(json, "gpu", facts->gpu);
    cus_json_text(json, "mode", facts->mode);
    cus_json_number(json, "ops", facts->ops);
    cus_json_number(json, "in_graphs", facts->in_graphs);
    cus_json_number(json, "graph_launches", facts->graph_launches);
    cus_json_number(json, "steps", facts->steps);
    cus_json_number(json, "built", facts->built);
    cus_json_number(json, "patched_nodes", facts->patched_nodes);
    cus_json_number(json, "graph_bytes", facts->graph_bytes);
    cus_json_number(json, "graph_bytes_most", facts->graph_bytes_most);
    cus_json_number(json, "graph_bytes_limit", facts->graph_bytes_limit);
    cus_json_number(json, "launch_ns", facts->launch_ns);
    cus_json_number(json, "graph_ns", facts->graph_ns);
    json_fixed(json, "saved_s", cli_top_saved(facts, facts->in_graphs, facts->graph_launches));
    cus_json_open(json, "now", '{');
    json_fixed(json, "seconds", rates.seconds);
    json_fixed(json, "launches_per_s", rates.ops);
    json_fixed(json, "share_in_graphs", rates.share / 100);
    json_fixed(json, "graph_launches_per_s", rates.graphs);
    json_fixed(json, "saved_s_per_s", rates.saved);
    cus_json_close(json, '}');
    cus_json_open(json, "breaks", '[');
    for (unsigned i = 0; i < facts->n_breaks; i++) {
        cus_json_open(json, NULL, '{');
        cus_json_text(json, "name", facts->breaks[i].name);
        cus_json_text(json, "what", facts->breaks[i].what);
        cus_json_number(json, "launches", facts->breaks[i].launches);
        cus_json_number(json, "runs", facts->breaks[i].runs);
        cus_json_close(json, '}');
    }
    cus_json_close(json, ']');
    cus_json_close(json, '}');
}

static void print_json(const struct view *view) {
    struct cus_json json = json_to(stdout, CUS_JSON_INDENTED);
    cli_top_put(&json, view->pid, &view->page, &view->before);
    cus_json_end(&json);
}

static void print(const struct view *view) {
    if (view->json)
        print_json(view);
    else
        print_text(view);
}

static int ended(const struct view *view) {
    cli_screen_end();
    cli_say("process %ld has ended", view->pid);
    cli_top_remove(view->path, view->fd);
    if (view->once && view->answered)
        print(view); /* what was seen last */
    return view->answered ? 0 : 1;
}

/* On a screen the table says it, and goes on showing what was seen before. */
static void say_silent(struct view *view) {
    view->silent = true;
    if (cli_screen_is_on())
        print(view);
    else
        cli_say("process %ld %s", view->pid, silence);
}

static int watch(struct view *view) {
    for (;;) {
        enum answer answer = look(view);
        view->silent = false;
        if (answer == ENDED)
            return ended(view);
        if (answer == BROKEN || answer == LEFT)
            return answer == LEFT ? 0 : 1;
        if (answer == SILENT) {
            say_silent(view);
            if (view->once)
                return 1;
        } else if (!view->once || view->before.at_ns) {
            print(view);
            if (view->once)
                return 0;
        }
        if (cli_screen_wait(view->interval))
            return 0;
    }
}

/* ---- the verb ---- */

static bool take_interval(const struct cli_option *self, const char *text) {
    char *end;
    double seconds = strtod(text, &end);
    if (*end || end == text || !(seconds >= 0.1 && seconds <= 3600)) {
        cli_say("--interval %s: seconds from 0.1 to 3600 are expected", text);
        return false;
    }
    *(uint64_t *)self->to = (uint64_t)(seconds * 1e9);
    return true;
}

static bool take_pid(const char *text, long *pid) {
    size_t digits = strspn(text, "0123456789");
    *pid = digits && digits < 11 && !text[digits] ? atol(text) : 0;
    if (*pid > 0)
        return true;
    cli_say("%s: the number of a process is expected", text);
    return false;
}

/* -1: go on; else the exit status. */
static int take_options(const struct cli_verb *self, int argc, char **argv, struct view *view) {
    const struct cli_option options[] = {
        CLI_FLAG(
            "all", &view->all,
            "one table of all processes, by rank: launches a second, share in graphs, costliest "
            "break"),
        CLI_FLAG("once", &view->once, "show it once, after two looks one interval apart"),
        CLI_OPTION("interval", 0, take_interval, &view->interval, "S",
                   "seconds between looks, 0.1 to 3600; 1 without it"),
        CLI_TABLE_OR_JSON(&view->json),
        CLI_OLD_FLAG("json", cli_take_flag, &view->json),
        {0}};
    const struct cli_option *const tables[] = {options, NULL};
    struct cli_words words;
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    if (words.n && !take_pid(words.at[0], &view->pid))
        return EXIT_BAD;
    if (words.n && view->all)
        cli_say("%s: --all goes with no number", words.at[0]);
    else if (words.n > 1)
        cli_say("%s: one process at a time", words.at[1]);
    else if (view->json && !view->once)
        cli_say("--json goes with --once");
    else
        return -1;
    return EXIT_BAD;
}

static int list_or_show(struct view *view) {
    static struct cli_top_found found[CLI_TOP_PAGES + 1];
    const char *why;
    unsigned n = cli_top_list(found);
    if (n == 0) {
        cli_say("no process of this user shows a page (see cusplice top --help)");
        return 1;
    }
    if (n > 1 && !view->once && isatty(STDOUT_FILENO))
        return cli_top_all(false, false, view->interval);
    if (n > 1) {
        for (unsigned i = 0; i < n; i++) {
            struct cus_page copy;
            int fd = cli_top_open(found[i].path, &copy, &why);
            if (fd < 0)
                continue;
            printf("%ld %s\n", found[i].pid, copy.program);
            close(fd);
        }
        cli_say("%u processes: cusplice top PID shows one, --all shows all", n);
        return 0;
    }
    view->pid = found[0].pid;
    view->path = found[0].path;
    return -1;
}

static bool find_page(struct view *view, char path[CUS_PAGE_PATH]) {
    char folders[2][CUS_PAGE_PATH];
    const char *why;
    unsigned n = cus_page_folders(folders);
    for (unsigned i = 0; i < n; i++) {
        if (!cus_page_path(folders[i], (unsigned)geteuid(), view->pid, path))
            continue;
        view->path = path;
        view->fd = cli_top_open(path, &view->page, &why);
        if (view->fd >= 0)
            return true;
        if (why) {
            cli_say("%s %s: not looked at", path, why);
            return false;
        }
    }
    if (cus_process_start(view->pid))
        cli_say("process %ld shows no page (see cusplice top --help)", view->pid);
    else
        cli_say("there is no process %ld", view->pid);
    return false;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    struct view view = {.fd = -1, .interval = CLI_TOP_SECOND};
    char path[CUS_PAGE_PATH];
    int status = take_options(self, argc, argv, &view);
    if (status >= 0)
        return status;
    if (view.all)
        return cli_top_all(view.once, view.json, view.interval);
    if (!view.pid) {
        status = list_or_show(&view);
        if (status >= 0)
            return status;
    }
    if (!find_page(&view, path))
        return 1;
    if (!view.once)
        cli_screen_begin();
    status = watch(&view);
    cli_screen_end();
    close(view.fd);
    return status;
}

const struct cli_verb cli_verb_top = {
    .name = "top",
    .synopsis = "top [PID | --all] [--once] [--interval S] [--format table|json]",
    .summary = "show what the library does in a process that runs",
    .help = help,
    .run = run,
    .page =
        {
            .exits =
                "0; 1 where there is no such process or it does not answer; 2 for a bad option",
            .examples = "cusplice top\tThe one process that there is, or a table.\n"
                        "cusplice top --once --format json\tFor scripts.\n",
            .files = "$XDG_RUNTIME_DIR/cusplice-UID-PID\tThe page of a process; in /dev/shm "
                     "without that variable.\n",
            .see = "run",
            .takes = CLI_TAKES_PID,
        },
};
