/*
 * Plays an op or another call of the trace on the library's engine, by the entry points that
 * shim/hook uses. player.c calls it, one thread at a time. It never decides which event comes next.
 */
#include "tools/whatif/events.h"

#include <stdlib.h>
#include <string.h>

#include "shim/api/api.h"
#include "shim/base/options.h"
#include "shim/base/uthash.h"
#include "shim/graph/issue.h"
#include "shim/stream/hot.h"
#include "tools/whatif/clock.h"

enum { PARAMS_MAX = CUS_ISSUE_PARAMS_MAX };

/* A kind as the engine is asked for it; made when it comes first. */
struct ready {
    const struct cst_kind *kind;
    CUfunction function;
    const struct cst_kind *layout; /* of a launch, by which its params are read */
    bool readable, two_d, origin_told;
    enum cus_launch_form form;
    uint32_t n_attrs;
    CUlaunchAttribute *attrs;
    void *real;
};

/* An event that the engine knows. A handle that is given out again has another number; 0: the trace
 * has not told it yet. */
struct event {
    uint64_t handle, number;
    UT_hash_handle hh;
};

static struct {
    const struct cst_trace *trace;
    struct whatif_played *out;
    struct ready *kinds;
    struct event *events;
    uint32_t n_captures;          /* open, of the program */
    const struct cst_call *waits; /* the end of a step behind which its thread waits */
    bool drained, asks_library;
} here;

/* ---- ops ---- */

static struct cus_stream_ref ref_of(const struct cst_stream *stream, bool per_thread_abi) {
    return (struct cus_stream_ref){whatif_driver_stream(stream),
                                   per_thread_abi ? CUS_ABI_PTSZ : CUS_ABI_LEGACY};
}

/* A launch that no node can stand for has an attribute that says so. Attributes of an opaque kind
 * have no values. */
static void ready_launch(struct ready *it) {
    const struct cst_kind *kind = it->kind;
    const struct cst_attribute *from = cst_kind_attributes(kind);
    bool refused = kind->flags & CST_KIND_NO_NODE;
    uint32_t n = kind->flags & CST_KIND_OPAQUE ? 0 : kind->n_attributes;
    it->attrs = whatif_need(calloc(n + 1, sizeof *it->attrs));
    for (uint32_t i = 0; i < n; i++) {
        CUlaunchAttribute *to = &it->attrs[it->n_attrs++];
        to->id = (CUlaunchAttributeID)from[i].id;
        memcpy(&to->value, from[i].value,
               sizeof to->value < sizeof from[i].value ? sizeof to->value : sizeof from[i].value);
    }
    if (refused)
        it->attrs[it->n_attrs++].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    it->form = it->n_attrs                          ? CUS_LAUNCH_EX
               : kind->flags & CST_KIND_COOPERATIVE ? CUS_LAUNCH_COOPERATIVE
                                                    : CUS_LAUNCH_PLAIN;
    it->real = whatif_driver_launch(it->form == CUS_LAUNCH_EX, it->form == CUS_LAUNCH_COOPERATIVE);
}

static struct ready *ready_kind(uint32_t id) {
    struct ready *it = &here.kinds[id];
    if (it->kind)
        return it;
    const struct cst_kind *kind = here.trace->kinds[id];
    it->kind = kind;
    it->readable = !(kind->flags & CST_KIND_OPAQUE);
    switch (kind->op) {
    case CST_OP_MEMSET:
        it->two_d = strstr(cst_string(here.trace, kind->name), "D2D") != NULL;
        it->readable &= kind->param_bytes >= sizeof(struct cus_memset_params);
        it->real = whatif_driver_memset(kind->elem, it->two_d);
        break;
    case CST_OP_COPY:
        it->readable &= kind->param_bytes >= sizeof(struct cus_copy_params);
        it->real = whatif_driver_copy(kind->form);
        break;
    case CST_OP_RECORD:
        it->readable &= kind->param_bytes >= sizeof(struct cus_record_params);
        it->real = whatif_driver_record();
        break;
    case CST_OP_WAIT:
        it->readable &= kind->param_bytes >= sizeof(struct cus_record_params);
        it->real = whatif_driver_wait();
        break;
    default:
        it->function = whatif_driver_function(kind);
        it->layout = whatif_driver_layout(kind);
        it->readable &= it->layout != NULL;
        ready_launch(it);
        break;
    }
    return it;
}

/* Which file the code is from, before its first launch. */
static void tell_origin(struct ready *it) {
    const char *file = cst_string(here.trace, it->kind->file);
    const char *slash = strrchr(file, '/');
    if (*file)
        cus_engine_code_loaded(it->function, slash ? slash + 1 : file, 0);
    it->origin_told = true;
}

