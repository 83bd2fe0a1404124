// Promise: whatever a program does, its ops are issued as it asked for them, in its order, and each
// graph that was built is dropped in the end. Random programs come to places to which no program
// written by hand leads (tools/coverage).
#include "tests/unit/plan/branch_kinds.h"
#include "tests/unit/plan/invariants.h"
#include "tests/unit/plan/program.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

using Song = std::vector<std::string>; // names of ops; "|" is a call that is no op

class RandomProgram {
  public:
    // With `variants` the ops have addresses and shapes, which come again in some of the programs.
    explicit RandomProgram(unsigned seed, unsigned variants = 0, unsigned nodes_max = 100000)
        : random_(seed), values_(seed),
          program_({2, Below(2) ? 4u : 2u, 8 + Below(60), 0, variants ? variants : 4, nodes_max,
                    CUS_MODE_PIECEWISE, false}) {
        if (variants) {
            addresses_ = (const unsigned[]){1, 2, 3, 12}[values_() % 4];
            shapes_ = values_() % 2 ? 1 : 1 + (unsigned)(values_() % 20);
            new_ = 1 + (unsigned)(values_() % 100);
            program_.hot = values_() % 2;
            program_.aside = values_() % 4 == 0;
        }
        Become("record", RecordOn(0));
        Become("end", RecordOn(1));
        for (unsigned back : {1, 2, 3}) {
            Become("fork" + std::to_string(back), WaitOn(1, 0, (uint16_t)back));
            Become("join" + std::to_string(back), WaitOn(0, 1, (uint16_t)back));
        }
        for (unsigned i = 0; i < kSides; i++)
            Become("side" + std::to_string(i), LaunchOn(1));
    }

    void Run(unsigned turns) {
        kinds_ = 2 + Below(10);
        std::vector<Song> songs(1 + Below(4));
        Song tail;
        for (unsigned i = Below(2) * (2 + Below(8)); i-- > 0;)
            Append(&tail, Part());
        for (Song &song : songs) {
            for (unsigned i = 1 + Below(4); i-- > 0;)
                Append(&song, Part());
            Append(&song, tail);
            song.push_back(Kernel());
        }
        if (Below(3) == 0)
            for (Song &song : songs)
                song.insert(song.begin() + Below(song.size()), "|");
        const unsigned waits = Below(4) ? 1 + Below(4) : 0, varies = Seldom(30),
                       breaks = Seldom(20), watchdog = Seldom(20), drops = Seldom(30),
                       refuses = Seldom(10), moods = Seldom(20),
                       pace = Below(3) ? 0 : 1000 + Below(30000);
        for (unsigned i = 0; i < turns; i++) {
            Song song = songs[Below(8) ? i % songs.size() : Below(songs.size())];
            if (Now(varies))
                Vary(&song);
            for (const std::string &name : song) {
                if (name == "|" || Now(breaks * (unsigned)song.size()))
                    program_.Break();
                if (Now(watchdog * (unsigned)song.size()))
                    Cut(CUS_CUT_WATCHDOG);
                if (name != "|")
                    Ask(name, i);
            }
            if (i % 8 == 0) {
                ASSERT_EQ(Invariants::Broken(&program_.plan), "") << "turn " << i;
            }
            if (pace)
                cus_plan_paced(&program_.plan, 10, 10 * (500 + Below(pace)));
            program_.refuse |= Now(refuses);
            if (Now(moods))
                Change();
            if (Now(drops)) {
                Cut(CUS_CUT_OTHER);
                Below(2) ? (void)cus_plan_drop_oldest(&program_.plan)
                         : (void)cus_plan_evict(&program_.plan, 1);
            }
            if (waits && i % waits == 0)
                program_.Sync();
        }
        Cut(CUS_CUT_OTHER);
        ExpectFaithful(program_);
        cus_plan_clear(&program_.plan);
        EXPECT_EQ(Invariants::Broken(&program_.plan), "");
        EXPECT_EQ(program_.dropped, program_.built);
    }

    unsigned InGraphs() const { return program_.in_graphs; }
    Program &program() { return program_; }

  private:
    static const unsigned kSides = 4;

    unsigned Below(size_t n) { return (unsigned)(random_() % n); }
    // One in `each`; 0: never.
    bool Now(unsigned each) { return each && Below(each) == 0; }
    // In two of three programs never, in the others once in so many turns.
    unsigned Seldom(unsigned most) { return Below(3) ? 0 : 2 + Below(most); }

    void Become(const std::string &name, const cus_kind &like) {
        cus_kind *kind = program_.Kind(name);
        kind->type = like.type;
        kind->branch = like.branch;
        kind->from = like.from;
        kind->back = like.back;
    }

    void Ask(const std::string &name, unsigned turn) {
        if (!new_ || (name[0] != 'k' && name != "new"))
            return program_.Op(name);
        asked_++;
        uint64_t address = values_() % new_ ? turn % addresses_ : 1000 + asked_;
        program_.Op(name, address, 0, 1 + turn / addresses_ % shapes_);
    }

