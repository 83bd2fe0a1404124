/*
 * The table of the runtime's kernels: a reader finds what one writer wrote for this kernel, or
 * nothing. The two kernels share a place, which is written anew once all is forgotten.
 */
#include "shim/hook/runtime_table.c"
#include "tests/order/engine.h"

static const void *kernels[2];
static struct cus_runtime_slot *place;
static uint32_t before; /* the tag before all was forgotten */

struct cus_runtime_origin cus_runtime_origin(enum cus_runtime which, const void *kernel,
                                             const void *caller) {
    (void)which;
    (void)caller;
    return (struct cus_runtime_origin){.function = (void *)((uintptr_t)kernel + 1), .known = true};
}

/* A value of a kernel's slot that says whose it is. */
static void *mark(unsigned k, uintptr_t what) {
    return (void *)((uintptr_t)kernels[k] + what);
}

static void set_up(void) {
    memset(place, 0, 4 * sizeof *place);
    order_engines(0);
    cus_thread_self.context = (CUcontext)mark(0, 2);
    before = cus_runtime_tag(CUS_RUNTIME_cudaLaunchKernel);
}

static void add(unsigned k) {
    cus_runtime_add(cus_runtime_tag(CUS_RUNTIME_cudaLaunchKernel), kernels[k],
                    (struct cus_runtime_origin){mark(k, 1), k == 0}, (CUcontext)mark(k, 2),
                    (CUfunction)mark(k, 3));
}

static void look(uint32_t tag, unsigned k) {
    cus_thread_self.context = (CUcontext)mark(k, 2);
    struct cus_runtime_look found = cus_runtime_look_up(tag, kernels[k]);
    if (!found.found)
        return;
    ORDER_CHECK(found.real == mark(k, 1));
    ORDER_CHECK(found.handle == (CUfunction)mark(k, 3));
    ORDER_CHECK(found.exact);
}

/* In another context only the first kernel's function may be learned anew. */
static void look_elsewhere(uint32_t tag, unsigned k) {
    cus_thread_self.context = NULL;
    struct cus_runtime_look found = cus_runtime_look_up(tag, kernels[k]);
    ORDER_CHECK(!found.found || (!found.exact && found.worth == (k == 0)));
}

static void add_first(void) {
    add(0);
}
static void forget_and_add_second(void) {
    cus_runtime_forget();
    add(1);
}
static void add_both(void) {
    add(0);
    cus_runtime_forget();
    add(1);
}
static void look_for_first(void) {
    look(before, 0);
}
static void look_for_first_elsewhere(void) {
    look_elsewhere(before, 0);
}
static void look_for_second_elsewhere(void) {
    look_elsewhere(cus_runtime_tag(CUS_RUNTIME_cudaLaunchKernel), 1);
}
static void look_for_second(void) {
    look(cus_runtime_tag(CUS_RUNTIME_cudaLaunchKernel), 1);
}

static void start(void) {
    cus_runtime_start(true);
}
static void listen(void) {
    cus_runtime_listened(true);
}
static void is_closed(void) {
    ORDER_CHECK(!cus_runtime_open);
}

static const struct order_test tests[] = {
    {.name = "add and look", .set_up = set_up, .threads = {add_first, look_for_first}},
    {.name = "forget and look", .set_up = set_up, .threads = {add_both, look_for_first}},
    {.name = "forget and look anew", .set_up = set_up, .threads = {add_both, look_for_second}},
    {.name = "elsewhere", .set_up = set_up, .threads = {add_both, look_for_first_elsewhere}},
    {.name = "elsewhere anew", .set_up = set_up, .threads = {add_both, look_for_second_elsewhere}},
    {.name = "two add",
     .set_up = set_up,
     .threads = {add_first, forget_and_add_second, look_for_first},
     .preemptions = 2},
    {.name = "open", .set_up = set_up, .threads = {start, listen}, .check = is_closed},
    {.name = NULL},
};
static const char *const files[] = {"runtime_table.c", "runtime_table.h", NULL};
static const struct order_weaker weaker[] = {
    {"runtime_table.c cus_runtime_add STORE &(slot->devices) RELAXED",
     "gap: device.c and configuration.c read this field, not these cases"},
    {"runtime_table.c cus_runtime_add STORE &(slot->paired) RELAXED",
     "gap: device.c and configuration.c read this field, not these cases"},
    {"runtime_table.c cus_runtime_add STORE &(slot->attrs) RELAXED",
     "the same value for both kernels here; fields before and behind it have the order"},
    {"runtime_table.c cus_runtime_add STORE &(slot->settled) RELAXED",
     "gap: runtime.c reads this field, not these cases"},
    {"runtime_table.c cus_runtime_add STORE &(slot->tries) RELAXED", "0 for both kernels here"},
    {"runtime_table.c cus_runtime_look_up LOAD &slot->tries RELAXED", "0 for both kernels here"},
    {"runtime_table.c cus_runtime_look_up LOAD &(slot->attrs) RELAXED",
     "the same value for both kernels here"},
    {"runtime_table.c cus_runtime_forget ADD &cus_runtime_epoch RELAXED",
     "a thread that must see the new epoch is ordered by the program"},
    {"runtime_table.c cus_runtime_start STORE &started RELAXED",
     "a thread that misses it leaves the table closed, and the starting thread opens it"},
    {"runtime_table.c may_open LOAD &started RELAXED",
     "a thread that misses it leaves the table closed, and the starting thread opens it"},
    {"runtime_table.h cus_runtime_tag LOAD &cus_runtime_epoch RELAXED",
     "a thread that must see the new epoch is ordered by the program"},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    /* Two kernels with the same first place, which is not the last. */
    kernels[0] = (const void *)0x100000;
    place = cus_runtime_first(kernels[0]);
    for (uintptr_t at = 0x100010; !kernels[1]; at += 16)
        if (cus_runtime_first((const void *)at) == place)
            kernels[1] = (const void *)at;
    order_keep_out(cus_runtime_table, sizeof cus_runtime_table);
    return order_main(argc, argv, tests, files, weaker);
}
