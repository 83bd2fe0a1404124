/*
 * Forked streams that are not joined at once, that work behind the join without a new fork, that
 * are forked by old events, and that another thread names. forks.h has the parts.
 *
 * Main thread; the second thread of fork_thread waits, queries and launches as its comment says.
 */
#include "harness/scenario/forks.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

enum { ROW = 64 };

static void two_layers(struct forks *f, unsigned salt) {
    for (unsigned i = 0; i < 2; i++) {
        sc_forks_layer(f, f->b, f->e[0], f->e[1], salt + i);
    }
}

/* Without sleeping. */
static void ask_stream(struct sc *sc, CUstream s) {
    CUresult code;
    while ((code = sc->cu.StreamQuery(s)) == CUDA_ERROR_NOT_READY) {
        sched_yield();
    }
    OK(code);
}

static void ask_event(struct sc *sc, CUevent e) {
    CUresult code;
    while ((code = sc->cu.EventQuery(e)) == CUDA_ERROR_NOT_READY) {
        sched_yield();
    }
    OK(code);
}

static void poll_word(const unsigned *word, unsigned value) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
        sched_yield();
    }
}

/* b is joined in the next step, or the host waits for it instead; c is never joined, and works on
 * words that nobody changes afterwards. */
int sc_run_fork_open(struct sc *sc) {
    struct forks f;
    bool open = false;
    sc_forks_start(sc, &f);
    unsigned steps = sc_steps(sc, 72);
    CUdeviceptr given = sc_device(sc, "given", ROW * steps);
    for (unsigned step = 0; step < steps; step++) {
        unsigned how = step % 6;
        CUdeviceptr row = given + step * ROW * 4;
        if (open) {
            OK(sc->cu.StreamWaitEvent(f.a, f.e[2], 0));
            sc_forks_behind(&f, step);
        }
        two_layers(&f, step);
        open = how == 3;
        if (how == 3 || how == 4) {
            sc_forks_order(&f, f.a, f.e[0], f.b);
            sc_forks_both(&f, f.b, step);
            OK(sc->cu.EventRecord(f.e[2], f.b));
        }
        if (how == 4) {
            OK(sc->cu.EventSynchronize(f.e[2]));
            sc_forks_behind(&f, step);
        }
        if (how == 5) {
            sc_copy(sc, f.a, row, f.x, ROW);
            sc_forks_order(&f, f.a, f.e[3], f.c);
            sc_copy(sc, f.c, f.v, row, ROW);
            sc_forks_sum(&f, f.c, f.v);
        }
        if (how != 0) {
            OK(sc->cu.StreamSynchronize(f.a));
        }
    }
    sc_digest(sc);
    return 0;
}

struct late {
    struct forks f;
    CUdeviceptr t;  /* of c */
    unsigned *seen; /* b copies w here at the end of each step */
    uint64_t said;  /* what b's host functions and the host found there */
};

static void look(struct late *l) {
    l->said = sc_hash(l->said, l->seen, FORK_N * 4);
}

static void CUDA_CB look_in_order(void *data) {
    look(data);
}

static void CUDA_CB look_called_back(CUstream s, CUresult code, void *data) {
    (void)s, (void)code;
    look(data);
}

/* The host looks at what b left. */
static bool looks(struct late *l, unsigned form) {
    struct forks *f = &l->f;
    struct sc *sc = f->sc;
    switch (form) {
    case 0:
        ask_stream(sc, f->b);
        break;
    case 1:
        OK(sc->cu.StreamSynchronize(f->b));
        break;
    case 2:
        OK(sc->cu.EventRecord(f->e[2], f->b));
        OK(sc->cu.EventSynchronize(f->e[2]));
        break;
    case 3:
        OK(sc->cu.EventSynchronize(f->e[1]));
        break;
    case 4:
        ask_event(sc, f->e[1]);
        break;
    case 5:
        OK(sc->cu.CtxSynchronize());
        break;
    default:
        return false;
    }
    look(l);
    return true;
}

static void with_pool(struct late *l, unsigned step) {
    struct forks *f = &l->f;
    CUdeviceptr p;
    OK(f->sc->cu.MemAllocAsync(&p, FORK_N * 4, f->b));
    sc_fill(f->sc, f->b, p, step, FORK_N);
    sc_copy(f->sc, f->b, f->w, p, FORK_N / 4);
    OK(f->sc->cu.MemFreeAsync(p, f->b));
}

/* The stream goes with work in it; the next one may get its handle, and waits for the join event
 * that was recorded on it. */
static void anew(struct forks *f) {
    OK(f->sc->cu.StreamDestroy(f->b));
    OK(f->sc->cu.StreamCreate(&f->b, CU_STREAM_NON_BLOCKING));
    OK(f->sc->cu.StreamWaitEvent(f->b, f->e[1], 0));
}

