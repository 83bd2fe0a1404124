/*
 * The memory of one execution, after RC11 (Lahav et al., PLDI 2017): each location has a list of
 * messages in modification order; a thread sees what its view holds, and a load takes any message
 * that is not older. A read takes a message that is there, so nothing comes out of thin air. Events
 * of sequential consistency are checked by the cycle condition itself (psc), when an event could
 * close a cycle.
 */
#include "tests/order/model.h"

#include <stdlib.h>
#include <string.h>

#undef NDEBUG
#include "tests/order/order.h"

struct order *order_now;

uint64_t model_mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static struct thread *me(void) {
    return &order_now->thread[order_now->current];
}

static bool acquires(int order) {
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST ||
           order == __ATOMIC_CONSUME;
}

static bool releases(int order) {
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static bool is_weakened(const struct order_site *site) {
    order_now->executed[site->group] = true;
    return site->group == order_now->group;
}

static int order_of(const struct order_site *site) {
    return is_weakened(site) && order_now->to >= 0 ? order_now->to : site->order;
}

static int failure_of(const struct order_site *site) {
    return is_weakened(site) && order_now->failure_to >= 0 ? order_now->failure_to : site->failure;
}

/* ---- locations ---- */

static uint64_t value_at(const volatile void *at, size_t bytes) {
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)at, bytes);
    return value;
}

static struct location *noticed(struct location *l);

struct location *model_location(const volatile void *at, size_t bytes) {
    struct order *o = order_now;
    for (unsigned i = 0; i < o->n_locations; i++)
        if (o->location[i].address == at)
            return noticed(&o->location[i]);
    if (o->n_locations == LOCATIONS) {
        explore_fault("too many atomic variables: raise LOCATIONS");
        abort();
    }
    /* What was written before the first atomic access is what everybody has seen. */
    struct location *l = &o->location[o->n_locations++];
    l->address = at;
    l->bytes = bytes;
    l->n = 1;
    l->woken = 0;
    l->order[0] = 0;
    l->message[0] = (struct message){.value = value_at(at, bytes), .event = -1};
    l->message[0].id = model_mix(1, l->message[0].value);
    return l;
}

static unsigned index_of(const struct location *l) {
    return (unsigned)(l - order_now->location);
}

static struct message *latest(struct location *l) {
    return &l->message[l->order[l->n - 1]];
}

/* A plain write, which is ordered with all atomic ones or a race, is the latest message. */
static struct location *noticed(struct location *l) {
    struct thread *t = me();
    uint64_t value = value_at(l->address, l->bytes);
    if (value == latest(l)->value)
        return l;
    if (order_now->alone) {
        l->message[0].value = value;
        l->message[0].id = model_mix(1, value);
        return l;
    }
    uint8_t m = l->n++;
    l->message[m] = (struct message){
        .value = value, .place = m, .event = -1, .id = model_mix(t->history, value)};
    l->message[m].view.at[index_of(l)] = m;
    l->order[m] = m;
    t->view.at[index_of(l)] = m;
    return l;
}

void model_acquire(struct view *view, const struct view *other) {
    struct order *o = order_now;
    for (unsigned i = 0; i < o->n_locations; i++)
        if (o->location[i].message[other->at[i]].place > o->location[i].message[view->at[i]].place)
            view->at[i] = other->at[i];
    for (unsigned i = 0; i < THREADS; i++)
        if (other->clock[i] > view->clock[i])
            view->clock[i] = other->clock[i];
}

void model_see(struct view *view, unsigned location) {
    const struct location *l = &order_now->location[location];
    view->at[location] = l->order[l->n - 1];
}

/* ---- events ---- */

static struct event *add_event(uint8_t what, const struct location *l, bool sc,
                               const struct order_site *site, uint64_t value) {
    struct order *o = order_now;
    struct thread *t = me();
    if (o->n_events == EVENTS) {
        o->capped = true;
        explore_prune();
    }
    struct event *event = &o->event[o->n_events++];
    event->thread = (uint8_t)o->current;
    event->what = what;
    event->location = l ? (uint8_t)index_of(l) : UINT8_MAX;
    event->sc = sc;
    event->old = false;
    event->site = site;
    event->value = value;
    event->number = ++t->view.clock[o->current];
    memcpy(event->clock, t->view.clock, sizeof event->clock);
    return event;
}

/* An acquiring read sees more than the event was made with. */
static void sees(struct event *event) {
    memcpy(event->clock, me()->view.clock, sizeof event->clock);
}

static bool before(const struct event *a, const struct event *b) { /* happens before */
    return a != b && b->clock[a->thread] >= a->number;
}

