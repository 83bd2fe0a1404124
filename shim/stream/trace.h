/*
 * What the engine tells the trace (shim/trace): ops as the program asked for them, calls by their
 * meaning, and what was issued when. While nothing is recorded each place costs one load.
 */
#ifndef CUSPLICE_STREAM_TRACE_H
#define CUSPLICE_STREAM_TRACE_H

#include "shim/stream/call.h"
#include "shim/trace/record.h"

/* One call into the engine, from its beginning to the end of the block. Calls that it makes to
 * other entry points are not recorded. */
struct cus_traced_call {
    uint64_t began; /* trace ticks (trace/ticks.h); 0: not recorded */
    enum cst_what what;
    enum cus_scope scope;
    const struct cus_stream_ref *stream;
    const char *name;
    uint64_t value;
};

static inline struct cus_traced_call cus_trace_begin(struct cus_traced_call call) {
    if (cus_recording() && !cus_thread_self.in_traced_call) {
        cus_thread_self.in_traced_call = true;
        call.began = cus_ticks_now();
    }
    return call;
}
void cus_trace_call(const struct cus_traced_call *call);
static inline void cus_trace_end(struct cus_traced_call *call) {
    if (__builtin_expect(call->began != 0, 0))
        cus_trace_call(call);
}

/* At the top of an entry point: CUS_TRACE(.what = CST_CALL_FLUSH, .stream = stream ...). */
#define CUS_TRACE(...)                                                                             \
    struct cus_traced_call traced_ __attribute__((cleanup(cus_trace_end), unused)) =               \
        cus_trace_begin((struct cus_traced_call){__VA_ARGS__})

/* The name of a flush's cause: a call of the program, or the library's reason. */
const char *cus_trace_cause(unsigned cause);

/* An op is about to be carried out; it has been. `call->began` says whether it is recorded. */
void cus_trace_op_begin(struct cus_call *call);
void cus_trace_op_end(struct cus_call *call, CUresult result);
/* In place of it: nothing was done, and the program's own call is told otherwise. */
void cus_trace_op_drop(struct cus_call *call);
/* Called in between: the op's kind is known. Engine lock held. */
void cus_trace_op_is(struct cus_call *call, struct cus_engine *engine, struct cus_kind *kind,
                     const struct cus_op *op);

/* The oldest `n` deferred ops were issued one by one, or in a graph (cus_trace_launch). Engine lock
 * held. `cause` must stay valid for ever. */
void cus_trace_flush(struct cus_engine *engine, uint32_t n, const char *cause,
                     enum cus_break reason);
struct cus_trace_of_launch {
    uint64_t began; /* trace ticks */
    uint32_t took;  /* from then on, in the recorder's unit (cus_ticks_since) */
    uint32_t n, segment, variant, patched;
    enum cst_choice choice;
    uint64_t build_ns, bytes;
};
void cus_trace_launch(struct cus_engine *engine, const struct cus_trace_of_launch *launch);
/* A segment was formed. Engine lock held. */
void cus_trace_segment(struct cus_engine *engine, const struct cus_segment *segment);
/* The driver was asked about an address. */
void cus_trace_range(const struct cst_range *range, CUcontext current);
/* Forgets the numbers of streams and kinds. For cus_engine_end. */
void cus_trace_drop(void);

#endif