/* b goes on without a fork. */
static void goes_on(struct late *l, unsigned form, unsigned step) {
    struct forks *f = &l->f;
    struct sc *sc = f->sc;
    unsigned loose[8] = {step, step + 1, 7};
    switch (form) {
    case 6:
        break; /* with the launch below */
    case 7:
        OK(sc->cu.MemcpyDtoDAsync(f->v, f->w, FORK_N * 4, f->b));
        break;
    case 8:
        OK(sc->cu.MemcpyHtoDAsync(f->w, loose, sizeof(loose), f->b));
        break;
    case 9:
        OK(sc->cu.MemsetD32Async(f->w, step, 8, f->b));
        break;
    case 10: /* behind c */
        sc_forks_chain(f, f->c, l->t, step);
        sc_forks_order(f, f->c, f->e[3], f->b);
        sc_copy(sc, f->b, f->w, l->t, FORK_N / 4);
        sc_forks_order(f, f->b, f->e[4], f->c);
        sc_forks_chain(f, f->c, l->t, step + 1);
        break;
    case 11: /* c behind b, by the join event */
        OK(sc->cu.StreamWaitEvent(f->c, f->e[1], 0));
        sc_copy(sc, f->c, l->t, f->w, FORK_N);
        sc_forks_sum(f, f->c, l->t);
        sc_forks_order(f, f->c, f->e[3], f->b);
        break;
    case 12:
        with_pool(l, step);
        break;
    case 13:
        OK(sc->cu.LaunchHostFunc(f->b, look_in_order, l));
        break;
    case 14:
        OK(sc->cu.StreamAddCallback(f->b, look_called_back, l, 0));
        break;
    default:
        anew(f);
        break;
    }
    sc_forks_chain(f, f->b, f->w, step);
    sc_forks_sum(f, f->b, f->w);
}

/* Behind the join the next call for the forked stream is not a fork. */
int sc_run_fork_late(struct sc *sc) {
    enum { FORMS = 16 };
    static struct late l;
    struct forks *f = &l.f;
    sc_forks_start(sc, f);
    l.t = sc_device(sc, "t", FORK_N);
    l.seen = sc_pinned(sc, "seen", FORK_N * 4);
    for (unsigned step = 0; step < sc_steps(sc, 3 * 3 * FORMS); step++) {
        sc_forks_layer(f, f->b, f->e[0], f->e[1], step);
        sc_forks_chain(f, f->a, f->x, step);
        sc_forks_order(f, f->a, f->e[0], f->b);
        sc_forks_both(f, f->b, step + 1);
        OK(sc->cu.MemcpyDtoHAsync(l.seen, f->w, FORK_N * 4, f->b));
        sc_forks_order(f, f->b, f->e[1], f->a);
        sc_forks_behind(f, step);
        if (step % 3 == 2 && !looks(&l, step / 3 % FORMS)) {
            goes_on(&l, step / 3 % FORMS, step);
        }
        if (step % 3 != 2) {
            OK(sc->cu.StreamSynchronize(f->a));
        }
    }
    OK(sc->cu.CtxSynchronize());
    sc_say(sc, "seen: %016llx", (unsigned long long)l.said);
    sc_digest(sc);
    return 0;
}

/* b copies the row, which a wrote in front of the event. With `again` a records the event behind
 * the wait. */
static void takes(struct forks *f, CUevent e, CUdeviceptr row, bool again) {
    OK(f->sc->cu.StreamWaitEvent(f->b, e, 0));
    if (again) {
        OK(f->sc->cu.EventRecord(e, f->a));
    }
    sc_copy(f->sc, f->b, f->v, row, ROW);
    sc_forks_sum(f, f->b, f->v);
    sc_forks_order(f, f->b, f->e[1], f->a);
    sc_forks_sum(f, f->a, f->v);
}

/* b waits for an event that was recorded some ops, or a step, before; for one that was recorded
 * again meanwhile; for one that is recorded again behind the wait. */
int sc_run_fork_old(struct sc *sc) {
    struct forks f;
    sc_forks_start(sc, &f);
    unsigned steps = sc_steps(sc, 80);
    CUdeviceptr rows = sc_device(sc, "rows", ROW * steps);
    for (unsigned step = 0; step < steps; step++) {
        CUdeviceptr row = rows + step * ROW * 4;
        unsigned how = step % 5;
        if (how == 4) { /* of the step before */
            takes(&f, f.e[2], row - ROW * 4, false);
        }
        two_layers(&f, step);
        if (how == 1) {
            OK(sc->cu.EventRecord(f.e[2], f.a));
        }
        sc_copy(sc, f.a, row, f.x, ROW);
        OK(sc->cu.EventRecord(f.e[2], f.a));
        sc_forks_chain(&f, f.a, f.x, step);
        sc_forks_chain(&f, f.a, f.y, step);
        if (how < 3) {
            takes(&f, f.e[2], row, how == 2);
        }
        sc_forks_chain(&f, f.a, f.x, step + 1);
        if (how == 0) {
            OK(sc->cu.StreamSynchronize(f.a));
        }
    }
    sc_digest(sc);
    return 0;
}

/* The host polls a word that b sets, with no call: in the midst of the region, behind the join, or
 * not at all. */
