/*
 * decode: a small character-level Llama-style model writes text, one character of each sequence in
 * a step. An ordinary CUDA program in C: one thread, one stream, one wait in a step.
 */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/decode/check.h"
#include "harness/decode/model.h"
#include "harness/decode/net.h"
#include "harness/decode/options.h"
#include "harness/decode/schedule.h"

/* The state of the sequences while they grow. */
struct run {
    const struct decode_options *options;
    const struct decode_model *model;
    /* The first tokens of every sequence: a line end, then the prompt. */
    int *prompt;
    int prompt_len;
    /* [batch][options->tokens]: the written text. */
    unsigned char *text;
    struct decode_schedule schedule;
    double seconds;
    /* Times of steps in which every row writes. */
    double *step_seconds;
    size_t n_step_seconds;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int read_model(const struct decode_options *options, struct decode_model *model) {
    char found[PATH_MAX], why[256];
    const char *path = options->model;
    if (!path) {
        if (decode_find_model(found)) {
            fputs("decode: the model's weights are not beside the program nor in the tree; name "
                  "the file with --model\n",
                  stderr);
            return -1;
        }
        path = found;
    }
    if (decode_model_read(path, model, why, sizeof(why))) {
        fprintf(stderr, "decode: %s: %s\n", path, why);
        return -1;
    }
    return 0;
}

/* Turns the prompt into tokens. A text starts after a line end, as paragraphs did in training. */
static int read_prompt(struct run *run) {
    const char *prompt = run->options->prompt;
    size_t length = strlen(prompt);
    if (length > 1000000) {
        fputs("decode: the prompt is longer than 1000000 characters\n", stderr);
        return DECODE_EXIT_USAGE;
    }
    run->prompt_len = (int)length + 1;
    run->prompt = malloc((length + 1) * sizeof(*run->prompt));
    run->text = malloc((size_t)run->options->batch * (size_t)run->options->tokens);
    if (!run->prompt || !run->text) {
        fputs("decode: out of memory\n", stderr);
        return DECODE_EXIT_FAILED;
    }
    for (int i = 0; i < run->prompt_len; i++) {
        unsigned char byte = i ? (unsigned char)prompt[i - 1] : '\n';
        run->prompt[i] = run->model->token_of[byte];
        if (run->prompt[i] < 0) {
            fprintf(stderr,
                    "decode: the model does not know byte 0x%02x (place %d of the prompt)\n", byte,
                    i);
            return DECODE_EXIT_USAGE;
        }
    }
    return DECODE_EXIT_OK;
}

/* The token that the row reads: of the prompt, then the sequence's own last character. */
static int token_of(const struct run *run, const struct decode_row *row) {
    int written = row->pos - run->prompt_len;
    return written < 0
               ? run->prompt[row->pos]
               : run->model->token_of[run->text[(size_t)row->seq * run->options->tokens + written]];
}

/* Keeps the row's choice, unless the prompt continues after it. */
static int keep(struct run *run, const struct decode_row *row, int token) {
    int written = row->pos - (run->prompt_len - 1);
    if (written < 0) {
        return 0;
    }
    if (token < 0 || token >= run->model->shape.vocab) {
        fprintf(stderr, "decode: the device chose token %d, which there is not\n", token);
        return -1;
    }
    run->text[(size_t)row->seq * run->options->tokens + written] = run->model->byte_of[token];
    if (run->options->batch == 1) {
        putchar(run->model->byte_of[token]);
    }
    return 0;
}

static int note_step(struct run *run, double seconds) {
    size_t n = run->n_step_seconds;
    if ((n & (n - 1)) == 0) {
        double *more = realloc(run->step_seconds, (n ? 2 * n : 1) * sizeof(*more));
        if (!more) {
            fputs("decode: out of memory\n", stderr);
            return -1;
        }
        run->step_seconds = more;
    }
    run->step_seconds[run->n_step_seconds++] = seconds;
    return 0;
}

/* Takes the prompts and writes the texts. The clock starts at the step that writes the first
 * character. */
static int generate(struct run *run, struct decode_net *net, struct decode_step *step) {
    double start = 0;
    while (decode_schedule_next(&run->schedule, step)) {
        for (int i = 0; i < step->n_rows; i++) {
            net->tokens_in[i] = token_of(run, &step->rows[i]);
            if (start == 0 && step->rows[i].pos >= run->prompt_len - 1) {
                start = now();
            }
        }
        double begin = now();
        if (decode_net_step(net, step, run->options->temperature, run->options->seed) ||
            (step->kind == DECODE_KIND_DECODE && note_step(run, now() - begin))) {
            return -1;
        }
        for (int i = 0; i < step->n_rows; i++) {
            if (keep(run, &step->rows[i], net->tokens_out[i])) {
                return -1;
            }
        }
    }
    run->seconds = now() - start;
    return 0;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The time that a tenth of these steps stay below. */
static double fast_step(const struct run *run) {
    size_t n = run->n_step_seconds;
    if (n == 0) {
        return 0;
    }
    qsort(run->step_seconds, n, sizeof(*run->step_seconds), by_size);
    return run->step_seconds[n / 10];
}

static void print_batch(const struct run *run) {
    size_t tokens = (size_t)run->options->tokens;
    for (int b = 0; b < run->options->batch; b++) {
        fputs(run->options->prompt, stdout);
        fwrite(run->text + b * tokens, 1, tokens, stdout);
        fputs(b + 1 < run->options->batch ? "\n\n" : "\n", stdout);
    }
}

/* Prints the figures on stderr and, if requested, into the report. */
static int report(const struct run *run) {
    const struct decode_options *options = run->options;
    double tokens = (double)options->tokens * options->batch;
    double speed = run->seconds > 0 ? tokens / run->seconds : 0;
    fprintf(stderr, "decode: %.0f tokens in %.3f s, %.1f tokens/s\n", tokens, run->seconds, speed);
    if (!options->report) {
        return 0;
    }
    FILE *file = fopen(options->report, "w");
    if (!file) {
        fprintf(stderr, "decode: %s: %s\n", options->report, strerror(errno));
        return -1;
    }
    fprintf(file,
            "{\"tokens\": %.0f, \"tokens_per_s\": %.3f, \"seconds\": %.6f, \"batch\": %d, "
            "\"prompt_tokens\": %d, \"prefill_steps\": %lld, \"mixed_steps\": %lld, "
            "\"decode_steps\": %lld, \"step_p10_us\": %.3f}\n",
            tokens, speed, run->seconds, options->batch, run->prompt_len,
            run->schedule.steps[DECODE_KIND_PREFILL], run->schedule.steps[DECODE_KIND_MIXED],
            run->schedule.steps[DECODE_KIND_DECODE], fast_step(run) * 1e6);
    int failed = ferror(file);
    if (fclose(file) || failed) {
        fprintf(stderr, "decode: %s could not be written\n", options->report);
        return -1;
    }
    return 0;
}

static int run_on_stream(struct run *run, cudaStream_t stream) {
    struct decode_net net;
    int max_rows = decode_schedule_max_rows(&run->schedule);
    int failed = decode_net_create(&net, run->model, run->options->batch, run->schedule.len,
                                   max_rows, stream);
    struct decode_step step = {.rows = malloc((size_t)max_rows * sizeof(*step.rows))};
    if (!step.rows) {
        fputs("decode: out of memory\n", stderr);
        failed = -1;
    }
    if (!failed) {
        if (run->options->batch == 1) {
            fputs(run->options->prompt, stdout);
        }
        failed = generate(run, &net, &step);
        if (run->options->batch == 1) {
            putchar('\n');
        } else if (!failed) {
            print_batch(run);
        }
    }
    free(step.rows);
    return decode_net_destroy(&net) | failed;
}

static int run_on_device(struct run *run) {
    cudaStream_t stream = NULL;
    if (run->options->stream == DECODE_STREAM_LEGACY) {
        return run_on_stream(run, stream);
    }
    unsigned flags =
        run->options->stream == DECODE_STREAM_BLOCKING ? cudaStreamDefault : cudaStreamNonBlocking;
    DECODE_CUDA(cudaStreamCreateWithFlags(&stream, flags));
    int failed = run_on_stream(run, stream);
    return decode_cuda_failed(cudaStreamDestroy(stream), "cudaStreamDestroy(stream)") | failed;
}

static int make_schedule(struct run *run) {
    const struct decode_options *options = run->options;
    run->schedule = (struct decode_schedule){
        .batch = options->batch,
        .prompt_len = run->prompt_len,
        .len = run->prompt_len - 1 + options->tokens,
        .prefill = options->prefill,
        .staggered = options->mixed,
        .groups = options->n_batches ? options->batches : NULL,
        .n_groups = options->n_batches,
        .next = calloc((size_t)options->batch, sizeof(*run->schedule.next)),
    };
    if (!run->schedule.next) {
        fputs("decode: out of memory\n", stderr);
        return DECODE_EXIT_FAILED;
    }
    return DECODE_EXIT_OK;
}

static int run_all(struct run *run) {
    int status = read_prompt(run);
    if (status == DECODE_EXIT_OK) {
        status = make_schedule(run);
    }
    if (status != DECODE_EXIT_OK) {
        return status;
    }
    int failed = run_on_device(run);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "decode: stdout: %s\n", strerror(errno));
        failed = -1;
    }
    if (failed || report(run)) {
        return DECODE_EXIT_FAILED;
    }
    return DECODE_EXIT_OK;
}

int main(int argc, char **argv) {
    struct decode_options options;
    struct decode_model model;
    int status = decode_options_parse(&options, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (read_model(&options, &model)) {
        return DECODE_EXIT_FAILED;
    }
    struct run run = {.options = &options, .model = &model};
    status = run_all(&run);
    free(run.prompt);
    free(run.text);
    free(run.step_seconds);
    free(run.schedule.next);
    decode_model_free(&model);
    return status;
}
