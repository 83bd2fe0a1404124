/*
 * Reads the command line of the decode host, and finds the model. One thread. Prints help on stdout
 * and mistakes on stderr; only main ends the program.
 */
#include "harness/decode/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODEL_NAME "austen.bin"
#define MODEL_IN_TREE "harness/decode/model/" MODEL_NAME

enum { TOKENS_MAX = 1000000, BATCH_MAX = 1024, PREFILL_MAX = 4096, ROWS_MAX = 65535 };

static const char help[] =
    "Usage: decode [OPTION]...\n"
    "Writes English with a small character-level language model on a CUDA device.\n"
    "\n"
    "  --prompt TEXT       text to go on from (\"It is a truth universally acknowledged, that\")\n"
    "  --tokens N          characters to write for each sequence, 1..1000000 (200)\n"
    "  --batch B           sequences to write side by side, 1..1024 (1)\n"
    "  --batches B,B...    batches that take their steps in turn, 1..1024 in sum, 16 at most\n"
    "  --prefill N         characters of the prompt that one step takes, 1..4096 (1)\n"
    "  --mixed             start the sequences one after another: while some write, the next one\n"
    "                      takes its prompt in the same steps\n"
    "  --temperature T     0 always takes the likeliest character; higher is more varied (0)\n"
    "  --seed N            start of the random numbers for a temperature above 0 (1)\n"
    "  --stream KIND       nonblocking, blocking or legacy: the CUDA stream to work on\n"
    "                      (nonblocking)\n"
    "  --model FILE        weights file (" MODEL_NAME " beside the program or in its tree)\n"
    "  --report FILE       write the figures to FILE as JSON\n"
    "  --help              this text\n"
    "\n"
    "The text goes to stdout: the prompt and what follows it, with an empty line between\n"
    "sequences. The speed goes to stderr. Exit status: 0, 1 if something failed, 2 for a mistake\n"
    "in the command line.\n";

enum {
    OPT_PROMPT = 1,
    OPT_TOKENS,
    OPT_BATCH,
    OPT_BATCHES,
    OPT_PREFILL,
    OPT_MIXED,
    OPT_TEMPERATURE,
    OPT_SEED,
    OPT_STREAM,
    OPT_MODEL,
    OPT_REPORT,
    OPT_HELP
};

static const struct option table[] = {
    {"prompt", required_argument, NULL, OPT_PROMPT},
    {"tokens", required_argument, NULL, OPT_TOKENS},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"batches", required_argument, NULL, OPT_BATCHES},
    {"prefill", required_argument, NULL, OPT_PREFILL},
    {"mixed", no_argument, NULL, OPT_MIXED},
    {"temperature", required_argument, NULL, OPT_TEMPERATURE},
    {"seed", required_argument, NULL, OPT_SEED},
    {"stream", required_argument, NULL, OPT_STREAM},
    {"model", required_argument, NULL, OPT_MODEL},
    {"report", required_argument, NULL, OPT_REPORT},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static int mistake(const char *option, const char *text, const char *wants) {
    fprintf(stderr, "decode: --%s %s: %s\n", option, text, wants);
    return DECODE_EXIT_USAGE;
}

static int parse_int(const char *option, const char *text, int max, int *value) {
    char *end;
    errno = 0;
    long read = strtol(text, &end, 10);
    if (errno || end == text || *end || read < 1 || read > max) {
        char wants[64];
        snprintf(wants, sizeof(wants), "a whole number from 1 to %d is wanted", max);
        return mistake(option, text, wants);
    }
    *value = (int)read;
    return -1;
}

static int parse_batches(const char *text, struct decode_options *options) {
    const char *at = text;
    char *end;
    options->n_batches = options->batch = 0;
    do {
        long read = strtol(at, &end, 10);
        if (end == at || *at < '0' || *at > '9' || read < 1 || read > BATCH_MAX - options->batch ||
            options->n_batches == DECODE_BATCHES_MAX) {
            return mistake("batches", text,
                           "1 to 16 whole numbers are wanted, with commas, 1024 at most in sum");
        }
        options->batches[options->n_batches++] = (int)read;
        options->batch += (int)read;
        at = end + 1;
    } while (*end == ',');
    return *end ? mistake("batches", text, "whole numbers with commas are wanted") : -1;
}

