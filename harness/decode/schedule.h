/* Decides which tokens a step works on. Pure: no CUDA, no I/O, one thread. */
#ifndef HARNESS_DECODE_SCHEDULE_H
#define HARNESS_DECODE_SCHEDULE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The class of a step, by its rows. */
enum decode_kind {
    DECODE_KIND_DECODE,  /* one row for each sequence in the step */
    DECODE_KIND_PREFILL, /* only rows of prompts, several for at least one sequence */
    DECODE_KIND_MIXED,   /* several rows of a prompt, and rows of sequences after theirs */
    DECODE_KINDS
};

/* One token: position pos of sequence seq. */
struct decode_row {
    int seq, pos;
};

/* A step: its rows by sequence and position. */
struct decode_step {
    struct decode_row *rows;
    int n_rows;
    enum decode_kind kind;
    /* All of the batch, one row each at one position. */
    int in_step;
};

struct decode_schedule {
    /* The number of sequences; the tokens that each starts with (1 or more); the tokens that
     * each takes in all. */
    int batch, prompt_len, len;
    /* Tokens of a prompt in one step (1 or more). With staggered a sequence starts when the one
     * before it has taken its prompt. */
    int prefill, staggered;
    /* [n_groups]: sequences of the groups that take steps in turn; their sum is the batch. NULL:
     * all sequences are one group. Not with `staggered`. */
    const int *groups;
    int n_groups, turn;
    /* [batch], zeros at first: the next position. */
    int *next;
    /* Steps so far by class. */
    long long steps[DECODE_KINDS];
};

/* The most rows in a step of this schedule. */
int decode_schedule_max_rows(const struct decode_schedule *schedule);

/* Puts the next step into *step, which has room for the most rows. Returns 1, or 0 after the
 * last. */
int decode_schedule_next(struct decode_schedule *schedule, struct decode_step *step);

#ifdef __cplusplus
}
#endif

#endif
