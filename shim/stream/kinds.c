/*
 * Functions and kinds: the tables of a context, and the kinds that the plan compares by pointer.
 * Program threads look up under the engine lock and then the context lock. A function is learned
 * (func.c) after an eager launch of it succeeded, with no lock held during the driver's queries.
 * Objects live until their module may have gone (cus_kinds_detach).
 */
#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/mem.h"
#include "shim/cache/cache.h"
#include "shim/stream/ranges.h"
#include "shim/stream/state.h"

static uint32_t next_kind_id = 1; /* atomic */

/* ---- attributes ---- */

#if CUDA_VERSION >= 13000
#define SAME(name)                                                                                 \
    _Static_assert((int)CUS_ATTRIBUTE_##name == (int)CU_LAUNCH_ATTRIBUTE_##name, #name)
SAME(PREFERRED_CLUSTER_DIMENSION);
SAME(PREFERRED_SHARED_MEMORY_CARVEOUT);
SAME(NVLINK_UTIL_CENTRIC_SCHEDULING);
#undef SAME
#endif

/* Size of an attribute's value by its id, in bytes; 0: such a launch is never deferred. An event,
 * an output, a pointer or a priority belongs to the moment of the call. Ids not listed here are
 * unknown (HAZARDS A6, A25). */
static uint32_t attribute_bytes(CUlaunchAttributeID id) {
    switch ((int)id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CUS_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CUS_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return 4;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return 2;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CUS_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        return 12;
    default:
        return 0;
    }
}

/* Reads the attributes, except entries that mean "ignored". Bytes of the value's union behind the
 * value are garbage and not read. The driver refuses a launch whose attributes are NULL. */
static bool read_attributes(const struct cus_launch *launch, struct cus_kind_key *key) {
    if (launch->n_attrs && !launch->attrs)
        return false;
    for (uint32_t i = 0; i < launch->n_attrs; i++) {
        const CUlaunchAttribute *attr = &launch->attrs[i];
        if (attr->id == CU_LAUNCH_ATTRIBUTE_IGNORE)
            continue;
        uint32_t bytes = attribute_bytes(attr->id);
        if ((CUS_HAZARD(A25) && !bytes) || key->n_attrs == CUS_KIND_ATTRS)
            return false;
        struct cus_attr *to = &key->attrs[key->n_attrs++];
        to->id = attr->id;
        to->bytes = bytes;
        memcpy(to->value, &attr->value, bytes);
        if (attr->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            key->cooperative = attr->value.cooperative != 0;
    }
    return true;
}

/* Compares without a library call, as most values are 4 or 12 bytes. */
static bool same_value(const void *a, const void *b, uint32_t bytes) {
    const uint8_t *x = a, *y = b, *end = x + bytes;
    for (; end - x >= 4; x += 4, y += 4)
        if (memcmp(x, y, 4) != 0)
            return false;
    for (; x < end; x++, y++)
        if (*x != *y)
            return false;
    return true;
}

bool cus_kinds_has_attrs(const struct cus_kind *kind, const CUlaunchAttribute *attrs,
                         uint32_t n_attrs) {
    uint32_t n = 0;
    if (n_attrs && !attrs)
        return false;
    for (uint32_t i = 0; i < n_attrs; i++) {
        const CUlaunchAttribute *attr = &attrs[i];
        if (attr->id == CU_LAUNCH_ATTRIBUTE_IGNORE)
            continue;
        if (n == kind->n_attrs || kind->attrs[n].id != attr->id ||
            !same_value(kind->attrs[n].value, &attr->value, kind->attrs[n].bytes))
            return false;
        n++;
    }
    return n == kind->n_attrs && (n > 0 || !kind->cooperative);
}

bool cus_kinds_is_launch(const struct cus_kind *kind, const struct cus_launch *launch) {
    if (kind->handle != launch->f || kind->type != CUS_OP_LAUNCH)
        return false;
    if (launch->form != CUS_LAUNCH_EX)
        return kind->n_attrs == 0 && kind->cooperative == (launch->form == CUS_LAUNCH_COOPERATIVE);
    return cus_kinds_has_attrs(kind, launch->attrs, launch->n_attrs);
}

/* ---- kinds ---- */

static bool is_2d(const struct cus_kind_key *key) {
    return key->type == CUS_OP_MEMSET && key->copy_form == CUS_MEMSET_2D;
}

static uint32_t key_bytes(const struct cus_kind_key *key) {
    size_t behind = is_2d(key) ? sizeof key->extent : key->n_attrs * sizeof key->attrs[0];
    return (uint32_t)(offsetof(struct cus_kind_key, attrs) + behind);
}

static struct cus_kind_entry *find_entry(struct cus_kind_entry *table,
                                         const struct cus_kind_key *key) {
    struct cus_kind_entry *entry;
    HASH_FIND(hh, table, key, key_bytes(key), entry);
    return entry;
}

static struct cus_kind_entry *intern(struct cus_kind_entry **table,
                                     const struct cus_kind_key *key) {
    uint32_t bytes = key_bytes(key);
    struct cus_kind_entry *entry = find_entry(*table, key);
    if (entry)
        return entry;
    entry = cus_mem_lines(sizeof *entry);
    if (!entry)
        return NULL;
    entry->key = *key;
    bool added = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
    HASH_ADD_KEYPTR(hh, *table, &entry->key, bytes, entry);
    if (!added) {
        cus_mem_free_lines(entry);
        return NULL;
    }
    struct cus_kind *kind = &entry->kind;
    kind->id = __atomic_fetch_add(&next_kind_id, 1, __ATOMIC_RELAXED);
    kind->type = key->type;
    kind->elem = key->elem;
    kind->copy_form = key->copy_form;
    kind->cooperative = key->cooperative;
    kind->n_attrs = key->n_attrs;
    kind->branch = key->place.branch;
    kind->from = key->place.from;
    kind->back = key->place.back;
    kind->goes_on = key->place.goes_on;
    kind->cluster[0] = kind->cluster[1] = kind->cluster[2] = 1;
    memcpy(kind->attrs, key->attrs, key->n_attrs * sizeof key->attrs[0]);
    kind->deferrable = true;
    return entry;
}

/* A hash that is equal in every process. It covers no handles, and no numbers that are given out in
 * order of appearance. */
static uint64_t stable_of(const struct cus_kind *kind, const struct cus_kind_key *key,
                          uint64_t code) {
    uint64_t place = key->place.branch | (uint64_t)key->place.from << 8 |
                     (uint64_t)key->place.back << 16 | (uint64_t)key->place.goes_on << 32;
    const uint64_t words[] = {key->type,      key->elem,      key->copy_form, key->cooperative,
                              key->family[0], key->family[1], key->n_attrs,   place};
    uint64_t hash = cus_cache_hash(words, sizeof words, code);
    if (is_2d(key))
        hash = cus_cache_hash(&key->extent, sizeof key->extent, hash);
    return cus_cache_hash(kind->attrs, kind->n_attrs * sizeof kind->attrs[0], hash);
}

/* Whether a cluster or a cooperative grid fits depends on more than the function's limits. */
static bool has_limits(const struct cus_kind *kind) {
    for (unsigned i = 0; i < kind->n_attrs; i++)
        if (kind->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
            kind->attrs[i].id == CUS_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
            return false;
    return !kind->cooperative;
}

static void fill_launch(struct cus_kind *kind, const struct cus_func *func) {
    kind->handle = func->handle;
    kind->layout = &func->layout;
    kind->param_bytes = func->layout.bytes;
    kind->name = func->shown;
    kind->tally = func->tally;
    kind->policy = (uint8_t)func->policy;
    kind->step = func->step;
    kind->rule = func->rule;
    kind->deferrable = func->known && !func->tainted;
    memcpy(kind->cluster, func->cluster, sizeof kind->cluster);
    if (has_limits(kind)) {
        kind->threads_max = func->threads_max;
        __atomic_store_n(&kind->shared_end, func->shared_end, __ATOMIC_RELEASE);
    }
    for (unsigned i = 0; i < kind->n_attrs; i++) {
        const struct cus_attr *attr = &kind->attrs[i];
        uint32_t value[3];
        memcpy(value, attr->value, sizeof value);
        if (attr->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            kind->pdl = value[0] != 0;
        if (attr->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            memcpy(kind->cluster, value, sizeof kind->cluster);
    }
}

static struct cus_func *find_func(struct cus_context *context, const void *handle) {
    struct cus_func *func;
    HASH_FIND_PTR(context->funcs, &handle, func);
    return func;
}

struct cus_kind *cus_kinds_launch(struct cus_context *context, const struct cus_launch *launch,
                                  uint8_t branch, bool *fresh) {
    struct cus_kind_key key = {.type = CUS_OP_LAUNCH,
                               .cooperative = launch->form == CUS_LAUNCH_COOPERATIVE,
                               .place = {.branch = branch}};
    bool readable = launch->form != CUS_LAUNCH_EX || read_attributes(launch, &key);
    struct cus_kind_entry *entry = NULL;
    cus_lock_take(&context->lock);
    struct cus_func *func = find_func(context, launch->f);
    *fresh = !func;
    if (func && func->known && readable) {
        entry = intern(&func->kinds, &key);
        if (entry && !entry->kind.handle) {
            fill_launch(&entry->kind, func);
            entry->kind.stable = stable_of(&entry->kind, &entry->key, func->code);
        }
    }
    cus_lock_give(&context->lock);
    return entry ? &entry->kind : NULL;
}

/* ---- rules about calls ---- */

/* Three widths of memsets in one and in two dimensions, four forms of copies, the record of an
 * event and the wait for one, each in two ABIs. Frozen when the engine has started. */
enum { FIRST_2D = 3, FIRST_COPY = 6, RECORD = 10, WAIT, CALLS };
static struct cus_verdict call_rules[CALLS][2];
static const char *const symbols[CALLS][2] = {
    {"cuMemsetD8Async", "cuMemsetD8Async_ptsz"},
    {"cuMemsetD16Async", "cuMemsetD16Async_ptsz"},
    {"cuMemsetD32Async", "cuMemsetD32Async_ptsz"},
    {"cuMemsetD2D8Async", "cuMemsetD2D8Async_ptsz"},
    {"cuMemsetD2D16Async", "cuMemsetD2D16Async_ptsz"},
    {"cuMemsetD2D32Async", "cuMemsetD2D32Async_ptsz"},
    [FIRST_COPY + CUS_COPY_ANY] = {"cuMemcpyAsync", "cuMemcpyAsync_ptsz"},
    [FIRST_COPY + CUS_COPY_DTOD] = {"cuMemcpyDtoDAsync_v2", "cuMemcpyDtoDAsync_v2_ptsz"},
    [FIRST_COPY + CUS_COPY_HTOD] = {"cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2_ptsz"},
    [FIRST_COPY + CUS_COPY_DTOH] = {"cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2_ptsz"},
    [RECORD] = {"cuEventRecord", "cuEventRecord_ptsz"},
    [WAIT] = {"cuStreamWaitEvent", "cuStreamWaitEvent_ptsz"},
};

static unsigned call_of(enum cus_op_type type, uint8_t elem, uint8_t copy_form) {
    return type == CUS_OP_MEMSET   ? elem / 2u + (copy_form == CUS_MEMSET_2D ? FIRST_2D : 0u)
           : type == CUS_OP_COPY   ? (unsigned)FIRST_COPY + copy_form
           : type == CUS_OP_RECORD ? (unsigned)RECORD
                                   : (unsigned)WAIT;
}

void cus_kinds_ask_rules(void) {
    for (unsigned i = 0; i < CALLS; i++)
        for (unsigned abi = 0; abi < 2; abi++) {
            const struct cus_subject subject = {.call = symbols[i][abi]};
            call_rules[i][abi] = cus_rules_ask(cus_rules(), &subject, -1);
            if (call_rules[i][abi].policy == CUS_POLICY_NEVER_DEFER)
                __atomic_store_n(&cus_process.never_defer, true, __ATOMIC_RELEASE);
        }
}

struct cus_verdict cus_kinds_rule(enum cus_op_type type, uint8_t elem, uint8_t copy_form,
                                  enum cus_abi abi) {
    return call_rules[call_of(type, elem, copy_form)][abi];
}

const char *cus_kinds_call(enum cus_op_type type, uint8_t elem, uint8_t copy_form) {
    return symbols[call_of(type, elem, copy_form)][CUS_ABI_LEGACY];
}

const char *cus_kinds_name(struct cus_context *context, const void *handle,
                           char name[CUS_TRACE_NAME]) {
    cus_lock_take(&context->lock);
    struct cus_func *func = find_func(context, handle);
    size_t bytes = func && func->name ? strnlen(func->name, CUS_TRACE_NAME - 1) : 0;
    if (bytes)
        memcpy(name, func->name, bytes);
    name[bytes] = 0;
    cus_lock_give(&context->lock);
    return name;
}

/* The kind of this key, which is of a call of type `type`. */
static struct cus_kind *call_kind(struct cus_context *context, struct cus_kind_key *key,
                                  enum cus_op_type type, enum cus_abi abi) {
    static const char *const names[] = {
        [CUS_OP_MEMSET] = "memset",
        [CUS_OP_COPY] = "memcpy",
        [CUS_OP_RECORD] = "record",
        [CUS_OP_WAIT] = "wait",
    };
    static const uint32_t bytes[] = {
        [CUS_OP_MEMSET] = sizeof(struct cus_memset_params),
        [CUS_OP_COPY] = sizeof(struct cus_copy_params),
        [CUS_OP_RECORD] = sizeof(struct cus_record_params),
        [CUS_OP_WAIT] = sizeof(struct cus_record_params),
    };
    struct cus_verdict verdict = cus_kinds_rule(type, key->elem, key->copy_form, abi);
    key->rule = (uint32_t)(verdict.rule + 1);
    cus_lock_take(&context->lock);
    /* Extents that never come again would fill the memory. */
    bool full = is_2d(key) && context->n_extents >= CUS_EXTENTS_MAX;
    struct cus_kind_entry *entry =
        full ? find_entry(context->memory_kinds, key) : intern(&context->memory_kinds, key);
    if (entry && !entry->kind.name) {
        context->n_extents += is_2d(key);
        const struct cus_subject subject = {
            .call = symbols[call_of(type, key->elem, key->copy_form)][abi]};
        cus_rules_note(cus_rules(), &subject);
        entry->kind.param_bytes = bytes[key->type];
        entry->kind.name = names[type];
        entry->kind.stable = stable_of(&entry->kind, &entry->key, 0);
        entry->kind.policy = (uint8_t)verdict.policy;
        entry->kind.rule = verdict.rule;
        for (unsigned other = 0; other < 2; other++) {
            struct cus_verdict twin =
                cus_kinds_rule(type, key->elem, key->copy_form, (enum cus_abi)other);
            entry->kind.abis |= (uint8_t)((twin.rule == verdict.rule) << other);
        }
        entry->kind.tally = cus_tally_of(entry->kind.name, false);
    }
    cus_lock_give(&context->lock);
    return entry ? &entry->kind : NULL;
}

struct cus_kind *cus_kinds_call_kind(struct cus_context *context,
                                     const struct cus_kind_of_call *of) {
    struct cus_kind_key key = {
        .type = (uint8_t)of->type,
        .elem = of->elem,
        .copy_form = of->copy_form,
        .family = {of->dst_family, CUS_HAZARD(A13) ? of->src_family : 0},
        .place = of->place,
    };
    if (is_2d(&key) && CUS_HAZARD(A14))
        key.extent = of->extent;
    return call_kind(context, &key, of->type, of->abi);
}

struct cus_kind *cus_kinds_value(struct cus_context *context, const struct cus_kind_of_call *of) {
    struct cus_kind_key key = {
        .type = CUS_OP_MEMSET,
        .elem = of->elem,
        .copy_form = of->copy_form,
        .family = {of->dst_family, CUS_FAMILY_PAGEABLE},
        .place = of->place,
    };
    return call_kind(context, &key, CUS_OP_COPY, of->abi);
}

/* Context lock held. */
static void note_met(struct cus_context *context, const void *handle) {
    __atomic_store_n(&context->known_funcs[cus_kinds_slot(handle)], handle, __ATOMIC_RELAXED);
}

bool cus_kinds_know(struct cus_context *context, const void *handle) {
    if (cus_kinds_may_know(context, handle))
        return true;
    cus_lock_take(&context->lock);
    bool met = find_func(context, handle) != NULL;
    if (met)
        note_met(context, handle);
    cus_lock_give(&context->lock);
    return met;
}

enum cus_policy cus_kinds_policy(struct cus_context *context, const void *handle) {
    cus_lock_take(&context->lock);
    struct cus_func *func = find_func(context, handle);
    enum cus_policy policy = func ? func->policy : CUS_POLICY_GRAPH;
    cus_lock_give(&context->lock);
    return policy;
}

struct cus_tally *cus_kinds_tally(struct cus_context *context, const void *handle,
                                  enum cus_why *why) {
    cus_lock_take(&context->lock);
    struct cus_func *func = find_func(context, handle);
    struct cus_tally *tally = func ? func->tally : NULL;
    *why = func && func->known ? CUS_WHY_ATTRIBUTE : CUS_WHY_LAYOUT;
    cus_lock_give(&context->lock);
    return tally;
}

/* Functions that were tainted, kept for ever. Most are tainted before they first run, and all that
 * is known of a function is dropped whenever code goes. If a handle is used again for another
 * function, that function stays eager. */
struct tainted {
    const void *handle;
    UT_hash_handle hh;
};
static struct cus_lock tainted_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct tainted *tainted; /* tainted_lock */
static bool all_tainted;        /* tainted_lock: every function, or one that could not be noted */

static bool is_tainted(const void *handle) {
    struct tainted *entry;
    cus_lock_take(&tainted_lock);
    HASH_FIND_PTR(tainted, &handle, entry);
    bool is = entry || all_tainted;
    cus_lock_give(&tainted_lock);
    return is;
}

bool cus_kinds_note_taint(const void *handle) {
    struct tainted *entry = NULL;
    bool added = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
    cus_lock_take(&tainted_lock);
    if (handle)
        HASH_FIND_PTR(tainted, &handle, entry);
    bool fresh = !entry && !all_tainted;
    if (!entry && handle && (entry = cus_mem_alloc(sizeof *entry))) {
        entry->handle = handle;
        HASH_ADD_PTR(tainted, handle, entry);
        if (!added)
            cus_mem_free(entry);
    }
    all_tainted |= !entry || !added;
    cus_lock_give(&tainted_lock);
    return fresh;
}

void cus_kinds_taint(struct cus_context *context, const void *handle) {
    cus_lock_take(&context->lock);
    for (struct cus_func *func = context->funcs; func; func = func->hh.next) {
        if (handle && func->handle != handle)
            continue;
        func->tainted = true;
        for (struct cus_kind_entry *entry = func->kinds; entry; entry = entry->hh.next)
            entry->kind.deferrable = false;
    }
    cus_lock_give(&context->lock);
}

void cus_kinds_ran(struct cus_context *context, struct cus_kind *kind,
                   const uint32_t dims[CUS_DIMS]) {
    if (cus_kind_allows(kind, dims))
        return;
    cus_lock_take(&context->lock);
    cus_kind_ran(kind, dims);
    cus_lock_give(&context->lock);
}

/* Context lock held. */
static void set_limit(struct cus_func *func, uint32_t shared_end) {
    func->shared_end = shared_end;
    for (struct cus_kind_entry *entry = func->kinds; entry; entry = entry->hh.next)
        if (entry->kind.threads_max)
            __atomic_store_n(&entry->kind.shared_end, shared_end, __ATOMIC_RELEASE);
}

bool cus_kinds_read_limit(struct cus_context *context, const struct cus_kind *kind) {
    if (!kind->threads_max || __atomic_load_n(&kind->shared_end, __ATOMIC_ACQUIRE))
        return false;
    cus_lock_take(&context->lock);
    struct cus_func *func = find_func(context, kind->handle);
    const void *function = func ? func->function : NULL;
    uint32_t settings = context->settings;
    cus_lock_give(&context->lock);
    uint32_t shared_end = function ? cus_func_shared_end(function) : 0;
    if (!shared_end)
        return false;
    cus_lock_take(&context->lock);
    func = find_func(context, kind->handle);
    /* A limit that was read before a setting is not one that counts behind it. */
    bool valid = func && context->settings == settings;
    if (valid)
        set_limit(func, shared_end);
    cus_lock_give(&context->lock);
    return valid;
}

void cus_kinds_forget_shapes(struct cus_context *context, const void *handle) {
    cus_lock_take(&context->lock);
    context->settings++;
    for (struct cus_func *func = context->funcs; func; func = func->hh.next) {
        set_limit(func, 0);
        if (!handle || func->handle == handle || func->function == handle)
            for (struct cus_kind_entry *entry = func->kinds; entry; entry = entry->hh.next)
                __atomic_store_n(&entry->kind.n_shapes, 0, __ATOMIC_RELEASE);
    }
    cus_lock_give(&context->lock);
}

/* ---- learning a function ---- */

void cus_kinds_learn(struct cus_context *context, const struct cus_launch *launch) {
    cus_lock_take(&context->lock);
    bool have = find_func(context, launch->f) != NULL;
    cus_lock_give(&context->lock);
    if (have)
        return;
    struct cus_func *func = cus_func_make(launch->f);
    if (!func)
        return;
    bool added = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
    cus_lock_take(&context->lock);
    func->tainted =
        is_tainted(launch->f); /* a taint is noted first, then looked for among the functions */
    if (find_func(context, launch->f))
        added = false; /* another thread was faster */
    else
        HASH_ADD_PTR(context->funcs, handle, func);
    if (added)
        note_met(context, launch->f);
    cus_lock_give(&context->lock);
    if (!added)
        cus_func_free(func);
}

/* ---- code that goes ---- */

struct cus_garbage cus_kinds_detach(struct cus_context *context) {
    cus_lock_take(&context->lock);
    struct cus_garbage garbage = {context->funcs, context->memory_kinds};
    context->funcs = NULL;
    context->memory_kinds = NULL;
    context->n_extents = 0;
    for (unsigned i = 0; i < CUS_KNOWN_FUNC_SLOTS; i++)
        __atomic_store_n(&context->known_funcs[i], NULL, __ATOMIC_RELAXED);
    cus_lock_give(&context->lock);
    cus_func_forget_noted();
    return garbage;
}

void cus_kinds_free(struct cus_garbage garbage) {
    struct cus_func *func, *next_func;
    HASH_ITER(hh, garbage.funcs, func, next_func) {
        HASH_DEL(garbage.funcs, func);
        cus_func_free(func);
    }
    struct cus_kind_entry *entry, *next;
    HASH_ITER(hh, garbage.memory_kinds, entry, next) {
        HASH_DEL(garbage.memory_kinds, entry);
        cus_mem_free_lines(entry);
    }
}

void cus_kinds_drop(void) {
    struct tainted *entry, *next;
    HASH_ITER(hh, tainted, entry, next) {
        HASH_DEL(tainted, entry);
        cus_mem_free(entry);
    }
    all_tainted = false;
    next_kind_id = 1;
}
