/* Decides which tokens a step works on. Pure: no CUDA, no I/O, one thread. */
#ifndef HARNESS_DECODE_SCHEDULE_H
#define HARNESS_DECODE_SCHEDULE_H

#ifdef __cplusplus
extern "C" {
#endif

/* What the rows of a step are. */
enum decode_kind {
    DECODE_KIND_DECODE,  /* one row for each sequence that is in it */
    DECODE_KIND_PREFILL, /* of prompts alone, several rows for at least one sequence */
    DECODE_KIND_MIXED,   /* several rows of a prompt, and rows of sequences that are past theirs */
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
    /* The whole batch, one row each, all at one position. */
    int in_step;
};

struct decode_schedule {
    /* Sequences, tokens that each starts with (1 or more), tokens that it takes in all. */
    int batch, prompt_len, len;
    /* Tokens of a prompt that a step takes (1 or more), and whether the sequences start one after
     * the other: the next one as soon as the one before it has taken its prompt. */
    int prefill, staggered;
    /* [n_groups]: sequences of groups that take steps in turn, the batch in sum. NULL: all
     * sequences are one group. Not with `staggered`. */
    const int *groups;
    int n_groups, turn;
    /* [batch], zeros to start with: the position that comes next. */
    int *next;
    /* Steps so far by kind. */
    long long steps[DECODE_KINDS];
};

/* The most rows that a step of this schedule has. */
int decode_schedule_max_rows(const struct decode_schedule *schedule);

/* Puts the next step into *step, whose rows have room for the most. 1, or 0 behind the last. */
int decode_schedule_next(struct decode_schedule *schedule, struct decode_step *step);

#ifdef __cplusplus
}
#endif

#endif
