/*
 * The thread that patches and launches what is submitted, and those who submit and wait.
 *
 * The thread is started with the first segment; it has no context current between two segments and
 * takes no lock of the library. For a moment after a segment it looks for the next one, then it
 * sleeps until it is woken. Whoever waits holds the engine's lock, and may take the segment
 * instead.
 */
#include "shim/stream/submit.h"

#include "shim/base/clock.h"
#include "shim/base/log.h"
#include "shim/base/processors.h"
#include "shim/base/thread.h"
#include "shim/graph/relax.h"
#include "shim/stream/state.h"
#include "shim/stream/virtual.h"

enum {
    PROCESSORS = 2,    /* without so many nothing is gained, */
    SPARE = 4,         /* and with so many one may be busy with looking */
    LOOKS = 64,        /* between two looks at the clock */
    SPINS = 4096,      /* of who waits, before it sleeps */
    WAIT_NS = 100000,  /* and for how long at most at a time: it may have missed the end */
    MEASURED = 4,      /* segments before the first one that is submitted, */
    MEASURE = 256,     /* and one of so many later on: it takes ten times what submitting does */
    PARTS = 8,         /* of the mean that each one is */
    LOSS_NS = 100000,  /* from which on nothing is submitted for a while, */
    GAIN_NS = 1000000, /* and what is remembered of a gain */
    REST = 256,        /* segments; each time twice as many, unless it has paid meanwhile */
    REST_MAX = 1 << 16,
    LATELY = 1024 /* graphs: a rest or two do not change what most of them were */
};

bool cus_virtual_submit;

static struct {
    bool alone;             /* there are too few processors */
    uint64_t look_ns;       /* after a segment, for the next one, before it sleeps */
    struct cus_engine *has; /* atomic: whose segment it has or is about to have; NULL: none */
    uint32_t asleep;        /* atomic, futex */
    enum { NOT, STARTED, NEVER } started; /* atomic */
} second __attribute__((aligned(CUS_LINE)));

/* ---- the thread ---- */

static CUresult patch(const struct cus_submit *submit, uint32_t i) {
    const struct cus_place *place = &submit->places[i];
    if (submit->shapes[i / 64] >> i % 64 & 1)
        cus_tally_reshaped(place->kind->tally);
    return cus_exec_patch(cus_process.driver, submit->context, submit->exec, i, place->kind,
                          cus_place_op(submit->image, place));
}

static enum cus_submit_state carry_out(struct cus_submit *submit) {
    for (uint32_t word = 0; word < (submit->n + 63) / 64; word++)
        for (uint64_t left = submit->nodes[word]; left; left &= left - 1) {
            uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(left);
            if (patch(submit, i) != CUDA_SUCCESS) {
                submit->refused = i;
                return CUS_SUBMIT_FAILED;
            }
        }
    return cus_exec_launch(cus_process.driver, submit->exec, submit->stream) == CUDA_SUCCESS
               ? CUS_SUBMIT_LAUNCHED
               : CUS_SUBMIT_FAILED;
}

/* By whoever made its state BUSY. */
static void work(struct cus_submit *submit) {
    bool pushed;
    enum cus_submit_state became = CUS_SUBMIT_FAILED;
    submit->refused = submit->n;
    if (cus_context_enter(submit->context, &pushed)) {
        became = carry_out(submit);
        cus_context_leave(pushed);
    }
    __atomic_store_n(&second.has, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&submit->state, became, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&submit->sleeps, __ATOMIC_SEQ_CST))
        cus_futex_wake(&submit->state, 1);
}

static bool take(struct cus_submit *submit) {
    uint32_t given = CUS_SUBMIT_QUEUED;
    return __atomic_compare_exchange_n(&submit->state, &given, CUS_SUBMIT_BUSY, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* What is there to be taken; NULL: nothing. */
static struct cus_submit *given(void) {
    struct cus_engine *engine = __atomic_load_n(&second.has, __ATOMIC_SEQ_CST);
    bool is =
        engine && __atomic_load_n(&engine->submit.state, __ATOMIC_SEQ_CST) == CUS_SUBMIT_QUEUED;
    return is ? &engine->submit : NULL;
}

static struct cus_submit *given_soon(void) {
    uint64_t until = cus_clock_ns() + second.look_ns;
    struct cus_submit *submit;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if ((submit = given()))
                return submit;
            __builtin_ia32_pause();
        }
    } while (cus_clock_ns() < until);
    return NULL;
}

/* Whoever gives makes it GIVEN, then reads `asleep`; here the other way round. */
static struct cus_submit *given_late(void) {
    struct cus_submit *submit;
    for (;;) {
        __atomic_store_n(&second.asleep, 1, __ATOMIC_SEQ_CST);
        if ((submit = given()))
            break;
        cus_futex_wait(&second.asleep, 1, 0);
    }
    __atomic_store_n(&second.asleep, 0, __ATOMIC_SEQ_CST);
    return submit;
}

static void *run(void *unused) {
    (void)unused;
    cus_thread_self.depth = 1; /* what the driver calls back, a program's log, say, passes */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cus_process.driver->cuThreadExchangeStreamCaptureMode(&mode);
    for (;;) {
        struct cus_submit *submit = given_soon();
        if (!submit)
            submit = given_late();
        if (take(submit))
            work(submit);
    }
    return NULL;
}

/* ---- who submits ---- */

void cus_submit_start(void) {
    unsigned n = cus_thread_processors(), quota = cus_processors_quota("");
    if (quota && quota < n)
        n = quota;
    second.alone = n < PROCESSORS;
    second.look_ns = n < SPARE ? 0 : (uint64_t)cus_options()->submit_look_us * 1000;
}

