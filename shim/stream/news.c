/*
 * Writes the lines of news.h. Any thread; it takes no lock, never calls the driver and never
 * allocates. Where nobody asked for info, each function costs one load and one compare.
 */
#include "shim/stream/news.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/log.h"
#include "shim/stream/state.h"
#include "shim/stream/trace.h"

#include "shim/base/forbid.h"

void cus_news_built(const struct cus_engine *engine, const struct cus_exec *exec, uint64_t ns) {
    const struct cus_segment *segment = engine->view.segment;
    if (!cus_log_on(CUS_INFO, "graph"))
        return;
    cus_log(CUS_INFO, "graph",
            "built: %u ops, %.96s to %.96s, in %" PRIu64 " us, about %" PRIu64 " KiB", segment->n,
            segment->places[0].kind->name, segment->places[segment->n - 1].kind->name, ns / 1000,
            cus_exec_bytes(exec) >> 10);
}

void cus_news_dropped(const struct cus_engine *engine, const struct cus_exec *exec) {
    if (!cus_log_on(CUS_INFO, "graph"))
        return;
    cus_log(CUS_INFO, "graph", "dropped: %u nodes, about %" PRIu64 " KiB: %s", cus_exec_nodes(exec),
            cus_exec_bytes(exec) >> 10,
            engine->dropping ? engine->dropping : "its ops are in graphs of other sizes now");
}

/* Atomic: causes of which a first time was told. Each stream counts by itself. */
static bool told[CUS_CAUSES];

void cus_news_drop(void) {
    memset(told, 0, sizeof told);
}

static void ended(bool first, const char *name, const char *what, uint32_t ops) {
    enum cus_level level = first ? CUS_INFO : CUS_DEBUG;
    char alone[64] = "";
    if (ops)
        snprintf(alone, sizeof alone, "; deferred ops that go out one by one: %u", ops);
    cus_log(level, "stream", "graphs end at %.96s: %.160s%s%s", *name ? name : "an op", what, alone,
            first ? " (the first time; log = debug says each)" : "");
}

void cus_news_cut(const struct cus_tally *tally, enum cus_why why, uint32_t ops) {
    if (!cus_log_on(CUS_INFO, "stream"))
        return;
    tally = tally ? tally : &cus_tally_none;
    ended(__atomic_load_n(&tally->cuts[why], __ATOMIC_RELAXED) == 1, tally->name, cus_why_what(why),
          ops);
}

void cus_news_ended(unsigned cause, uint64_t n, uint32_t ops) {
    if (!cus_log_on(CUS_INFO, "stream"))
        return;
    const char *name = cus_trace_cause(cause);
    ended(n == 1 && !__atomic_exchange_n(&told[cause], true, __ATOMIC_RELAXED), name,
          cause < CUS_API_ROWS_MAX ? cus_call_what(name) : cus_cause_what(cause - CUS_API_ROWS_MAX),
          ops);
}

void cus_news_passes(const struct cus_engine *engine, uint64_t ops) {
    cus_log(CUS_INFO, "stream",
            "graphs do not pay on stream %p: its next %" PRIu64 " ops pass, or fewer if they "
            "repeat",
            (void *)engine->handle, ops);
}

void cus_news_again(const struct cus_engine *engine, const char *why) {
    cus_log(CUS_INFO, "stream", "graphs are tried again on stream %p: %s", (void *)engine->handle,
            why);
}
