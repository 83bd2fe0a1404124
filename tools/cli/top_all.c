/*
 * cusplice top --all: all processes of this user in one table. verb_top.c calls it, on the one
 * thread. All pages are asked before any answer is awaited, so a process that is stopped holds the
 * table up once and not once each. It trusts no page.
 */
#include "tools/cli/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/process_rank.h"
#include "tools/cli/screen.h"
#include "tools/cli/verb.h"
#include "tools/trace/json.h"

/* How wide a window must be for the GPU, and for the launches so far. */
enum { SHOWN = 64, WITH_GPU = 80, WIDE = 100 };

struct one {
    struct cli_top_found found;
    int fd;
    bool answered; /* at this look */
    uint32_t answers;
    struct cus_page page;
    struct cus_page_facts before; /* at_ns is 0: there is nothing before */
};

/* As many as pages are listed. */
static struct one ones[CLI_TOP_PAGES];
static unsigned n;

static bool is_known(long pid) {
    for (unsigned i = 0; i < n; i++)
        if (ones[i].found.pid == pid)
            return true;
    return false;
}

/* Takes in the pages that are new, and lets go of those whose process has ended. */
static void refresh(void) {
    static struct cli_top_found found[CLI_TOP_PAGES + 1];
    const char *why;
    for (unsigned i = n; i-- > 0;)
        if (!cli_top_is_alive(ones[i].found.pid, &ones[i].page)) {
            cli_top_remove(ones[i].found.path, ones[i].fd);
            close(ones[i].fd);
            ones[i] = ones[--n];
        }
    unsigned listed = cli_top_list(found);
    for (unsigned i = 0; i < listed && n < CLI_TOP_PAGES; i++) {
        struct one *one = &ones[n];
        if (is_known(found[i].pid))
            continue;
        *one = (struct one){.found = found[i]};
        one->fd = cli_top_open(one->found.path, &one->page, &why);
        n += one->fd >= 0;
    }
}

/* Asks all, and waits until all have answered, or a second. False: the user pressed q. */
static bool look(void) {
    uint64_t begun = cus_clock_ns();
    unsigned waiting = n;
    for (unsigned i = 0; i < n; i++) {
        ones[i].answered = false;
        ones[i].answers = ones[i].page.answers;
        cus_page_ask(ones[i].fd, &ones[i].page);
    }
    while (waiting && cus_clock_ns() - begun < CLI_TOP_SECOND) {
        if (cli_screen_wait(CLI_TOP_SECOND / 200))
            return false;
        waiting = 0;
        for (unsigned i = 0; i < n; i++) {
            static struct cus_page copy;
            const char *why;
            struct one *one = &ones[i];
            if (one->answered)
                continue;
            one->answered = cus_page_read(one->fd, &copy, &why) && copy.answers != one->answers;
            if (one->answered) {
                one->before = one->page.facts;
                one->page = copy;
            }
            waiting += !one->answered && cli_top_is_alive(one->found.pid, &one->page);
        }
    }
    return true;
}

/* ---- showing ---- */

static uint32_t rank_of(const struct one *one) {
    uint32_t rank = one->page.rank;
    return rank && rank <= CUS_PROCESS_RANK_MAX + 1 ? rank - 1 : UINT32_MAX;
}

static int compare(const void *a, const void *b) {
    const struct one *x = a, *y = b;
    if (rank_of(x) != rank_of(y))
        return rank_of(x) < rank_of(y) ? -1 : 1;
    return x->found.pid < y->found.pid ? -1 : x->found.pid > y->found.pid;
}

static void put_row(FILE *to, const struct one *one, unsigned columns) {
    const struct cus_page_facts *facts = &one->page.facts;
    struct cli_top_rates rates = cli_top_rates(facts, &one->before);
    double share = cli_top_share(facts->in_graphs, facts->ops);
    char rank[16] = "-", now[2][32] = {"", ""};
    if (rank_of(one) != UINT32_MAX)
        snprintf(rank, sizeof rank, "%u", rank_of(one));
    fprintf(to, "%6s %8ld  ", rank, one->found.pid);
    if (columns >= WITH_GPU)
        fprintf(to, "%-11.11s ", facts->gpu);
    fprintf(to, "%-12.12s ", one->page.program);
    if (!one->answered) {
        fputs(CLI_RED "does not answer\n", to);
        return;
    }
    if (rates.seconds > 0) {
        snprintf(now[0], sizeof now[0], "%.0f", rates.ops);
        snprintf(now[1], sizeof now[1], "%.1f %%", rates.share);
    }
    fprintf(to, "%10s %s%8s%s ", now[0], cli_top_colour(rates.share), now[1], CLI_PLAIN);
    if (columns >= WIDE)
        fprintf(to, "%14llu ", (unsigned long long)facts->ops);
    fprintf(to, "%s%6.1f %%%s", cli_top_colour(share), share, CLI_PLAIN);
    if (facts->n_breaks)
        fprintf(to, "  %s%s%s", facts->breaks[0].name, *facts->breaks[0].name ? ": " : "",
                facts->breaks[0].what);
    putc('\n', to);
}

static void print_table(void) {
    FILE *to = cli_screen_frame();
    unsigned columns = cli_screen_columns();
    fprintf(to, CLI_BOLD "cusplice top: %u process%s" CLI_PLAIN CLI_HINT "  q quits\n", n,
            n == 1 ? "" : "es");
    fprintf(to, CLI_DIM "%6s %8s  ", "rank", "pid");
    if (columns >= WITH_GPU)
        fprintf(to, "%-11s ", "GPU");
    fprintf(to, "%-12s %10s %8s ", "program", "launches/s", "graphs");
    if (columns >= WIDE)
        fprintf(to, "%14s ", "launches");
    fprintf(to, "%8s  %s\n", "so far", "costliest break so far");
    for (unsigned i = 0; i < n && i < SHOWN; i++)
        put_row(to, &ones[i], columns);
    if (n > SHOWN)
        fprintf(to, "and %u more\n", n - SHOWN);
    cli_screen_show();
}

static void print_json(void) {
    struct cus_json json = json_to(stdout, CUS_JSON_INDENTED);
    cus_json_open(&json, NULL, '[');
    for (unsigned i = 0; i < n; i++)
        if (ones[i].answered)
            cli_top_put(&json, ones[i].found.pid, &ones[i].page, &ones[i].before);
    cus_json_close(&json, ']');
    cus_json_end(&json);
}

/* True: all have ended. False: the user has seen enough, or it was to be shown once. */
static bool watch(bool once, bool json, uint64_t interval) {
    for (unsigned looks = 1; n; looks++) {
        if (!look())
            return false;
        qsort(ones, n, sizeof *ones, compare);
        if (looks > 1 || !once) {
            if (json)
                print_json();
            else
                print_table();
        }
        if ((once && looks > 1) || cli_screen_wait(interval))
            return false;
        refresh();
    }
    return true;
}

int cli_top_all(bool once, bool json, uint64_t interval) {
    refresh();
    if (!n) {
        cli_say("no process of this user shows a page (see cusplice top --help)");
        return 1;
    }
    if (!once)
        cli_screen_begin();
    bool over = watch(once, json, interval);
    cli_screen_end();
    if (over)
        cli_say("all processes have ended");
    return 0;
}