    static void Append(Song *song, const Song &more) {
        song->insert(song->end(), more.begin(), more.end());
    }

    std::string Kernel() { return "k" + std::to_string(Below(kinds_)); }

    // Some kernels, and perhaps a branch: its fork, ops there or on the stream, and its join.
    Song Part() {
        Song part;
        for (unsigned i = Below(6); i-- > 0;)
            part.push_back(Kernel());
        if (Below(2))
            return part;
        part.push_back("record");
        unsigned late = Below(3) == 0;
        if (late)
            part.push_back(Kernel());
        part.push_back(late ? "fork2" : "fork1");
        for (unsigned i = Below(4); i-- > 0;)
            part.push_back(Below(3) ? "side" + std::to_string(Below(kSides)) : Kernel());
        part.push_back("end");
        unsigned behind = Below(3);
        for (unsigned i = 0; i < behind; i++)
            part.push_back(Kernel());
        part.push_back("join" + std::to_string(behind + 1));
        return part;
    }

    void Vary(Song *song) {
        auto at = song->begin() + Below(song->size());
        switch (Below(4)) {
        case 0:
            song->insert(at, "new");
            break;
        case 1:
            song->erase(at);
            break;
        case 2:
            song->insert(at, Kernel());
            break;
        default:
            song->insert(at, "|");
        }
    }

    void Cut(cus_cut cut) {
        if (program_.plan.view.segment)
            program_.Flush(cut);
    }

    // For a while no graph may be built, or no segment begins; or memory may have gone.
    void Change() {
        Cut(CUS_CUT_OTHER);
        switch (Below(3)) {
        case 0:
            program_.later = !program_.later;
            break;
        case 1:
            program_.may_begin = !program_.may_begin;
            break;
        default:
            program_.memory_epoch++;
        }
    }

    std::mt19937 random_, values_; // of the ops, and of what they ask for
    unsigned addresses_ = 1, shapes_ = 1, new_ = 0, asked_ = 0;
    Program program_;
    unsigned kinds_ = 0;
};

// The last two go where the others do not: a path that merges with one which leads to a loop, and a
// call in a loop of which no two turns are remembered.
TEST(Random, ProgramsAreIssuedAsTheyAsk) {
    unsigned in_graphs = 0;
    std::vector<unsigned> seeds(400);
    std::iota(seeds.begin(), seeds.end(), 0u);
    seeds.insert(seeds.end(), {2696, 15020});
    for (unsigned seed : seeds) {
        SCOPED_TRACE(seed);
        RandomProgram program(seed);
        program.Run(20 + seed % 16 * 20);
        in_graphs += program.InGraphs();
    }
    EXPECT_GT(in_graphs, 10000u);
}

TEST(Random, AddressesAndShapesAreWhatTheyAsk) {
    unsigned in_graphs = 0;
    for (unsigned seed = 0; seed < 200; seed++) {
        SCOPED_TRACE(seed);
        RandomProgram program(seed, (const unsigned[]){1, 3, 8, 12, 1000}[seed % 5],
                              seed % 3 ? 100000 : 150); // which is full now and then
        program.Run(40 + seed % 16 * 20);
        in_graphs += program.InGraphs();
    }
    EXPECT_GT(in_graphs, 10000u);
}

// A plan that was cleared keeps the pace of the host and the length of its steps, and nothing else.
TEST(Random, AClearedPlanIsAsANewOne) {
    for (unsigned seed = 0; seed < 80; seed++) {
        SCOPED_TRACE(seed);
        RandomProgram cleared(seed), renewed(seed);
        for (RandomProgram *each : {&cleared, &renewed})
            each->Run(20 + seed % 16 * 20);
        renewed.program().Renew();
        const cus_plan &plan = cleared.program().plan, &fresh = renewed.program().plan;
        EXPECT_TRUE(cus_signature_same(plan.sig, fresh.sig));
        EXPECT_EQ(plan.view.step_ops, fresh.view.step_ops);
        EXPECT_EQ(plan.look_until, fresh.look_until);
        EXPECT_EQ(plan.advised_ops, fresh.advised_ops);
        EXPECT_EQ(plan.settle_in, fresh.settle_in);
        EXPECT_EQ(plan.was_late, fresh.was_late);
        EXPECT_EQ(plan.now.n + plan.last.n, 0u);
        for (RandomProgram *each : {&cleared, &renewed})
            each->Run(60);
        EXPECT_EQ(cleared.program().segments, renewed.program().segments);
        EXPECT_EQ(cleared.program().built, renewed.program().built);
        EXPECT_EQ(cleared.program().patched, renewed.program().patched);
        EXPECT_EQ(cleared.program().flushes, renewed.program().flushes);
    }
}

// Its steps part thousands of times between the fork of a branch and its join.
TEST(Random, SoIsOneThatGoesOnForLong) {
    RandomProgram program(200342);
    program.Run(12000);
    EXPECT_GT(program.InGraphs(), 10000u);
}

} // namespace
