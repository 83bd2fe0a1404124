/*
 * Decides which tokens a step works on, as a small inference server does. Each sequence past its
 * prompt has one row; prompts are taken in chunks. Pure; one thread.
 */
#include "harness/decode/schedule.h"

static int smaller(int a, int b) {
    return a < b ? a : b;
}

int decode_schedule_max_rows(const struct decode_schedule *schedule) {
    int chunk = smaller(schedule->prefill, schedule->prompt_len);
    int most = schedule->groups ? 0 : schedule->batch;
    for (int i = 0; i < schedule->n_groups; i++) {
        most = schedule->groups[i] > most ? schedule->groups[i] : most;
    }
    return schedule->staggered ? schedule->batch - 1 + chunk : most * chunk;
}

/* The number of tokens of a sequence at position pos in the next step. */
static int rows_of(const struct decode_schedule *schedule, int pos) {
    if (pos < schedule->prompt_len) {
        return smaller(schedule->prefill, schedule->prompt_len - pos);
    }
    return pos < schedule->len;
}

/* Finds the sequences whose turn it is: from *first up to *end. All sequences begin and end at
 * the same positions. So if the group whose turn it is has no steps left, no group has. */
static void take_turn(struct decode_schedule *schedule, int *first, int *end) {
    *first = 0;
    *end = schedule->batch;
    if (!schedule->groups) {
        return;
    }
    for (int i = 0; i < schedule->turn; i++) {
        *first += schedule->groups[i];
    }
    *end = *first + schedule->groups[schedule->turn];
    schedule->turn = (schedule->turn + 1) % schedule->n_groups;
}

int decode_schedule_next(struct decode_schedule *schedule, struct decode_step *step) {
    int several = 0, decoding = 0, first, end;
    step->n_rows = 0;
    take_turn(schedule, &first, &end);
    for (int b = first; b < end; b++) {
        int pos = schedule->next[b], n = rows_of(schedule, pos),
            prompt = pos < schedule->prompt_len;
        for (int i = 0; i < n; i++) {
            step->rows[step->n_rows++] = (struct decode_row){.seq = b, .pos = pos + i};
        }
        schedule->next[b] += n;
        several |= n > 1;
        decoding |= n && !prompt;
        if (prompt && schedule->staggered) {
            break;
        }
    }
    step->kind = !several ? DECODE_KIND_DECODE : decoding ? DECODE_KIND_MIXED : DECODE_KIND_PREFILL;
    step->in_step = !several && step->n_rows == schedule->batch;
    for (int i = 1; i < step->n_rows; i++) {
        step->in_step &= step->rows[i].pos == step->rows[0].pos;
    }
    schedule->steps[step->kind] += step->n_rows > 0;
    return step->n_rows > 0;
}
