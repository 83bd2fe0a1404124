/*
 * The thread that patches and launches what is handed over, and those who hand over and wait.
 *
 * The thread is started with the first piece; it has no context current between two pieces and
 * takes no lock of the library. For a moment after a piece it looks for the next one, then it
 * sleeps until it is woken. Whoever waits holds the engine's lock, and may take the piece instead.
 */
#include "shim/stream/handed.h"

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
    MEASURED = 4,      /* pieces before the first one that is handed over, */
    MEASURE = 256,     /* and one of so many later on: it takes ten times what handing over does */
    PARTS = 8,         /* of the mean that each one is */
    LOSS_NS = 100000,  /* from which on nothing is handed over for a while, */
    GAIN_NS = 1000000, /* and what is remembered of a gain */
    REST = 256,        /* pieces; each time twice as many, unless it has paid meanwhile */
    REST_MAX = 1 << 16,
    LATELY = 1024 /* graphs: a rest or two do not change what most of them were */
};

#ifdef CUS_VIRTUAL_CLOCK
bool cus_virtual_handed;
#endif

static struct {
    bool alone;             /* there are too few processors */
    uint64_t look_ns;       /* after a piece, for the next one, before it sleeps */
    struct cus_engine *has; /* atomic: whose piece it has or is about to have; NULL: none */
    uint32_t asleep;        /* atomic, futex */
    enum { NOT, STARTED, NEVER } started; /* atomic */
} second __attribute__((aligned(CUS_LINE)));

/* ---- the thread ---- */

static CUresult patch(const struct cus_handed *handed, uint32_t i) {
    const struct cus_place *place = &handed->places[i];
    if (handed->shapes[i / 64] >> i % 64 & 1)
        cus_tally_reshaped(place->kind->tally);
    return cus_exec_patch(cus_process.driver, handed->context, handed->exec, i, place->kind,
                          cus_place_op(handed->image, place));
}

static enum cus_handed_state carry_out(struct cus_handed *handed) {
    for (uint32_t word = 0; word < (handed->n + 63) / 64; word++)
        for (uint64_t left = handed->nodes[word]; left; left &= left - 1) {
            uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(left);
            if (patch(handed, i) != CUDA_SUCCESS) {
                handed->refused = i;
                return CUS_HANDED_FAILED;
            }
        }
    return cus_exec_launch(cus_process.driver, handed->exec, handed->stream) == CUDA_SUCCESS
               ? CUS_HANDED_LAUNCHED
               : CUS_HANDED_FAILED;
}

/* By whoever made its state BUSY. */
static void work(struct cus_handed *handed) {
    bool pushed;
    enum cus_handed_state became = CUS_HANDED_FAILED;
    handed->refused = handed->n;
    if (cus_context_enter(handed->context, &pushed)) {
        became = carry_out(handed);
        cus_context_leave(pushed);
    }
    __atomic_store_n(&second.has, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&handed->state, became, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&handed->sleeps, __ATOMIC_SEQ_CST))
        cus_futex_wake(&handed->state, 1);
}

static bool take(struct cus_handed *handed) {
    uint32_t given = CUS_HANDED_GIVEN;
    return __atomic_compare_exchange_n(&handed->state, &given, CUS_HANDED_BUSY, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* What is there to be taken; NULL: nothing. */
static struct cus_handed *given(void) {
    struct cus_engine *engine = __atomic_load_n(&second.has, __ATOMIC_SEQ_CST);
    bool is =
        engine && __atomic_load_n(&engine->handed.state, __ATOMIC_SEQ_CST) == CUS_HANDED_GIVEN;
    return is ? &engine->handed : NULL;
}

static struct cus_handed *given_soon(void) {
    uint64_t until = cus_clock_ns() + second.look_ns;
    struct cus_handed *handed;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if ((handed = given()))
                return handed;
            __builtin_ia32_pause();
        }
    } while (cus_clock_ns() < until);
    return NULL;
}

/* Whoever gives makes it GIVEN, then reads `asleep`; here the other way round. */
static struct cus_handed *given_late(void) {
    struct cus_handed *handed;
    for (;;) {
        __atomic_store_n(&second.asleep, 1, __ATOMIC_SEQ_CST);
        if ((handed = given()))
            break;
        cus_futex_wait(&second.asleep, 1, 0);
    }
    __atomic_store_n(&second.asleep, 0, __ATOMIC_SEQ_CST);
    return handed;
}

static void *run(void *unused) {
    (void)unused;
    cus_thread_self.depth = 1; /* what the driver calls back, a program's log, say, passes */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cus_process.driver->cuThreadExchangeStreamCaptureMode(&mode);
    for (;;) {
        struct cus_handed *handed = given_soon();
        if (!handed)
            handed = given_late();
        if (take(handed))
            work(handed);
    }
    return NULL;
}

/* ---- who hands over ---- */

