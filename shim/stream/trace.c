/*
 * Turns what the engine knows into trace records. Runs on program threads inside hooks, with
 * whatever locks the engine holds there. trace_lock is innermost, and no record or definition is
 * written while it is held.
 */
#include "shim/stream/trace.h"

#include <string.h>

#include "shim/api/api.h"
#include "shim/base/mem.h"
#include "shim/base/uthash.h"
#include "shim/stream/origins.h"
#include "shim/stream/streams.h"

/* A stream or a kind that has no object which could keep its number. */
struct key {
    const void *context; /* NULL if the handle alone is unique */
    const void *handle;
    uint32_t of; /* streams: the thread, for per-thread ones; kinds: type, form, size */
    uint32_t stream;
    uint64_t attributes; /* kinds: a bit for the id of each */
};

struct entry {
    struct key key;
    uint32_t number;
    bool known; /* of a stream: it had an engine when its definition was written */
    UT_hash_handle hh;
};

static struct cus_lock trace_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct entry *entries; /* trace_lock */

/* The last stream of this thread. */
static __thread struct {
    struct cus_stream_ref ref;
    CUcontext context;
    uint32_t epoch, number;
    bool known;
} at __attribute__((tls_model("initial-exec")));

static CUcontext current_context(void) {
    CUcontext context = NULL;
    return cus_process.driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* The number of a stream or kind; 0: no memory. `*made`: the definition must be written, because it
 * is new or more is known now. */
static uint32_t number_of(const struct key *key, bool known, bool *made) {
    struct entry *entry;
    bool added = true;
    *made = false;
    cus_lock_take(&trace_lock);
    HASH_FIND(hh, entries, key, sizeof *key, entry);
    if (!entry && (entry = cus_mem_alloc(sizeof *entry))) {
        entry->key = *key;
        entry->number = cus_record_number(!key->stream);
        *made = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
        HASH_ADD(hh, entries, key, sizeof entry->key, entry);
    }
    uint32_t number = entry ? entry->number : 0;
    if (entry && known && !entry->known)
        *made = entry->known = true;
    if (!added)
        cus_mem_free(entry);
    cus_lock_give(&trace_lock);
    return number;
}

/* Forgets one stream, or all kinds by handle, or everything. */
enum gone { GONE_STREAM, GONE_CODE, GONE_CONTEXT };
static void forget(enum gone what, const void *handle) {
    struct entry *entry, *next;
    cus_lock_take(&trace_lock);
    HASH_ITER(hh, entries, entry, next) {
        bool goes = entry->key.stream ? what == GONE_CONTEXT ||
                                            (what == GONE_STREAM && entry->key.handle == handle)
                                      : what != GONE_STREAM;
        if (!goes)
            continue;
        HASH_DEL(entries, entry);
        cus_mem_free(entry);
    }
    __atomic_add_fetch(&cus_record_epoch, 1, __ATOMIC_ACQ_REL);
    cus_lock_give(&trace_lock);
}

void cus_trace_drop(void) {
    forget(GONE_CONTEXT, NULL);
}

/* ---- streams ---- */

static uint32_t context_number(CUcontext context) {
    struct cus_context *known = context ? cus_streams_context(context) : NULL;
    return known ? known->number : 0;
}

static void define_stream(uint32_t number, struct cus_stream_ref ref, CUcontext context,
                          const struct cus_engine *engine) {
    struct cst_stream stream = {.head = {.type = CST_STREAM, .words = sizeof stream / 8},
                                .id = number,
                                .context = context_number(context),
                                .handle = (uint64_t)(uintptr_t)ref.handle,
                                .kind = CST_STREAM_UNKNOWN};
    CUdevice device = 0;
    if (context && cus_process.driver->cuCtxGetDevice(&device) == CUDA_SUCCESS)
        stream.device = (uint32_t)device;
    if (cus_ref_is_per_thread(ref))
        stream.kind = CST_STREAM_PER_THREAD;
    else if (cus_ref_is_legacy(ref))
        stream.kind = CST_STREAM_LEGACY;
    else if (engine)
        stream.kind = CST_STREAM_CREATED;
    if (engine && !engine->blocking)
        stream.flags = CU_STREAM_NON_BLOCKING;
    cus_record_define(&stream.head);
    if (cus_record_on_stream && stream.kind != CST_STREAM_UNKNOWN)
        cus_record_on_stream(number, context, ref.handle, stream.kind == CST_STREAM_PER_THREAD);
}

static uint32_t stream_number(struct cus_stream_ref ref, CUcontext context) {
    uint32_t now = __atomic_load_n(&cus_record_epoch, __ATOMIC_ACQUIRE);
    struct cus_thread *thread = &cus_thread_self;
    struct cus_engine *engine =
        cus_streams_found(thread, ref, context) ? thread->cached_engine : NULL;
    if (at.epoch == now && at.context == context && at.ref.handle == ref.handle &&
        at.ref.abi == ref.abi && (at.known || !engine))
        return at.number;
    bool own = cus_ref_is_per_thread(ref), legacy = cus_ref_is_legacy(ref);
    struct key key;
    memset(&key, 0, sizeof key);
    key.stream = 1;
    key.context = own || legacy ? context : NULL;
    key.handle = own ? CU_STREAM_PER_THREAD : legacy ? CU_STREAM_LEGACY : ref.handle;
    key.of = own ? cus_record_thread() : 0;
    bool made;
    uint32_t number = number_of(&key, engine != NULL, &made);
    if (made)
        define_stream(number, ref, context, engine);
    at.ref = ref;
    at.context = context;
    at.epoch = now;
    at.number = number;
    at.known = engine != NULL;
    return number;
}

/* The number of an engine's stream. The engine lock need not be held. */
static uint32_t engine_number(const struct cus_engine *engine) {
    struct cus_stream_ref ref = {engine->handle, CUS_ABI_LEGACY};
    struct cus_context *context = engine->context;
    struct key key;
    memset(&key, 0, sizeof key);
    key.stream = 1;
    key.context = engine->legacy ? context->handle : NULL;
    key.handle = engine->handle;
    bool made;
    uint32_t number = number_of(&key, true, &made);
    if (made)
        define_stream(number, ref, context->handle, engine);
    return number;
}

/* The same. Engine lock held. */
static uint32_t locked_number(struct cus_engine *engine) {
    uint32_t now = __atomic_load_n(&cus_record_epoch, __ATOMIC_ACQUIRE);
    if (engine->traced_epoch == now)
        return engine->traced;
    engine->traced = engine_number(engine);
    engine->traced_epoch = now;
    return engine->traced;
}

/* The same of the stream of a branch. Home's lock held. */
static uint32_t branch_number(struct cus_engine *home, unsigned b) {
    struct cus_branch *branch = &home->branches[b];
    uint32_t now = __atomic_load_n(&cus_record_epoch, __ATOMIC_ACQUIRE);
    if (!b || !branch->engine)
        return locked_number(home);
    if (branch->traced_epoch != now) {
        branch->traced = engine_number(branch->engine);
        branch->traced_epoch = now;
    }
    return branch->traced;
}

/* ---- kinds ---- */

/* No kernel has more arguments. */
enum { ARGUMENTS = 4096 };

static void define_kind(uint32_t number, struct cus_context *context, const struct cus_kind *kind) {
    const struct cus_layout *layout = kind->layout;
    uint32_t n_arguments = layout ? layout->n : 0;
    size_t bytes = sizeof(struct cst_kind) + n_arguments * sizeof(struct cst_argument) +
                   kind->n_attrs * sizeof(struct cst_attribute);
    struct cst_kind *record = n_arguments <= ARGUMENTS ? cus_mem_alloc(bytes) : NULL;
    if (!record) {
        cus_record_give_up("no memory");
        return;
    }
    char name[CUS_TRACE_NAME], file[CUS_FILE_NAME];
    record->head.type = CST_KIND;
    record->head.words = (uint16_t)(bytes / 8);
    record->id = number;
    record->op = kind->type;
    record->flags = (kind->cooperative ? CST_KIND_COOPERATIVE : 0u) |
                    (kind->deferrable ? 0u : CST_KIND_NO_NODE);
    record->elem = kind->elem;
    record->form = kind->copy_form;
    record->param_bytes = kind->param_bytes;
    memcpy(record->cluster, kind->cluster, sizeof record->cluster);
    record->n_arguments = n_arguments;
    record->n_attributes = kind->n_attrs;
    record->handle = (uint64_t)(uintptr_t)kind->handle;
    if (kind->type == CUS_OP_LAUNCH) {
        record->name = cus_record_string(cus_kinds_name(context, kind->handle, name));
        if (cus_engine_asks_library())
            record->file = cus_record_string(cus_origins_file(kind->handle, file));
    } else {
        record->name = cus_record_string(
            cus_kinds_call((enum cus_op_type)kind->type, kind->elem, kind->copy_form));
    }
    struct cst_argument *argument = (struct cst_argument *)(void *)(record + 1);
    for (uint32_t i = 0; i < n_arguments; i++, argument++)
        *argument = (struct cst_argument){layout->arguments[i].offset, layout->arguments[i].size};
    struct cst_attribute *attribute = (struct cst_attribute *)(void *)argument;
    for (uint32_t i = 0; i < kind->n_attrs; i++, attribute++) {
        attribute->id = kind->attrs[i].id;
        attribute->bytes = kind->attrs[i].bytes;
        memcpy(attribute->value, kind->attrs[i].value, sizeof attribute->value);
    }
    cus_record_define(&record->head);
    cus_mem_free(record);
}

static uint32_t kind_number(struct cus_context *context, struct cus_kind *kind) {
    uint32_t number = __atomic_load_n(&kind->traced, __ATOMIC_ACQUIRE);
    if (number)
        return number;
    number = cus_record_number(1);
    uint32_t none = 0;
    /* The definition comes first: another thread's record may reach the file before this thread's.
     * If two threads do this at once, one definition is unused. */
    define_kind(number, context, kind);
    return __atomic_compare_exchange_n(&kind->traced, &none, number, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE)
               ? number
               : none;
}

/* A bit for the id of each attribute of a launch, but for those that ask for what holds without
 * them. Ids from 64 on are left out. */
static uint64_t attributes_of(const struct cus_launch *launch) {
    uint64_t ids =
        launch->form == CUS_LAUNCH_COOPERATIVE ? 1ull << CU_LAUNCH_ATTRIBUTE_COOPERATIVE : 0;
    for (uint32_t i = 0; launch->attrs && i < launch->n_attrs; i++) {
        const CUlaunchAttribute *attr = &launch->attrs[i];
        bool off = attr->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE ? !attr->value.cooperative
                   : attr->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
                       ? !attr->value.programmaticStreamSerializationAllowed
                       : attr->id == CU_LAUNCH_ATTRIBUTE_IGNORE;
        if (!off && (unsigned)attr->id < 64)
            ids |= 1ull << attr->id;
    }
    return ids;
}

/* The kind of an op without a kind: what can be said without its params. */
static uint32_t opaque_number(const struct cus_call *call, CUcontext current) {
    struct cus_context *context = current ? cus_streams_context(current) : NULL;
    uint8_t elem = call->type == CUS_OP_MEMSET ? (uint8_t)call->memset->elem : 0;
    uint8_t form = call->type == CUS_OP_COPY                            ? (uint8_t)call->copy->form
                   : call->type == CUS_OP_MEMSET && call->memset->two_d ? CUS_MEMSET_2D
                                                                        : 0;
    bool launch = call->type == CUS_OP_LAUNCH;
    bool named = launch && context && cus_kinds_know(context, call->launch->f);
    struct key key;
    memset(&key, 0, sizeof key);
    key.context = current;
    key.handle = launch ? call->launch->f : NULL;
    key.of = (uint32_t)call->type << 16 | (uint32_t)elem << 8 | form;
    key.attributes = launch ? attributes_of(call->launch) : 0;
    bool made;
    uint32_t number = number_of(&key, named, &made);
    if (!made)
        return number;
    char name[CUS_TRACE_NAME];
    struct {
        struct cst_kind kind;
        struct cst_attribute attributes[64];
    } record = {.kind = {
                    .id = number,
                    .op = call->type,
                    .flags = CST_KIND_OPAQUE,
                    .elem = elem,
                    .form = form,
                    .cluster = {1, 1, 1},
                    .handle = (uint64_t)(uintptr_t)key.handle,
                }};
    struct cst_kind *kind = &record.kind;
    kind->name = cus_record_string(named    ? cus_kinds_name(context, call->launch->f, name)
                                   : launch ? NULL
                                            : cus_kinds_call(call->type, elem, form));
    if (key.attributes >> CU_LAUNCH_ATTRIBUTE_COOPERATIVE & 1)
        kind->flags |= CST_KIND_COOPERATIVE;
    for (uint32_t id = 0; id < 64; id++)
        if (key.attributes >> id & 1)
            record.attributes[kind->n_attributes++].id = id;
    size_t bytes = sizeof *kind + kind->n_attributes * sizeof record.attributes[0];
    kind->head = (struct cst_record){.type = CST_KIND, .words = (uint16_t)(bytes / 8)};
    cus_record_define(&kind->head);
    return number;
}

/* ---- ops ---- */

void cus_trace_op_begin(struct cus_call *call) {
    call->traced = cus_thread_self.in_traced_call;
    if (call->traced)
        return;
    cus_thread_self.in_traced_call = true;
    call->eager = CUS_EAGER_PASSTHROUGH; /* unless a later place knows better */
    call->began = cus_ticks_now();
}

static void put_params(const struct cus_op *op, uint8_t *to) {
    const struct cus_kind *kind = op->kind;
    if (!op->params) {
        memcpy(to, op->flat, kind->param_bytes);
        return;
    }
    for (uint32_t i = 0; i < kind->layout->n; i++)
        memcpy(to + kind->layout->arguments[i].offset, op->params[i],
               kind->layout->arguments[i].size);
}

void cus_trace_op_is(struct cus_call *call, struct cus_engine *engine, struct cus_kind *kind,
                     const struct cus_op *op) {
    if (call->traced)
        return;
    call->traced = true;
    struct cus_context *context = engine->context;
    uint32_t number = kind_number(context, kind);
    uint32_t stream = branch_number(engine, kind->branch);
    call->record = cus_record_event(CST_OP, sizeof *call->record + kind->param_bytes, call->began);
    if (!call->record)
        return;
    call->record->kind = number;
    call->record->stream = stream;
    memcpy(call->record->dims, op->dims, sizeof op->dims);
    put_params(op, (uint8_t *)(call->record + 1));
}

static void opaque(struct cus_call *call) {
    CUcontext current = current_context();
    uint32_t kind = opaque_number(call, current);
    uint32_t stream = stream_number(call->stream, current);
    struct cst_op *record = cus_record_event(CST_OP, sizeof *record, call->began);
    call->record = record;
    if (!record)
        return;
    record->kind = kind;
    record->stream = stream;
    if (call->type == CUS_OP_LAUNCH) {
        memcpy(record->dims, call->launch->dims, sizeof record->dims);
        return;
    }
    uint64_t size = call->type == CUS_OP_MEMSET
                        ? (uint64_t)call->memset->width * call->memset->height
                    : call->type == CUS_OP_COPY ? call->copy->bytes
                                                : 0;
    record->dims[0] = (uint32_t)size;
    record->dims[1] = (uint32_t)(size >> 32);
}

static void tell_op(const struct cus_call *call, CUresult result) {
    if (__builtin_expect(cus_record_on_op != NULL, 0))
        cus_record_on_op(call, (int)result);
}

void cus_trace_op_drop(struct cus_call *call) {
    if (call->began)
        cus_thread_self.in_traced_call = false;
}

void cus_trace_op_end(struct cus_call *call, CUresult result) {
    if (!call->began)
        return;
    cus_thread_self.in_traced_call = false;
    uint32_t took = cus_ticks_since(call->began);
    if (!call->traced)
        opaque(call);
    struct cst_op *record = call->record;
    if (!record) {
        tell_op(call, result);
        return;
    }
    record->head.flags |= call->deferred ? CST_DEFERRED : CST_EAGER;
    record->host_ns = took;
    record->result = (int32_t)result;
    record->abi = call->stream.abi == CUS_ABI_PTSZ;
    if (!call->deferred) {
        record->eager = cus_record_literal(cus_eager_keys[call->eager]);
        record->why = cus_record_literal(cus_why_key(call->why));
    }
    cus_record_commit();
    tell_op(call, result);
}

/* ---- calls ---- */

_Static_assert((int)CST_SCOPE_S == CUS_SCOPE_S && (int)CST_SCOPE_T == CUS_SCOPE_T &&
                   (int)CST_SCOPE_C == CUS_SCOPE_C && (int)CST_SCOPE_CT == CUS_SCOPE_CT &&
                   (int)CST_SCOPE_P == CUS_SCOPE_P,
               "a file has the numbers of format.h");

const char *cus_trace_cause(unsigned cause) {
    return cause >= CUS_API_ROWS_MAX ? cus_cause_key(cause - CUS_API_ROWS_MAX)
                                     : cus_api_name(cause);
}

void cus_trace_call(const struct cus_traced_call *call) {
    struct cus_thread *thread = &cus_thread_self;
    uint32_t stream = CST_NONE, name = cus_record_literal(call->name);
    uint64_t value = call->value;
    bool waits = call->what == CST_CALL_STEP_END || call->what == CST_CALL_WAITED;
    if (call->stream) {
        stream = stream_number(*call->stream, current_context());
    } else if (waits && thread->last && !__atomic_load_n(&thread->last->closed, __ATOMIC_ACQUIRE)) {
        stream = engine_number(thread->last);
        value = 1;
    }
    struct cst_call *record = cus_record_event(CST_CALL, sizeof *record, call->began);
    if (record) {
        record->name = name;
        record->stream = stream;
        record->what = (uint8_t)call->what;
        record->scope = (uint8_t)call->scope;
        record->abi = call->stream && call->stream->abi == CUS_ABI_PTSZ;
        record->host_ns = cus_ticks_since(call->began);
        record->value = value;
        cus_record_commit();
    }
    if (call->what == CST_CALL_STREAM_GONE)
        forget(GONE_STREAM, call->stream->handle);
    if (call->what == CST_CALL_CODE_GONE)
        forget(GONE_CODE, NULL);
    if (call->what == CST_CALL_CONTEXT_GONE)
        forget(GONE_CONTEXT, NULL);
    thread->in_traced_call = false;
    if (cus_record_on_spent)
        cus_record_on_spent(cus_clock_ns() - call->began);
}

/* ---- what became of the ops ---- */

/* Of the oldest `n` deferred ops, those of side streams. */
static void put_branches(struct cus_engine *home, uint32_t n, uint64_t moment) {
    const struct cus_segment *segment = home->view.segment;
    uint32_t ops[CUS_BRANCHES + 1] = {0};
    for (uint32_t i = 0; segment->branches && i < n; i++)
        ops[segment->places[i].kind->branch]++;
    for (unsigned b = 1; b <= CUS_BRANCHES; b++) {
        uint32_t stream = ops[b] && home->branches[b].engine ? branch_number(home, b) : 0;
        struct cst_branch *record =
            stream ? cus_record_event(CST_BRANCH, sizeof *record, moment) : NULL;
        if (!record)
            continue;
        record->stream = stream;
        record->n = ops[b];
        cus_record_commit();
    }
}

void cus_trace_flush(struct cus_engine *engine, uint32_t n, const char *cause,
                     enum cus_break reason) {
    if (!cus_recording() || !n)
        return;
    uint32_t stream = locked_number(engine), text = cus_record_literal(cause);
    uint32_t why = cus_record_literal(cus_break_keys[reason]);
    uint64_t now = cus_ticks_now();
    put_branches(engine, n, now);
    struct cst_flush *record = cus_record_event(CST_FLUSH, sizeof *record, now);
    if (!record)
        return;
    record->stream = stream;
    record->n = n;
    record->cause = text;
    record->reason = why;
    cus_record_commit();
}

void cus_trace_launch(struct cus_engine *engine, const struct cus_trace_of_launch *launch) {
    uint32_t stream = locked_number(engine);
    put_branches(engine, launch->n, launch->began);
    struct cst_launch *record = cus_record_event(CST_LAUNCH, sizeof *record, launch->began);
    if (!record)
        return;
    record->head.flags |= (uint8_t)launch->choice;
    record->stream = stream;
    record->n = launch->n;
    record->segment = launch->segment;
    record->variant = launch->variant;
    record->patched = launch->patched;
    record->host_ns = launch->took;
    record->build_ns = (uint32_t)launch->build_ns;
    record->bytes = (uint32_t)launch->bytes;
    cus_record_commit();
}

void cus_trace_segment(struct cus_engine *engine, const struct cus_segment *segment) {
    uint32_t stream = locked_number(engine);
    struct cst_segment *record = cus_record_event(CST_SEGMENT, sizeof *record, cus_ticks_now());
    if (!record)
        return;
    record->id = segment->id;
    record->stream = stream;
    record->n = segment->n;
    cus_record_commit();
}

void cus_trace_range(const struct cst_range *range, CUcontext current) {
    struct cst_range record = *range;
    record.head = (struct cst_record){.type = CST_RANGE, .words = sizeof record / 8};
    record.context = context_number(current);
    cus_record_define(&record.head);
}
