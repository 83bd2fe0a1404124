/*
 * Says once in a process which graph was launched last before a context was lost. Runs on program
 * threads inside hooks with no engine lock held; takes one if it is free. Calls no driver function.
 */
#include "shim/base/log.h"
#include "shim/stream/check_launch.h"
#include "shim/stream/engine.h"
#include "shim/stream/state.h"
#include "shim/verify/report.h"

/* Errors behind which each later call that uses the context fails, as cuda.h and the driver API's
 * pages say. */
static bool loses_context(CUresult result) {
    switch ((int)result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case 226: /* CUDA_ERROR_CONTAINED, which headers of CUDA 12 lack */
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

/* The engine that launched a graph last; NULL: none did. */
static struct cus_engine *last_launcher(void) {
    struct cus_engine *last = NULL;
    uint64_t at_ns = 0;
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t mine = __atomic_load_n(&cus_process.engines[i]->launched.at_ns, __ATOMIC_RELAXED);
        if (mine > at_ns) {
            at_ns = mine;
            last = cus_process.engines[i];
        }
    }
    return last;
}

/* Under mode verify, an op that failed in a verified graph is named already. */
static void say_unverified(CUresult result) {
    if (!cus_report_has_lost())
        cus_log(CUS_WARN, "stream",
                "the context was lost with error %d by an op that is in no verified graph: with "
                "CUDA_LAUNCH_BLOCKING=1 each launch is waited for",
                (int)result);
}

/* The names go with the code of the context, which needs the engine's lock. */
static void say_last_graph(CUresult result) {
    struct cus_engine *engine = last_launcher();
    if (!engine || !cus_lock_try(&engine->lock))
        return;
    const struct cus_launched *last = &engine->launched;
    if (last->n)
        cus_log(
            CUS_WARN, "stream",
            "the context was lost with error %d. The last graph was launched on stream %llu: "
            "%u ops, from %.200s to %.200s. `cusplice verify` names an op of a graph that fails",
            (int)result, (unsigned long long)engine->id, last->n, last->first->name,
            last->last->name);
    cus_engine_unlock(engine);
}

void cus_engine_failed(CUresult result) {
    static unsigned said;
    if (!loses_context(result) || !cus_log_first(&said))
        return;
    if (cus_check_on())
        say_unverified(result);
    else
        say_last_graph(result);
}