void cus_handed_start(void) {
    unsigned n = cus_thread_processors(), quota = cus_processors_quota("");
    if (quota && quota < n)
        n = quota;
    second.alone = n < PROCESSORS;
    second.look_ns = n < SPARE ? 0 : (uint64_t)cus_options()->hand_over_look_us * 1000;
}

static void start(void) {
    static struct cus_own_thread thread = {.name = "cusplice-launch", .run = run};
    bool failed = cus_thread_start(&thread, NULL) != 0;
    if (failed)
        cus_log(CUS_INFO, "stream", "no second thread could be started: nothing is handed over");
    __atomic_store_n(&second.started, failed ? NEVER : STARTED, __ATOMIC_RELEASE);
}

bool cus_handed_claim(struct cus_engine *engine) {
    struct cus_engine *nobody = NULL;
    if (CUS_CLOCK_IS_VIRTUAL) {
        cus_virtual_handed = true;
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

void cus_handed_give(struct cus_engine *engine, struct cus_variant *variant, uint64_t began) {
    struct cus_handed *handed = &engine->handed;
    handed->variant = variant;
    handed->n = variant->piece->n;
    handed->context = engine->context->handle;
    handed->stream = engine->handle;
    handed->exec = variant->exec;
    handed->places = variant->piece->places;
    handed->image = variant->image;
    __atomic_store_n(&handed->state, CUS_HANDED_GIVEN, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&second.asleep, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&second.asleep, 0, __ATOMIC_SEQ_CST);
        cus_futex_wake(&second.asleep, 1);
    }
    handed->credit_ns += (int64_t)(handed->alone_ns - (cus_clock_ns() - began));
}

static bool is_busy(const struct cus_handed *handed) {
    return __atomic_load_n(&handed->state, __ATOMIC_ACQUIRE) == CUS_HANDED_BUSY;
}

static void sleep_on(struct cus_handed *handed) {
    __atomic_store_n(&handed->sleeps, 1, __ATOMIC_SEQ_CST);
    while (is_busy(handed))
        cus_futex_wait(&handed->state, CUS_HANDED_BUSY, WAIT_NS);
    __atomic_store_n(&handed->sleeps, 0, __ATOMIC_RELAXED);
}

/* What the other thread has not begun yet is not waited for. */
static void do_it_here(struct cus_handed *handed) {
    struct cus_relaxed relaxed = cus_relax(cus_process.driver);
    work(handed);
    cus_relax_end(cus_process.driver, relaxed);
}

void cus_handed_wait(struct cus_handed *handed) {
    if (cus_handed_ended(handed))
        return;
    uint64_t since = cus_clock_ns();
    if (take(handed))
        do_it_here(handed);
    for (int i = 0; i < SPINS && is_busy(handed); i++)
        __builtin_ia32_pause();
    if (is_busy(handed))
        sleep_on(handed);
    handed->credit_ns -= (int64_t)(cus_clock_ns() - since);
}

bool cus_handed_wait_for(struct cus_handed *handed, uint64_t ns) {
    uint64_t until = cus_clock_ns() + ns;
    while (is_busy(handed) && cus_clock_ns() < until)
        cus_futex_wait(&handed->state, CUS_HANDED_BUSY, WAIT_NS);
    return !is_busy(handed);
}

/* ---- does it pay? ----
 *
 * A piece that is handed over saves the program's thread what it would have taken there, and costs
 * what waking the other thread takes and what is waited for it: where processors are wanted by
 * others that may be more. */

static void rest(struct cus_handed *handed) {
    handed->rests = handed->rests ? handed->rests * 2 : REST;
    if (handed->rests > REST_MAX)
        handed->rests = REST_MAX;
    handed->rest = handed->rests;
    handed->credit_ns = 0;
    handed->alone = 0;
}

bool cus_handed_pays(struct cus_handed *handed) {
    if (!cus_options()->demote)
        return true;
    if (handed->credit_ns < -LOSS_NS)
        rest(handed);
    if (handed->credit_ns > GAIN_NS) {
        handed->credit_ns = GAIN_NS;
        handed->rests = 0;
    }
    if (handed->rest) {
        handed->rest--;
        return false;
    }
    if (handed->alone < MEASURED || !handed->due)
        return false;
    handed->due--;
    return true;
}

void cus_handed_count(struct cus_handed *handed, bool over) {
    handed->counted += handed->counted < LATELY;
    handed->share +=
        ((over ? CUS_HANDED_ALL : 0) - (int32_t)handed->share) / (int32_t)handed->counted;
}

/* One that was held up, by another thread or a full queue, says nothing of those behind it: of the
 * first ones the fastest counts, of a later one twice the mean at most. */
void cus_handed_took(struct cus_handed *handed, uint64_t ns) {
    uint64_t mean = handed->alone_ns, most = 2 * mean;
    if (handed->alone < MEASURED)
        handed->alone_ns = handed->alone && mean < ns ? mean : ns;
    else
        handed->alone_ns = (mean * (PARTS - 1) + (ns < most ? ns : most)) / PARTS;
    handed->alone += handed->alone < MEASURED;
    handed->due = MEASURE;
}
