// Promise: the report counts under the right names, ranks breaks, and prints the expected text to
// the byte.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "shim/stats/report.h"
#include "shim/stats/tally.h"

namespace {

const char *ApiName(unsigned row) {
    return row == 7 ? "cuStreamSynchronize" : nullptr;
}

// Tallies live as long as the process: each test takes away what it counted.
class Report : public testing::Test {
  protected:
    void SetUp() override { Zero(); }

    static void Zero() {
        unsigned at = 0;
        for (cus_tally *tally = nullptr; (tally = cus_tally_next(tally, &at));) {
            for (unsigned why = 0; why < CUS_WHYS; why++)
                tally->alone[why] = tally->cut_ops[why] = tally->cuts[why] = 0;
            tally->in_graphs = tally->reshaped = 0;
        }
    }

    std::vector<std::string> Breaks(uint64_t let_pass = 0) {
        cus_report_breaks(&report_, &counters_, let_pass, ApiName);
        std::vector<std::string> all;
        for (unsigned i = 0; i < report_.n_breaks; i++) {
            const cus_report_break &one = report_.breaks[i];
            all.push_back(std::string(one.name) + " " + one.by + " " + one.reason + " " +
                          std::to_string(one.launches) + " " + std::to_string(one.runs));
        }
        return all;
    }

