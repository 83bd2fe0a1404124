// Delta debugging: removes earlier programs first, then operations, then reduces numbers. Pure
// except for `differs`.
#include "tests/fuzz/minimise.h"

#include <algorithm>

namespace fuzz {

namespace {

struct Shrinker {
    Case best;
    const std::function<bool(const Case &)> &differs;
    unsigned budget;

    bool Try(const Case &c) {
        if (budget == 0) {
            return false;
        }
        budget--;
        if (!differs(c)) {
            return false;
        }
        best = c;
        return true;
    }
    fuzz_program &Last(Case *c) { return c->programs.back(); }

    // Takes out runs of `count` things, from long runs to single ones; `without` makes a case
    // without [from, to).
    template <class Without> void Thin(const std::function<size_t()> &count, Without without) {
        for (size_t length = std::max<size_t>(1, count() / 2);; length /= 2) {
            for (size_t at = 0; at < count();) {
                if (!Try(without(at, std::min(at + length, count())))) {
                    at += length;
                }
            }
            if (length <= 1) {
                break;
            }
        }
    }
    void Programs() {
        if (best.programs.size() == 1) {
            return;
        }
        Thin([this] { return best.programs.size() - 1; },
             [this](size_t from, size_t to) {
                 Case c = best;
                 c.programs.erase(c.programs.begin() + static_cast<long>(from),
                                  c.programs.begin() + static_cast<long>(to));
                 return c;
             });
    }
    void Ops(size_t which) {
        Thin([this, which] { return static_cast<size_t>(best.programs[which].n_ops); },
             [this, which](size_t from, size_t to) {
                 Case c = best;
                 fuzz_program &p = c.programs[which];
                 std::copy(p.op + to, p.op + p.n_ops, p.op + from);
                 p.n_ops -= static_cast<uint32_t>(to - from);
                 return c;
             });
    }
    template <class Change> bool Change1(Change change) {
        Case c = best;
        change(&Last(&c));
        if (ToText(c) == ToText(best)) {
            return false;
        }
        return Try(c);
    }
    void Steps() {
        for (uint32_t by = Last(&best).steps / 2; by > 0; by /= 2) {
            while (Last(&best).steps > by && Change1([by](fuzz_program *p) { p->steps -= by; })) {
            }
        }
    }
    // Lanes that nobody names, and threads that have no lane.
    void Lanes() {
        for (unsigned lane = Last(&best).lanes; lane-- > 0;) {
            const fuzz_program &p = Last(&best);
            bool used = false;
            for (unsigned i = 0; i < p.n_ops; i++) {
                used = used || p.op[i].lane == lane;
            }
            if (used || p.lanes == 1) {
                continue;
            }
            Change1([lane](fuzz_program *q) {
                std::copy(q->kind + lane + 1, q->kind + q->lanes, q->kind + lane);
                std::copy(q->thread + lane + 1, q->thread + q->lanes, q->thread + lane);
                q->lanes--;
                for (unsigned i = 0; i < q->n_ops; i++) {
                    fuzz_op &o = q->op[i];
                    o.lane = static_cast<uint8_t>(o.lane > lane ? o.lane - 1 : o.lane);
                    o.other = static_cast<uint8_t>(o.other == lane  ? o.lane
                                                   : o.other > lane ? o.other - 1
                                                                    : o.other);
                }
            });
        }
        Change1([](fuzz_program *p) {
            p->threads = 1;
            std::fill(p->thread, p->thread + FUZZ_LANES, static_cast<uint8_t>(0));
        });
    }
    void Numbers() {
        for (unsigned i = 0; i < Last(&best).n_ops; i++) {
            Change1([i](fuzz_program *p) { p->op[i].repeat = 1; });
            Change1([i](fuzz_program *p) { p->op[i].every = 1, p->op[i].phase = 0; });
            Change1([i](fuzz_program *p) { p->op[i].vary = 0; });
            Change1([i](fuzz_program *p) { p->op[i].grow = 0; });
            Change1([i](fuzz_program *p) { p->op[i].size = 64; });
            Change1([i](fuzz_program *p) { p->op[i].buffer = 0; });
            Change1([i](fuzz_program *p) { p->op[i].value %= 10; });
            Change1([i](fuzz_program *p) { p->op[i].other = p->op[i].lane; });
            Change1([i](fuzz_program *p) { p->op[i].verb = FUZZ_chain; });
        }
    }
    // Runs of the last program in other orders, then what the plan of its last run changes.
    void Schedule() {
        for (size_t i = best.last.size(); i-- > 3;) {
            Case c = best;
            c.last.erase(c.last.begin() + static_cast<long>(i) - 1);
            Try(c);
        }
        for (unsigned i = 0; !best.last.empty() && i < best.last.back().plan.depth; i++) {
            Case c = best;
            c.last.back().plan.dropped |= 1u << i;
            Try(c);
        }
    }
    void Settings() {
        for (const auto &entry : Env(best.env)) {
            Case c = best;
            c.env.erase(entry.first);
            Try(c);
        }
    }
};

} // namespace

Case Minimise(const Case &c, const std::function<bool(const Case &)> &differs, unsigned budget) {
    Shrinker s = {c, differs, budget};
    s.Programs();
    s.Schedule();
    s.Ops(s.best.programs.size() - 1);
    s.Steps();
    for (size_t i = s.best.programs.size(); i-- > 0;) {
        s.Ops(i);
    }
    s.Lanes();
    s.Numbers();
    s.Ops(s.best.programs.size() - 1);
    s.Lanes();
    s.Steps();
    s.Settings();
    s.Schedule();
    return s.best;
}

} // namespace fuzz