/* Did no node stand for it when it was recorded, of which the trace does not have enough to find
 * that out again? */
static bool was_refused(const struct ready *it, const struct cst_op *op) {
    return !it->readable && (strcmp(cst_string(here.trace, op->eager), "unsupported") == 0 ||
                             strcmp(cst_string(here.trace, op->why), "first") == 0);
}

/* The params of a launch that has none in the trace are nought, always. */
static void **params_of(const struct ready *it, const struct cst_op *op, void **pointers) {
    static const uint8_t nothing[(UINT16_MAX + 1) * 8];
    if (!it->layout || !it->layout->n_arguments)
        return NULL;
    const struct cst_argument *arguments = cst_kind_arguments(it->layout);
    for (uint32_t i = 0; i < it->layout->n_arguments; i++)
        pointers[i] =
            (void *)(uintptr_t)(it->readable ? cst_op_params(op) + arguments[i].offset : nothing);
    return pointers;
}

static void play_launch(const struct ready *as_it_is, const struct cst_op *op,
                        struct cus_stream_ref stream) {
    void *pointers[PARAMS_MAX];
    CUlaunchAttribute refused = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY};
    struct ready copy = *as_it_is;
    const struct ready *it = as_it_is;
    if (was_refused(it, op)) {
        copy.form = CUS_LAUNCH_EX;
        copy.attrs = &refused;
        copy.n_attrs = 1;
        copy.real = whatif_driver_launch(true, false);
        it = &copy;
    }
    void **params = params_of(it, op, pointers);
    here.out->opaque += !it->readable;
    const uint32_t *d = op->dims;
    CUlaunchConfig config = {d[0], d[1], d[2],          d[3],      d[4],
                             d[5], d[6], stream.handle, it->attrs, it->n_attrs};
    const struct cus_dims dims = {{d[0], d[1], d[2], d[3], d[4], d[5], d[6]}};
    /* As shim/hook does it: what is expected takes the short way. */
    if (cus_hot_pending()) {
        bool deferred = it->form == CUS_LAUNCH_PLAIN
                            ? cus_traced_launch(it->function, dims, stream.handle, stream.abi,
                                                params, NULL, NULL)
                        : it->form == CUS_LAUNCH_EX
                            ? cus_hot_launch_ex(&config, it->function, stream.abi, params, NULL)
                            : false;
        if (deferred)
            return;
    } else if (it->form != CUS_LAUNCH_COOPERATIVE &&
               cus_hot_passes(stream.handle, stream.abi, CUS_OP_LAUNCH, it->function)) {
        whatif_driver_own();
        return;
    }
    struct cus_launch launch = {.form = it->form,
                                .stream = stream,
                                .f = it->function,
                                .n_attrs = it->n_attrs,
                                .attrs = it->attrs,
                                .params = params,
                                .config = it->form == CUS_LAUNCH_EX ? &config : NULL,
                                .real = it->real};
    memcpy(launch.dims, d, sizeof launch.dims);
    cus_engine_launch(&launch);
}

static uint64_t wide(const struct cst_op *op) {
    return op->dims[0] | (uint64_t)op->dims[1] << 32;
}

/* Of a memset or copy. Nobody's where it was refused. */
static struct cus_copy_params addresses(const struct ready *it, const struct cst_op *op) {
    enum { SOMEWHERE = 0x1000 };
    struct cus_copy_params params = {0, 0};
    if (it->readable)
        memcpy(&params, cst_op_params(op), it->kind->op == CST_OP_COPY ? sizeof params : 8);
    else if (!was_refused(it, op))
        params = (struct cus_copy_params){SOMEWHERE, SOMEWHERE};
    return params;
}

static void play_memset(const struct ready *it, const struct cst_op *op,
                        struct cus_stream_ref stream) {
    struct cus_memset_params params = {.height = 1};
    uint32_t elem = it->kind->elem == 1 || it->kind->elem == 2 ? it->kind->elem : 4;
    params.dst = addresses(it, op).dst;
    params.pitch = it->two_d ? wide(op) * elem : 0; /* what is known of it is its size alone */
    if (it->readable)
        memcpy(&params, cst_op_params(op), sizeof params);
    if (wide(op) && !it->two_d) {
        if (cus_hot_pending()) {
            if (cus_hot_memset(params.dst, params.value, elem, wide(op), stream.handle, stream.abi))
                return;
        } else if (cus_hot_passes(stream.handle, stream.abi, CUS_OP_MEMSET, NULL)) {
            whatif_driver_own();
            return;
        }
    }
    const struct cus_memset memset = {.stream = stream,
                                      .dst = params.dst,
                                      .pitch = params.pitch,
                                      .value = params.value,
                                      .elem = elem,
                                      .width = wide(op),
                                      .height = it->two_d ? params.height : 1,
                                      .two_d = it->two_d,
                                      .real = it->real};
    cus_engine_memset(&memset);
}

