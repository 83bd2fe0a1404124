/*
 * Measures what forms of the same work cost the host and the GPU. Forms alternate within a round,
 * and medians count. Only the thread of the trial runs it.
 */
#include "tests/gpu/facts/facts.h"

#include <stdio.h>

enum { MOST = 8, WARM = 5, ROUNDS = 150 };

static void run(const struct fact_form *form) {
    fact_step("launching");
    form->run(form->work);
}

/* The host's time until the calls are back, and the GPU's between two records around them. */
static void measure(struct fact_form *forms, int count) {
    static double host[MOST][ROUNDS], gpu[MOST][ROUNDS];
    CUevent begin = fact_event(0), end = fact_event(0);
    for (int r = -WARM; r < ROUNDS; r++) {
        for (int f = 0; f < count; f++) {
            double from = fact_now_us();
            run(&forms[f]);
            if (r >= 0)
                host[f][r] = fact_now_us() - from;
            CALL(cuStreamSynchronize, (lab.a));
        }
    }
    for (int r = 0; r < ROUNDS; r++) {
        for (int f = 0; f < count; f++) {
            float ms = 0;
            CALL(cuEventRecord, (begin, lab.a));
            run(&forms[f]);
            CALL(cuEventRecord, (end, lab.a));
            CALL(cuStreamSynchronize, (lab.a));
            CALL(cuEventElapsedTime, (&ms, begin, end));
            gpu[f][r] = ms * 1000.0;
        }
    }
    for (int f = 0; f < count; f++) {
        forms[f].host = fact_median(host[f], ROUNDS);
        forms[f].gpu = fact_median(gpu[f], ROUNDS);
    }
}

void fact_forms(struct fact_form *forms, int count) {
    char text[600];
    int used = 0;
    if (count > MOST)
        fact_give_up("a ninth form", CUDA_ERROR_INVALID_VALUE);
    measure(forms, count);
    for (int f = 0; f < count; f++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s: host %.2f, GPU %.1f",
                         f ? "; " : "", forms[f].name, forms[f].host, forms[f].gpu);
    fact_say("%s", text);
}