static unsigned place_of(const struct event *e, bool written) {
    const struct location *l = &order_now->location[e->location];
    return l->message[written ? e->written : e->read].place;
}

static bool same_place(const struct event *a, const struct event *b) {
    return a->location == b->location && a->location != UINT8_MAX;
}

/* mo or fr. */
static bool is_overwritten(const struct event *a, const struct event *b) {
    return same_place(a, b) && b->what & WRITE &&
           ((a->what & WRITE && place_of(a, true) < place_of(b, true)) ||
            (a->what & READ && place_of(a, false) < place_of(b, true) && a != b));
}

static bool eco(const struct event *a, const struct event *b) {
    if (!same_place(a, b) || a == b)
        return false;
    if (is_overwritten(a, b))
        return true;
    unsigned to = b->what & READ ? place_of(b, false) : 0;
    return b->what & READ && ((a->what & WRITE && place_of(a, true) <= to) ||
                              (a->what & READ && place_of(a, false) < to));
}

/* For sb without an access of the same location at both ends, hb, and the same again: the first
 * later event of the thread that is at another location, and the last earlier one. NULL: there is
 * none. */
static const struct event *beside(const struct event *e, bool later) {
    const struct order *o = order_now;
    const struct event *found = NULL;
    for (unsigned i = 0; i < o->n_events; i++) {
        const struct event *other = &o->event[i];
        if (other->thread != e->thread || same_place(other, e))
            continue;
        if (later && other->number > e->number)
            return other;
        if (!later && other->number < e->number)
            found = other;
    }
    return found;
}

static bool scb(const struct event *a, const struct event *b) {
    if (a == b)
        return false;
    if (is_overwritten(a, b))
        return true;
    if (!before(a, b))
        return false;
    if (a->thread == b->thread || same_place(a, b))
        return true;
    const struct event *c = order_now->work.later[a - order_now->event],
                       *d = order_now->work.earlier[b - order_now->event];
    return c && d && (c == d || before(c, d));
}

static bool is_fence(const struct event *e) {
    return e->what & FENCE;
}

static void set_bit(uint64_t *row, unsigned i) {
    row[i / 64] |= (uint64_t)1 << i % 64;
}

static bool bit(const uint64_t *row, unsigned i) {
    return row[i / 64] >> i % 64 & 1;
}

static void join_rows(uint64_t *row, const uint64_t *other) {
    for (unsigned w = 0; w < EVENTS / 64; w++)
        row[w] |= other[w];
}

static bool meet(const uint64_t *row, const uint64_t *other) {
    for (unsigned w = 0; w < EVENTS / 64; w++)
        if (row[w] & other[w])
            return true;
    return false;
}

/* All events to which psc leads from `from`: by scb from it, or from what is behind it if it is a
 * fence, to another, or to a fence behind that. Between two fences eco counts too. */
static void psc_row(unsigned from, uint64_t *row) {
    struct order *o = order_now;
    struct work *work = &o->work;
    uint64_t to[EVENTS / 64] = {0}, eco_to[EVENTS / 64] = {0};
    bool fence = is_fence(&o->event[from]);
    join_rows(to, work->scb[from]);
    for (unsigned i = 0; fence && i < o->n_events; i++)
        if (before(&o->event[from], &o->event[i])) {
            join_rows(to, work->scb[i]);
            join_rows(eco_to, work->eco[i]);
            set_bit(eco_to, i);
        }
    for (unsigned j = 0; j < o->n_events; j++) {
        const struct event *e = &o->event[j];
        if (is_fence(e) ? bit(to, j) || meet(to, work->before[j]) || meet(eco_to, work->before[j])
                        : e->sc && bit(to, j))
            set_bit(row, j);
    }
}

/* Is psc without a cycle? */
bool model_consistent(void) {
    struct order *o = order_now;
    struct work *work = &o->work;
    memset(work, 0, sizeof *work);
    for (unsigned i = 0; i < o->n_events; i++) {
        work->later[i] = beside(&o->event[i], true);
        work->earlier[i] = beside(&o->event[i], false);
    }
    for (unsigned i = 0; i < o->n_events; i++)
        for (unsigned j = 0; j < o->n_events; j++) {
            const struct event *a = &o->event[i], *b = &o->event[j];
            if (scb(a, b))
                set_bit(work->scb[i], j);
            if (o->fenced && eco(a, b))
                set_bit(work->eco[i], j);
            if (is_fence(b) && before(a, b))
                set_bit(work->before[j], i);
        }
    for (unsigned i = 0; i < o->n_events; i++)
        if (o->event[i].sc || is_fence(&o->event[i]))
            psc_row(i, work->psc[i]);
    for (unsigned k = 0; k < o->n_events; k++)
        for (unsigned i = 0; i < o->n_events; i++)
            if (bit(work->psc[i], k))
                join_rows(work->psc[i], work->psc[k]);
    for (unsigned i = 0; i < o->n_events; i++)
        if (bit(work->psc[i], i))
            return false;
    return true;
}

