/*
 * One child: finds the driver, makes the objects that all trials share, and runs trials from a
 * given one on. It prints a line for each, until all are done or the process can no longer be used.
 *
 *   B trial                             a trial begins
 *   R trial flags code reason-or-"-"    what was seen; flags: letters of result_flags, or "-"
 *
 * The number of a trial is row * GATE_COLUMNS + column.
 */
#include "tests/gpu/gate/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the list of rows: the table, then our own calls ---- */

struct reason {
    const char *symbol, *text;
};
static const struct reason reasons[] = {
#define NOT_CALLED(symbol, text) {#symbol, text},
#include "tests/gpu/gate/not_called.def"
};

static const struct gate_row table[] = {
#define CUS_API(symbol, class, scope, arg, abi, act, reason)                                       \
    {#symbol, #class, gate_row_##symbol, "", false},
#define CUS_API_NEWER(...)
#include "shim/api/cuda_api.def"
};
enum { ENTRIES = sizeof table / sizeof *table };

static const char *const alone[] = {"cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2"};

unsigned gate_row_count(void) {
    unsigned own = 0;
    while (gate_own_rows[own].name)
        own++;
    return ENTRIES + own;
}

struct gate_row gate_row_at(unsigned index) {
    if (index >= ENTRIES)
        return gate_own_rows[index - ENTRIES];
    struct gate_row row = table[index];
    for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (!row.run && strcmp(reasons[i].symbol, row.name) == 0)
            row.reason = reasons[i].text;
    for (unsigned i = 0; i < sizeof alone / sizeof *alone; i++)
        row.alone |= strcmp(alone[i], row.name) == 0;
    return row;
}

/* ---- trials ---- */

static void report(int out, unsigned trial, const struct gate_result *r) {
    char line[320];
    char flags[16] = "-";
    snprintf(flags, sizeof flags, "%s%s%s%s%s%s%s", r->called ? "c" : "u", r->waited ? "w" : "",
             r->hung ? "h" : "", r->refused ? "r" : "", r->spoilt ? "s" : "", r->locked ? "l" : "",
             r->ruined ? "x" : "");
    int n = snprintf(line, sizeof line, "R %u %s %d %s\n", trial, flags, r->code,
                     r->unfit[0] ? r->unfit : "-");
    if (write(out, line, (size_t)n) != n)
        _exit(4);
}

/* Rows that go through while launches are deferred, and our own, are given the long time. Where the
 * library flushes first it matters little whether a call waits. */
static int patience(const struct gate_row *row, bool waits, int limit_ms, int short_ms) {
    static const char *const through[] = {"PASS", "TOUCH", "SAME", "RESOLVE", "OP", "OWN"};
    for (unsigned i = 0; i < sizeof through / sizeof *through; i++)
        if (strcmp(row->class, through[i]) == 0)
            return waits ? short_ms : limit_ms;
    return short_ms;
}

int gate_child(unsigned from, int out, int limit_ms, int short_ms) {
    static struct gate g;
    struct gate_result result;
    memset(&result, 0, sizeof result);
    if (!gate_driver_open())
        return 5;
    g.pageable = calloc(1, GATE_BYTES);
    const char *folder = getenv("TMPDIR");
    snprintf(g.file, sizeof g.file, "%s/gate-%d.ptx", folder ? folder : "/tmp", (int)getpid());
    snprintf(g.temporary, sizeof g.temporary, "%s/gate-%d.tmp", folder ? folder : "/tmp",
             (int)getpid());
    FILE *file = fopen(g.file, "w");
    if (file) {
        fputs(gate_ptx, file);
        fclose(file);
    }
    if (!gate_lab_open(&g)) {
        fprintf(stderr, "gate: %s\n", g.unfit);
        return 5;
    }
    bool fresh = true, waits = false, unfit = false;
    int status = 0;
    for (unsigned trial = from; trial < gate_row_count() * GATE_COLUMNS; trial++) {
        struct gate_row row = gate_row_at(trial / GATE_COLUMNS);
        int column = (int)(trial % GATE_COLUMNS);
        if (column == 0)
            waits = unfit = false;
        if (!row.run || unfit)
            continue;
        if (row.alone && !fresh)
            break;
        char line[32];
        int n = snprintf(line, sizeof line, "B %u\n", trial);
        if (write(out, line, (size_t)n) != n)
            return 4;
        gate_trial(&g, &row, column, patience(&row, waits, limit_ms, short_ms), &result);
        report(out, trial, &result);
        fresh = false;
        waits |= result.waited;
        unfit |= column == 0 && !result.called && !result.hung && !result.ruined;
        if (result.hung || result.ruined || row.alone) {
            status = 3;
            break;
        }
    }
    unlink(g.file);
    unlink(g.temporary);
    _exit(status); /* a destructor of the driver might wait for what a row left behind */
}
