/*
 * Gathers what each process of a run said of itself, and prints it as one table. The launcher's one
 * thread. Bounded: a run may have any number of processes, and any of them may write anything into
 * the hand-shake.
 */
#include "tools/cli/run_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/clean.h"
#include "shim/base/process.h"
#include "shim/base/process_rank.h"

enum { ROWS = 1024 };

static struct cli_row rows[ROWS];
static unsigned n_rows;
static unsigned long long beyond; /* processes that ran, and for which there was no row */

/* The row of a process that is on, or a new one. A process runs once: what says so again has the
 * pid of an earlier one, or of one on another machine, as has what says another rank. NULL: there
 * is no room. */
static struct cli_row *row_of(long pid, int rank) {
    for (unsigned i = n_rows; i-- > 0;)
        if (rows[i].pid == pid && rows[i].rank == rank && !rows[i].ran)
            return &rows[i];
    if (n_rows == ROWS)
        return NULL;
    struct cli_row *row = &rows[n_rows++];
    *row = (struct cli_row){.pid = pid, .rank = rank};
    return row;
}

/* The row of a process that exits, which does not say its rank. One that ran comes first: a row
 * that did not would go. */
static struct cli_row *exiting(long pid) {
    struct cli_row *found = NULL;
    for (unsigned i = n_rows; i-- > 0;)
        if (rows[i].pid == pid && !rows[i].exits && (!found || rows[i].ran > found->ran))
            found = &rows[i];
    return found;
}

/* `text` begins with the rank + 1; 0 or nothing: none is known. */
static int rank_in(const char *text) {
    unsigned long long number = 0;
    return sscanf(text, "%llu", &number) == 1 && number >= 1 && number <= CUS_PROCESS_RANK_MAX + 1
               ? (int)number - 1
               : -1;
}

static void take_text(char *to, size_t room, const char *from, size_t bytes) {
    size_t n = bytes < room - 1 ? bytes : room - 1;
    memcpy(to, from, n);
    to[cus_clean(to, n)] = 0;
}

static void take_ran(struct cli_row *row, const char *text) {
    int at = 0;
    if (sscanf(text, "%*u %llu %llu %llu %n", &row->ms, &row->ops, &row->in_graphs, &at) != 3 ||
        !at)
        return;
    size_t program = strcspn(text + at, "\t\n");
    const char *gpu = text + at + program + (text[at + program] == '\t');
    size_t bytes = strcspn(gpu, "\t\n");
    const char *top = gpu + bytes + (gpu[bytes] == '\t');
    row->ran = row->ops != 0;
    take_text(row->program, sizeof row->program, text + at, program);
    take_text(row->gpu, sizeof row->gpu, gpu, bytes);
    take_text(row->top, sizeof row->top, top, strcspn(top, "\n"));
}

void cli_table_take(const char *line) {
    long pid;
    char word[16];
    int at = 0;
    if (sscanf(line, "%ld %15s%n", &pid, word, &at) != 2 || pid <= 0)
        return;
    bool on = strcmp(word, "on") == 0, ran = strcmp(word, "ran") == 0;
    if (!on && !ran && strcmp(word, "exit") != 0)
        return;
    struct cli_row *row = on || ran ? row_of(pid, rank_in(line + at)) : exiting(pid);
    beyond += ran && !row;
    if (!row || on)
        return;
    if (ran)
        take_ran(row, line + at);
    else if (row->ran)
        row->exits = true;
    else
        *row = rows[--n_rows]; /* it launched nothing, and has nothing to show */
}

static int compare(const void *a, const void *b) {
    const struct cli_row *x = a, *y = b;
    unsigned rank_x = (unsigned)x->rank, rank_y = (unsigned)y->rank; /* none is the largest */
    if (rank_x != rank_y)
        return rank_x < rank_y ? -1 : 1;
    return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : 0;
}

unsigned cli_table_rows(const struct cli_row **out) {
    qsort(rows, n_rows, sizeof *rows, compare);
    *out = rows;
    return n_rows;
}

static void print_row(FILE *to, const struct cli_row *row) {
    char rank[16] = "-";
    if (row->rank >= 0)
        snprintf(rank, sizeof rank, "%d", row->rank);
    if (!row->ran) {
        fprintf(to, "  %6s %8ld  %-11s %-16s %s\n", rank, row->pid, "-", "-",
                cus_process_start(row->pid)
                    ? "still runs"
                    : "ended without its exit handlers (by a signal or _exit)");
        return;
    }
    fprintf(to, "  %6s %8ld  %-11s %-16.16s %12llu %9.1f %% %9.1f  %s\n", rank, row->pid, row->gpu,
            row->program, row->ops, 100.0 * (double)row->in_graphs / (double)row->ops,
            (double)row->ms / 1000, row->top);
}

void cli_table_print(FILE *to) {
    unsigned shown = n_rows < CLI_TABLE_SHOWN ? n_rows : CLI_TABLE_SHOWN;
    fprintf(to, "cusplice: %llu processes\n  %6s %8s  %-11s %-16s %12s %11s %9s  %s\n",
            n_rows + beyond, "rank", "pid", "GPU", "program", "launches", "in graphs", "seconds",
            "costliest break");
    for (unsigned i = 0; i < shown; i++)
        print_row(to, &rows[i]);
    if (n_rows + beyond > shown)
        fprintf(to, "  and %llu more\n", n_rows + beyond - shown);
}
