// Makes programs and settings from a seed. Pure functions.
#include <algorithm>
#include <vector>

#include "tests/fuzz/case.h"

namespace fuzz {

namespace {

enum Kind { LEGACY, PER_THREAD, BLOCKING, NON_BLOCKING, URGENT, LOW_BLOCKING };

const struct {
    const char *name;
    unsigned mostly, mixed, flags;
} verbs[] = {
#define SOLO 1u
#define ALL 2u
#define VERB(name, mostly, mixed, flags) {#name, mostly, mixed, flags},
#include "tests/fuzz/verbs.def"
#undef SOLO
#undef ALL
};

unsigned Draw(Random *r, bool mixed) {
    unsigned total = 0;
    for (const auto &verb : verbs) {
        total += mixed ? verb.mixed : verb.mostly;
    }
    unsigned at = r->Below(total), v = 0;
    for (;; v++) {
        unsigned weight = mixed ? verbs[v].mixed : verbs[v].mostly;
        if (at < weight) {
            return v;
        }
        at -= weight;
    }
}

bool MakesGraphs(unsigned verb) {
    switch (verb) {
    case FUZZ_capture:
    case FUZZ_fork:
    case FUZZ_capture_begin:
    case FUZZ_capture_end:
    case FUZZ_graph_launch:
    case FUZZ_graph_nodes:
    case FUZZ_ring_graph:
    case FUZZ_bad_handle:
        return true;
    default:
        return false;
    }
}

struct Maker {
    Random *r;
    fuzz_program p;
    bool mixed, steady, faults; // steady: nearly the same in each step
    unsigned main;              // the lane of most ops

    fuzz_op Op(unsigned verb, unsigned lane) {
        fuzz_op op = {};
        op.verb = static_cast<uint8_t>(verb);
        op.lane = static_cast<uint8_t>(lane);
        op.other = static_cast<uint8_t>(r->Below(p.lanes));
        op.buffer = static_cast<uint8_t>(r->Below(3));
        op.every = static_cast<uint8_t>(r->Chance(steady ? 96 : 82) ? 1 : 2 + r->Below(3));
        op.phase = static_cast<uint8_t>(r->Below(op.every));
        op.repeat = static_cast<uint8_t>(r->Chance(85) ? 1 : 2 + r->Below(4));
        op.vary = r->Chance(30);
        op.value = r->Below(1000);
        op.size = r->Of<int16_t>({1, 32, 64, 64, 100, 128, 200, 248});
        op.grow = static_cast<int16_t>(
            r->Chance(steady ? 92 : 85) ? 0 : static_cast<int>(r->Below(24)) - 8);
        return op;
    }
    void Add(fuzz_op op) {
        if (p.n_ops < FUZZ_OPS_MAX) {
            p.op[p.n_ops++] = op;
        }
    }
    unsigned Lane() { return r->Chance(70) ? main : r->Below(p.lanes); }

