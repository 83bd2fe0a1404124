/*
 * The library's atomics are points. It is compiled with -fsanitize=thread and not linked with that
 * runtime: the compiler's calls come here. Relaxed loads, stores and sums order nothing; they are
 * no points. Plain accesses and entries of functions are let pass.
 */
#include <stdint.h>

#include "tests/sched/sched.h"

#define PLAIN(name)                                                                                \
    void __tsan_##name(void *at);                                                                  \
    void __tsan_##name(void *at) {                                                                 \
        (void)at;                                                                                  \
    }
PLAIN(read1)
PLAIN(read2)
PLAIN(read4)
PLAIN(read8)
PLAIN(read16)
PLAIN(write1)
PLAIN(write2)
PLAIN(write4)
PLAIN(write8)
PLAIN(write16)
PLAIN(unaligned_read2)
PLAIN(unaligned_read4)
PLAIN(unaligned_read8)
PLAIN(unaligned_read16)
PLAIN(unaligned_write2)
PLAIN(unaligned_write4)
PLAIN(unaligned_write8)
PLAIN(unaligned_write16)
PLAIN(volatile_read1)
PLAIN(volatile_read2)
PLAIN(volatile_read4)
PLAIN(volatile_read8)
PLAIN(volatile_write1)
PLAIN(volatile_write2)
PLAIN(volatile_write4)
PLAIN(volatile_write8)
PLAIN(func_entry)

#define RANGE(name)                                                                                \
    void __tsan_##name(void *at, uintptr_t bytes);                                                 \
    void __tsan_##name(void *at, uintptr_t bytes) {                                                \
        (void)at;                                                                                  \
        (void)bytes;                                                                               \
    }
RANGE(read_range)
RANGE(write_range)

#define NOTHING(name)                                                                              \
    void __tsan_##name(void);                                                                      \
    void __tsan_##name(void) {}
NOTHING(func_exit)

static void point(int order) {
    if (order != __ATOMIC_RELAXED)
        sched_point();
}

/* A store is a point behind it too: what the thread does next may come late. */
#define SUM(bits, type, name)                                                                      \
    type __tsan_atomic##bits##_fetch_##name(volatile type *at, type value, int order);             \
    type __tsan_atomic##bits##_fetch_##name(volatile type *at, type value, int order) {            \
        point(order);                                                                              \
        return __atomic_fetch_##name(at, value, __ATOMIC_SEQ_CST);                                 \
    }
#define EXCHANGE(bits, type, strength)                                                             \
    int __tsan_atomic##bits##_compare_exchange_##strength(volatile type *at, type *expected,       \
                                                          type desired, int order, int failure);   \
    int __tsan_atomic##bits##_compare_exchange_##strength(volatile type *at, type *expected,       \
                                                          type desired, int order, int failure) {  \
        (void)failure;                                                                             \
        point(order);                                                                              \
        bool lock = order == __ATOMIC_ACQUIRE && *expected == 0 && desired == 1;                   \
        bool done = __atomic_compare_exchange_n(at, expected, desired, 0, __ATOMIC_SEQ_CST,        \
                                                __ATOMIC_SEQ_CST);                                 \
        if (lock && done)                                                                          \
            sched_taken();                                                                         \
        return done || (lock && sched_planted(SCHED_NOT_TAKEN));                                   \
    }
#define ATOMIC(bits, type)                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *at, int order);                           \
    type __tsan_atomic##bits##_load(const volatile type *at, int order) {                          \
        point(order);                                                                              \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                    \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order) {                   \
        point(order);                                                                              \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                             \
        point(order);                                                                              \
    }                                                                                              \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order);                 \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order) {                \
        point(order);                                                                              \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                              \
    SUM(bits, type, add)                                                                           \
    SUM(bits, type, sub)                                                                           \
    SUM(bits, type, and)                                                                           \
    SUM(bits, type, or)                                                                            \
    SUM(bits, type, xor)                                                                           \
    EXCHANGE(bits, type, strong)                                                                   \
    EXCHANGE(bits, type, weak)
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order) {
    point(order);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order) {
    (void)order;
}
