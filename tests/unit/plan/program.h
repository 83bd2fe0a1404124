// A small program for the plan: kinds with one 8-byte and one 4-byte argument, a loop that defers,
// issues and launches as shim/stream does, and a journal of everything issued.
#ifndef CUSPLICE_TESTS_UNIT_PLAN_PROGRAM_H
#define CUSPLICE_TESTS_UNIT_PLAN_PROGRAM_H

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

extern "C" {
#include "shim/plan/state.h"
}

// What an exec stands for here: the ops that it would run.
struct cus_exec {
    std::vector<std::string> ops;
};

inline std::string OpText(const cus_kind *kind, const uint32_t *dims, const uint8_t *params) {
    uint64_t pointer;
    uint32_t scalar;
    memcpy(&pointer, params, 8);
    memcpy(&scalar, params + 8, 4);
    return std::string(kind->name) + "(" + std::to_string(dims[0]) + "," + std::to_string(pointer) +
           "," + std::to_string(scalar) + ")";
}

class Program {
  public:
    std::string failing; // launches of this name fail, but the first one of each shape

    explicit Program(cus_plan_limits limits = {2, 4, 64, 0, 4, 100000, CUS_MODE_PIECEWISE, false}) {
        cus_plan_init(&plan, &limits, &Program::Drop, this);
    }
    ~Program() {
        if (plan.view.segment)
            Flush(CUS_CUT_OTHER);
        cus_plan_clear(&plan);
    }

    // The plan begins anew. It knows how fast the host is, and how long its steps are.
    void Renew() {
        cus_plan_limits limits = plan.limits;
        uint32_t pace = plan.view.ns_per_op, longest = plan.longest;
        cus_plan_clear(&plan);
        cus_plan_init(&plan, &limits, &Program::Drop, this);
        plan.view.ns_per_op = pace;
        plan.longest = longest;
    }

    cus_kind *Kind(const std::string &name) {
        auto &entry = kinds_[name];
        if (!entry) {
            static const cus_argument arguments[2] = {{0, 8}, {8, 4}};
            static const cus_layout layout = {2, 12, arguments};
            entry = std::make_unique<NamedKind>();
            entry->name = name;
            entry->kind = cus_kind{};
            entry->kind.id = (uint32_t)kinds_.size();
            entry->kind.stable = std::hash<std::string>{}(name);
            entry->kind.type = CUS_OP_LAUNCH;
            entry->kind.deferrable = true;
            entry->kind.handle = entry.get();
            entry->kind.layout = &layout;
            entry->kind.param_bytes = 12;
            entry->kind.name = entry->name.c_str();
        }
        return &entry->kind;
    }

    // The program asks for an op. `may_begin` false: as while it captures.
    void Op(const std::string &name, uint64_t pointer = 0, uint32_t scalar = 0, uint32_t grid = 1,
            uint32_t block = 32, uint32_t shared = 0) {
        cus_kind *kind = Kind(name);
        void *params[2] = {&pointer, &scalar};
        cus_op op = {kind, {grid, 1, 1, block, 1, 1, shared}, params, nullptr};
        uint8_t flat[12];
        memcpy(flat, &pointer, 8);
        memcpy(flat + 8, &scalar, 4);
        requested.push_back(OpText(kind, op.dims, flat));
        now += 1000;
        if (hot && Hot(kind, op.dims, params))
            return;
        for (;;) {
            cus_proposal proposal;
            cus_offer offer = cus_plan_offer(&plan, &op, &proposal);
            if ((offer == CUS_OFFER_DEFERRED || offer == CUS_OFFER_FULL) && plan.view.timed)
                cus_plan_note_time(&plan, now);
            switch (offer) {
            case CUS_OFFER_DEFERRED:
                return;
            case CUS_OFFER_FULL:
                Fire();
                return;
            case CUS_OFFER_BEGIN:
                if (may_begin) {
                    plan.view.came_ns = now;
                    cus_plan_accept(&plan, &op, memory_epoch);
                    break;
                }
                if (later)
                    cus_plan_put_off(&plan);
                [[fallthrough]];
            case CUS_OFFER_EAGER:
                Eager(kind, op);
                return;
            case CUS_OFFER_OTHER:
                if (may_begin) {
                    cus_plan_accept(&plan, &op, memory_epoch);
                    ExpectMoved();
                    break;
                }
                [[fallthrough]];
            case CUS_OFFER_DIVERGED:
                diverged++;
                Flush(CUS_CUT_DIVERGED);
                break;
            case CUS_OFFER_UNSUPPORTED:
                Flush(CUS_CUT_OTHER);
                issued.push_back(requested.back());
                eager++;
                cus_kind_ran(kind, op.dims);
                cus_plan_record(&plan, &op);
                return;
            }
        }
    }