int sc_run_fork_poll(struct sc *sc) {
    struct forks f;
    CUdeviceptr flag;
    sc_forks_start(sc, &f);
    unsigned *word = sc_pinned(sc, "word", 64);
    OK(sc->cu.MemHostGetDevicePointer(&flag, word, 0));
    for (unsigned step = 0; step < sc_steps(sc, 80); step++) {
        sc_forks_layer(&f, f.b, f.e[0], f.e[1], step);
        sc_forks_chain(&f, f.a, f.x, step);
        sc_forks_order(&f, f.a, f.e[0], f.b);
        sc_forks_both(&f, f.b, step);
        sc_set_flag(sc, f.b, flag, step + 1);
        if (step % 8 == 7) {
            poll_word(word, step + 1);
        }
        sc_forks_order(&f, f.b, f.e[1], f.a);
        sc_forks_behind(&f, step);
        if (step % 8 == 3) {
            poll_word(word, step + 1);
        }
        OK(sc->cu.StreamSynchronize(f.a));
    }
    sc_digest(sc);
    return 0;
}

enum { SLOTS = 4 };

struct other {
    struct forks f;
    unsigned steps;
    CUstream s;
    CUevent join[SLOTS];
    unsigned *seen[SLOTS]; /* b copies w here in front of the join */
    CUdeviceptr z[SLOTS], t;
    uint64_t said;
    sem_t ready, free, launched;
};

/* What the second thread does in a step; nobody changes the slot until it is through. In each fifth
 * step it launches on b, while the first thread waits. */
static void looks_on(struct other *o, unsigned step) {
    struct forks *f = &o->f;
    struct sc *sc = f->sc;
    unsigned slot = step % SLOTS;
    switch (step % 5) {
    case 0:
        OK(sc->cu.EventSynchronize(o->join[slot]));
        break;
    case 1:
        OK(sc->cu.StreamSynchronize(f->b));
        break;
    case 2:
        ask_stream(sc, f->a);
        break;
    case 3:
        OK(sc->cu.StreamWaitEvent(o->s, o->join[slot], 0));
        sc_copy(sc, o->s, o->t, o->z[slot], FORK_N / 2);
        sc_checksum(sc, o->s, o->t + FORK_N * 4, o->t, FORK_N * 4);
        OK(sc->cu.StreamSynchronize(o->s));
        break;
    default:
        sc_forks_chain(f, f->b, f->w, step);
        ask_event(sc, o->join[slot]);
        sem_post(&o->launched);
        break;
    }
    o->said = sc_hash(o->said, o->seen[slot], FORK_N * 4);
}

static void *second_thread(void *arg) {
    struct other *o = arg;
    struct sc *sc = o->f.sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned step = 0; step < o->steps; step++) {
        sem_wait(&o->ready);
        looks_on(o, step);
        sem_post(&o->free);
    }
    return NULL;
}

static void slot_of_a_step(struct other *o, unsigned step) {
    struct forks *f = &o->f;
    struct sc *sc = f->sc;
    unsigned slot = step % SLOTS;
    sem_wait(&o->free);
    sc_forks_layer(f, f->b, f->e[0], f->e[1], step);
    sc_forks_chain(f, f->a, f->x, step);
    sc_forks_order(f, f->a, f->e[0], f->b);
    sc_forks_both(f, f->b, step);
    sc_copy(sc, f->b, o->z[slot], f->z, FORK_N);
    OK(sc->cu.MemcpyDtoHAsync(o->seen[slot], f->w, FORK_N * 4, f->b));
    sc_forks_order(f, f->b, o->join[slot], f->a);
    sem_post(&o->ready);
    if (step % 5 == 4) {
        sem_wait(&o->launched);
    }
    sc_forks_behind(f, step);
}

/* Another thread waits for the streams of a fork, or for the join, or launches. */
int sc_run_fork_thread(struct sc *sc) {
    static struct other o;
    pthread_t thread;
    sc_forks_start(sc, &o.f);
    OK(sc->cu.StreamCreate(&o.s, CU_STREAM_NON_BLOCKING));
    o.steps = sc_steps(sc, 60);
    o.t = sc_device(sc, "t", FORK_N + 2);
    for (unsigned i = 0; i < SLOTS; i++) {
        OK(sc->cu.EventCreate(&o.join[i], CU_EVENT_DISABLE_TIMING));
        o.seen[i] = sc_pinned(sc, "seen", FORK_N * 4);
        o.z[i] = sc_device(sc, "slot", FORK_N);
    }
    if (sem_init(&o.ready, 0, 0) || sem_init(&o.free, 0, SLOTS) || sem_init(&o.launched, 0, 0) ||
        pthread_create(&thread, NULL, second_thread, &o)) {
        sc_fail("no thread");
    }
    for (unsigned step = 0; step < o.steps; step++) {
        slot_of_a_step(&o, step);
        if (step % 4 == 1) {
            OK(sc->cu.StreamSynchronize(o.f.a));
        }
    }
    pthread_join(thread, NULL);
    sc_say(sc, "seen: %016llx", (unsigned long long)o.said);
    sc_digest(sc);
    return 0;
}