static int parse_temperature(const char *text, float *value) {
    char *end;
    float read = strtof(text, &end);
    /* The lower bound keeps logits / temperature far from infinity. */
    if (end == text || *end || !(read == 0 || (read >= 1e-3f && read <= 100))) {
        return mistake("temperature", text, "0 or a number from 0.001 to 100 is wanted");
    }
    *value = read;
    return -1;
}

static int parse_seed(const char *text, unsigned long long *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    if (errno || end == text || *end || strchr(text, '-')) {
        return mistake("seed", text, "a whole number from 0 on is wanted");
    }
    return -1;
}

static int parse_stream(const char *text, enum decode_stream *value) {
    static const char *const name[] = {"nonblocking", "blocking", "legacy"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, name[i]) == 0) {
            *value = (enum decode_stream)i;
            return -1;
        }
    }
    return mistake("stream", text, "nonblocking, blocking or legacy is wanted");
}

static int take(struct decode_options *options, int option) {
    switch (option) {
    case OPT_PROMPT:
        options->prompt = optarg;
        return -1;
    case OPT_TOKENS:
        return parse_int("tokens", optarg, TOKENS_MAX, &options->tokens);
    case OPT_BATCH:
        options->n_batches = 0;
        return parse_int("batch", optarg, BATCH_MAX, &options->batch);
    case OPT_BATCHES:
        return parse_batches(optarg, options);
    case OPT_PREFILL:
        return parse_int("prefill", optarg, PREFILL_MAX, &options->prefill);
    case OPT_MIXED:
        options->mixed = 1;
        return -1;
    case OPT_TEMPERATURE:
        return parse_temperature(optarg, &options->temperature);
    case OPT_SEED:
        return parse_seed(optarg, &options->seed);
    case OPT_STREAM:
        return parse_stream(optarg, &options->stream);
    case OPT_MODEL:
        options->model = optarg;
        return -1;
    case OPT_REPORT:
        options->report = optarg;
        return -1;
    case OPT_HELP:
        fputs(help, stdout);
        return fflush(stdout) ? DECODE_EXIT_FAILED : DECODE_EXIT_OK;
    default:
        fputs("Try 'decode --help'.\n", stderr);
        return DECODE_EXIT_USAGE;
    }
}

int decode_options_parse(struct decode_options *options, int argc, char **argv) {
    *options = (struct decode_options){
        .prompt = "It is a truth universally acknowledged, that",
        .tokens = 200,
        .batch = 1,
        .prefill = 1,
        .seed = 1,
    };
    int option, status = -1;
    while (status < 0 && (option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        status = take(options, option);
    }
    if (status < 0 && optind < argc) {
        fprintf(stderr, "decode: '%s' is not an option\nTry 'decode --help'.\n", argv[optind]);
        status = DECODE_EXIT_USAGE;
    }
    if (status < 0 && options->mixed && options->n_batches) {
        fputs("decode: --batches and --mixed: one of the two is wanted\n", stderr);
        status = DECODE_EXIT_USAGE;
    }
    /* The rows of a step are a grid's y and z. */
    if (status < 0 && !options->mixed && options->prefill > ROWS_MAX / options->batch) {
        fprintf(stderr,
                "decode: --prefill %d with --batch %d: %d characters a step is the most of all "
                "sequences together\n",
                options->prefill, options->batch, ROWS_MAX);
        status = DECODE_EXIT_USAGE;
    }
    return status;
}

/* Tells whether folder/name can be read; leaves that path. */
static int found(char path[PATH_MAX], const char *folder, const char *name) {
    int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return length > 0 && length < PATH_MAX && access(path, R_OK) == 0;
}

/* Looks for the tree in a folder and all folders above it; shortens the folder. */
static int found_upwards(char path[PATH_MAX], char *folder) {
    for (;;) {
        if (found(path, folder, MODEL_IN_TREE)) {
            return 1;
        }
        char *slash = strrchr(folder, '/');
        if (!slash) {
            return 0;
        }
        *slash = '\0';
    }
}

int decode_find_model(char path[PATH_MAX]) {
    char folder[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    if (length > 0) {
        folder[length] = '\0';
        char *slash = strrchr(folder, '/');
        *(slash ? slash : folder) = '\0';
        if (found(path, folder, MODEL_NAME) || found(path, folder, "model/" MODEL_NAME) ||
            found_upwards(path, folder)) {
            return 0;
        }
    }
    return getcwd(folder, sizeof(folder)) && found_upwards(path, folder) ? 0 : -1;
}