    // From begin to end with something in between, and launches of what came of it.
    void Capture() {
        unsigned lane = Lane();
        fuzz_op begin = Op(FUZZ_capture_begin, lane), end = Op(FUZZ_capture_end, lane);
        begin.repeat = end.repeat = 1;
        end.every = begin.every;
        end.phase = begin.phase;
        end.vary = 0;
        Add(begin);
        for (unsigned i = 1 + r->Below(5); i > 0; i--) {
            unsigned verb = Draw(r, r->Chance(15));
            Add(Op(verb, r->Chance(80) ? lane : r->Below(p.lanes)));
        }
        Add(end);
        if (r->Chance(60)) {
            fuzz_op launch = Op(FUZZ_graph_launch, lane);
            launch.value = end.value;
            Add(launch);
        }
    }
    // Something that comes now and then in the midst of what repeats: a segment that is partly
    // deferred is cut there.
    void Surprise() {
        unsigned verb = r->Of<unsigned>(
            {FUZZ_sync_stream,  FUZZ_sync_stream, FUZZ_sync_context,   FUZZ_query_until,
             FUZZ_event,        FUZZ_event_until, FUZZ_sync_d2h,       FUZZ_poll,
             FUZZ_poll_copy,    FUZZ_host_gate,   FUZZ_alloc_free,     FUZZ_new_stream,
             FUZZ_module_end,   FUZZ_extra_new,   FUZZ_capture,        FUZZ_d2h_pageable,
             FUZZ_legacy_take,  FUZZ_take,        FUZZ_sleep,          FUZZ_sync_memset,
             FUZZ_pinned_write, FUZZ_register,    FUZZ_scratch,        FUZZ_pool,
             FUZZ_pool_own,     FUZZ_pool_change, FUZZ_second,         FUZZ_second_end,
             FUZZ_value,        FUZZ_cross,       FUZZ_spin,           FUZZ_blocking_d2h,
             FUZZ_graph_launch, FUZZ_bad_launch,  FUZZ_func_attribute, FUZZ_limit,
             FUZZ_sync_far,     FUZZ_give_far,    FUZZ_ring_far,       FUZZ_ring_take,
             FUZZ_ring_read,    FUZZ_ring_new});
        if (faults && MakesGraphs(verb)) {
            return;
        }
        fuzz_op op = Op(verb, r->Chance(85) ? main : r->Below(p.lanes));
        op.every = static_cast<uint8_t>(3 + r->Below(6));
        op.phase = static_cast<uint8_t>(r->Below(op.every));
        unsigned legacy = 0;
        while (legacy < p.lanes && p.kind[legacy] != LEGACY) {
            legacy++;
        }
        if (legacy < p.lanes &&
            r->Chance(30)) { // what it takes from another lane may be deferred there
            op.verb = FUZZ_legacy_take;
            op.lane = static_cast<uint8_t>(legacy);
            op.other = static_cast<uint8_t>(legacy == main ? r->Below(p.lanes) : main);
        }
        unsigned at = r->Below(p.n_ops + 1);
        Insert(at, op);
        // What a host that has waited looks at, or the module that goes.
        if (verb == FUZZ_module_end || r->Chance(40)) {
            fuzz_op before =
                Op(verb == FUZZ_module_end ? FUZZ_module_use : FUZZ_d2h_pinned, op.lane);
            before.every = 1, before.phase = 0;
            Insert(at, before);
        }
    }
    // Steps that begin with the same few ops and then part: what is deferred by then may be the
    // beginning of either.
    void Tails(unsigned parts, unsigned heads) {
        for (unsigned i = 0; i < heads; i++) {
            fuzz_op op =
                Op(r->Of<unsigned>({FUZZ_chain, FUZZ_add, FUZZ_copy_words, FUZZ_memset32}), main);
            op.every = 1, op.phase = 0, op.repeat = 1;
            Add(op);
        }
        for (unsigned part = 0; part < parts; part++) {
            for (unsigned i = 1 + r->Below(6); i > 0; i--) {
                unsigned verb = Draw(r, r->Chance(4));
                if (faults && MakesGraphs(verb)) {
                    continue;
                }
                fuzz_op op = Op(verb, r->Chance(90) ? main : Lane());
                op.every = static_cast<uint8_t>(parts), op.phase = static_cast<uint8_t>(part);
                Add(op);
            }
        }
    }
    void Insert(unsigned at, fuzz_op op) {
        if (p.n_ops < FUZZ_OPS_MAX) {
            std::copy_backward(p.op + at, p.op + p.n_ops, p.op + p.n_ops + 1);
            p.op[at] = op;
            p.n_ops++;
        }
    }
    // Records among what repeats, of few events or of many, and something that sees them.
    void Rings(Random *rings) {
        unsigned few = rings->Chance(50) ? 1 + rings->Below(2) : 8;
        auto insert = [&](unsigned verb, unsigned lane) {
            fuzz_op op = Op(verb, lane);
            op.value = rings->Below(100) * 8 + rings->Below(few);
            op.vary = rings->Chance(15);
            Insert(rings->Below(p.n_ops + 1), op);
        };
        for (unsigned i = 1 + rings->Below(6); i > 0; i--) {
            insert(rings->Chance(75) ? FUZZ_ring_record : FUZZ_ring_down,
                   rings->Chance(85) ? main : rings->Below(p.lanes));
        }
        for (unsigned i = 1 + rings->Below(3); i > 0; i--) {
            insert(rings->Of<unsigned>({FUZZ_ring_read, FUZZ_ring_read, FUZZ_ring_query,
                                        FUZZ_ring_time, FUZZ_ring_new, FUZZ_ring_wait,
                                        FUZZ_ring_take, FUZZ_ring_over, FUZZ_ring_far,
                                        FUZZ_event_time, FUZZ_event_until}),
                   rings->Chance(75) ? main : rings->Below(p.lanes));
        }
    }
    // Another lane of the main lane's thread; a new one if there is none.
    unsigned Side(Random *forks) {
        std::vector<unsigned> sides;
        for (unsigned l = 0; l < p.lanes; l++) {
            if (l != main && p.thread[l] == p.thread[main]) {
                sides.push_back(l);
            }
        }
        if (!sides.empty()) {
            return sides[forks->Below(static_cast<unsigned>(sides.size()))];
        }
        if (p.lanes == FUZZ_LANES) {
            return main;
        }
        p.kind[p.lanes] = forks->Of<uint8_t>({NON_BLOCKING, NON_BLOCKING, BLOCKING, URGENT});
        p.thread[p.lanes] = p.thread[main];
        return p.lanes++;
    }
    // Forks and joins of one side lane in each step, and now and then something that it does, or
    // is asked, between them. The home may be the legacy stream.
    void Forks(Random *forks) {
        bool legacy = p.thread[main] != 0 || std::count(p.kind, p.kind + p.lanes, LEGACY);
        if (!legacy && forks->Chance(25)) {
            p.kind[main] = LEGACY;
        }
        unsigned side = Side(forks), events = forks->Below(3);
        unsigned at = forks->Below(p.n_ops + 1);
        for (unsigned i = forks->Below(3); i > 0; i--) {
            fuzz_op op = Op(forks->Chance(70) ? FUZZ_fork_same : FUZZ_fork_chain, main);
            op.other = static_cast<uint8_t>(side);
            op.value = forks->Below(1000);
            op.vary = forks->Chance(15);
            op.repeat = static_cast<uint8_t>(1 + forks->Below(2));
            Insert(forks->Chance(60) ? at : forks->Below(p.n_ops + 1), op);
        }
        for (unsigned i = 1 + forks->Below(2); i > 0; i--) {
            fuzz_op op = Op(forks->Chance(75) ? FUZZ_fork_join : FUZZ_fork_two, main);
            op.other = static_cast<uint8_t>(side);
            op.value = forks->Below(100) * 3 + (forks->Chance(85) ? events : forks->Below(3));
            op.vary = forks->Chance(15);
            op.repeat = 1;
            Insert(forks->Chance(60) ? at : forks->Below(p.n_ops + 1), op);
        }
        for (unsigned i = forks->Below(3); i > 0; i--) {
            fuzz_op op =
                Op(forks->Of<unsigned>({FUZZ_chain, FUZZ_chain, FUZZ_memset32, FUZZ_d2h_pinned,
                                        FUZZ_h2d_pageable, FUZZ_query, FUZZ_query_until,
                                        FUZZ_sync_stream, FUZZ_event, FUZZ_ring_read, FUZZ_take,
                                        FUZZ_host_func, FUZZ_pool, FUZZ_pool_own, FUZZ_new_stream}),
                   side);
            op.every = static_cast<uint8_t>(forks->Chance(30) ? 1 : 2 + forks->Below(6));
            op.phase = static_cast<uint8_t>(forks->Below(op.every));
            Insert(forks->Below(p.n_ops + 1), op);
        }
    }
    void Body(unsigned want) {
        while (p.n_ops < want) {
            unsigned verb = Draw(r, mixed || r->Chance(steady ? 4 : 8));
            if (faults && MakesGraphs(verb)) {
                continue;
            }
            if (verb == FUZZ_capture_begin && p.threads == 1) {
                Capture();
            } else {
                Add(Op(verb, Lane()));
            }
        }
    }
};

// What two neighbouring seeds or numbers make has nothing in common.
Random Seeded(uint64_t seed, uint64_t number, uint64_t salt) {
    Random a(seed ^ salt << 48);
    Random b(a.Next() ^ number);
    return Random(b.Next());
}

} // namespace

uint64_t Random::Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

const char *VerbName(unsigned verb) {
    return verbs[verb].name;
}

unsigned VerbFlags(unsigned verb) {
    return verbs[verb].flags;
}

Env MakeEnv(uint64_t seed, uint64_t batch) {
    Random r = Seeded(seed, batch, 1);
    Env env;
    unsigned first = r.Of<unsigned>({2, 3, 4, 4, 8});
    unsigned most = r.Of<unsigned>({2, 4, 8, 64, 1024, 1024});
    env["CUSPLICE_WARMUP"] = r.Of<const char *>({"1", "1", "2", "2", "3"});
    env["CUSPLICE_SEGMENT_FIRST"] = std::to_string(first);
    env["CUSPLICE_SEGMENT_MAX"] = std::to_string(std::max(first, most));
    env["CUSPLICE_HOLD_US"] = r.Of<const char *>({"50", "200", "1000", "1000", "5000"});
    env["CUSPLICE_VARIANTS"] = r.Of<const char *>({"1", "2", "4"});
    env["CUSPLICE_BUILD_NODES"] = r.Of<const char *>({"512", "512", "64", "8"});
    env["CUSPLICE_DEMOTE"] = r.Of<const char *>({"no", "no", "yes"});
    if (r.Chance(5)) {
        env["CUSPLICE_MODE"] = r.Of<const char *>({"eager", "observe"});
    }
    if (r.Chance(8)) {
        env["CUSPLICE_GRAPH_MB"] = r.Of<const char *>({"0", "1"});
    }
    std::string eager =
        r.Of<const char *>({"", "touch", "touch", "fill;add_scalar", "re:^ch", "copy_*",
                            "api:cuMemset*;touch", "api:cuMemcpyAsync;lib:no_such*"});
    if (!eager.empty()) {
        env["CUSPLICE_EAGER"] = eager;
    }
    env["CUSIM_GRAPH_RULES"] = r.Of<const char *>({"documented", "measured"});
    env["CUSIM_QUEUE_DEPTH"] = r.Of<const char *>({"1024", "1024", "64"});
    env["CUSPLICE_SUBMIT_NS"] = r.Of<const char *>({"0", "1", "1", "1000"});
    env["CUSIM_ORDER"] = r.Of<const char *>({"", "weak", "weak"});
    env["CUSIM_LOCKS"] = r.Of<const char *>({"", "measured"});
    env["CUDA_DEVICE_MAX_CONNECTIONS"] = r.Of<const char *>({"0", "1", "2", "8"});
    return env;
}

fuzz_program MakeProgram(uint64_t seed, uint64_t number, bool faults, bool many_threads) {
    Random r = Seeded(seed, number, 2);
    Maker m = {&r, {}, false, false, faults, 0};
    fuzz_program &p = m.p;
    p.threads = r.Chance(many_threads ? 25 : 75) ? 1 : 2 + r.Below(2);
    p.lanes = std::max(p.threads, r.Chance(35) ? 1 : 2 + r.Below(4));
    bool legacy = false, per_thread[FUZZ_LANES] = {};
    for (unsigned l = 0; l < p.lanes; l++) {
        p.thread[l] = static_cast<uint8_t>(l % p.threads);
        unsigned kind = r.Of<unsigned>({NON_BLOCKING, NON_BLOCKING, NON_BLOCKING, NON_BLOCKING,
                                        BLOCKING, BLOCKING, BLOCKING, LEGACY, URGENT, LOW_BLOCKING,
                                        l > 0 ? PER_THREAD : NON_BLOCKING});
        if (kind == LEGACY && (legacy || p.thread[l] != 0)) {
            kind = NON_BLOCKING;
        }
        legacy = legacy || kind == LEGACY;
        // Where there is a legacy stream, streams that are ordered with it make it matter.
        if (legacy && kind != LEGACY && r.Chance(50)) {
            kind = BLOCKING;
        }
        // A thread has one such stream; a capture of one lane would take what another one copies.
        if (kind == PER_THREAD && per_thread[p.thread[l]]) {
            kind = NON_BLOCKING;
        }
        per_thread[p.thread[l]] |= kind == PER_THREAD;
        p.kind[l] = static_cast<uint8_t>(kind);
    }
    m.main = r.Chance(70) ? 0 : r.Below(p.lanes);
    if (p.kind[m.main] == PER_THREAD && r.Chance(80)) { // nothing is deferred there
        m.main = 0;
    }
    if (r.Chance(6)) { // the legacy stream of one thread, and streams of another one that are
                       // ordered with it
        p.threads = p.lanes = 2;
        p.kind[0] = LEGACY,
        p.kind[1] = r.Of<uint8_t>({BLOCKING, BLOCKING, LOW_BLOCKING, PER_THREAD});
        p.thread[0] = 0, p.thread[1] = 1;
        std::fill(p.kind + 2, p.kind + FUZZ_LANES, 0);
        std::fill(p.thread + 2, p.thread + FUZZ_LANES, 0);
        m.main = r.Below(2);
    }
    unsigned kind = r.Below(100);
    m.steady = kind < 55;
    m.mixed = kind >= 78;
    p.steps = m.steady ? 10 + r.Below(14) : 4 + r.Below(9);
    unsigned want = r.Chance(20) ? 24 + r.Below(30) : 3 + r.Below(18);
    Random shape = Seeded(seed, number, 4);
    if (shape.Chance(15)) {
        m.steady = true;
        unsigned parts = 2 + shape.Below(4);
        p.steps = parts * (8 + shape.Below(8));
        m.Tails(parts, 1 + shape.Below(4));
        if (shape.Chance(30)) { // they part once more
            m.Tails(2, 1 + shape.Below(2));
        }
    } else {
        m.Body(m.steady ? want / 2 + 2 : want);
    }
    Random rings = Seeded(seed, number, 5);
    if (rings.Chance(33)) {
        m.Rings(&rings);
    }
    Random forks = Seeded(seed, number, 6);
    if (forks.Chance(33)) {
        m.Forks(&forks);
    }
    if (r.Chance(m.steady ? 85 : 65)) {
        fuzz_op sync = m.Op(r.Chance(80) ? FUZZ_sync_stream : FUZZ_query_until, 0);
        sync.every = 1, sync.phase = 0, sync.repeat = 1;
        m.Add(sync);
    }
    if (m.steady) {
        for (unsigned i = r.Below(4); i > 0; i--) {
            m.Surprise();
        }
    }
    return p;
}

std::string MakeFault(uint64_t seed, uint64_t number) {
    Random r = Seeded(seed, number, 3);
    // Calls that a program without graphs of its own never makes. 1: invalid value, 2: out of
    // memory.
    const char *symbol =
        r.Of<const char *>({"cuGraphExecKernelNodeSetParams_v2", "cuGraphExecMemsetNodeSetParams",
                            "cuGraphExecMemcpyNodeSetParams", "cuGraphInstantiateWithFlags",
                            "cuGraphLaunch", "cuStreamBeginCapture_v2", "cuStreamEndCapture",
                            "cuGraphUpload", "cuGraphMemcpyNodeGetParams",
                            "cuGraphKernelNodeGetAttribute", "cuGraphExecEventRecordNodeSetEvent"});
    std::string which =
        std::to_string(1 + r.Below(r.Chance(50) ? 3 : 20)) + (r.Chance(30) ? "+" : "");
    return std::string(symbol) + ":" + which + ":" + r.Of<const char *>({"1", "2"});
}

} // namespace fuzz
