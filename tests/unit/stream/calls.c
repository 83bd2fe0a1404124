#include "tests/unit/stream/calls.h"

#include "shim/stream/call.h"
#include "shim/stream/ranges.h"
#include "shim/stream/room.h"
#include "shim/stream/streams.h"

bool call_is(const struct cus_kind *kind, const struct call_asked *asked, CUcontext context) {
    static struct cus_context of_engine;
    static struct cus_engine engine;
    const struct cus_record record = {.context = asked->of_event};
    const struct cus_call call = {.type = asked->type,
                                  .stream = {.abi = asked->abi},
                                  .place = {.branch = asked->branch,
                                            .from = asked->from,
                                            .back = asked->back,
                                            .goes_on = asked->goes_on},
                                  .event = &record};
    of_engine.handle = context;
    engine.context = &of_engine;
    return cus_call_is(&engine, &call, kind);
}

bool launch_is(const struct cus_kind *kind, const struct cus_launch *launch) {
    return cus_kinds_is_launch(kind, launch);
}

const struct cus_kind *launch_kind(CUcontext context, const struct cus_launch *launch) {
    bool fresh;
    return cus_kinds_launch(cus_streams_context(context), launch, 0, &fresh);
}

void launch_forget_shapes(CUcontext context) {
    cus_kinds_forget_shapes(cus_streams_context(context), NULL);
}

const struct cus_kind *call_kind(CUcontext context, const struct call_asked *asked) {
    const struct cus_kind_of_call of = {.type = asked->type,
                                        .abi = asked->abi,
                                        .place = {.branch = asked->branch,
                                                  .from = asked->from,
                                                  .back = asked->back,
                                                  .goes_on = asked->goes_on}};
    return cus_kinds_call_kind(cus_streams_context(context), &of);
}

bool function_has_name(CUcontext context, CUfunction f, const char *name) {
    static char known[CUS_TRACE_NAME];
    return !strcmp(cus_kinds_name(cus_streams_context(context), f, known), name);
}

void kinds_taint(CUcontext context, CUfunction f) {
    cus_kinds_taint(cus_streams_context(context), f);
}

void kinds_read_limit(CUcontext context, const struct cus_kind *kind) {
    cus_kinds_read_limit(cus_streams_context(context), kind);
}

void room_begins_elsewhere(CUcontext context) {
    cus_room_begins_elsewhere(context);
}

#define SAME(name) _Static_assert((int)MEMORY_##name == (int)CUS_FAMILY_##name, #name)
SAME(UNKNOWN);
SAME(DEVICE);
SAME(POOL);
SAME(VIRTUAL);
SAME(HOST);
SAME(PAGEABLE);

enum memory memory_at(uint64_t address, uint64_t bytes) {
    return (enum memory)cus_ranges_family(address, bytes);
}

void memory_forget(void) {
    cus_ranges_forget();
}

bool memory_forget_at(uint64_t address) {
    return cus_ranges_forget_at(address);
}

uint32_t memory_epoch(void) {
    return cus_ranges_epoch();
}

void builds_begin(void) {
    cus_lock_take(&cus_process.build_lock);
}

void builds_end(void) {
    cus_lock_give(&cus_process.build_lock);
}

void opening_begins(void) {
    cus_opening_enter();
}

void opening_ends(void) {
    while (!cus_opening_leave(cus_opening_word()))
        ;
}

void streams_may_be_others(void) {
    __atomic_add_fetch(&cus_process.registry_epoch, 1, __ATOMIC_ACQ_REL);
}