static void must_be_consistent(bool sc) {
    if ((sc || order_now->fenced) && !model_consistent())
        explore_prune();
}

/* ---- accesses ---- */

/* The messages that a read may take, the latest first. */
unsigned model_choices(const struct location *l, uint8_t from, uint8_t *out) {
    unsigned n = 0;
    for (unsigned place = l->n; place-- > l->message[from].place;)
        out[n++] = l->order[place];
    return n;
}

static unsigned readable(const struct location *l, uint8_t *out) {
    const struct thread *t = me();
    unsigned x = index_of(l), n = model_choices(l, t->view.at[x], out);
    /* A thread that paused sees a later message at last. */
    if (t->newer >> x & 1)
        while (n > 1 && l->message[out[n - 1]].place <= l->message[t->last[x]].place)
            n--;
    return n;
}

static void read_message(struct location *l, uint8_t m, int order, struct event *event) {
    struct thread *t = me();
    unsigned x = index_of(l);
    t->view.at[x] = m;
    if (acquires(order))
        model_acquire(&t->view, &l->message[m].view);
    sees(event);
    event->read = m;
    t->last[x] = m;
    t->read |= (uint64_t)1 << x;
    t->newer &= ~((uint64_t)1 << x);
    t->history = model_mix(t->history, l->message[m].id);
}

static uint64_t read_at_all(const struct order_site *site, struct location *l, uint8_t m,
                            int order) {
    bool sc = order == __ATOMIC_SEQ_CST;
    struct event *event = add_event(READ, l, sc, site, l->message[m].value);
    read_message(l, m, order, event);
    event->old = &l->message[m] != latest(l);
    if (event->old)
        must_be_consistent(sc);
    return l->message[m].value;
}

uint64_t order_load(const struct order_site *site, const volatile void *at, size_t bytes) {
    struct location *l = model_location(at, bytes);
    uint8_t out[MESSAGES];
    race_atomic(at, false);
    if (order_now->alone)
        return latest(l)->value;
    explore_point();
    int order = order_of(site);
    unsigned n = readable(l, out);
    return read_at_all(site, l, out[explore_choose(n)], order);
}

static struct message *write_message(struct location *l, unsigned place, uint64_t value, int order,
                                     struct event *event) {
    struct order *o = order_now;
    struct thread *t = me();
    if (l->n == MESSAGES) {
        o->capped = true;
        explore_prune();
    }
    uint8_t m = l->n++;
    for (unsigned i = l->n - 1u; i > place; i--) {
        l->order[i] = l->order[i - 1];
        l->message[l->order[i]].place = (uint8_t)i;
    }
    l->order[place] = m;
    l->message[m] = (struct message){
        .value = value,
        .place = (uint8_t)place,
        .event = (int)(event - o->event),
        .id = model_mix(model_mix(o->current, t->view.clock[o->current]), t->history)};
    t->view.at[index_of(l)] = m;
    if (releases(order))
        l->message[m].view = t->view;
    else
        l->message[m].view.at[index_of(l)] = m;
    event->written = m;
    if (place == l->n - 1u)
        memcpy((void *)(uintptr_t)l->address, &value, l->bytes);
    return &l->message[m];
}

static uint64_t cut(uint64_t value, size_t bytes) {
    return bytes == 8 ? value : value & (((uint64_t)1 << bytes * 8) - 1);
}

static void write_alone(struct location *l, uint64_t value) {
    l->message[0].value = value;
    l->message[0].id = model_mix(1, value);
    memcpy((void *)(uintptr_t)l->address, &value, l->bytes);
}

void order_store(const struct order_site *site, volatile void *at, size_t bytes, uint64_t value) {
    struct location *l = model_location(at, bytes);
    value = cut(value, bytes);
    if (order_now->alone) {
        race_atomic(at, true);
        write_alone(l, value);
        return;
    }
    explore_point();
    race_atomic(at, true);
    int order = order_of(site);
    bool sc = order == __ATOMIC_SEQ_CST;
    /* Behind what the thread has seen, and not between an RMW and what that has read. */
    unsigned places[MESSAGES], n = 0, least = l->message[me()->view.at[index_of(l)]].place + 1u;
    for (unsigned place = l->n; place >= least; place--)
        if (place == l->n || !l->message[l->order[place - 1]].bound)
            places[n++] = place;
    unsigned place = places[explore_choose(n)];
    bool last = place == l->n;
    struct event *event = add_event(WRITE, l, sc, site, value);
    write_message(l, place, value, order, event);
    if (!last)
        must_be_consistent(sc);
}

