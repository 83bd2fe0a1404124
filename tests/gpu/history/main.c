/*
 * history [--slack NS] TRACE...: history.h for traces, one line each, and what ran too early.
 * Status 0: nothing did; 1: something did; 2: a trace cannot be read; 3: nothing was compared.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/history/history.h"

enum { SLACK_NS = 1000 };

static void tell_fault(const struct model *model, const struct history_fault *fault) {
    const uint32_t ops[] = {fault->after, fault->before};
    printf("  %" PRIu64 " ns too early, by %s:\n", fault->ns, history_words[fault->edge]);
    for (int i = 0; i < 2; i++) {
        const struct model_op *op = &model->ops[ops[i]];
        const struct cst_kind *kind = model->trace->kinds[op->op->kind];
        printf("    %s op %u, stream %u, %s, %s: %" PRIu64 " to %" PRIu64 "\n",
               i ? "behind" : "      ", ops[i], op->op->stream,
               cst_string(model->trace, kind->name), model_in_graph(op) ? "in a graph" : "alone",
               op->gpu->head.ns, op->gpu->head.ns + op->gpu->gpu_ns);
    }
}

static int check(const char *path, uint64_t slack_ns) {
    char error[1000];
    struct history history;
    struct cst_trace *trace = cst_open(path, error, sizeof error);
    struct model *model = trace ? model_make(trace) : NULL;
    uint64_t compared = 0;
    if (!model || !history_check(model, slack_ns, &history)) {
        fprintf(stderr, "history: %s\n", trace ? "not enough memory" : error);
        model_free(model);
        cst_free(trace);
        return 2;
    }
    printf("%s: %u ops, %" PRIu64 " without GPU times; compared by", path, model->n_ops,
           history.unknown);
    for (unsigned i = 0; i < HISTORY_EDGES; i++) {
        printf("%s %s %" PRIu64, i ? "," : "", history_words[i], history.checked[i]);
        compared += history.checked[i];
    }
    printf("; too early: %" PRIu64 "\n", history.n_faults);
    for (uint64_t i = 0;
         i < history.n_faults && i < sizeof history.faults / sizeof history.faults[0]; i++)
        tell_fault(model, &history.faults[i]);
    model_free(model);
    cst_free(trace);
    return history.n_faults ? 1 : compared ? 0 : 3;
}

int main(int argc, char **argv) {
    uint64_t slack_ns = SLACK_NS;
    int at = 1, worst = 0;
    if (argc > 2 && strcmp(argv[1], "--slack") == 0) {
        slack_ns = strtoull(argv[2], NULL, 10);
        at = 3;
    }
    if (at >= argc) {
        fprintf(stderr, "history [--slack NS] TRACE...\n");
        return 2;
    }
    for (; at < argc; at++) {
        int status = check(argv[at], slack_ns);
        worst = status > worst ? status : worst;
    }
    return worst;
}
