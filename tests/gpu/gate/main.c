/*
 * The parent: starts children, gathers their output, and writes the table. The parent never calls
 * the driver, so no row can affect it. If a child dies or stays silent, only its current trial is
 * lost.
 */
#include "tests/gpu/gate/gate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SILENCE_MS = 60000, STARTS = 200 };

static const char usage[] =
    "usage: gate [--out FILE] [--label TEXT] [--limit MS] [--short MS] [--only NAMES [--keep "
    "FILE]] [--list]\n"
    "  --out FILE    the table, as CSV (standard output by default)\n"
    "  --label TEXT  its first line, behind '# '\n"
    "  --limit MS    how long a call that passes may take before it counts as waiting (2000)\n"
    "  --short MS    the same for others, and where an earlier column has shown that it waits "
    "(300)\n"
    "  --only NAMES  these rows alone, separated by commas\n"
    "  --keep FILE   with --only: the other rows are those of this earlier table\n"
    "  --list        names the rows that are never called, and why\n";

struct cell {
    char text[64];
};
struct line {
    struct cell cell[GATE_COLUMNS];
    char note[256];
};
static struct line *lines;
static volatile sig_atomic_t terminated; /* the table is written all the same */

static const char *const column_names[] = {"plain", "pageable", "capture", "launch"};

static void on_signal(int signal) {
    (void)signal;
    terminated = 1;
}

static void note(struct line *line, const char *text) {
    size_t used = strlen(line->note);
    if (strstr(line->note, text))
        return;
    snprintf(line->note + used, sizeof line->note - used, "%s%s", used ? "; " : "", text);
    for (char *c = line->note; *c; c++)
        if (*c == ',' || *c == '"')
            *c = ';';
}

static void put(unsigned trial, const char *text) {
    struct cell *cell = &lines[trial / GATE_COLUMNS].cell[trial % GATE_COLUMNS];
    snprintf(cell->text, sizeof cell->text, "%s", text);
}

static void take_result(unsigned trial, const char *flags, int code, const char *reason) {
    struct line *line = &lines[trial / GATE_COLUMNS];
    char text[64];
    if (strchr(flags, 'h')) {
        put(trial, "hung");
        return;
    }
    if (strchr(flags, 'u')) {
        put(trial, "-");
        snprintf(text, sizeof text,
                 "%s: ", trial % GATE_COLUMNS ? column_names[trial % GATE_COLUMNS] : "not called");
        char both[240];
        snprintf(both, sizeof both, "%s%s", text,
                 strchr(flags, 'x') ? "the process was of no more use" : reason);
        note(line, both);
        return;
    }
    snprintf(text, sizeof text, "%s%s%s%s", strchr(flags, 'w') ? "waited" : "returned",
             strchr(flags, 'r') ? "+refused" : "", strchr(flags, 's') ? "+invalidated" : "",
             strchr(flags, 'l') ? "+locked" : "");
    put(trial, text);
    if (code) {
        snprintf(text, sizeof text, "%s: code %d", column_names[trial % GATE_COLUMNS], code);
        note(line, text);
    }
}

/* One child from trial `from` on. The first trial that it did not come to. */
static unsigned child_run(const char *self, unsigned from, unsigned stop, const char *limit,
                          const char *brief) {
    int ends[2];
    char number[16], out[16];
    if (pipe(ends)) {
        perror("gate: pipe");
        exit(2);
    }
    snprintf(number, sizeof number, "%u", from);
    snprintf(out, sizeof out, "%d", ends[1]);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        dup2(2, 1); /* what the driver prints is not part of the table */
        execl(self, self, "--child", number, out, limit, brief, (char *)NULL);
        _exit(6);
    }
    close(ends[1]);
    unsigned next = from;
    bool open = true, begun = false;
    char buffer[4096];
    size_t held = 0;
    while (open && next < stop && !terminated) {
        struct pollfd poller = {ends[0], POLLIN, 0};
        int ready = poll(&poller, 1, SILENCE_MS);
        if (ready <= 0) {
            open = false;
        } else {
            ssize_t n = read(ends[0], buffer + held, sizeof buffer - 1 - held);
            open = n > 0;
            held += n > 0 ? (size_t)n : 0;
        }
        buffer[held] = 0;
        char *line = buffer, *end;
        while ((end = strchr(line, '\n'))) {
            *end = 0;
            unsigned trial;
            int code, at = 0;
            char flags[16];
            if (sscanf(line, "B %u", &trial) == 1) {
                next = trial;
                begun = true;
            } else if (sscanf(line, "R %u %15s %d %n", &trial, flags, &code, &at) == 3) {
                take_result(trial, flags, code, line + at);
                next = trial + 1;
                begun = false;
                /* Where a row cannot be called its other columns are not tried. */
                if (strchr(flags, 'u') && !strchr(flags, 'x') && trial % GATE_COLUMNS == 0)
                    next = trial + GATE_COLUMNS;
            }
            line = end + 1;
        }
        held = strlen(line);
        memmove(buffer, line, held);
    }
    close(ends[0]);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        next = next > from || !begun ? next : from;
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 5 || WEXITSTATUS(status) == 6)) {
        fprintf(stderr, "gate: no GPU could be used\n");
        exit(2);
    }
    bool asked = next >= stop || terminated || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!asked)
        fprintf(stderr, "gate: a child ended (status %#x) at %s, %s\n", (unsigned)status,
                gate_row_at((begun ? next : next - 1) / GATE_COLUMNS).name,
                column_names[(begun ? next : next - 1) % GATE_COLUMNS]);
    if (begun && !terminated && next < stop) {
        put(next, "died");
        note(&lines[next / GATE_COLUMNS], "the process died or hung");
        next++;
    }
    return next;
}

