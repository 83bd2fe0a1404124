#include "tests/unit/stream/calls.h"

#include "shim/stream/call.h"

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

void builds_begin(void) {
    cus_lock_take(&cus_process.build_lock);
}

void builds_end(void) {
    cus_lock_give(&cus_process.build_lock);
}