static void play_copy(const struct ready *it, const struct cst_op *op,
                      struct cus_stream_ref stream) {
    struct cus_copy_params params = addresses(it, op);
    enum cus_copy_form form =
        it->kind->form < 4 ? (enum cus_copy_form)it->kind->form : CUS_COPY_ANY;
    if (wide(op) && cus_hot_pending() &&
        cus_hot_copy(form, params.dst, params.src, wide(op), stream.handle, stream.abi))
        return;
    const struct cus_copy copy = {.form = form,
                                  .stream = stream,
                                  .dst = params.dst,
                                  .src = params.src,
                                  .bytes = wide(op),
                                  .real = it->real};
    cus_engine_copy(&copy);
}

/* The event of a record or wait. One of which the trace does not tell is always the same of its
 * context. */
static struct cus_record_params event_of(const struct ready *it, const struct cst_op *op) {
    struct cus_record_params params = {.event = here.trace->streams[op->stream]->context + 1u};
    if (it->readable)
        memcpy(&params, cst_op_params(op), sizeof params);
    return params;
}

/* Nobody recorded when the program made the event: at the latest it is there now. */
static void know_event(struct cus_record_params params, uint32_t context) {
    struct event *event;
    HASH_FIND(hh, here.events, &params.event, sizeof params.event, event);
    bool same =
        event && (!params.generation || !event->number || event->number == params.generation);
    if (event && params.generation)
        event->number = params.generation;
    if (same)
        return;
    if (!event) {
        event = whatif_need(calloc(1, sizeof *event));
        event->handle = params.event;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (_Exit(WHATIF_NO_MEMORY))
        HASH_ADD(hh, here.events, handle, sizeof event->handle, event);
    }
    event->number = params.generation;
    const struct whatif_now its = {.context = context};
    whatif_driver_now(&its);
    cus_engine_event_made((CUevent)(uintptr_t)params.event);
}

/* As shim/hook does it. What was refused is of an event of another context. */
static void play_record(const struct ready *it, const struct cst_op *op,
                        struct cus_stream_ref stream) {
    unsigned row = op->abi ? CUS_ROW_cuEventRecord_ptsz : CUS_ROW_cuEventRecord;
    struct cus_record record = {.stream = stream, .real = it->real};
    bool refused = was_refused(it, op);
    if (!refused)
        record.event = (CUevent)(uintptr_t)event_of(it, op).event;
    if (refused || cus_engine_record_begins(&record, 0, row)) {
        cus_engine_record(&record);
        return;
    }
    cus_engine_flush_event(&stream, record.event, row);
    if (whatif_driver_own() == CUDA_SUCCESS)
        cus_engine_recorded(&record);
}

static void play_wait(const struct ready *it, const struct cst_op *op,
                      struct cus_stream_ref stream) {
    const struct cus_wait wait = {
        .stream = stream,
        .event = (CUevent)(uintptr_t)event_of(it, op).event,
        .real = it->real,
        .row = op->abi ? CUS_ROW_cuStreamWaitEvent_ptsz : CUS_ROW_cuStreamWaitEvent,
    };
    CUresult result;
    if (cus_engine_wait(&wait, &result))
        return;
    cus_engine_flush_event(&stream, wait.event, wait.row);
    cus_engine_event_seen(wait.event, wait.row);
    if (whatif_driver_own() == CUDA_SUCCESS)
        cus_engine_waited(&wait);
}

/* A record or wait that the program's own call made when this was recorded. Now it may be an op. */
static void play_event_call(const struct cst_call *call, struct cus_stream_ref stream, unsigned row,
                            bool waits) {
    CUevent event = (CUevent)(uintptr_t)call->value;
    struct cus_record record = {.stream = stream, .event = event, .real = whatif_driver_record()};
    const struct cus_wait wait = {
        .stream = stream, .event = event, .real = whatif_driver_wait(), .row = row};
    CUresult result;
    know_event((struct cus_record_params){.event = call->value},
               here.trace->streams[call->stream]->context);
    whatif_clock_call_op(call->stream, waits ? CST_OP_WAIT : CST_OP_RECORD);
    if (waits && cus_engine_wait(&wait, &result))
        return;
    if (!waits && cus_engine_record_begins(&record, 0, row)) {
        cus_engine_record(&record);
        return;
    }
    whatif_clock_call_drop();
    cus_engine_flush_event(&stream, event, row);
    if (waits) {
        cus_engine_event_seen(event, row);
        cus_engine_waited(&wait);
    } else {
        cus_engine_recorded(&record);
    }
}

