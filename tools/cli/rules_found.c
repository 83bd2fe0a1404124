/*
 * Adds up launches, shapes and GPU times by the name of the kernel, and asks the presets for
 * kernels that wait. One thread. It reads the presets' files and no others.
 */
#include "tools/cli/rules_found.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/presets.h"
#include "shim/plan/rules.h"

enum { LEAST = 16 /* launches of one shape that are compared */, TIMES = 10, NAME = 900 };

/* By number of the name. */
struct sum {
    uint64_t calls, gpu_ns, reshaped;
    const struct cst_op *last;
    uint32_t kind; /* one of that name */
};

bool rules_may_name(const char *mangled) {
    size_t bytes = strlen(mangled);
    for (size_t i = 0; i < bytes; i++)
        if (mangled[i] <= ' ' || mangled[i] > '~' || strchr(";*?[]\\#\"'", mangled[i]))
            return false;
    return bytes && bytes < NAME;
}

static bool is_kernel(const struct look *look, const struct cst_op *op) {
    return look->trace->kinds[op->kind]->op == CST_OP_LAUNCH;
}

static uint32_t name_of(const struct look *look, const struct cst_op *op) {
    return cst_text_number(look->trace, look->trace->kinds[op->kind]->name);
}

static void add_up(const struct look *look, struct sum *sums, struct rules_found *found) {
    for (uint32_t i = 0; i < look->model->n_ops; i++) {
        const struct model_op *it = &look->model->ops[i];
        if (!is_kernel(look, it->op))
            continue;
        struct sum *sum = &sums[name_of(look, it->op)];
        sum->kind = it->op->kind;
        sum->calls++;
        sum->gpu_ns += it->gpu ? it->gpu->gpu_ns : 0;
        found->gpu_ns += it->gpu ? it->gpu->gpu_ns : 0;
        sum->reshaped +=
            sum->last && memcmp(sum->last->dims, it->op->dims, sizeof it->op->dims) != 0;
        sum->last = it->op;
    }
}

static int by_time(const void *a, const void *b) {
    const struct rules_kernel *x = a, *y = b;
    if (x->gpu_ns != y->gpu_ns)
        return x->gpu_ns < y->gpu_ns ? 1 : -1;
    return x->calls != y->calls ? (x->calls < y->calls ? 1 : -1) : strcmp(x->name, y->name);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* GPU times of the launches with the shape of the first one. `values`: room for all ops. */
static void compare_times(const struct look *look, struct rules_kernel *kernel, double *values) {
    const struct cst_op *first = NULL;
    size_t n = 0;
    for (uint32_t i = 0; i < look->model->n_ops; i++) {
        const struct model_op *it = &look->model->ops[i];
        if (!it->gpu || !is_kernel(look, it->op) ||
            strcmp(cst_string(look->trace, look->trace->kinds[it->op->kind]->name), kernel->name) !=
                0)
            continue;
        first = first ? first : it->op;
        if (memcmp(first->dims, it->op->dims, sizeof first->dims) == 0)
            values[n++] = (double)it->gpu->gpu_ns;
    }
    if (n < LEAST)
        return;
    qsort(values, n, sizeof *values, by_value);
    kernel->fast = values[n / 10];
    kernel->slowest = values[n - 1 - n / 10];
    if (kernel->slowest > TIMES * kernel->fast)
        snprintf(kernel->waits, sizeof kernel->waits,
                 "a tenth of its launches ran more than %d times as long as another tenth of the "
                 "same shape",
                 TIMES);
}

/* Presets that name kernels which wait for other GPUs. */
static void ask_presets(struct rules_found *found) {
    static const char *const names[] = {"nccl", "peer"};
    for (unsigned p = 0; p < sizeof names / sizeof *names; p++) {
        char path[PATH_MAX];
        struct cus_rules *rules = cus_preset_find(names[p], path, sizeof path)
                                      ? cus_rules_load_file(path, NULL, NULL, NULL)
                                      : NULL;
        if (!rules)
            continue;
        found->presets = true;
        for (unsigned i = 0; i < found->n; i++) {
            struct rules_kernel *kernel = &found->kernels[i];
            const char *slash = strrchr(kernel->lib, '/');
            const struct cus_subject subject = {.name = kernel->name,
                                                .lib = slash ? slash + 1 : kernel->lib};
            if (cus_rules_ask(rules, &subject, -1).policy == CUS_POLICY_NEVER_DEFER)
                snprintf(kernel->waits, sizeof kernel->waits, "the preset %s knows it", names[p]);
        }
        cus_rules_free(rules);
    }
}

static void list(const struct look *look, const struct sum *sums, struct rules_found *found) {
    const struct cst_trace *trace = look->trace;
    for (uint32_t i = 0; i <= trace->n_texts; i++) {
        if (!sums[i].calls)
            continue;
        const struct cst_kind *kind = trace->kinds[sums[i].kind];
        found->kernels[found->all++] = (struct rules_kernel){
            .name = cst_string(trace, kind->name),
            .base = names_of(look->names, sums[i].kind),
            .lib = cst_string(trace, kind->file),
            .calls = sums[i].calls,
            .gpu_ns = sums[i].gpu_ns,
            .reshaped = sums[i].reshaped,
        };
    }
    qsort(found->kernels, found->all, sizeof *found->kernels, by_time);
    found->n = found->all < RULES_KERNELS ? found->all : RULES_KERNELS;
}

bool rules_find(const struct look *look, struct rules_found *found) {
    struct sum *sums = calloc(look->trace->n_texts + (size_t)1, sizeof *sums);
    double *values = malloc((look->model->n_ops + (size_t)1) * sizeof *values);
    memset(found, 0, sizeof *found);
    bool room = sums && values;
    if (room)
        add_up(look, sums, found);
    size_t names = 0;
    for (uint32_t i = 0; room && i <= look->trace->n_texts; i++)
        names += sums[i].calls != 0;
    found->kernels = room ? calloc(names + 1, sizeof *found->kernels) : NULL;
    room = found->kernels != NULL;
    if (room)
        list(look, sums, found);
    for (unsigned i = 0; room && found->gpu_ns && i < found->n; i++)
        compare_times(look, &found->kernels[i], values);
    if (room)
        ask_presets(found);
    free(sums);
    free(values);
    return room;
}

void rules_free(struct rules_found *found) {
    free(found->kernels);
}