static uint64_t change(const struct order_site *site, struct location *l, uint64_t value,
                       int order) {
    struct message *from = latest(l);
    struct event *event = add_event(READ | WRITE, l, order == __ATOMIC_SEQ_CST, site, value);
    uint64_t old = from->value;
    read_message(l, l->order[l->n - 1], order, event);
    from->bound = true;
    struct message *to = write_message(l, l->n, value, order, event);
    /* The release sequence goes on. */
    model_acquire(&to->view, &from->view);
    to->view.at[index_of(l)] = (uint8_t)(to - l->message);
    return old;
}

uint64_t order_rmw(const struct order_site *site, volatile void *at, size_t bytes,
                   enum order_sum sum, uint64_t value) {
    struct location *l = model_location(at, bytes);
    if (!order_now->alone) {
        explore_point();
    }
    race_atomic(at, true);
    uint64_t old = latest(l)->value, all = sum == ORDER_ADD   ? old + value
                                           : sum == ORDER_SUB ? old - value
                                           : sum == ORDER_OR  ? old | value
                                           : sum == ORDER_AND ? old & value
                                                              : value;
    all = cut(all, bytes);
    if (order_now->alone)
        write_alone(l, all);
    else
        change(site, l, all, order_of(site));
    return old;
}

bool order_cas(const struct order_site *site, volatile void *at, size_t bytes, void *expected,
               uint64_t desired) {
    struct location *l = model_location(at, bytes);
    uint64_t wanted = value_at(expected, bytes);
    desired = cut(desired, bytes);
    race_atomic(at, true);
    if (order_now->alone) {
        uint64_t old = latest(l)->value;
        memcpy(expected, &old, bytes);
        if (old == wanted)
            write_alone(l, desired);
        return old == wanted;
    }
    explore_point();
    /* It takes the latest message if that is the wanted one; it fails with any other. */
    uint8_t out[MESSAGES], may[MESSAGES];
    unsigned n = readable(l, out), all = 0;
    for (unsigned i = 0; i < n; i++)
        if (l->message[out[i]].value != wanted || i == 0)
            may[all++] = out[i];
    uint8_t m = may[explore_choose(all)];
    if (l->message[m].value == wanted) {
        change(site, l, desired, order_of(site));
        return true;
    }
    uint64_t read = read_at_all(site, l, m, failure_of(site));
    memcpy(expected, &read, bytes);
    return false;
}

/* ---- futexes ----
 *
 * The kernel orders the value that a sleeper reads by a full barrier, and so does a thread that
 * wakes sleepers. Code that counts on more than the order of these two is wrong here. */

void model_fence(void) {
    order_now->fenced = true;
    add_event(FENCE, NULL, false, NULL, 0);
}

uint64_t model_wait(const volatile void *at) {
    struct location *l = model_location(at, 4);
    uint8_t out[MESSAGES];
    unsigned n = readable(l, out);
    while (n > 1 && l->message[out[n - 1]].place < l->message[l->woken].place)
        n--;
    race_atomic(at, false);
    return read_at_all(NULL, l, out[explore_choose(n)], __ATOMIC_RELAXED);
}

void model_woken(const volatile void *at) {
    struct location *l = model_location(at, 4);
    uint8_t seen = me()->view.at[index_of(l)];
    if (l->message[seen].place > l->message[l->woken].place)
        l->woken = seen;
}

/* ---- what there is ---- */

void model_begin(void) {
    order_now->n_locations = order_now->n_events = 0;
    order_now->fenced = false;
}

/* Two executions with the same hash go on alike: a thread does what follows from what it has read.
 */
uint64_t model_state(void) {
    const struct order *o = order_now;
    uint64_t hash = 0;
    for (unsigned i = 0; i < o->n_locations; i++) {
        const struct location *l = &o->location[i];
        uint64_t one = model_mix(7, (uintptr_t)l->address);
        for (unsigned place = 0; place < l->n; place++)
            one = model_mix(one, l->message[l->order[place]].id);
        if (l->n > 1)
            hash += model_mix(one, l->message[l->woken].place);
    }
    for (unsigned i = 1; i <= o->n_threads; i++) {
        const struct thread *t = &o->thread[i];
        uint64_t one = model_mix(model_mix(i, t->history), t->status);
        one = model_mix(one, (uint64_t)t->begun << 1 | t->timed);
        one = model_mix(one, t->view.clock[i]);
        hash += model_mix(one, t->status == ASLEEP ? (uintptr_t)t->word : t->newer != 0);
    }
    return hash;
}