    cus_counters counters_ = {};
    cus_report report_ = {};
};

TEST(WhyTable, EveryReasonSaysWhatItIsAndWhatToDo) {
    std::set<std::string> keys, whats;
    for (unsigned i = 0; i < CUS_WHYS; i++) {
        cus_why why = (cus_why)i;
        EXPECT_TRUE(keys.insert(cus_why_key(why)).second) << cus_why_key(why);
        EXPECT_TRUE(whats.insert(cus_why_what(why)).second) << cus_why_what(why);
        EXPECT_GT(std::string(cus_why_advice(why)).size(), 20u) << cus_why_key(why);
    }
    for (unsigned i = 0; i < CUS_CAUSES - CUS_API_ROWS_MAX; i++) {
        ASSERT_TRUE(cus_cause_what(i)) << cus_cause_key(i);
        EXPECT_TRUE(whats.insert(cus_cause_what(i)).second) << cus_cause_what(i);
        EXPECT_GT(std::string(cus_cause_advice(i)).size(), 10u) << cus_cause_key(i);
    }
}

TEST(WhyTable, NoRowOfCallsHidesAnother) {
    static const char *const prefixes[] = {
#define CUS_CALL_WHY(prefix, what, advice) prefix,
#include "shim/stats/why.def"
    };
    static const char *const texts[] = {
#define CUS_CALL_WHY(prefix, what, advice) advice,
#include "shim/stats/why.def"
    };
    unsigned i = 0;
    for (const char *prefix : prefixes)
        EXPECT_STREQ(cus_call_advice(prefix), texts[i++]) << prefix;
    EXPECT_STREQ(prefixes[i - 1], "");
}

TEST_F(Report, ANameHasOneTally) {
    cus_tally *a = cus_tally_of("one", true);
    EXPECT_EQ(cus_tally_of(std::string("one").c_str(), true), a);
    EXPECT_NE(cus_tally_of("one", false), a);
    EXPECT_NE(cus_tally_of("two", true), a);
    std::set<cus_tally *> seen;
    unsigned at = 0;
    for (cus_tally *tally = nullptr; (tally = cus_tally_next(tally, &at));)
        EXPECT_TRUE(seen.insert(tally).second);
    EXPECT_TRUE(seen.count(a));
    EXPECT_TRUE(seen.count(&cus_tally_none));
}

TEST_F(Report, BreaksAreRankedByLaunchesAndRuns) {
    cus_tally *a = cus_tally_of("a", true), *b = cus_tally_of("b", false);
    for (int i = 0; i < 3; i++)
        cus_tally_alone(a, CUS_WHY_RULE);
    cus_tally_cut(a, CUS_WHY_DIVERGED, 5);
    cus_tally_cut(a, CUS_WHY_RULE, 0);
    for (int i = 0; i < 4; i++)
        cus_tally_alone(b, CUS_WHY_MEMORY);
    cus_tally_alone(nullptr, CUS_WHY_EMPTY);
    counters_.cut_ops[7] = 2;
    counters_.cuts[7] = 9;
    counters_.cuts[8] = 1;
    counters_.cut_ops[CUS_CAUSE_WATCHDOG] = 4;
    EXPECT_EQ(Breaks(), (std::vector<std::string>{
                            "cuStreamSynchronize call api 2 9",
                            "a kernel diverged 5 1",
                            " other watchdog 4 0",
                            "a kernel rule 3 1",
                            "b memory memory 4 0",
                            " other empty 1 0",
                            "api_8 call api 0 1",
                        }));
    EXPECT_EQ(report_.more_breaks, 0u);
}

TEST_F(Report, WhatWasLetPassIsDemotedOrSuspended) {
    cus_tally_alone(nullptr, CUS_WHY_SUSPENDED);
    cus_tally_alone(nullptr, CUS_WHY_SUSPENDED);
    EXPECT_EQ(Breaks(7), (std::vector<std::string>{" other demoted 5 0", " other suspended 2 0"}));
}

TEST_F(Report, TheCostliestAreKeptAndTheOthersCounted) {
    for (unsigned i = 0; i < CUS_REPORT_BREAKS + 5; i++)
        for (unsigned n = 0; n <= i; n++)
            cus_tally_alone(cus_tally_of(("kept" + std::to_string(i)).c_str(), true),
                            CUS_WHY_WARMUP);
    auto breaks = Breaks();
    ASSERT_EQ(breaks.size(), (size_t)CUS_REPORT_BREAKS);
    EXPECT_EQ(report_.more_breaks, 5u);
    EXPECT_EQ(report_.more_launches, 1u + 2 + 3 + 4 + 5);
    EXPECT_EQ(breaks.front(), "kept68 kernel warmup 69 0");
    EXPECT_EQ(breaks.back(), "kept5 kernel warmup 6 0");
}

TEST_F(Report, AShapeThatChangesAtHalfOfTheLaunchesIsNamed) {
    cus_tally *half = cus_tally_of("half", true), *less = cus_tally_of("less", true),
              *few = cus_tally_of("few", true), *fresh = cus_tally_of("fresh", true);
    half->in_graphs = 20;
    half->reshaped = 10;
    less->in_graphs = 21;
    less->reshaped = 10;
    few->in_graphs = few->reshaped = 7;
    fresh->alone[CUS_WHY_SHAPE] = 9;
    fresh->alone[CUS_WHY_FIRST] = 1;
    cus_report_shapes(&report_);
    ASSERT_EQ(report_.n_shapes, 2u);
    EXPECT_STREQ(report_.shapes[0].name, "half");
    EXPECT_EQ(report_.shapes[0].changed, 10u);
    EXPECT_EQ(report_.shapes[0].launches, 20u);
    EXPECT_STREQ(report_.shapes[1].name, "fresh");
    EXPECT_EQ(report_.shapes[1].changed, 9u);
    EXPECT_EQ(report_.shapes[1].launches, 10u);
}

TEST_F(Report, TheNearestNameIsThatOfAKernel) {
    cus_tally_of("paged_attention_v1", true);
    cus_tally_of("rms_norm_kernel", true);
    cus_tally_of("pagd_attn", false);
    char nearest[CUS_REPORT_NAME];
    for (const char *pattern :
         {"pagd_attn*", "*atention_v1", "re:^paged_atention", "paged_attention"}) {
        cus_report_nearest(pattern, nearest);
        EXPECT_STREQ(nearest, "paged_attention_v1") << pattern;
    }
    cus_report_nearest("rmsnorm*", nearest);
    EXPECT_STREQ(nearest, "rms_norm_kernel");
}

cus_report_segment Segment(uint64_t bytes, const char *first, bool gone = false) {
    cus_report_segment segment = {};
    segment.ops = 3;
    segment.variants = 1;
    segment.bytes = bytes;
    segment.launches = 2;
    segment.gone = gone;
    snprintf(segment.first, sizeof segment.first, "%s", first);
    snprintf(segment.last, sizeof segment.last, "end");
    return segment;
}

TEST_F(Report, TheLargestGraphsAreKept) {
    cus_report_segment kept[CUS_REPORT_SEGMENTS];
    unsigned n = 0;
    for (uint64_t bytes : {5, 30, 1, 12, 11, 20, 19, 18, 17, 16, 15, 14}) {
        cus_report_segment segment = Segment(bytes, "x");
        cus_report_add_segment(kept, &n, &segment);
    }
    ASSERT_EQ(n, (unsigned)CUS_REPORT_SEGMENTS);
    EXPECT_EQ(kept[0].bytes, 30u);
    EXPECT_EQ(kept[1].bytes, 20u);
    EXPECT_EQ(kept[9].bytes, 11u);
}

TEST_F(Report, AGraphThatIsMadeAgainAndAgainIsOne) {
    cus_report_segment kept[CUS_REPORT_SEGMENTS];
    unsigned n = 0;
    for (const cus_report_segment &segment : {Segment(9, "x", true), Segment(9, "y", true),
                                              Segment(9, "x", true), Segment(9, "x", false)})
        cus_report_add_segment(kept, &n, &segment);
    ASSERT_EQ(n, 3u);
    EXPECT_EQ(kept[0].launches, 4u);
    EXPECT_STREQ(kept[1].first, "y");
    EXPECT_FALSE(kept[2].gone);
}

TEST_F(Report, TextSaysAllOfIt) {
    cus_tally *a = cus_tally_of("a", true);
    for (int i = 0; i < 6; i++)
        cus_tally_alone(a, CUS_WHY_WARMUP);
    cus_tally_alone(cus_tally_of("b", true), CUS_WHY_WARMUP);
    counters_.ops[CUS_OP_LAUNCH] = 40;
    counters_.in_graphs = 30;
    counters_.eager_by[CUS_EAGER_OBSERVING] = 7;
    counters_.eager_by[CUS_EAGER_FLUSHED] = 3;
    counters_.graph_launches = 4;
    counters_.steps = 2;
    counters_.graph_bytes = 700;
    counters_.cut_ops[7] = 3;
    counters_.cuts[7] = 2;
    Breaks();
    report_.counters = &counters_;
    report_.mode = "piecewise";
    report_.n_rules = 2;
    report_.rules[0] = {"eager", "x*", "/some/file", 3, "axpy"};
    report_.rules[1] = {"graph", "y", "CUSPLICE_EAGER", 0, ""};
    report_.more_rules = 1;
    report_.n_shapes = 1;
    report_.shapes[0] = {"s", 20, 19};
    report_.segments = 1;
    report_.segment_ops = 3;
    report_.segment_bytes = 600;
    report_.gone = 2;
    report_.gone_ops = 9;
    report_.gone_bytes = 50;
    report_.learned = {};
    report_.learned.percent = 97;
    report_.learned.steps = 20;
    report_.learned.gain_at = 4;
    report_.learned.plain_seen = true;
    report_.n_segments = 2;
    report_.largest[0] = Segment(600, "x");
    report_.largest[1] = Segment(500, "y", true);
    report_.largest[1].variants = 2;
    std::string expected =
        "cusplice: why (mode piecewise)\n"
        "  coverage: 75.0 % of 40 ops in graphs\n"
        "    30 ops in 4 graph launches, 7.5 ops each; 10 ops one by one; 2 steps\n"
        "  learning: steps 2 to 11 took 97 % of the time of plain ones (those without graphs); "
        "nine "
        "tenths of the gain from step 4 on\n"
        "  costliest breaks, by launches issued one by one because of them + runs of graphs that "
        "they ended:\n"
        "    1. 6 + 0  a: " +
        std::string(cus_why_what(CUS_WHY_WARMUP)) +
        "\n       to do: " + cus_why_advice(CUS_WHY_WARMUP) +
        "\n"
        "    2. 3 + 2  cuStreamSynchronize: the host waits for the stream\n"
        "       to do: wait once a step, where the host needs a result, and not within it\n"
        "    3. 1 + 0  b: " +
        cus_why_what(CUS_WHY_WARMUP) +
        "\n       to do: as for 1\n"
        "  rules that matched no kernel:\n"
        "    eager = x*  (/some/file:3); the nearest kernel is axpy\n"
        "    graph = y  (CUSPLICE_EAGER); no kernel was met\n"
        "    and 1 more\n"
        "  kernels whose shape changes at half of their launches or more:\n"
        "    s: 19 of 20 launches\n"
        "      to do: pad the size that changes to a few values, or raise variants so that each "
        "has "
        "a graph\n"
        "  graphs: 1 segment of 3 ops holds 600 bytes; 700 bytes at most (estimates)\n"
        "    gone before, with their stream or code: 2 segments, 9 ops, 50 bytes\n"
        "    600 bytes, 3 ops, 1 variant, launched 2 times: x ... end\n"
        "    500 bytes, 3 ops, 2 variants, launched 2 times, gone: y ... end\n";
    char text[CUS_REPORT_TEXT];
    EXPECT_EQ(cus_report_text(&report_, text, sizeof text), expected.size());
    EXPECT_EQ(text, expected);
    // Too small a place: whole lines only.
    for (size_t room = 1; room <= expected.size(); room++) {
        size_t length = cus_report_text(&report_, text, room);
        ASSERT_LT(length, room);
        ASSERT_EQ(text, expected.substr(0, length));
        ASSERT_TRUE(length == 0 || text[length - 1] == '\n') << room;
    }
}

TEST_F(Report, LearningWithoutGain) {
    report_.counters = &counters_;
    report_.mode = "full";
    report_.learned.percent = 101;
    report_.learned.steps = 19;
    char text[CUS_REPORT_TEXT];
    cus_report_text(&report_, text, sizeof text);
    EXPECT_EQ(std::string(text).find("learning"), std::string::npos) << text;
    report_.learned.steps = 20;
    cus_report_text(&report_, text, sizeof text);
    EXPECT_NE(std::string(text).find("  learning: steps 2 to 11 took 101 % of the time of plain "
                                     "ones (an estimate); no gain in the steps' time\n"),
              std::string::npos)
        << text;
}

TEST_F(Report, WhereThereIsNothingItSaysNone) {
    report_.counters = &counters_;
    report_.mode = "observe";
    char text[CUS_REPORT_TEXT];
    cus_report_text(&report_, text, sizeof text);
    EXPECT_STREQ(text,
                 "cusplice: why (mode observe)\n"
                 "  coverage: 0.0 % of 0 ops in graphs\n"
                 "    0 ops in 0 graph launches; 0 ops one by one; 0 steps\n"
                 "  costliest breaks, by launches issued one by one because of them + runs of "
                 "graphs that they ended: none\n"
                 "  rules that matched no kernel: none\n"
                 "  kernels whose shape changes at half of their launches or more: none\n"
                 "  graphs: 0 segments of 0 ops hold 0 bytes; 0 bytes at most (estimates)\n");
}

} // namespace
