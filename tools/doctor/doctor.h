/*
 * `cusplice doctor`: asks this machine, this container and a program what stands in the way of the
 * library. tools/cli/verb_doctor.c calls it, on the launcher's one thread. It never loads the
 * library or the driver into the calling process, and never runs the program.
 */
#ifndef CUSPLICE_TOOLS_DOCTOR_DOCTOR_H
#define CUSPLICE_TOOLS_DOCTOR_DOCTOR_H

#include <stdbool.h>

enum doctor_exit { DOCTOR_FINE = 0, DOCTOR_WRONG = 1, DOCTOR_BAD = 2 };

struct doctor_asked {
    const char *library; /* libcusplice.so of this installation; NULL: it was not found */
    const char *preload; /* LD_PRELOAD of a program that runs with it */
    const char *program; /* as the user wrote it; NULL: none */
    const char *root;    /* in front of /proc, /sys, /dev and /etc; "" except in tests */
    bool json;
    unsigned width;   /* of the text, in columns */
    unsigned seconds; /* that the driver may take, and then the self-test */
};

/* Asks everything and prints it on stdout. DOCTOR_WRONG if something is wrong. */
enum doctor_exit doctor_run(const struct doctor_asked *asked);

/* How the launcher is called to be the program of the self-test. */
#define DOCTOR_PART "--part"
/* That program: the exit status of the process. */
int doctor_selftest(void);

#endif