static bool chosen(const char *only, const char *name) {
    size_t length = strlen(name);
    for (const char *at = only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return !only;
}

static unsigned next_callable(unsigned trial, const char *only) {
    unsigned all = gate_row_count() * GATE_COLUMNS;
    while (trial < all && !(gate_row_at(trial / GATE_COLUMNS).run &&
                            chosen(only, gate_row_at(trial / GATE_COLUMNS).name)))
        trial = (trial / GATE_COLUMNS + 1) * GATE_COLUMNS;
    return trial;
}

/* Copies a row of an earlier table; false: it has none of that name. */
static bool copy_row(FILE *from, FILE *to, const char *name) {
    char text[512];
    size_t length = strlen(name);
    rewind(from);
    while (fgets(text, sizeof text, from)) {
        if (strncmp(text, name, length) == 0 && text[length] == ',') {
            fputs(text, to);
            return true;
        }
    }
    return false;
}

static void write_table(FILE *file, const char *label, const char *only, FILE *keep) {
    char text[512];
    while (keep && fgets(text, sizeof text, keep) && text[0] == '#')
        fputs(text, file);
    if (label)
        fprintf(file, "# %s%s%s\n", label, only ? "; again: " : "", only ? only : "");
    fprintf(file, "symbol,class,plain,pageable,capture,launch,note\n");
    for (unsigned i = 0; i < gate_row_count(); i++) {
        struct gate_row row = gate_row_at(i);
        struct line *line = &lines[i];
        if (!chosen(only, row.name)) {
            if (keep)
                copy_row(keep, file, row.name);
            continue;
        }
        if (!row.run) {
            snprintf(text, sizeof text, "not called: %s", row.reason);
            note(line, text);
        }
        fprintf(file, "%s,%s", row.name, row.class);
        for (int c = 0; c < GATE_COLUMNS; c++)
            fprintf(file, ",%s", line->cell[c].text[0] ? line->cell[c].text : "-");
        fprintf(file, ",%s\n", line->note);
    }
}

int main(int argc, char **argv) {
    const char *out = NULL, *label = NULL, *limit = "2000", *brief = "300", *only = NULL,
               *kept = NULL;
    if (argc == 6 && strcmp(argv[1], "--child") == 0)
        return gate_child((unsigned)atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
    for (int i = 1; i < argc; i++) {
        const char **value = strcmp(argv[i], "--out") == 0     ? &out
                             : strcmp(argv[i], "--label") == 0 ? &label
                             : strcmp(argv[i], "--limit") == 0 ? &limit
                             : strcmp(argv[i], "--short") == 0 ? &brief
                             : strcmp(argv[i], "--only") == 0  ? &only
                             : strcmp(argv[i], "--keep") == 0  ? &kept
                                                               : NULL;
        if (value && i + 1 < argc) {
            *value = argv[++i];
        } else if (strcmp(argv[i], "--list") == 0) {
            for (unsigned r = 0; r < gate_row_count(); r++)
                if (!gate_row_at(r).run)
                    printf("%s %s: %s\n", gate_row_at(r).class, gate_row_at(r).name,
                           gate_row_at(r).reason);
            return 0;
        } else {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (kept && out && strcmp(kept, out) == 0) {
        fprintf(stderr, "gate: --keep %s: the table is written to another file\n", kept);
        return 2;
    }
    FILE *keep = kept ? fopen(kept, "r") : NULL;
    if (kept && !keep) {
        fprintf(stderr, "gate: %s: %s\n", kept, strerror(errno));
        return 2;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    lines = calloc(gate_row_count(), sizeof *lines);
    unsigned all = gate_row_count() * GATE_COLUMNS, trial = 0, starts = 0;
    if (only && next_callable(0, only) == all) {
        fprintf(stderr, "gate: no row %s that can be called\n", only);
        return 2;
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (; (trial = next_callable(trial, only)) < all && starts < STARTS && !terminated; starts++) {
        unsigned stop = only ? (trial / GATE_COLUMNS + 1) * GATE_COLUMNS : all;
        trial = child_run(argv[0], trial, stop, limit, brief);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    FILE *file = out ? fopen(out, "w") : stdout;
    if (!file) {
        fprintf(stderr, "gate: %s: %s\n", out, strerror(errno));
        return 2;
    }
    write_table(file, label, only, keep);
    if (file != stdout)
        fclose(file);
    fprintf(stderr, "gate: %u rows, %u children, %ld s\n", gate_row_count(), starts,
            (long)(end.tv_sec - begin.tv_sec));
    return starts < STARTS && !terminated ? 0 : 1;
}
