/* The command line of the decode host. */
#ifndef HARNESS_DECODE_OPTIONS_H
#define HARNESS_DECODE_OPTIONS_H

#include <limits.h>

#ifdef __cplusplus
extern "C" {
#endif

enum decode_stream {
    DECODE_STREAM_NONBLOCKING,
    DECODE_STREAM_BLOCKING,
    DECODE_STREAM_LEGACY,
};

/* Exit statuses of the program. */
enum decode_exit {
    DECODE_EXIT_OK,
    DECODE_EXIT_FAILED,
    DECODE_EXIT_USAGE,
};

enum { DECODE_BATCHES_MAX = 16 };

struct decode_options {
    const char *prompt;
    int tokens, batch;
    /* Sequences of the batches that take steps in turn; `batch` is their sum. n_batches 0: one
     * batch. */
    int batches[DECODE_BATCHES_MAX], n_batches;
    /* Tokens of a prompt in one step; whether sequences start one after another. */
    int prefill, mixed;
    /* 0: greedy. */
    float temperature;
    unsigned long long seed;
    enum decode_stream stream;
    /* NULL: find it. */
    const char *model;
    /* NULL: none. */
    const char *report;
};

/* Fills the options from the command line. Returns -1 if the program goes on, otherwise its exit
 * status after it printed help on stdout or a mistake on stderr. */
int decode_options_parse(struct decode_options *options, int argc, char **argv);

/* Looks for the model that comes with the program: beside it, then in the tree around it or the
 * current folder. Returns 0, or -1 if there is none. */
int decode_find_model(char path[PATH_MAX]);

#ifdef __cplusplus
}
#endif

#endif