    // The host waits for the stream.
    void Sync() {
        if (plan.view.segment)
            Flush(CUS_CUT_OWNER);
        cus_plan_step_end(&plan);
    }

    // Ops whose names repeat, each with an address of its own from `pointer` on, and a wait.
    void Step(unsigned ops, uint64_t pointer = 100) {
        for (unsigned i = 0; i < ops; i++)
            Op("k" + std::to_string(i % 5), pointer + i, i);
        Sync();
    }

    // A call that is not an op.
    void Break() {
        if (plan.view.segment)
            Flush(CUS_CUT_OWNER);
        cus_plan_break(&plan);
    }

    void Flush(cus_cut cut) {
        for (uint32_t i = 0; i < plan.view.n; i++)
            Journal(i);
        eager += plan.view.n;
        flushes++;
        End({CUS_ENDED_CUT, cut, nullptr});
    }

    void Fire() {
        plan.view.left_ns = now;
        cus_variant *variant = nullptr;
        uint32_t n = plan.view.segment->n;
        cus_variant *predicted = plan.view.predicted;
        cus_choice choice = cus_plan_choose(&plan, aside, &variant);
        mispredicted += predicted && variant != predicted;
        tried += choice == CUS_CHOICE_BUILD;
        if (choice == CUS_CHOICE_BUILD && (later || unbuildable) &&
            (variant = cus_plan_fall_back(&plan, later))) {
            near++;
        } else if (choice == CUS_CHOICE_BUILD) {
            auto *exec = new cus_exec;
            for (uint32_t i = 0; i < n; i++)
                exec->ops.push_back(Text(i));
            variant = cus_plan_built(&plan, exec);
            built++;
        } else {
            (choice == CUS_CHOICE_EXACT ? exact : near)++;
        }
        // One by one, or all at once, as what is submitted is.
        bool at_once = segments.size() % 2;
        uint64_t nodes[CUS_SEGMENT_MAX / 64] = {}, differ[CUS_SEGMENT_MAX / 64] = {};
        uint32_t n_differ = 0;
        for (uint32_t i = 0; (i = cus_plan_next_dirty(&plan, i)) < n; i++) {
            variant->exec->ops[i] = Text(i);
            reshaped += cus_plan_reshapes(&plan, i);
            differ[i / 64] |= uint64_t{1} << i % 64;
            n_differ++;
            if (!at_once)
                cus_plan_patched(&plan, variant, i, true);
        }
        if (at_once) {
            EXPECT_EQ(cus_plan_patched_all(&plan, variant, nodes), n_differ);
            EXPECT_EQ(memcmp(nodes, differ, sizeof nodes), 0);
            EXPECT_EQ(cus_plan_next_dirty(&plan, 0), n);
        }
        patched += n_differ;
        if (refuse) {
            refuse = false;
            for (uint32_t i = 0; i < n; i++)
                Journal(i);
            eager += n;
            End({CUS_ENDED_REFUSED, CUS_CUT_OTHER, variant});
            return;
        }
        // What the graph holds is what runs: a node that was not patched shows up in the journal.
        for (const std::string &text : variant->exec->ops)
            issued.push_back(text);
        launched.insert(launched.end(), variant->exec->ops.begin(), variant->exec->ops.end());
        in_graphs += n;
        segments.push_back(n);
        End({CUS_ENDED_LAUNCHED, CUS_CUT_OTHER, variant});
    }

