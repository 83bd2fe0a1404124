#include "harness/bench/core.h"

#include "harness/bench/clock.h"

#ifdef __x86_64__
enum { WIDE = 2000, CHAIN = 1000 };

double core_ratio(void) {
    uint64_t a = 1, b = 1, c = 1, d = 1;
    const uint64_t begin = now_ns();
    for (unsigned i = 0; i < CHAIN; i++)
        __asm__ volatile("imul %0, %0" : "+r"(a));
    const uint64_t between = now_ns();
    for (unsigned i = 0; i < WIDE; i++)
        __asm__ volatile("add $1, %0\n\tadd $1, %1\n\tadd $1, %2\n\tadd $1, %3\n\t"
                         "add $1, %0\n\tadd $1, %1\n\tadd $1, %2\n\tadd $1, %3"
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    const uint64_t end = now_ns();
    return between > begin ? (double)(end - between) / WIDE * CHAIN / (double)(between - begin) : 0;
}
#else
double core_ratio(void) {
    return 0;
}
#endif

enum core core_between(double before, double behind) {
    const double least = before < behind ? before : behind,
                 greatest = before < behind ? behind : before;
    return least < 0.5        ? CORE_UNKNOWN /* no core does that: the chain was interrupted */
           : greatest <= 0.85 ? CORE_ALONE   /* 2/3 and the cost of a clock read */
           : least >= 1.0     ? CORE_BESIDE
                              : CORE_UNKNOWN;
}
