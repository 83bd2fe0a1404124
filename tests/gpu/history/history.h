/*
 * Did the GPU do things in the order that the program asked for? From a trace with GPU times
 * (cusplice record --gpu-times): each kernel, copy and memset began after the end of all that its
 * program put before it, by streams, events, the legacy stream, and waits of the host.
 */
#ifndef CUSPLICE_TESTS_GPU_HISTORY_HISTORY_H
#define CUSPLICE_TESTS_GPU_HISTORY_HISTORY_H

#include "tools/trace/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By what an op goes behind another. */
enum history_edge {
    HISTORY_STREAM, /* the op in front of it on its stream */
    HISTORY_EVENT,  /* its stream waited for an event */
    HISTORY_LEGACY, /* one of both is on the legacy stream */
    HISTORY_HOST,   /* its thread waited for a stream, an event or a context */
    HISTORY_EDGES
};
extern const char *const history_words[HISTORY_EDGES];

struct history_fault {
    uint32_t before, after; /* in model->ops: `after` began too early */
    enum history_edge edge;
    uint64_t ns; /* by so much */
};

struct history {
    uint64_t checked[HISTORY_EDGES]; /* ops whose latest forerunner is one by such an edge */
    uint64_t unknown;                /* ops without GPU times */
    uint64_t n_faults;
    struct history_fault faults[10]; /* the first ones */
};

/* `slack_ns`: by so much the times may be wrong. False: not enough memory. */
bool history_check(const struct model *model, uint64_t slack_ns, struct history *history);

#ifdef __cplusplus
}
#endif

#endif