static void start(void) {
    static struct cus_own_thread thread = {.name = "cusplice-launch", .run = run};
    bool failed = cus_thread_start(&thread, NULL) != 0;
    if (failed)
        cus_log(CUS_INFO, "stream", "no second thread could be started: nothing is submitted");
    __atomic_store_n(&second.started, failed ? NEVER : STARTED, __ATOMIC_RELEASE);
}

bool cus_submit_claim(struct cus_engine *engine) {
    struct cus_engine *nobody = NULL;
    if (cus_virtual.on) {
        cus_virtual_submit = true;
        return false;
    }
    if (second.alone || __atomic_load_n(&second.started, __ATOMIC_ACQUIRE) == NEVER ||
        !__atomic_compare_exchange_n(&second.has, &nobody, engine, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED))
        return false;
    /* One thread at a time is here. */
    if (__atomic_load_n(&second.started, __ATOMIC_RELAXED) == NOT)
        start();
    if (second.started == STARTED)
        return true;
    __atomic_store_n(&second.has, NULL, __ATOMIC_RELEASE);
    return false;
}

void cus_submit_queue(struct cus_engine *engine, struct cus_variant *variant, uint64_t began) {
    struct cus_submit *submit = &engine->submit;
    submit->variant = variant;
    submit->n = variant->segment->n;
    submit->context = engine->context->handle;
    submit->stream = engine->handle;
    submit->exec = variant->exec;
    submit->places = variant->segment->places;
    submit->image = variant->image;
    __atomic_store_n(&submit->state, CUS_SUBMIT_QUEUED, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&second.asleep, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&second.asleep, 0, __ATOMIC_SEQ_CST);
        cus_futex_wake(&second.asleep, 1);
    }
    submit->credit_ns += (int64_t)(submit->alone_ns - (cus_clock_ns() - began));
}

static bool is_busy(const struct cus_submit *submit) {
    return __atomic_load_n(&submit->state, __ATOMIC_ACQUIRE) == CUS_SUBMIT_BUSY;
}

static void sleep_on(struct cus_submit *submit) {
    __atomic_store_n(&submit->sleeps, 1, __ATOMIC_SEQ_CST);
    while (is_busy(submit))
        cus_futex_wait(&submit->state, CUS_SUBMIT_BUSY, WAIT_NS);
    __atomic_store_n(&submit->sleeps, 0, __ATOMIC_RELAXED);
}

/* What the other thread has not begun yet is not waited for. */
static void do_it_here(struct cus_submit *submit) {
    struct cus_relaxed relaxed = cus_relax(cus_process.driver);
    work(submit);
    cus_relax_end(cus_process.driver, relaxed);
}

void cus_submit_wait(struct cus_submit *submit) {
    if (cus_submit_ended(submit))
        return;
    uint64_t since = cus_clock_ns();
    if (take(submit))
        do_it_here(submit);
    for (int i = 0; i < SPINS && is_busy(submit); i++)
        __builtin_ia32_pause();
    if (is_busy(submit))
        sleep_on(submit);
    submit->credit_ns -= (int64_t)(cus_clock_ns() - since);
}

bool cus_submit_wait_for(struct cus_submit *submit, uint64_t ns) {
    uint64_t until = cus_clock_ns() + ns;
    while (is_busy(submit) && cus_clock_ns() < until)
        cus_futex_wait(&submit->state, CUS_SUBMIT_BUSY, WAIT_NS);
    return !is_busy(submit);
}

/* ---- does it pay? ----
 *
 * A segment that is submitted saves the program's thread what it would have taken there, and costs
 * what waking the other thread takes and what is waited for it: where processors are wanted by
 * others that may be more. */

static void backoff(struct cus_submit *submit) {
    submit->backoffs = submit->backoffs ? submit->backoffs * 2 : REST;
    if (submit->backoffs > REST_MAX)
        submit->backoffs = REST_MAX;
    submit->backoff = submit->backoffs;
    submit->credit_ns = 0;
    submit->alone = 0;
}

bool cus_submit_pays(struct cus_submit *submit) {
    if (!cus_options()->demote)
        return true;
    if (submit->credit_ns < -LOSS_NS)
        backoff(submit);
    if (submit->credit_ns > GAIN_NS) {
        submit->credit_ns = GAIN_NS;
        submit->backoffs = 0;
    }
    if (submit->backoff) {
        submit->backoff--;
        return false;
    }
    if (submit->alone < MEASURED || !submit->due)
        return false;
    submit->due--;
    return true;
}

void cus_submit_count(struct cus_submit *submit, bool over) {
    submit->counted += submit->counted < LATELY;
    submit->async_ratio +=
        ((over ? CUS_SUBMIT_ALL : 0) - (int32_t)submit->async_ratio) / (int32_t)submit->counted;
}

/* One that was held up, by another thread or a full queue, says nothing of those behind it: of the
 * first ones the fastest counts, of a later one twice the mean at most. */
void cus_submit_took(struct cus_submit *submit, uint64_t ns) {
    uint64_t mean = submit->alone_ns, most = 2 * mean;
    if (submit->alone < MEASURED)
        submit->alone_ns = submit->alone && mean < ns ? mean : ns;
    else
        submit->alone_ns = (mean * (PARTS - 1) + (ns < most ? ns : most)) / PARTS;
    submit->alone += submit->alone < MEASURED;
    submit->due = MEASURE;
}
