/*
 * The model itself: known litmus tests, each with what C11 as of RC11 allows. An outcome that may
 * be must come, one that may not must not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/order/order.h"

static uint32_t x, y, flag;
static uint32_t data;
static uint64_t a, b, c, d;

/* Outcomes, in memory that no execution sets back: a bit for each value of the results. */
static uint8_t *outcomes;

#define X(order) __atomic_store_n(&x, 1, order)
#define Y(order) __atomic_store_n(&y, 1, order)
#define READ_X(order) __atomic_load_n(&x, order)
#define READ_Y(order) __atomic_load_n(&y, order)
#define RLX __ATOMIC_RELAXED
#define ACQ __ATOMIC_ACQUIRE
#define REL __ATOMIC_RELEASE
#define SC __ATOMIC_SEQ_CST

static void note(void) {
    outcomes[(a & 3) | (b & 3) << 2 | (c & 3) << 4 | (d & 3) << 6] = 1;
}

/* Store buffering. */
static void sb1(void) {
    X(SC);
    a = READ_Y(SC);
}
static void sb2(void) {
    Y(SC);
    b = READ_X(SC);
}
static void sb2_weak_load(void) {
    Y(SC);
    b = READ_X(ACQ);
}
static void sb2_weak_store(void) {
    Y(REL);
    b = READ_X(SC);
}
static void sb2_weak_change(void) {
    __atomic_add_fetch(&y, 1, RLX);
    b = READ_X(SC);
}
static void sb2_change(void) {
    __atomic_add_fetch(&y, 1, SC);
    b = READ_X(SC);
}
static void sb2_change_then_acquire(void) {
    __atomic_add_fetch(&y, 1, SC);
    b = READ_X(ACQ);
}
/* A wake-up and a sleep have full barriers. */
static void sb1_wake(void) {
    X(SC);
    (cus_futex_wake)(&x, 1);
    a = READ_Y(RLX);
}
static void sb2_wake(void) {
    Y(RLX);
    (cus_futex_wake)(&y, 1);
    b = READ_X(RLX);
}
/* Message passing. */
static void mp1(void) {
    X(RLX);
    Y(REL);
}
static void mp1_weak(void) {
    X(RLX);
    Y(RLX);
}
static void mp2(void) {
    a = READ_Y(ACQ);
    b = READ_X(RLX);
}
static void mp2_weak(void) {
    a = READ_Y(RLX);
    b = READ_X(RLX);
}
static void mp_change(void) {
    __atomic_add_fetch(&y, 1, RLX);
}
/* A plain variable behind a flag. */
static void plain1(void) {
    data = 1;
    __atomic_store_n(&flag, 1, REL);
}
static void plain1_weak(void) {
    data = 1;
    __atomic_store_n(&flag, 1, RLX);
}
static void plain2(void) {
    if (__atomic_load_n(&flag, ACQ))
        a = data;
}
/* Coherence: two reads of one variable. */
static void two_writes(void) {
    X(RLX);
    __atomic_store_n(&x, 2, RLX);
}
static void two_reads(void) {
    a = READ_X(RLX);
    b = READ_X(RLX);
}
/* Independent reads of independent writes. */
static void iriw_x(void) {
    X(SC);
}
static void iriw_y(void) {
    Y(SC);
}
static void iriw_x_weak(void) {
    X(REL);
}
static void iriw_y_weak(void) {
    Y(REL);
}
static void iriw1(void) {
    a = READ_X(SC);
    b = READ_Y(SC);
}
static void iriw2(void) {
    c = READ_Y(SC);
    d = READ_X(SC);
}
static void iriw1_weak(void) {
    a = READ_X(ACQ);
    b = READ_Y(ACQ);
}
static void iriw2_weak(void) {
    c = READ_Y(ACQ);
    d = READ_X(ACQ);
}
/* Load buffering, which RC11 forbids. */
static void lb1(void) {
    a = READ_X(RLX);
    Y(RLX);
}
static void lb2(void) {
    b = READ_Y(RLX);
    X(RLX);
}
/* Two writes each, in turn: both locations may end with the first value. */
static void ww1(void) {
    X(RLX);
    __atomic_store_n(&y, 2, RLX);
}
static void ww2(void) {
    Y(RLX);
    __atomic_store_n(&x, 2, RLX);
}
static void ends(void) {
    a = __atomic_load_n(&x, RLX);
    b = __atomic_load_n(&y, RLX);
    note();
}
/* A store of sequential consistency does not hold back a later plain one. */
static void after1(void) {
    X(SC);
    Y(RLX);
}
static void after2(void) {
    a = READ_Y(RLX);
    b = READ_X(SC);
}

