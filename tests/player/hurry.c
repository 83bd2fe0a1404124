/*
 * Preloaded, the monotonic clock runs twenty times as fast: for programs that say something only
 * once they have run for a while.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000, FASTER = 20 };

int clock_gettime(clockid_t id, struct timespec *now) {
    static long long first;
    int result = (int)syscall(SYS_clock_gettime, id, now);
    if (result == 0 && id == CLOCK_MONOTONIC) {
        long long ns = (long long)now->tv_sec * SECOND + now->tv_nsec, none = 0;
        if (__atomic_compare_exchange_n(&first, &none, ns, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            none = ns;
        ns = none + (ns - none) * FASTER; /* of the first call on */
        now->tv_sec = ns / SECOND;
        now->tv_nsec = ns % SECOND;
    }
    return result;
}