    cus_plan plan;
    bool hot = false; // an op in the midst of a segment is met as on the hot path
    bool may_begin = true;
    bool refuse = false;       // the driver refuses the next launch of a graph
    bool aside = false;        // another thread patches
    uint32_t memory_epoch = 0; // moves when memory may have gone
    bool later = false;        // no further exec may be built in this step
    bool unbuildable = false;  // nor can it be
    uint64_t now = 0;          // ns; an op comes each microsecond
    std::vector<std::string> requested, issued, launched; // the last: in graphs
    std::vector<uint32_t> segments;                       // sizes, in launch order
    unsigned in_graphs = 0, eager = 0, built = 0, exact = 0, near = 0, patched = 0, diverged = 0,
             flushes = 0, dropped = 0, mispredicted = 0, tried = 0,
             reshaped = 0; // of these that are patched

    void ResetCounts() {
        in_graphs = eager = built = exact = near = patched = diverged = flushes = mispredicted =
            reshaped = 0;
        segments.clear();
    }

  private:
    struct NamedKind {
        cus_kind kind;
        std::string name;
    };
    std::map<std::string, std::unique_ptr<NamedKind>> kinds_;

    // What ends a turn of a loop begins the next one: that is told, and nothing else.
    void End(cus_outcome outcome) {
        uint64_t begun = plan.clock_now;
        bool deferred = plan.view.n;
        bool turned = cus_plan_end(&plan, outcome);
        if (deferred) {
            EXPECT_EQ(turned, plan.clock_now != begun);
        }
    }

    // The deferred ops are another segment's by now.
    void ExpectMoved() {
        bool any = false;
        for (uint32_t i = 0; i < plan.view.n; i++)
            any |= cus_plan_reshapes(&plan, i);
        EXPECT_TRUE(!plan.view.predicted || plan.view.reshaped == any);
        EXPECT_FALSE(plan.view.timed);
        EXPECT_FALSE(plan.head_patched);
    }

    bool Hot(const cus_kind *kind, const uint32_t *dims, void **params) {
        const cus_kind *expected = cus_plan_midst(&plan.view);
        if (expected != kind)
            return false;
        if (!cus_dims_same(dims, cus_plan_before(&plan.view)->dims)) {
            cus_dims shape;
            memcpy(shape.d, dims, sizeof shape.d);
            if (!cus_plan_request_shape(&plan.view, shape, params, nullptr))
                return false;
        } else if (cus_plan_differs(&plan.view, params)) {
            cus_plan_request(&plan.view, params);
        }
        cus_plan_took(&plan.view);
        return true;
    }

    static void Drop(void *self, cus_exec *exec) {
        static_cast<Program *>(self)->dropped++;
        delete exec;
    }

    std::string Text(uint32_t i) {
        const cus_values *values = cus_plan_values(&plan, i);
        return OpText(plan.view.segment->nodes[i]->key.kind, values->dims, values->params);
    }

    void Journal(uint32_t i) { issued.push_back(Text(i)); }

    // As shim/stream does it: a shape that ran is recorded before it is issued, another one behind
    // it.
    void Eager(cus_kind *kind, const cus_op &op) {
        issued.push_back(requested.back());
        eager++;
        if (cus_kind_allows(kind, op.dims)) {
            cus_plan_mark mark;
            cus_plan_record_offered(&plan, &op, &mark);
            if (kind->name == failing)
                cus_plan_take_back(&plan, &mark);
            return;
        }
        cus_kind_ran(kind, op.dims);
        cus_plan_record(&plan, &op);
    }
};

// What was issued is what was asked for, in order.
inline void ExpectFaithful(const Program &program) {
    ASSERT_EQ(program.requested.size(), program.issued.size());
    for (size_t i = 0; i < program.requested.size(); i++)
        ASSERT_EQ(program.requested[i], program.issued[i]) << "op " << i;
}

#endif
