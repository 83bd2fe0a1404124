/*
 * Races of plain accesses. The code under test is compiled with -fsanitize=thread, but not linked
 * with that runtime: the compiler's calls come here. Two accesses of which one writes, and one is
 * no atomic, need an order. Thread-local variables are left out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/order/model.h"
#include "tests/order/order.h"

enum { PLAIN_READ, PLAIN_WRITE, ATOMIC_READ, ATOMIC_WRITE, KINDS, PLACES = 1 << 14 };

struct shadow {
    uintptr_t at;
    uint32_t epoch;
    uint16_t last[KINDS][THREADS]; /* the event that the thread made next */
};

void race_begin(void) {
    struct order *o = order_now;
    if (!o->shadow)
        o->shadow = calloc(PLACES, sizeof *o->shadow);
    o->shadow_epoch++;
}

static struct shadow *shadow_of(uintptr_t at) {
    struct order *o = order_now;
    for (uint64_t i = model_mix(3, at);; i++) {
        struct shadow *s = &o->shadow[i % PLACES];
        if (s->epoch == o->shadow_epoch && s->at == at)
            return s;
        if (s->epoch != o->shadow_epoch) {
            memset(s, 0, sizeof *s);
            s->at = at;
            s->epoch = o->shadow_epoch;
            return s;
        }
    }
}

static void meets(const struct shadow *s, int kind, int other) {
    const struct order *o = order_now;
    static const char *const names[] = {"a plain read", "a plain write", "an atomic read",
                                        "an atomic write"};
    for (unsigned u = 0; u < THREADS; u++)
        if (u != o->current && s->last[other][u] > o->thread[o->current].view.clock[u]) {
            char text[200];
            snprintf(text, sizeof text, "a race: %s of thread %u and %s of thread %u at %p",
                     names[kind], o->current, names[other], u, (void *)s->at);
            explore_fault(text);
        }
}

static void access_at(uintptr_t at, int kind) {
    const struct order *o = order_now;
    struct shadow *s = shadow_of(at);
    if (!o->alone) {
        meets(s, kind, PLAIN_WRITE);
        if (kind == PLAIN_WRITE || kind == ATOMIC_WRITE)
            meets(s, kind, PLAIN_READ);
        if (kind == PLAIN_WRITE || kind == PLAIN_READ)
            meets(s, kind, ATOMIC_WRITE);
        if (kind == PLAIN_WRITE)
            meets(s, kind, ATOMIC_READ);
    }
    s->last[kind][o->current] = (uint16_t)(o->thread[o->current].view.clock[o->current] + 1);
}

void race_atomic(const volatile void *at, bool writes) {
    if (!order_now->alone)
        access_at((uintptr_t)at, writes ? ATOMIC_WRITE : ATOMIC_READ);
}

static void plain(const void *where, bool writes) {
    const struct order *o = order_now;
    uintptr_t at = (uintptr_t)where;
    /* Variables of a thread. Memory of the code under test may lie right beside them. */
    if (!o || o->alone || where == &errno || at - (uintptr_t)o->tls < o->tls_bytes)
        return;
    access_at(at, writes ? PLAIN_WRITE : PLAIN_READ);
}

#define HOOK(name, writes)                                                                         \
    void __tsan_##name(void *at);                                                                  \
    void __tsan_##name(void *at) {                                                                 \
        plain(at, writes);                                                                         \
    }
HOOK(read1, false)
HOOK(read2, false)
HOOK(read4, false)
HOOK(read8, false)
HOOK(read16, false)
HOOK(write1, true)
HOOK(write2, true)
HOOK(write4, true)
HOOK(write8, true)
HOOK(write16, true)
HOOK(unaligned_read2, false)
HOOK(unaligned_read4, false)
HOOK(unaligned_read8, false)
HOOK(unaligned_read16, false)
HOOK(unaligned_write2, true)
HOOK(unaligned_write4, true)
HOOK(unaligned_write8, true)
HOOK(unaligned_write16, true)

void __tsan_func_entry(void *from);
void __tsan_func_entry(void *from) {
    (void)from;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void) {}
void __tsan_init(void);
void __tsan_init(void) {}
/* Of a larger piece its beginning stands for all. */
void __tsan_read_range(void *at, size_t bytes);
void __tsan_read_range(void *at, size_t bytes) {
    (void)bytes;
    plain(at, false);
}
void __tsan_write_range(void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes) {
    (void)bytes;
    plain(at, true);
}

/* Stands for functions that the code under test names and no test calls (BUILD). */
void order_never(void);
void order_never(void) {
    explore_fault("a function was called that the test does not have");
}

/* Fields that are _Atomic (engine.h: which stream an engine serves) do not change in the tests. */
uint64_t __tsan_atomic64_load(const volatile void *at, int order);
uint64_t __tsan_atomic64_load(const volatile void *at, int order) {
    (void)order;
    return *(const volatile uint64_t *)at;
}
uint8_t __tsan_atomic8_load(const volatile void *at, int order);
uint8_t __tsan_atomic8_load(const volatile void *at, int order) {
    (void)order;
    return *(const volatile uint8_t *)at;
}
void __tsan_atomic64_store(volatile void *at, uint64_t value, int order);
void __tsan_atomic64_store(volatile void *at, uint64_t value, int order) {
    (void)order;
    *(volatile uint64_t *)at = value;
}
void __tsan_atomic8_store(volatile void *at, uint8_t value, int order);
void __tsan_atomic8_store(volatile void *at, uint8_t value, int order) {
    (void)order;
    *(volatile uint8_t *)at = value;
}
