/*
 * The submit thread, and the threads that submit to it and wait for it. The submit thread starts
 * with the first submitted segment and takes no lock of the library. After a segment it looks for
 * the next one for a moment, then sleeps until woken. A thread that waits holds the engine's lock
 * and takes a segment that is still queued itself. Gain: Llama runs 1.48 to 1.51 times as fast as
 * plain with the submit thread, and 1.29 times as fast without it (tests/gpu/RESULTS.md).
 */
#include "shim/stream/submit.h"

#include "shim/base/clock.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/processors.h"
#include "shim/base/thread.h"
#include "shim/graph/relax.h"
#include "shim/stream/access.h"
#include "shim/stream/state.h"
#include "shim/stream/virtual.h"

enum {
    PROCESSORS = 2,          /* with fewer, nothing is submitted */
    SPARE = 4,               /* with fewer, the thread sleeps at once */
    LOOKS = CUS_TURNS(64),   /* looks at the queue between two reads of the clock */
    SPINS = CUS_TURNS(4096), /* looks of a waiting thread before it sleeps */
    /* The longest sleep in ns before the state is read again, as the wake-up may be missed. */
    WAIT_NS = 100000,
    MEASURED = 4, /* segments measured before the first one is submitted */
    /* One in so many later segments is measured. A measurement takes ten times as long as
     * submitting. */
    MEASURE = 256,
    PARTS = 8,         /* one measurement has the weight 1 / PARTS in the mean */
    LOSS_NS = 100000,  /* loss in ns from which on the stream backs off */
    GAIN_NS = 1000000, /* most gain in ns that is remembered */
    /* Segments of the first back-off. Each later one is twice as long, unless submitting paid
     * meanwhile. */
    BACKOFF = 256,
    BACKOFF_MAX = 1 << 16,
    /* Graphs that async_ratio covers; so many that a back-off or two hardly change it. */
    LATELY = 1024
};

bool cus_virtual_submit;
uint32_t cus_virtual_ops;

static struct {
    bool alone;       /* too few processors: nothing is submitted */
    uint64_t look_ns; /* how long the thread looks for the next segment before it sleeps */
    /* Atomic: the engine for which the thread is reserved; NULL: none. */
    struct cus_engine *has;
    uint32_t asleep;                      /* atomic, futex */
    uint32_t stops;                       /* atomic: the thread is to end */
    enum { NOT, STARTED, NEVER } started; /* atomic */
} submitter __attribute__((aligned(CUS_LINE)));

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
    if (cus_exec_launch(cus_process.driver, submit->exec, submit->stream) != CUDA_SUCCESS)
        return CUS_SUBMIT_FAILED;
    submit->freed = CUDA_SUCCESS;
    for (uint32_t i = 0; i < submit->frees.n; i++) {
        CUresult result =
            cus_process.driver->cuMemFreeAsync(submit->frees.of[i].address, submit->stream);
        if (submit->freed == CUDA_SUCCESS)
            submit->freed = result;
    }
    return CUS_SUBMIT_LAUNCHED;
}

/* Called by the thread that set the state to BUSY. */
static void work(struct cus_submit *submit) {
    bool pushed;
    enum cus_submit_state became = CUS_SUBMIT_FAILED;
    submit->refused = submit->n;
    if (cus_context_enter(submit->context, &pushed)) {
        became = carry_out(submit);
        cus_context_leave(pushed);
    }
    __atomic_store_n(&submitter.has, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&submit->state, became, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&submit->sleeps, __ATOMIC_SEQ_CST))
        cus_futex_wake(&submit->state, 1);
}

static bool take(struct cus_submit *submit) {
    uint32_t given = CUS_SUBMIT_QUEUED;
    return __atomic_compare_exchange_n(&submit->state, &given, CUS_SUBMIT_BUSY, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* The queued segment; NULL: none. */
static struct cus_submit *given(void) {
    struct cus_engine *engine = __atomic_load_n(&submitter.has, __ATOMIC_SEQ_CST);
    bool is =
        engine && __atomic_load_n(&engine->submit.state, __ATOMIC_SEQ_CST) == CUS_SUBMIT_QUEUED;
    return is ? &engine->submit : NULL;
}

static struct cus_submit *given_soon(void) {
    uint64_t until = cus_clock_ns() + submitter.look_ns;
    struct cus_submit *submit;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if ((submit = given()))
                return submit;
            cus_pause();
        }
    } while (cus_clock_ns() < until);
    return NULL;
}

