/* Asks whether a call is of a kind and what memory is, and lets a test be a thread that builds. */
#ifndef CUSPLICE_TESTS_UNIT_STREAM_CALLS_H
#define CUSPLICE_TESTS_UNIT_STREAM_CALLS_H

#ifdef __cplusplus
extern "C" {
#endif
#include "shim/plan/op.h"
#include "shim/stream/engine.h"

struct call_asked {
    enum cus_op_type type;
    enum cus_abi abi;
    CUcontext of_event; /* of a record's */
    uint8_t branch, from;
    uint16_t back;
    uint8_t goes_on;
};
/* cus_call_is of this call on an engine of `context`. */
bool call_is(const struct cus_kind *kind, const struct call_asked *asked, CUcontext context);
/* cus_kinds_is_launch. */
bool launch_is(const struct cus_kind *kind, const struct cus_launch *launch);

/* cus_kinds_launch, in a context that knows the function. */
const struct cus_kind *launch_kind(CUcontext context, const struct cus_launch *launch);
/* cus_kinds_forget_shapes, of all functions. */
void launch_forget_shapes(CUcontext context);

/* cus_kinds_call_kind, in a context that was seen. */
const struct cus_kind *call_kind(CUcontext context, const struct call_asked *asked);
/* Is this the name of the function, as far as the context knows it? */
bool function_has_name(CUcontext context, CUfunction f, const char *name);

/* cus_kinds_taint, cus_kinds_read_limit and cus_room_begins_elsewhere, of this context. */
void kinds_taint(CUcontext context, CUfunction f);
void kinds_read_limit(CUcontext context, const struct cus_kind *kind);
void room_begins_elsewhere(CUcontext context);

/* enum cus_family of shim/stream/ranges.h, and its functions. */
enum memory {
    MEMORY_UNKNOWN,
    MEMORY_DEVICE,
    MEMORY_POOL,
    MEMORY_VIRTUAL,
    MEMORY_HOST,
    MEMORY_PAGEABLE
};
enum memory memory_at(uint64_t address, uint64_t bytes);
void memory_forget(void);
bool memory_forget_at(uint64_t address);
uint32_t memory_epoch(void);

/* No other thread can build in between. */
void builds_begin(void);
void builds_end(void);
/* In between another thread opens a shared object. */
void opening_begins(void);
void opening_ends(void);
/* A stream was destroyed: each engine has to find out whether its handle is another stream's. */
void streams_may_be_others(void);

#ifdef __cplusplus
}

#include <functional>
#include <future>
#include <thread>

inline void WhileAnotherThreadBuilds(const std::function<void()> &call) {
    std::promise<void> began, over;
    std::thread other([&] {
        builds_begin();
        began.set_value();
        over.get_future().wait();
        builds_end();
    });
    began.get_future().wait();
    call();
    over.set_value();
    other.join();
}
#endif

#endif
