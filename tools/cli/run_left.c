/*
 * Looks after the processes of a run that ended without their exit handlers, by what the hand-shake
 * told of them. The launcher's one thread. It removes pages alone, and no file of a process that
 * still runs.
 */
#include "tools/cli/run_left.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/base/process.h"
#include "shim/base/process_rank.h"
#include "tools/cli/run_table.h"
#include "tools/cli/top.h"
#include "tools/cli/verb.h"

enum { NAMED = 8, TRACE = PATH_MAX + 128 };

static const char *const marks[] = {"{process}", "{pid}", "%p"}; /* as in shim/base/path.h */

static bool is_lost(const struct cli_row *row) {
    return !row->exits && !cus_process_start(row->pid);
}

void cli_left_pages(void) {
    const struct cli_row *rows;
    unsigned n = cli_table_rows(&rows);
    for (unsigned i = 0; i < n; i++)
        if (is_lost(&rows[i]))
            cli_top_forget(rows[i].pid);
}

static const char *next_mark(const char *at, unsigned *which) {
    const char *first = NULL;
    for (unsigned i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *found = strstr(at, marks[i]);
        if (found && (!first || found < first)) {
            first = found;
            *which = i;
        }
    }
    return first;
}

/* The trace that a process had not finished, if it is there. */
static bool partial_of(const char *record, const struct cli_row *row, char out[TRACE]) {
    char name[CUS_PROCESS_NAME];
    struct stat info;
    size_t used = 0;
    unsigned which = 0;
    for (const char *mark; used < TRACE && (mark = next_mark(record, &which));
         record = mark + strlen(marks[which])) {
        if (which == 0)
            cus_process_name(row->rank, row->pid, name);
        else
            snprintf(name, sizeof name, "%ld", row->pid);
        used += (size_t)snprintf(out + used, TRACE - used, "%.*s%s", (int)(mark - record), record,
                                 name);
    }
    if (used < TRACE)
        used += (size_t)snprintf(out + used, TRACE - used, "%s.partial", record);
    return used < TRACE && lstat(out, &info) == 0 && S_ISREG(info.st_mode);
}

void cli_left_traces(const char *record) {
    const struct cli_row *rows;
    unsigned n = cli_table_rows(&rows), found = 0, which;
    bool one = !next_mark(record, &which); /* only one process recorded; nobody knows which */
    char path[TRACE];
    for (unsigned i = 0; i < n && !(one && found); i++) {
        if (!is_lost(&rows[i]) || !partial_of(record, &rows[i], path))
            continue;
        if (++found <= NAMED)
            cli_say(
                "process %ld ended without its exit handlers (by a signal or _exit): what there is "
                "of its trace is in %s, which all verbs read",
                rows[i].pid, path);
    }
    if (found > NAMED)
        cli_say("and %u traces more that end in .partial", found - NAMED);
}

void cli_left_stats(const char *stats, unsigned processes) {
    unsigned which;
    if (processes > 1 && !next_mark(stats, &which))
        cli_say("--stats %s: %u processes wrote it, each over the one before: --stats FOLDER/, or "
                "{pid} in the name, keeps all",
                stats, processes);
}