/* Sets `asleep`, then reads the state. cus_submit_queue sets the state, then reads `asleep`. So one
 * of the two sees the other. NULL: the thread is to end. */
static struct cus_submit *given_late(void) {
    struct cus_submit *submit;
    for (;;) {
        __atomic_store_n(&submitter.asleep, 1, __ATOMIC_SEQ_CST);
        if ((submit = given()) || __atomic_load_n(&submitter.stops, __ATOMIC_SEQ_CST))
            break;
        cus_futex_wait(&submitter.asleep, 1, 0);
    }
    __atomic_store_n(&submitter.asleep, 0, __ATOMIC_SEQ_CST);
    return submit;
}

static void *run(void *unused) {
    (void)unused;
    /* As inside a hook: calls from a driver callback, such as the program's log, go to the
     * driver. */
    cus_thread_self.depth = 1;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cus_process.driver->cuThreadExchangeStreamCaptureMode(&mode);
    for (struct cus_submit *submit; (submit = given_soon()) || (submit = given_late());)
        if (take(submit))
            work(submit);
    return NULL;
}

static struct cus_own_thread thread = {.name = "cusplice-launch", .run = run};

/* ---- who submits ---- */

void cus_submit_start(void) {
    unsigned n = cus_thread_processors(), quota = cus_processors_quota("");
    if (quota && quota < n)
        n = quota;
    submitter.alone = n < PROCESSORS;
    submitter.look_ns = n < SPARE ? 0 : (uint64_t)cus_options()->submit_look_us * 1000;
}

static void start(void) {
    bool failed = cus_thread_start(&thread, NULL) != 0;
    if (failed)
        cus_log(CUS_INFO, "stream", "no second thread could be started: nothing is submitted");
    __atomic_store_n(&submitter.started, failed ? NEVER : STARTED, __ATOMIC_RELEASE);
}

void cus_submit_drop(void) {
    __atomic_store_n(&submitter.stops, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&submitter.asleep, 0, __ATOMIC_SEQ_CST);
    cus_futex_wake(&submitter.asleep, 1);
    cus_thread_await(&thread);
    memset(&submitter, 0, sizeof submitter);
    cus_virtual_submit = false;
}

bool cus_submit_claim(struct cus_engine *engine) {
    struct cus_engine *nobody = NULL;
    if (cus_virtual.on) {
        cus_virtual_submit = true;
        return false;
    }
    if (submitter.alone || __atomic_load_n(&submitter.started, __ATOMIC_ACQUIRE) == NEVER ||
        !__atomic_compare_exchange_n(&submitter.has, &nobody, engine, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED))
        return false;
    /* Only the thread that reserved the submit thread is here. */
    if (__atomic_load_n(&submitter.started, __ATOMIC_RELAXED) == NOT)
        start();
    if (submitter.started == STARTED)
        return true;
    __atomic_store_n(&submitter.has, NULL, __ATOMIC_RELEASE);
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
    if (__atomic_load_n(&submitter.asleep, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&submitter.asleep, 0, __ATOMIC_SEQ_CST);
        cus_futex_wake(&submitter.asleep, 1);
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

/* The submit thread has not begun with the segment, so the waiting thread launches the segment. */
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
        cus_pause();
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
 * Submitting saves the program's thread the time of the launch. It costs the wake-up of the submit
 * thread and the waits for it, which are long if other threads need the processors. */

static void backoff(struct cus_submit *submit) {
    submit->backoffs = submit->backoffs ? submit->backoffs * 2 : BACKOFF;
    if (submit->backoffs > BACKOFF_MAX)
        submit->backoffs = BACKOFF_MAX;
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

/* One launch that another thread or a full queue held up says nothing about later launches. So the
 * fastest of the first launches counts, and a later one counts as at most twice the mean. */
void cus_submit_took(struct cus_submit *submit, uint64_t ns) {
    uint64_t mean = submit->alone_ns, most = 2 * mean;
    if (submit->alone < MEASURED)
        submit->alone_ns = submit->alone && mean < ns ? mean : ns;
    else
        submit->alone_ns = (mean * (PARTS - 1) + (ns < most ? ns : most)) / PARTS;
    submit->alone += submit->alone < MEASURED;
    submit->due = MEASURE;
}
