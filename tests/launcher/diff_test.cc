// diff, on traces of which every difference is known, and what all verbs say of an imported trace.
#include "tests/launcher/traces.h"

namespace {

TEST(Diff, ATraceIsNotDifferentFromItself) {
    sim::Json j = Parse(Says({"diff", "--format", "json", golden, golden}));
    EXPECT_EQ(j.Number("about.steps_aligned"), 4);
    EXPECT_EQ(j.Number("about.steps_only_a"), 0);
    for (int i = 0; i < 5; i++) {
        std::string row = "rows." + std::to_string(i) + ".";
        EXPECT_EQ(j.Number(row + "calls_a"), j.Number(row + "aligned"));
        EXPECT_EQ(j.Number(row + "only_b") + j.Number(row + "gained") + j.Number(row + "lost") +
                      j.Number(row + "host_delta_ns"),
                  0);
        EXPECT_EQ(j.text[row + "in"], "both");
    }
}

// Steps of a, b; B defines its kernels in another order, has its steps at other times and in
// another order, and `a` in graphs.
TEST(Diff, StepsAreAlignedBySignatureAndOccurrence) {
    std::string a = Make("a.cst", [](Synth *s) {
        uint32_t x = s->Kernel("x"), y = s->Kernel("y"), only = s->Kernel("old");
        for (uint32_t grid : {1u, 2u, 1u, 2u, 1u}) {
            s->grid = grid;
            s->host_ns = 100 * grid;
            s->Eager(1, x, "observing", "observing");
            s->Op(1, y);
            s->Launch(1, 1, 1, CST_EXACT);
            s->Sync(1);
        }
        s->Eager(1, only, "rule", "rule");
    });
    std::string b = Make("b.cst", [](Synth *s) {
        uint32_t fresh = s->Kernel("new"), y = s->Kernel("y"), x = s->Kernel("x");
        s->now = 99000000;
        for (uint32_t grid : {2u, 1u, 1u, 3u}) {
            s->grid = grid;
            s->host_ns = 100 * grid + 10;
            s->Op(1, x);
            s->Launch(1, 1, 1, CST_EXACT);
            s->Eager(1, y, "rule", "rule");
            s->Sync(1);
        }
        s->Op(1, fresh);
        s->Flush(1, 1, "exit", "exit");
    });
    sim::Json j = Parse(Says({"diff", "--format", "json", a, b}));
    EXPECT_EQ(j.Number("about.steps_aligned"), 3); // one of grid 2, two of grid 1
    EXPECT_EQ(j.Number("about.steps_only_a"), 3);
    EXPECT_EQ(j.Number("about.steps_only_b"), 2);
    std::string x = Row(j, "name", "x"), y = Row(j, "name", "y");
    const std::tuple<const char *, double, double> numbers[] = {
        {"calls_a", 5, 5},       {"calls_b", 4, 4},      {"aligned", 3, 3},
        {"only_a", 2, 2},        {"only_b", 1, 1},       {"in_graphs_a", 0, 5},
        {"in_graphs_b", 4, 0},   {"gained", 3, 0},       {"lost", 0, 3},
        {"breaks_a", 0, 0},      {"breaks_b", 0, 4},     {"host_delta_ns", 30, 30},
        {"host_a_ns", 700, 700}, {"host_b_ns", 740, 740}};
    for (const auto &[key, of_x, of_y] : numbers) {
        EXPECT_EQ(j.Number(x + key), of_x) << key;
        EXPECT_EQ(j.Number(y + key), of_y) << key;
    }
    EXPECT_EQ(j.text[Row(j, "name", "old") + "in"], "A");
    EXPECT_EQ(j.text[Row(j, "name", "new") + "in"], "B");
    EXPECT_EQ(j.text[x + "in"], "both");

    j = Parse(Says({"diff", "--by", "steps", "--format", "json", a, b}));
    EXPECT_EQ(j.Number("rows.0.steps_a"), 3); // grid 1
    EXPECT_EQ(j.Number("rows.0.steps_b"), 2);
    EXPECT_EQ(j.Number("rows.0.aligned"), 2);
    EXPECT_EQ(j.Number("rows.0.in_graphs_a"), 3);
    EXPECT_EQ(j.Number("rows.0.graphs_b"), 2);
    EXPECT_EQ(j.text["rows.0.in"], "both");
    EXPECT_EQ(j.Number("rows.1.aligned"), 1); // grid 2
    EXPECT_EQ(j.text[Row(j, "list", "old") + "in"], "A");
    EXPECT_EQ(j.text[Row(j, "list", "new") + "in"], "B");
}

// What an import does not know is no difference; and it is the same in the other direction.
TEST(Diff, AnImportIsAlignedWithItsOrigin) {
    std::string origin = Make("origin.cst", [](Synth *s) {
        uint32_t a = s->Kernel("_ZN1m4normEPf", 16), zero = s->Memset(4), copy = s->Copy(1);
        for (uint32_t turn = 0; turn < 4; turn++) {
            s->grid = 1 + turn % 2;
            s->Op(1, a);
            s->Op(1, zero);
            s->Launch(1, 2, 1, CST_BUILT);
            s->Eager(1, copy, "rule", "rule");
            s->Sync(1);
        }
    });
    std::string database = Folder() + "/origin.sqlite", import = Folder() + "/import.cst";
    unlink(database.c_str());
    unlink(import.c_str());
    ASSERT_EQ(Cusplice({"export", "--sqlite", database, origin}).Exit(), 0);
    ASSERT_EQ(Cusplice({"import", "-o", import, database}).Exit(), 0);
    for (bool turned : {false, true}) {
        sim::Json j = Parse(
            Says({"diff", "--format", "json", turned ? import : origin, turned ? origin : import}));
        EXPECT_EQ(j.Number("about.steps_aligned"), 4);
        EXPECT_EQ(j.Number("about.steps_only_a") + j.Number("about.steps_only_b"), 0);
        EXPECT_FALSE(j.Has("about.not_aligned"));
        EXPECT_FALSE(j.Has("about.steps_aligned_by_names"));
        EXPECT_EQ(j.Number(Row(j, "name", "norm") + "aligned"), 4);
        EXPECT_EQ(j.Number(Row(j, "name", "norm") + (turned ? "gained" : "lost")), 4);
    }
}

// A profile has short names, and other shapes of a memset in two dimensions.
TEST(Diff, StepsAreAlignedByNamesWhereNoneIsByShape) {
    auto make = [](const std::string &name, const char *kernel, uint32_t grid, int steps) {
        return Make(name, [&](Synth *s) {
            uint32_t a = s->Kernel(kernel), b = s->Kernel("b");
            s->grid = grid;
            for (int i = 0; i < steps; i++) {
                s->Eager(1, a, "rule", "rule");
                s->Eager(1, b, "rule", "rule");
                s->Sync(1);
            }
        });
    };
    std::string a = make("by_a.cst", "_ZN1m4normEPf", 1, 3), b = make("by_b.cst", "norm", 2, 2);
    sim::Json j = Parse(Says({"diff", "--format", "json", a, b}));
    EXPECT_EQ(j.Number("about.steps_aligned"), 2);
    EXPECT_EQ(j.Number("about.steps_aligned_by_names"), 2);
    EXPECT_EQ(j.Number("about.steps_only_a"), 1);
    EXPECT_EQ(j.Number("about.steps_only_b"), 0);
    EXPECT_EQ(j.Number(Row(j, "name", "norm") + "aligned"), 2);
    j = Parse(Says({"diff", "--by", "steps", "--format", "json", a, b}));
    EXPECT_EQ(j.Number("rows.0.steps_a"), 3);
    EXPECT_EQ(j.Number("rows.0.steps_b"), 2);
    EXPECT_EQ(j.Number("rows.0.aligned"), 2);
    EXPECT_FALSE(j.Has("rows.1.steps_a"));
}

// Of two recordings, steps of other shapes are other steps. A profile may have left shapes out.
TEST(Diff, StepsOfAnImportThatAreLeftOverAreAlignedByNames) {
    auto make = [](const std::string &name, uint32_t second, bool import) {
        return Make(name, [&](Synth *s) {
            uint32_t a = s->Kernel("a");
            if (import)
                s->Facts("{\"imported\": true}");
            for (uint32_t grid : {1u, second}) {
                s->grid = grid;
                s->Eager(1, a, "rule", "rule");
                s->Sync(1);
            }
        });
    };
    std::string a = make("left_a.cst", 2, false);
    for (bool import : {false, true}) {
        sim::Json j = Parse(Says({"diff", "--format", "json", a, make("left_b.cst", 3, import)}));
        EXPECT_EQ(j.Number("about.steps_aligned"), import ? 2 : 1);
        EXPECT_EQ(j.Number("about.steps_aligned_by_names"), import ? 1 : 0);
    }
}

// Its columns of graphs mean nothing: each verb says so in a line, and in JSON.
TEST(Import, IsNamedWhereGraphsAreTold) {
    auto make = [](const std::string &name, bool import) {
        return Make(name, [&](Synth *s) {
            uint32_t a = s->Kernel("a");
            s->Facts(import ? "{\"imported\": true}" : "{\"imported\": false}");
            s->Eager(1, a, "", "");
            s->Sync(1);
        });
    };
    std::string import = make("named_import.cst", true), other = make("named_other.cst", false);
    const std::string lacks = "from a profile, which says nothing of graphs";
    auto diff = [&](const std::string &a, const std::string &b, Strings by = {}) {
        Strings words = {"diff", "--format", "json", a, b};
        words.insert(words.begin() + 1, by.begin(), by.end());
        return Parse(Says(words)).text["about.imported"];
    };
    EXPECT_EQ(diff(import, other), "A is imported " + lacks);
    EXPECT_EQ(diff(other, import), "B is imported " + lacks);
    EXPECT_EQ(diff(import, import, {"--by", "steps"}), "A and B are imported " + lacks);
    EXPECT_EQ(diff(other, other), "");
    EXPECT_TRUE(
        Has(Says({"diff", "--wide", other, import}), "# imported: B is imported " + lacks + "\n"));

    for (const char *report : {"kernels", "segments", "cache", "breaks", "coverage"})
        for (const std::string &trace : {import, other})
            EXPECT_EQ(
                Parse(Says({"report", report, "--format", "json", trace})).text["about.imported"],
                trace == import ? lacks : "")
                << report;
    for (const std::string &trace : {import, other}) {
        bool is = trace == import;
        auto told = [&](Strings words) {
            words.push_back(trace);
            std::string text = Says(words); // its lines are folded
            for (size_t at; (at = text.find("\n#   ")) != std::string::npos;)
                text.replace(at, 5, " ");
            return Has(text, lacks);
        };
        EXPECT_EQ(told({"report", "--wide"}), is);
        EXPECT_EQ(told({"rules"}), is);
        EXPECT_EQ(told({"whatif", "--wide"}), is);
        EXPECT_EQ(told({"whatif", "--format", "json"}), is);
        EXPECT_EQ(Has(Says({"info", trace}), "which says nothing of graphs"), is);
        EXPECT_EQ(Has(Says({"report", trace}), "what of it would go into graphs"), is);
        EXPECT_EQ(Has(Says({"report", trace}), "went into graphs"), !is);
        EXPECT_EQ(Has(Says({"report", trace}), "share  breaks"), !is);
        Result exported = Cusplice({"export", "--force", "--jsonl", trace + ".jsonl", trace});
        EXPECT_EQ(exported.Exit(), 0);
        EXPECT_EQ(Has(exported.err, trace + ": it is imported " + lacks + "\n"), is)
            << exported.err;
    }
}

TEST(Diff, SaysWhyNothingIsAligned) {
    auto make = [](const std::string &name, const std::vector<const char *> &kernels, int sync) {
        return Make(name, [&](Synth *s) {
            for (int i = 0; i < 6; i++) {
                for (const char *kernel : kernels)
                    s->Eager(1, s->Kernel(kernel), "rule", "rule");
                if (i % sync == 0)
                    s->Sync(1);
            }
        });
    };
    std::string ab = make("ab.cst", {"a", "b"}, 1), cd = make("cd.cst", {"c", "d"}, 1);
    std::string ba = make("ba.cst", {"b", "a"}, 9), none = make("none.cst", {}, 1);
    auto why = [](const std::string &a, const std::string &b) {
        return Parse(Says({"diff", "--format", "json", a, b})).text["about.not_aligned"];
    };
    EXPECT_EQ(why(ab, cd), "no op of A has the name of an op of B");
    EXPECT_EQ(why(ab, none), "trace B has no ops");
    EXPECT_EQ(why(none, ab), "trace A has no ops");
    EXPECT_EQ(why(ab, ba),
              "no step of A has the names of a step of B in their order; A has 6 steps "
              "of 2.0 ops, B 2 of 6.0");
    EXPECT_EQ(why(ab, ab), "");
    // In a table it is folded, each line a comment.
    std::string table = Cusplice({"diff", ab, ba}, {{"COLUMNS", "80"}}).out;
    EXPECT_TRUE(Has(table, "# not_aligned: no step of A has the names of a step of B in their "
                           "order; A has 6\n#   steps of 2.0 ops, B 2 of 6.0\n"))
        << table;
    EXPECT_TRUE(Has(table, "# trace_a: " + ab + "\n")) << "a path stays in its line: " << table;
    // The time of steps that are not there is not known.
    sim::Json j = Parse(Says({"diff", "--by", "steps", "--format", "json", ab, cd}));
    EXPECT_EQ(j.text[Row(j, "in", "A") + "time_avg_b_ns"], "null");
}

TEST(Diff, OptionsAreChecked) {
    EXPECT_TRUE(Has(Fails(2, {"diff", golden}), "trace B is missing"));
    EXPECT_TRUE(Has(Fails(2, {"diff", "--by", "step", golden, golden}), "is steps"));
    EXPECT_TRUE(Has(Fails(2, {"diff", "--sort", "calls", golden, golden}), "is 'calls_a'"));
    EXPECT_TRUE(Has(Fails(1, {"diff", golden, "/nowhere"}), "/nowhere: No such file"));
    EXPECT_TRUE(Has(Fails(1, {"diff", "/nowhere", golden}), "/nowhere: No such file"));
}

} // namespace
