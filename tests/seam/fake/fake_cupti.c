/*
 * A stand-in of the profiler's library. It is built twice, because a process may load two versions.
 */
#include <stdint.h>

#include "tests/seam/seam_log.h"

#ifndef CUPTI
#define CUPTI "cupti"
#endif

#define ANSWER(name)                                                                               \
    int name(uint64_t a, uint64_t b);                                                              \
    int name(uint64_t a, uint64_t b) {                                                             \
        (void)b;                                                                                   \
        seam_log(CUPTI " " #name " %lx", a & 0xff);                                                \
        return 0;                                                                                  \
    }

ANSWER(cuptiActivityEnable)
ANSWER(cuptiActivityEnableContext)
ANSWER(cuptiActivityDisable)
ANSWER(cuptiActivityDisableContext)
ANSWER(cuptiEnableCallback)
ANSWER(cuptiEnableDomain)
ANSWER(cuptiEnableAllDomains)
ANSWER(cuptiFinalize)
ANSWER(cuptiSubscribe_v2)
ANSWER(cuptiUnsubscribe)
ANSWER(cuptiGetVersion)

int cuptiSubscribe(uint64_t *subscriber, void *callback, void *data);
int cuptiSubscribe(uint64_t *subscriber, void *callback, void *data) {
    (void)callback;
    (void)data;
    *subscriber = 0x5b;
    return 0;
}