/* 00, 01, 10, 11 as the two results. Letters: may be, '-': may not. */
static const struct litmus {
    struct order_test test;
    const char *may, *may_not; /* results as digits, with a space between; NULL: a race */
} cases[] = {
    {{.name = "SB", .threads = {sb1, sb2}, .check = note}, "01 10 11", "00"},
    {{.name = "SB, a load is acquire", .threads = {sb1, sb2_weak_load}, .check = note},
     "00 01 10 11",
     ""},
    {{.name = "SB, a store is release", .threads = {sb1, sb2_weak_store}, .check = note},
     "00 01 10 11",
     ""},
    {{.name = "SB, a change", .threads = {sb1, sb2_change}, .check = note}, "01 10 11", "00"},
    {{.name = "SB, a relaxed change", .threads = {sb1, sb2_weak_change}, .check = note},
     "00 01 10 11",
     ""},
    {{.name = "SB, a change, then acquire",
      .threads = {sb1, sb2_change_then_acquire},
      .check = note},
     "00 01 10 11",
     ""},
    {{.name = "SB, barriers of wake-ups", .threads = {sb1_wake, sb2_wake}, .check = note},
     "01 10 11",
     "00"},
    {{.name = "MP", .threads = {mp1, mp2}, .check = note}, "00 01 11", "10"},
    {{.name = "MP, relaxed store", .threads = {mp1_weak, mp2}, .check = note}, "00 01 10 11", ""},
    {{.name = "MP, relaxed load", .threads = {mp1, mp2_weak}, .check = note}, "00 01 10 11", ""},
    {{.name = "MP through a change", .threads = {mp1, mp_change, mp2}, .check = note},
     "00 01 10 11 21",
     "20"},
    {{.name = "plain", .threads = {plain1, plain2}, .check = note}, "00 10", "20"},
    {{.name = "plain, relaxed", .threads = {plain1_weak, plain2}, .check = note}, NULL, NULL},
    {{.name = "coherence", .threads = {two_writes, two_reads}, .check = note},
     "00 01 02 11 12 22",
     "10 20 21"},
    {{.name = "IRIW", .threads = {iriw_x, iriw_y, iriw1, iriw2}, .check = note},
     "1011 0000 1111",
     "1010"},
    {{.name = "IRIW, acquire",
      .threads = {iriw_x_weak, iriw_y_weak, iriw1_weak, iriw2_weak},
      .check = note},
     "1011 1010",
     ""},
    {{.name = "LB", .threads = {lb1, lb2}, .check = note}, "00 01 10", "11"},
    {{.name = "2+2W", .threads = {ww1, ww2}, .check = ends}, "11 12 21", ""},
    {{.name = "SC store, then relaxed", .threads = {after1, after2}, .check = note},
     "00 01 10 11",
     ""},
};

static bool came(const char *digits, size_t n) {
    unsigned at = 0;
    for (size_t i = 0; i < n; i++)
        at |= (unsigned)(digits[i] - '0') << 2 * i;
    return outcomes[at];
}

static unsigned wrong_of(const char *name, const char *list, bool may) {
    unsigned wrong = 0;
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (came(at, n) != may) {
            printf("%s: %.*s %s\n", name, (int)n, at, may ? "did not come" : "came, and may not");
            wrong++;
        }
        at += n + (at[n] == ' ');
    }
    return wrong;
}

bool explore_all(const struct order_test *test);
void order_begin(void);

int main(void) {
    unsigned wrong = 0;
    order_begin();
    outcomes = malloc(256);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct litmus *one = &cases[i];
        memset(outcomes, 0, 256);
        bool right = explore_all(&one->test);
        if (right != (one->may != NULL)) {
            printf("%s: %s\n", one->test.name, right ? "no race was found" : "a fault was found");
            wrong++;
        } else if (right) {
            wrong += wrong_of(one->test.name, one->may, true) +
                     wrong_of(one->test.name, one->may_not, false);
        }
    }
    printf("%zu litmus tests, %u wrong\n", sizeof cases / sizeof *cases, wrong);
    return wrong != 0;
}
