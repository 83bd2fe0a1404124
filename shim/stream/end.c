/*
 * The end of the engine in a process, for tests and tools that start it more than once; the library
 * never calls it. Runs on any thread, while no other thread is in the engine, and holds no lock.
 * Calls the driver to issue and destroy what is left. Objects that other threads may remember stay,
 * and the epochs that those threads compare move on.
 */
#include <string.h>

#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/plan/preset_choice.h"
#include "shim/plan/rules.h"
#include "shim/stats/gpus.h"
#include "shim/stats/tally.h"
#include "shim/stream/access.h"
#include "shim/stream/advice.h"
#include "shim/stream/check_launch.h"
#include "shim/stream/events.h"
#include "shim/stream/live.h"
#include "shim/stream/news.h"
#include "shim/stream/origins.h"
#include "shim/stream/passed.h"
#include "shim/stream/pools.h"
#include "shim/stream/ranges.h"
#include "shim/stream/realtime.h"
#include "shim/stream/registry.h"
#include "shim/stream/rest.h"
#include "shim/stream/room.h"
#include "shim/stream/trace.h"
#include "shim/stream/watchdog.h"
#include "shim/stream/why.h"

/* The process's state without what must outlive it: what the hooks own, objects that threads may
 * remember, and numbers that threads compare with theirs. */
static void drop_process(void) {
    struct cus_process *process = &cus_process;
    uint32_t hooks = process->hooks, build_number = process->build_number;
    uint32_t registry_epoch = process->registry_epoch, memory_epoch = process->memory_epoch;
    uint64_t opening = process->opening;
    uint32_t untracked_epoch = process->untracked.epoch, threads = process->untracked.threads;
    size_t before = offsetof(struct cus_process, engines);
    size_t behind = before + sizeof process->engines;
    memset(process, 0, before);
    memset((char *)process + behind, 0, sizeof *process - behind);
    process->hooks = hooks;
    process->opening = opening;
    process->build_number = build_number;
    process->registry_epoch = registry_epoch + 1;
    process->memory_epoch = memory_epoch + 1;
    process->untracked.epoch = untracked_epoch + 1;
    process->untracked.threads = threads;
}

static void drop_thread(struct cus_thread *thread) {
    *thread = (struct cus_thread){.cached_stream = {CUS_NO_STREAM, CUS_NO_STREAM},
                                  .depth = thread->depth};
}

/* The order: first the threads end, which use everything. Then deferred ops are issued and the
 * engines close, so that no graph, plan or kind is left that names a tally, a rule or a step.
 * Settings are read by all of that, and the process's state is used to the end. */
void cus_engine_end(void) {
    cus_watchdog_drop();
    cus_live_drop();
    cus_submit_drop();
    cus_engine_context_gone();

    cus_passed_count(); /* to counters that go */
    cus_registry_drop();
    cus_streams_drop();
    cus_kinds_drop();
    cus_func_forget_noted();
    cus_origins_drop();
    cus_ranges_drop();
    cus_pools_drop();
    cus_events_forget(NULL);
    cus_room_drop();
    cus_rest_drop();
    cus_realtime_drop();
    cus_advice_drop();
    cus_check_drop();
    cus_trace_drop();
    cus_why_drop();
    cus_exit_drop();

    cus_tally_drop();
    cus_gpus_drop();
    cus_news_drop();
    cus_preset_drop();
    cus_rules_drop();
    cus_options_drop();
    cus_log_drop();
    cus_mem_drop();
    drop_process();
    drop_thread(&cus_thread_self);
}
