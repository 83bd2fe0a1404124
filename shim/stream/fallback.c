/*
 * Fallbacks: each is counted, and logged the first time. Any thread calls this, with or without an
 * engine's lock. It never calls the driver and never allocates.
 */
#include "shim/base/log.h"
#include "shim/stream/state.h"

#include "shim/base/forbid.h"
#include "shim/stream/fallback.h"

void cus_fallback(enum cus_fallback why) {
    __atomic_add_fetch(&cus_process.counters.fallbacks[why], 1, __ATOMIC_RELAXED);
    switch (why) {
    case CUS_FALLBACK_INSTANTIATE:
        CUS_LOG_ONCE(CUS_INFO, "stream", "a graph was not instantiated: its ops go out one by one");
        break;
    case CUS_FALLBACK_CAPTURE:
        CUS_LOG_ONCE(CUS_INFO, "stream", "ops were not captured: they go out one by one");
        break;
    case CUS_FALLBACK_SETPARAMS:
        CUS_LOG_ONCE(CUS_INFO, "stream",
                     "a node refused new params: its segment goes out op by op");
        break;
    case CUS_FALLBACK_GRAPH_LAUNCH:
        CUS_LOG_ONCE(CUS_WARN, "stream", "a graph was not launched: its ops go out one by one");
        break;
    case CUS_FALLBACK_TIMED:
        CUS_LOG_ONCE(CUS_INFO, "stream",
                     "a memset is timed that was built for memory that may have gone: its segment "
                     "goes out op by op");
        break;
    case CUS_FALLBACK_BUDGET:
        CUS_LOG_ONCE(CUS_INFO, "stream", "graphs are dropped for the memory budget");
        break;
    default: /* logged where it happens, with the details known there */
        break;
    }
}
