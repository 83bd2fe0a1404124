/*
 * What a probe is, what it answers and what it may ask. The files of this folder include it. A
 * probe runs in a child with a deadline: it may hang or crash, and leaves nothing behind.
 */
#ifndef CUSPLICE_TOOLS_DOCTOR_PROBE_H
#define CUSPLICE_TOOLS_DOCTOR_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/doctor/apart.h"
#include "tools/doctor/doctor.h"

/* From good to bad: of several findings the answer has the worst status. */
enum doctor_status { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_UNKNOWN, DOCTOR_NOT_RIGHT, DOCTOR_STATUSES };

enum { DOCTOR_VALUE = 3072, DOCTOR_ADVICES = 6, DOCTOR_ADVICE = 384 };

struct doctor_answer {
    enum doctor_status status;
    char value[DOCTOR_VALUE]; /* what was found */
    char advice[DOCTOR_ADVICES][DOCTOR_ADVICE];
    unsigned advices;
};

/* Adds a finding. What is not DOCTOR_OK comes with an advice; NULL: that of the probe's row. */
void doctor_find(struct doctor_answer *answer, enum doctor_status status, const char *advice,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- facts that several probes read; each is gathered once, in a child ---- */

enum { DOCTOR_GPUS = 16 };

struct doctor_driver {
    enum doctor_end end;
    int signal;
    bool simulator;
    char stage[48];      /* the call that was made last */
    char path[PATH_MAX]; /* of libcuda.so.1, without links; "": it could not be opened */
    char error[256];     /* why it could not be opened */
    int version;         /* that CUDA reports: 13000; 0: not known */
    int result;          /* of the first call that failed; 0: none did */
    bool ready;          /* all calls were made */
    int gpus;            /* in all */
    struct {
        char name[100];
        int major, minor, mode; /* mode: CUcomputemode */
        uint64_t bytes;
    } gpu[DOCTOR_GPUS];
};

enum doctor_route { DOCTOR_GLOBAL, DOCTOR_DLSYM, DOCTOR_GETPROC, DOCTOR_ROUTES };

struct doctor_test {
    bool ran; /* the program of the test was started */
    enum doctor_end end;
    int signal, status;         /* status: it exited so */
    char stage[48];             /* the call that was made last */
    int result;                 /* of the call that failed; 0: none did */
    int library;                /* the interface of the library in that process; 0: none */
    int routes[DOCTOR_ROUTES];  /* 0: not asked; 1: led past the library; 2: led to it */
    unsigned long long ops, in; /* ops seen, ops in graphs */
    unsigned launches, words;   /* launches made; words that differ */
    bool finished;              /* the results were compared */
    char beside[2][512];        /* interposers in front of the library, and behind it */
    char passes[512];           /* why nothing was deferred; "": nothing was in the way */
    char said[512];             /* the first line on stderr */
};

struct doctor_facts {
    const struct doctor_asked *asked;
    struct doctor_driver driver;
    struct doctor_test test;
};
/* Set before the first probe runs. */
extern struct doctor_facts *doctor_facts;

void doctor_gather_driver(void);   /* driver.c */
void doctor_gather_selftest(void); /* judge.c */

/* ---- reading ---- */

/* The path behind the root of the tests. */
const char *doctor_path(char out[PATH_MAX], const char *path);
/* The beginning of a file below that root, as a string. False: it cannot be read. */
bool doctor_read(const char *path, char *out, size_t bytes);
/* The value of `key` in a text of lines "key: value" or "key=value"; "" where there is none. */
void doctor_value_of(const char *text, const char *key, char *out, size_t bytes);
/* In words: "signal 11 (Segmentation fault)", "no answer within 20 s". */
void doctor_end_text(enum doctor_end end, int signal, unsigned seconds, char *out, size_t bytes);

/* ---- the table ---- */

enum { DOCTOR_ALWAYS, DOCTOR_FOR_PROGRAM };

struct doctor_probe {
    const char *name, *asks;
    void (*ask)(struct doctor_answer *answer);
    unsigned when, seconds; /* seconds: that it may take */
    const char *advice;     /* where a finding brings none of its own */
};

#define DOCTOR_PROBE(name, when, seconds, asks, advice)                                            \
    void doctor_ask_##name(struct doctor_answer *answer);
#include "tools/doctor/probes.def"

/* show.c: all answers, on stdout. */
void doctor_show(const struct doctor_probe *probes, const struct doctor_answer *answers, unsigned n,
                 bool json, unsigned width);

#endif
