/*
 * One table for a run of several processes, from the lines of the hand-shake. handshake.c fills it,
 * run_folder.c shows it.
 */
#ifndef CUSPLICE_TOOLS_CLI_RUN_TABLE_H
#define CUSPLICE_TOOLS_CLI_RUN_TABLE_H

#include <stdbool.h>
#include <stdio.h>

enum { CLI_TABLE_SHOWN = 64 }; /* rows that are printed at most */

struct cli_row {
    long pid;
    int rank; /* -1: none is known */
    bool ran; /* it issued ops, and left its report at exit */
    bool exits;
    unsigned long long ms, ops, in_graphs;
    char program[64], gpu[24], top[160]; /* clean; gpu as in stats/gpus.h */
};

/* Takes a line of the hand-shake; what does not belong into the table is passed over. */
void cli_table_take(const char *line);
/* The processes that issued ops or ended before they could say so, by rank and then pid; those
 * without a rank come last. Returns how many. */
unsigned cli_table_rows(const struct cli_row **rows);
/* Prints them, at most CLI_TABLE_SHOWN. */
void cli_table_print(FILE *to);

#endif