/* Nothing is deferred of an op on a stream that was another one's then: of another context than the
 * current one, or first met while it captured. */
static void leave_alone(const struct cst_stream *stream, struct whatif_now *now) {
    if (stream->kind == CST_STREAM_PER_THREAD)
        return;
    if (here.n_captures)
        now->captures = stream;
    else
        now->context = whatif_driver_elsewhere();
}

/* The host waits for a copy to memory that the driver knows nothing of. */
static bool waits_for_copy(const struct ready *it, const struct cst_op *op) {
    enum { ANY = 0, DTOH = 3 };
    struct cst_range range = {.result = 0};
    if (it->kind->op != CST_OP_COPY || (it->kind->form != DTOH && it->kind->form != ANY))
        return false;
    if (!it->readable)
        return was_refused(it, op);
    return whatif_range_find(here.trace->streams[op->stream]->context, addresses(it, op).dst,
                             op->head.ns + op->host_ns, &range) &&
           range.result;
}

void whatif_events_op(uint32_t *context, const struct cst_op *op) {
    struct ready *it = ready_kind(op->kind);
    const struct cst_stream *stream = here.trace->streams[op->stream];
    const char *why = cst_string(here.trace, op->why);
    /* What was deferred may have got the error of another op. */
    struct whatif_now now = {
        .context = stream->context,
        .kind = it->kind,
        .until = op->head.ns + op->host_ns,
        .result = op->head.flags == CST_EAGER ? (CUresult)op->result : CUDA_SUCCESS,
    };
    if (it->kind->op == CST_OP_MEMSET || it->kind->op == CST_OP_COPY) {
        now.dst = addresses(it, op).dst;
        now.src = addresses(it, op).src;
    }
    *context = stream->context;
    whatif_driver_use(stream);
    bool event = it->kind->op == CST_OP_RECORD || it->kind->op == CST_OP_WAIT;
    if (event && !was_refused(it, op))
        know_event(event_of(it, op), stream->context);
    if (strcmp(why, "stream") == 0)
        leave_alone(stream, &now);
    else if (strcmp(why, "capture") == 0)
        now.captures = stream; /* by a call that the library does not know, it may be */
    whatif_driver_now(&now);
    whatif_clock_op(whatif_driver_is_capturing(stream), waits_for_copy(it, op));
    here.out->guessed += stream->kind == CST_STREAM_UNKNOWN;
    if (it->kind->op == CST_OP_LAUNCH && here.asks_library && !it->origin_told)
        tell_origin(it);
    struct cus_stream_ref ref = ref_of(stream, op->abi);
    switch (it->kind->op) {
    case CST_OP_MEMSET:
        play_memset(it, op, ref);
        break;
    case CST_OP_COPY:
        play_copy(it, op, ref);
        break;
    case CST_OP_RECORD:
        play_record(it, op, ref);
        break;
    case CST_OP_WAIT:
        play_wait(it, op, ref);
        break;
    default:
        play_launch(it, op, ref);
        break;
    }
}

/* ---- everything else ---- */

/* The row of an API or the number of a cause, by its name. */
static unsigned cause_of(const char *name) {
    static const char *const keys[] = {
#define CUS_CAUSE(id, key) key,
#include "shim/stats/reasons.def"
    };
    int row = cus_api_find(name);
    for (unsigned i = 0; row < 0 && i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], name) == 0)
            row = (int)(CUS_API_ROWS_MAX + i);
    return row < 0 ? CUS_CAUSE_UNKNOWN_API : (unsigned)row;
}

static void code_gone(void) {
    cus_engine_code_gone();
    for (uint32_t id = 0; id < here.trace->n_kinds; id++)
        here.kinds[id].origin_told = false;
}

static void event_gone(uint64_t handle, const char *name) {
    struct event *event;
    cus_engine_event_goes((CUevent)(uintptr_t)handle, cause_of(name));
    HASH_FIND(hh, here.events, &handle, sizeof handle, event);
    if (!event)
        return;
    HASH_DEL(here.events, event);
    free(event);
}

/* A flush; false: it is a record or a wait that may be an op. */
static bool is_flush(const struct cst_call *call, const char *name, bool *waits) {
    *waits = strncmp(name, "cuStreamWaitEvent", 17) == 0;
    return !call->value || call->stream == CST_NONE ||
           (!*waits && strncmp(name, "cuEventRecord", 13) != 0);
}

