/*
 * Names for kinds, outcomes and calls that all exports share. The export_*.c files and
 * import_read.c call it. It never writes.
 */
#include "tools/trace/export.h"

#include <stdlib.h>
#include <string.h>

static const char *word(const char *const *words, unsigned n, unsigned i) {
    return i < n && words[i] ? words[i] : "unknown";
}

#define WORD(words, i) word(words, sizeof words / sizeof *words, i)

const char *export_what(unsigned what) {
    static const char *const words[] = {
        [CST_CALL_FLUSH] = "flush",
        [CST_CALL_STEP_END] = "step_end",
        [CST_CALL_BREAK] = "break",
        [CST_CALL_SUSPEND] = "suspend",
        [CST_CALL_COPYING] = "copying",
        [CST_CALL_STREAM_GONE] = "stream_gone",
        [CST_CALL_CONTEXT_GONE] = "context_gone",
        [CST_CALL_CODE_GONE] = "code_gone",
        [CST_CALL_MEMORY_GONE] = "memory_gone",
        [CST_CALL_GIVE_BACK] = "give_back",
        [CST_CALL_FUNCTION_CHANGED] = "function_changed",
        [CST_CALL_STREAM_CHANGED] = "stream_changed",
        [CST_CALL_TAINT] = "taint",
        [CST_CALL_CAPTURE_BEGAN] = "capture_began",
        [CST_CALL_CAPTURE_ENDED] = "capture_ended",
        [CST_CALL_UNKNOWN] = "unknown_call",
        [CST_CALL_PROFILING] = "profiling",
        [CST_CALL_OFF] = "off",
        [CST_CALL_DRAIN] = "drain",
        [CST_CALL_WAITED] = "waited",
        [CST_CALL_EVENT_SEEN] = "event_seen",
        [CST_CALL_EVENT_GONE] = "event_gone",
    };
    return WORD(words, what);
}

const char *export_scope(unsigned scope) {
    static const char *const words[] = {"none", "S", "T", "C", "CT", "P"};
    return WORD(words, scope);
}

const char *export_choice(unsigned choice) {
    static const char *const words[] = {NULL, "exact", "patched", "built"};
    return WORD(words, choice);
}

const char *export_stream(unsigned kind) {
    static const char *const words[] = {NULL, "legacy", "per_thread", "created", "unknown"};
    return WORD(words, kind);
}

const char *export_outcome(const struct model_op *op) {
    if (op->out)
        return model_in_graph(op) ? "graph" : "flushed";
    return op->op->head.flags == CST_DEFERRED ? "open" : "eager";
}

const char *export_api(const struct cst_kind *kind, const struct cst_op *op) {
    bool ptsz = op->abi;
    if (kind->flags & CST_KIND_COOPERATIVE)
        return ptsz ? "cuLaunchCooperativeKernel_ptsz" : "cuLaunchCooperativeKernel";
    if (kind->n_attributes)
        return ptsz ? "cuLaunchKernelEx_ptsz" : "cuLaunchKernelEx";
    return ptsz ? "cuLaunchKernel_ptsz" : "cuLaunchKernel";
}

uint64_t export_op_bytes(const struct cst_kind *kind, const struct cst_op *op) {
    uint64_t elements = model_elements(kind, op);
    return kind->op == CST_OP_MEMSET ? elements * kind->elem : elements;
}

uint64_t export_pid(const struct cst_trace *trace) {
    const char *at = strstr(trace->facts, "\"pid\"");
    uint64_t pid = 0;
    if (at) {
        at += 5 + strspn(at + 5, " \t\r\n:");
        pid = strtoull(at, NULL, 10);
    }
    for (uint32_t i = 0; !pid && i < trace->n_threads; i++)
        pid = trace->threads[i] ? trace->threads[i]->tid : 0;
    return pid && pid < 1 << 24 ? pid : 1;
}
