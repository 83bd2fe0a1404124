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
#include "tools/trace/clean.h"
#include "tools/trace/json.h"

enum { SHOWN = 64, BREAK_WANTED = 24 };

enum { RANK, PID, GPU, PROGRAM, RATE, NOW, TOTAL, SO_FAR, COLUMNS };
static const struct {
    const char *head;
    unsigned width; /* 0: as its texts are wide, up to PROGRAM_MOST */
    bool text;      /* stands on the left */
} columns[COLUMNS] = {{"rank", 0, false},      {"pid", 0, false},         {"GPU", 0, true},
                      {"program", 0, true},    {"launches/s", 10, false}, {"graphs", 7, false},
                      {"launches", 14, false}, {"so far", 7, false}};
enum { PROGRAM_MOST = 15 /* as long as the kernel's names of programs */ };
/* What goes, in this order, where the costliest break would have less room than it wants. */
static const int spare[] = {TOTAL, GPU, RATE, RANK, SO_FAR};

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

static void cell(const struct one *one, int column, char *out, size_t bytes) {
    const struct cus_page_facts *facts = &one->page.facts;
    struct cli_top_rates rates = cli_top_rates(facts, &one->before);
    *out = 0;
    if (column == RANK && rank_of(one) != UINT32_MAX)
        snprintf(out, bytes, "%u", rank_of(one));
    else if (column == RANK)
        snprintf(out, bytes, "-");
    else if (column == PID)
        snprintf(out, bytes, "%ld", one->found.pid);
    else if (column == GPU)
        snprintf(out, bytes, "%s", facts->gpu);
    else if (column == PROGRAM)
        snprintf(out, bytes, "%s", one->page.program);
    else if (column == RATE && rates.seconds > 0)
        snprintf(out, bytes, "%.0f", rates.ops);
    else if (column == NOW && rates.seconds > 0)
        snprintf(out, bytes, "%.1f %%", rates.share);
    else if (column == TOTAL)
        snprintf(out, bytes, "%llu", (unsigned long long)facts->ops);
    else if (column == SO_FAR)
        snprintf(out, bytes, "%.1f %%", cli_top_share(facts->in_graphs, facts->ops));
}

/* How wide each column is; 0: it is left out. */
static void divide(unsigned window, unsigned width[COLUMNS]) {
    char text[64];
    unsigned sum = 0;
    for (int column = 0; column < COLUMNS; column++) {
        bool fixed = columns[column].width > 0;
        width[column] = fixed ? columns[column].width : (unsigned)strlen(columns[column].head);
        for (unsigned i = 0; i < n && !fixed; i++) {
            cell(&ones[i], column, text, sizeof text);
            size_t wide = clean_columns(text);
            wide = wide < PROGRAM_MOST ? wide : PROGRAM_MOST;
            width[column] = wide > width[column] ? (unsigned)wide : width[column];
        }
        sum += width[column] + 2;
    }
    bool ranked = false;
    for (unsigned i = 0; i < n; i++)
        ranked |= rank_of(&ones[i]) != UINT32_MAX;
    for (unsigned i = ranked; i <= sizeof spare / sizeof *spare && sum + BREAK_WANTED > window;
         i++) {
        int column = i ? spare[i - 1] : RANK; /* which says nothing where there is none */
        sum -= width[column] ? width[column] + 2 : 0;
        width[column] = 0;
    }
}

static void put_cell(FILE *to, const char *text, unsigned width, bool left) {
    size_t wide = clean_columns(text);
    if (!left && wide < width)
        fprintf(to, "%*s", (int)(width - wide), "");
    clean_cell(to, text, left || wide > width ? width : wide);
}

static void put_row(FILE *to, const struct one *one, const unsigned width[COLUMNS]) {
    const struct cus_page_facts *facts = &one->page.facts;
    for (int column = 0; column < COLUMNS; column++) {
        char text[256];
        bool now = column == NOW;
        if (column == RATE && !one->answered) {
            fputs(CLI_RED "does not answer\n", to);
            return;
        }
        if (!width[column])
            continue;
        cell(one, column, text, sizeof text);
        if (now || column == SO_FAR)
            fputs(cli_top_colour(now ? cli_top_rates(facts, &one->before).share
                                     : cli_top_share(facts->in_graphs, facts->ops)),
                  to);
        put_cell(to, text, width[column], columns[column].text);
        fputs(CLI_PLAIN "  ", to);
    }
    if (facts->n_breaks)
        fprintf(to, "%s%s%s", facts->breaks[0].name, *facts->breaks[0].name ? ": " : "",
                facts->breaks[0].what);
    putc('\n', to);
}

static void print_table(void) {
    FILE *to = cli_screen_frame();
    unsigned width[COLUMNS];
    divide(cli_screen_columns(), width);
    fprintf(to, CLI_BOLD "cusplice top: %u process%s" CLI_PLAIN CLI_HINT "  q quits\n", n,
            n == 1 ? "" : "es");
    fputs(CLI_DIM, to);
    for (int column = 0; column < COLUMNS; column++)
        if (width[column]) {
            put_cell(to, columns[column].head, width[column], columns[column].text);
            fputs("  ", to);
        }
    fputs("costliest break\n", to);
    for (unsigned i = 0; i < n && i < SHOWN; i++)
        put_row(to, &ones[i], width);
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
