/*
 * scenario NAME [--route R] [--steps N] [--seed S]: runs one scenario of the table here. --list
 * prints all names, one a line. Main thread.
 */
#include "harness/scenario/sc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SC_SCENARIO(name, what) int sc_run_##name(struct sc *sc);
#include "harness/scenario/scenarios.def"
#undef SC_SCENARIO

const struct sc_scenario sc_scenarios[] = {
#define SC_SCENARIO(name, what) {#name, what, sc_run_##name},
#include "harness/scenario/scenarios.def"
#undef SC_SCENARIO
    {NULL, NULL, NULL}};

static const char usage[] =
    "usage: scenario NAME [--route "
    "elf|dlsym|getproc|getproc11|getproc14|export|runtime] [--steps N] [--seed S]\n"
    "       scenario --list | --help\n";

static unsigned long long number(const char *text) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text ? text : "", &end, 0);
    if (!text || end == text || *end || errno) {
        fprintf(stderr, "scenario: not a number: %s\n%s", text ? text : "(nothing)", usage);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    static struct sc sc;
    const char *name = NULL;
    sc.route = sc_route_elf ? "elf" : "dlsym";
    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--list") == 0) {
            for (const struct sc_scenario *s = sc_scenarios; s->name; s++) {
                puts(s->name);
            }
            return 0;
        } else if (strcmp(argv[a], "--help") == 0) {
            fputs(usage, stdout);
            for (const struct sc_scenario *s = sc_scenarios; s->name; s++) {
                printf("  %-24s %s\n", s->name, s->what);
            }
            return 0;
        } else if (strcmp(argv[a], "--route") == 0 && a + 1 < argc) {
            sc.route = argv[++a];
        } else if (strcmp(argv[a], "--steps") == 0) {
            sc.steps = (unsigned)number(argv[++a]);
        } else if (strcmp(argv[a], "--seed") == 0) {
            sc.seed = number(argv[++a]);
        } else if (argv[a][0] != '-' && !name) {
            name = argv[a];
        } else {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (!name) {
        fputs(usage, stderr);
        return 2;
    }
    for (const struct sc_scenario *s = sc_scenarios; s->name; s++) {
        if (strcmp(s->name, name) == 0) {
            if (!sc_route_fill(sc.route, &sc.cu)) {
                return 2;
            }
            sc.rng = sc.seed * 0x9E3779B97F4A7C15u + 1;
            return s->run(&sc);
        }
    }
    fprintf(stderr, "scenario: no scenario %s (--list names them)\n", name);
    return 2;
}
