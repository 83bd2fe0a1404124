/*
 * Offers ops to the plan (offer.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_OFFER_H
#define CUSPLICE_STREAM_OFFER_H

#include "shim/stream/call.h"

/* Why an op is issued eagerly: for the counters (eager_by), and for the reports. */
struct cus_reason {
    enum cus_eager eager;
    enum cus_why why;
};

/* What is known of an op before it is issued eagerly. */
struct cus_offered {
    struct cus_op op;
    struct cus_kind *kind; /* NULL: the op has no kind */
    bool first;            /* the function did not run in this context yet */
    bool offered;          /* the plan was asked about the op, and may record it */
    struct cus_reason why;
    struct cus_tally *tally;
};

/* Offers the op until the plan is content. True: the op is deferred or launched, and `*result` is
 * the answer. False: the op must be issued now, counted under `offer->why`. Engine lock held. */
bool cus_offer_op(struct cus_thread *thread, struct cus_engine *engine, struct cus_call *call,
                  struct cus_offered *offer, CUresult *result);
/* Why an op may not be in a graph of its step. A rule names the op, the step's size is not in
 * [step], or the mode allows no graph in such steps. */
struct cus_reason cus_offer_forbidden(const struct cus_plan *plan, const struct cus_op *op);
/* Where the record is made, which is the engine's last op so far. Engine lock held. */
struct cus_event_place cus_record_place(struct cus_engine *engine, const struct cus_call *call);

#endif