static void play_flush(const struct cst_call *call, const struct cus_stream_ref *ref,
                       const char *name) {
    bool waits;
    if (call->scope > CST_SCOPE_P)
        return;
    if (is_flush(call, name, &waits)) {
        cus_engine_flush((enum cus_scope)call->scope, ref, cause_of(name));
        return;
    }
    play_event_call(call, *ref, cause_of(name), waits);
}

static void captures(const struct cst_stream *stream, bool on) {
    here.n_captures = whatif_driver_captures(stream, on);
}

void whatif_events_call(uint32_t *context, const struct cst_call *call) {
    const struct cst_stream *stream =
        call->stream == CST_NONE ? NULL : here.trace->streams[call->stream];
    bool waits = call->what == CST_CALL_STEP_END || call->what == CST_CALL_WAITED;
    if (stream) {
        *context = stream->context;
        whatif_driver_use(stream);
    }
    const struct whatif_now now = {.context = *context, .until = call->head.ns + call->host_ns};
    whatif_driver_now(&now);
    const char *name = cst_string(here.trace, call->name);
    const void *handle = (const void *)(uintptr_t)call->value;
    struct cus_stream_ref named, *ref = NULL;
    if (stream && !(waits && call->value)) { /* a wait that named none, and what it was for */
        named = ref_of(stream, call->abi);
        ref = &named;
    }
    switch ((enum cst_what)call->what) {
    case CST_CALL_FLUSH:
        play_flush(call, ref, name);
        break;
    case CST_CALL_STEP_END:
        cus_engine_step_end(ref);
        here.waits = call;
        break;
    case CST_CALL_WAITED:
        if (here.waits && here.waits->head.thread == call->head.thread && !strstr(name, "Query"))
            cus_engine_wait_took(ref, call->head.ns - here.waits->head.ns);
        here.waits = NULL;
        cus_engine_take_error(ref, cause_of(name));
        break;
    case CST_CALL_BREAK:
        cus_engine_force_break(*name ? cause_of(name) : CUS_CAUSE_APP);
        break;
    case CST_CALL_SUSPEND:
        cus_engine_suspend(call->value != 0);
        break;
    case CST_CALL_COPYING:
        cus_engine_copying(call->value != 0);
        break;
    case CST_CALL_STREAM_GONE:
        if (ref) {
            captures(stream, false);
            cus_engine_stream_gone(ref);
        }
        break;
    case CST_CALL_CONTEXT_GONE:
        cus_engine_context_gone();
        break;
    case CST_CALL_CODE_GONE:
        code_gone();
        break;
    case CST_CALL_MEMORY_GONE:
        cus_engine_memory_gone();
        break;
    case CST_CALL_GIVE_BACK:
        cus_engine_give_memory_back(0);
        break;
    case CST_CALL_FUNCTION_CHANGED:
        cus_engine_function_changed(handle);
        break;
    case CST_CALL_STREAM_CHANGED:
        if (ref)
            cus_engine_stream_changed(ref);
        else
            cus_engine_limits_changed();
        break;
    case CST_CALL_TAINT:
        cus_engine_taint(handle);
        break;
    case CST_CALL_CAPTURE_BEGAN:
        if (ref) {
            captures(stream, true);
            cus_engine_capture_began(ref);
        }
        break;
    case CST_CALL_CAPTURE_ENDED:
        if (ref) {
            captures(stream, false);
            cus_engine_capture_ended(ref);
        }
        break;
    case CST_CALL_UNKNOWN:
        cus_engine_unknown_call();
        break;
    case CST_CALL_PROFILING:
        if (cus_options()->profile != CUS_PROFILE_IGNORE)
            cus_engine_profiling(call->value != 0);
        break;
    case CST_CALL_OFF:
        cus_engine_defer_off("it was switched off when this was recorded");
        break;
    case CST_CALL_EVENT_SEEN:
        cus_engine_event_seen((CUevent)(uintptr_t)call->value, cause_of(name));
        break;
    case CST_CALL_EVENT_GONE:
        event_gone(call->value, name);
        break;
    case CST_CALLS:
        break;
    case CST_CALL_DRAIN:
        cus_engine_drain();
        here.drained = true;
        break;
    }
}

void whatif_events_start(const struct cst_trace *trace, struct whatif_played *out) {
    here.trace = trace;
    here.out = out;
    here.waits = NULL;
    here.kinds = whatif_need(calloc(trace->n_kinds + 1, sizeof *here.kinds));
    here.asks_library = cus_engine_asks_library();
}

bool whatif_events_drained(void) {
    return here.drained;
}
