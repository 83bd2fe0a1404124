/*
 * The lock: what it guards is seen by the next holder, and nobody sleeps for good.
 */
#include "shim/base/lock.h"
#include "tests/order/order.h"

static struct cus_lock lock;
static uint32_t counter; /* guarded by the lock */
static uint32_t missed;  /* tries that failed, atomic */

static void take(void) {
    cus_lock_take(&lock);
    counter++;
    cus_lock_give(&lock);
}

static void take_twice(void) {
    take();
    take();
}

static void take_in_time(void) {
    ORDER_CHECK(cus_lock_take_for(&lock, 1000000000));
    counter++;
    cus_lock_give(&lock);
}

static void try_it(void) {
    if (!cus_lock_try(&lock)) {
        __atomic_add_fetch(&missed, 1, __ATOMIC_RELAXED);
        return;
    }
    counter++;
    cus_lock_give(&lock);
}

static void two(void) {
    ORDER_CHECK(counter == 2);
}
static void three(void) {
    ORDER_CHECK(counter == 3);
}
static void two_or_missed(void) {
    ORDER_CHECK(counter + missed == 2);
}

static const struct order_test tests[] = {
    {.name = "two threads", .threads = {take_twice, take}, .check = three},
    {.name = "three threads",
     .threads = {take, take, take},
     .check = three,
     .preemptions = 2,
     .once = true},
    {.name = "in time", .threads = {take, take_in_time}, .check = two, .tick_ns = 1},
    {.name = "try", .threads = {take, try_it}, .check = two_or_missed},
    {.name = NULL},
};
static const char *const files[] = {"lock.h", "lock.c", NULL};
static const struct order_weaker weaker[] = {
    {"lock.c cus_lock_take_for ADD &lock->waiting RELAXED",
     "a hint: cus_lock_give reads it without order, and a missed sleeper wakes after WAIT_NS"},
    {"lock.c cus_lock_wait ADD &lock->waiting RELAXED",
     "a hint: cus_lock_give reads it without order, and a missed sleeper wakes after WAIT_NS"},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    return order_main(argc, argv, tests, files, weaker);
}
