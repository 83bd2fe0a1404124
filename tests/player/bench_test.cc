// Promise: cusplice bench measures each cell of the grid; formats and plot agree; break lists keep
// the named kernels out of graphs; bench removes its recording. Runs with the real library on the
// simulator, or with the test's own player if numbers must be known. Nothing tests times.
#include <dirent.h>
#include <gtest/gtest.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/launcher/launcher.h"
#include "tests/player/made.h"
#include "tests/sim/json.h"

namespace {

using Row = std::map<std::string, std::string>;

Result OnSimulator(Strings arguments, Environment more = {}) {
    Strings argv = {"/bin/sh", "tools/sim-run", "--", "tools/cusplice"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    more.emplace("CUSIM_LIB", "harness/sim/lib");
    more.emplace("CUSIM_DELAY_US", "0");
    more.emplace("CUSPLICE_LOG", "error");
    more.emplace("TMPDIR", Folder() + "/tmp");
    mkdir((Folder() + "/tmp").c_str(), 0755);
    return RunProgram(argv, more);
}

Result Bench(Strings arguments, Environment more = {}) {
    arguments.insert(arguments.begin(), "bench");
    return OnSimulator(arguments, more);
}

// What recordings leave.
int Left() {
    int n = 0;
    DIR *folder = opendir((Folder() + "/tmp").c_str());
    while (const dirent *entry = folder ? readdir(folder) : nullptr)
        n += std::string(entry->d_name).rfind("cusplice-bench.", 0) == 0;
    if (folder)
        closedir(folder);
    return n;
}

// A plain CSV, as there is no comma in what is tested.
std::vector<Row> ParseCsv(const std::string &text) {
    std::vector<Strings> lines;
    std::stringstream in(text);
    for (std::string line, cell; std::getline(in, line);) {
        lines.emplace_back();
        std::stringstream cells(line);
        while (std::getline(cells, cell, ','))
            lines.back().push_back(cell);
        if (!line.empty() && line.back() == ',')
            lines.back().emplace_back();
    }
    std::vector<Row> rows;
    for (size_t i = 1; i < lines.size(); i++) {
        rows.emplace_back();
        for (size_t k = 0; k < lines[0].size() && k < lines[i].size(); k++)
            rows.back()[lines[0][k]] = lines[i][k];
    }
    return rows;
}

double Number(const Row &row, const std::string &key) {
    auto it = row.find(key);
    EXPECT_NE(it, row.end()) << key;
    return it == row.end() ? -1 : atof(it->second.c_str());
}

std::string Cell(const Row &row) {
    return row.at("strategy") + " " + row.at("segment_max") + " " + row.at("breaks");
}

const Row &Find(const std::vector<Row> &rows, const std::string &cell) {
    static const Row none;
    for (const Row &row : rows)
        if (Cell(row) == cell)
            return row;
    ADD_FAILURE() << "no cell " << cell;
    return none;
}

// A line for each series, "series NAME", and for each of its points, "point X NS NOISE", by an XML
// parser.
std::string PlotOf(const std::string &path) {
    Result r = RunProgram(
        {"/usr/bin/env", "python3", "-c",
         "import sys, xml.etree.ElementTree as tree\n"
         "for g in tree.parse(sys.argv[1]).getroot().iter():\n"
         "    if g.get('class') == 'series':\n"
         "        print('series', g.get('data-name'))\n"
         "        for p in g.iter():\n"
         "            if p.get('class') == 'point':\n"
         "                print('point', p.get('data-x'), p.get('data-ns'), p.get('data-noise'))\n",
         path});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    return r.out;
}

// How high above the axis each point stands.
std::vector<double> HeightsOf(const std::string &path) {
    std::vector<double> heights;
    std::string plot = ReadFile(path);
    const std::string point = "class=\"marker\" transform=\"translate(";
    size_t legend = plot.find("class=\"legend\"");
    for (size_t at = 0; (at = plot.find(point, at)) < legend; at++)
        heights.push_back(406 - atof(plot.c_str() + plot.find(' ', at + point.size())));
    return heights;
}

std::string ExpectedPlot(const std::vector<Row> &rows) {
    std::string text, last;
    for (const Row &row : rows) {
        std::string name = row.at("strategy");
        if (!row.at("breaks").empty())
            name += ", breaks " + row.at("breaks");
        if (name == "eager")
            name += " (plain driver)";
        if (name != last)
            text += "series " + name + "\n";
        last = name;
        text += "point " + row.at("segment_max") + " " + row.at("step_ns") + " " +
                row.at("noise_ns") + "\n";
    }
    return text;
}

// ---- the real library ----

TEST(Bench, FormatsAndPlotAgreeOnEachCell) {
    std::string trace = MakeSteps("grid.cst", 6, false, false, true), out = Folder() + "/grid";
    Result r =
        Bench({"--rounds=1", "--pace=none", "--segments=16,4", "--break=none", "--break", "chain",
               "--break", "copy_words;mangled:copy_wor*", "-o", out + ".csv", "-o", out + ".json",
               "-o", out + ".md", "-o", out + ".txt", "--svg", out + ".svg", trace});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(r.err, "");
    std::vector<Row> rows = ParseCsv(ReadFile(out + ".csv"));
    std::string cells;
    for (const Row &row : rows)
        cells += Cell(row) + "|";
    EXPECT_EQ(cells, "eager 0 |piecewise 4 none|piecewise 16 none|piecewise 4 chain|"
                     "piecewise 16 chain|piecewise 4 copy_words;mangled:copy_wor*|"
                     "piecewise 16 copy_words;mangled:copy_wor*|full 4 |full 16 |as-recorded 0 |");
    sim::Json json = sim::ParseJson(ReadFile(out + ".json"));
    ASSERT_TRUE(json.valid);
    std::string md = ReadFile(out + ".md"), table = ReadFile(out + ".txt");
    for (size_t i = 0; i < rows.size(); i++) {
        std::string at = "rows." + std::to_string(i) + ".";
        for (const auto &[key, value] : rows[i])
            if (value.empty() && key == "gain_at_step")
                EXPECT_EQ(json.text[at + key], "null");
            else if (json.text.count(at + key))
                EXPECT_EQ(json.text[at + key], value);
            else
                EXPECT_EQ(json.Number(at + key), atof(value.c_str())) << key;
        const Row &row = rows[i];
        EXPECT_EQ(row.size(), 17u);
        EXPECT_EQ(Number(row, "wrong_sums"), 0);
        EXPECT_GT(Number(row, "step_ns"), 0);
        EXPECT_GT(Number(row, "first_ten_of_eager"), 0);
        EXPECT_LE(
            fabs(Number(row, "of_eager") * Number(row, "eager_ns") / 100 - Number(row, "step_ns")),
            3 + 1e-4 * Number(row, "step_ns"));
        std::string breaks = row.at("breaks"); // a star is escaped in Markdown
        for (size_t at = breaks.find('*'); at != std::string::npos; at = breaks.find('*', at + 2))
            breaks.insert(at, "\\");
        EXPECT_TRUE(Has(md, "| " + row.at("strategy") + " | " + row.at("segment_max") + " | " +
                                breaks + " | "))
            << md;
    }
    EXPECT_FALSE(json.Has("rows." + std::to_string(rows.size()) + ".cell"));
    EXPECT_EQ(PlotOf(out + ".svg"), ExpectedPlot(rows));
    EXPECT_LT(ReadFile(out + ".svg").size(), 20000u);
    // Facts above, break lists below, in each.
    EXPECT_EQ(json.text["about.gpu"], "Simulated H200");
    EXPECT_EQ(json.text["about.driver"], "CUDA 13.0");
    EXPECT_EQ(json.Number("about.rounds"), 1);
    EXPECT_EQ(json.text["breaks.0.kernel"], "chain");
    EXPECT_EQ(json.Number("breaks.0.calls"), 42);
    EXPECT_EQ(json.text["breaks.1.kernel"], "copy_words");
    EXPECT_EQ(json.Number("breaks.1.share"), 12.5);
    EXPECT_FALSE(json.Has("breaks.2.calls")); // it is named twice
    EXPECT_EQ(md.compare(0, 11, "- program: "), 0) << md;
    EXPECT_TRUE(Has(md, "\n- rounds: 1\n") && Has(md, "| chain | chain | 42 | 87.5 % |\n")) << md;
    EXPECT_TRUE(Has(md, "- command: cusplice bench --rounds=1 ") &&
                Has(md, "--break 'copy_words;mangled:copy_wor\\*' -o "))
        << md;
    EXPECT_TRUE(Has(table, "# gpu: Simulated H200\n") && Has(table, "\nchain  ")) << table;
    // What they name is in no graph.
    for (const char *segment : {"4", "16"}) {
        std::string size = std::string("piecewise ") + segment;
        double all = Number(Find(rows, size + " none"), "in_graphs");
        EXPECT_GE(all, 30);
        EXPECT_EQ(Number(Find(rows, std::string("full ") + segment + " "), "in_graphs"), all);
        EXPECT_LT(Number(Find(rows, size + " chain"), "in_graphs"), all / 2);
        EXPECT_LT(Number(Find(rows, size + " chain"), "folded"),
                  Number(Find(rows, size + " none"), "folded"));
    }
    EXPECT_EQ(Number(rows[0], "in_graphs"), 0);
    EXPECT_EQ(Number(rows[0], "first_ten_of_eager"), 100);
    EXPECT_EQ(rows[0].at("gain_at_step"), "") << "it gains nothing over itself";
}

// In one more step of a program there are as many more nodes and graphs as whatif counts for the
// same settings: what differs at its beginning is in both runs.
// -c holds for what is not played as it was recorded; -o - is stdout.
TEST(Bench, TakesAConfiguration) {
    std::string trace = MakeSteps("config.cst", 4),
                config = Write("none.conf", "[rules]\neager = *\n");
    Result r =
        Bench({"--rounds=1", "--pace=none", "--segments=16", "--break=none",
               "--strategy=piecewise,as-recorded", "--format=csv", "-c", config, "-o", "-", trace});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    Result narrow = Bench({"--rounds=1", "--pace=none", "--segments=16", "--break=none", trace},
                          {{"COLUMNS", "80"}});
    std::istringstream lines(narrow.out);
    for (std::string line; std::getline(lines, line);)
        EXPECT_TRUE(line.size() <= 80 || line[0] == '#') << line;
    EXPECT_NE(narrow.out.find("\n# left out here (--wide has all): "), std::string::npos)
        << narrow.out;
    for (const Row &row : ParseCsv(r.out)) {
        double share = atof(row.at("in_graphs").c_str());
        EXPECT_EQ(share >= 30, row.at("strategy") == "as-recorded") << r.out;
        EXPECT_EQ(share > 0, row.at("strategy") == "as-recorded") << r.out;
    }
    EXPECT_NE(access("-", F_OK), 0);
}

// --eager, --set and --mode mean what they mean with replay.
TEST(Bench, TakesSettingsAsReplayDoes) {
    std::string trace = MakeSteps("settings.cst", 4);
    const Strings base = {"--rounds=1",   "--pace=none",  "--segments=16",
                          "--break=none", "--format=csv", "--mode=piecewise,as-recorded",
                          trace};
    auto shares = [&](Strings more) {
        more.insert(more.end(), base.begin(), base.end());
        Result r = Bench(more);
        EXPECT_EQ(r.Exit(), 0) << r.err;
        std::vector<Row> rows = ParseCsv(r.out);
        EXPECT_EQ(rows.size(), 3u) << r.out;
        EXPECT_EQ(rows.size() > 2 ? Cell(rows[1]) + "," + Cell(rows[2]) : "",
                  "piecewise 16 none,as-recorded 0 ");
        return rows;
    };
    std::vector<Row> plain = shares({});
    for (const Strings &more : {Strings{"--eager", "chain"}, Strings{"--set", "eager=chain"},
                                Strings{"--eager=*"}, Strings{"--set", "warmup=1000"}}) {
        std::vector<Row> rows = shares(more);
        for (size_t i = 1; i < rows.size() && i < plain.size(); i++)
            EXPECT_LT(Number(rows[i], "in_graphs"), Number(plain[i], "in_graphs") / 2)
                << more[0] << " " << rows[i].at("strategy");
    }
    // It is in front of each break list, whose own kernels are named alone.
    Result r = Bench({"--rounds=1", "--pace=none", "--segments=16", "--break=copy_words",
                      "--format=json", "--strategy=piecewise", "--eager=chain", trace});
    sim::Json json = sim::ParseJson(r.out);
    EXPECT_EQ(json.Number("rows.1.in_graphs"), 0) << r.out;
    EXPECT_EQ(json.text["breaks.0.kernel"], "copy_words");
    EXPECT_FALSE(json.Has("breaks.1.kernel"));
    const struct {
        Strings words;
        const char *said;
    } wrong[] = {{{"--set", "segment_max=4"}, "that is what --segments says"},
                 {{"--set", "segment_first=4"}, "that is what --first says"},
                 {{"--set", "mode=full"}, "the mode is what --strategy says"},
                 {{"--set", "record=x.cst"}, "a replay is not recorded"},
                 {{"--set", "holdus=1"}, "nearest: hold_us"},
                 {{"--mode", "piecewis"}, "the nearest is piecewise"},
                 {{"--eager", "nothing_of_that_name"}, "nothing_of_that_name"}};
    for (const auto &row : wrong) {
        Strings words = row.words;
        words.push_back(trace);
        r = Bench(words);
        EXPECT_NE(r.Exit(), 0) << row.said;
        EXPECT_TRUE(r.err.find(row.said) != std::string::npos) << r.err;
    }
}

TEST(Bench, CountsAreThoseOfWhatIf) {
    const Environment fixed = {{"CUSPLICE_HOLD_US", "1000000"},
                               {"CUSPLICE_BUILD_US", "0"}, // by time, which is another each time
                               {"CUSPLICE_DEMOTE", "no"},
                               {"CUSIM_GRAPH_RULES", "measured"}};
    const int steps[] = {20, 30};
    const std::string sizes[] = {"4", "16"}, breaks[] = {"none", "add_scalar"};
    double folded[2][4], graphs[2][4], if_folded[2][4], if_graphs[2][4];
    for (int i = 0; i < 2; i++) {
        std::string trace = Folder() + "/steady" + std::to_string(i) + ".cst";
        Result r =
            OnSimulator({"record", "--replayable", "-o", trace, "--", "harness/scenario/scenario",
                         "steady", "--steps", std::to_string(steps[i])},
                        fixed);
        ASSERT_EQ(r.Exit(), 0) << r.err;
        r = Bench({"--rounds=1", "--pace=none", "--strategy=piecewise", "--segments=4,16",
                   "--first=16", "--break=none", "--break=add_scalar", "--format=json", trace},
                  fixed);
        ASSERT_EQ(r.Exit(), 0) << r.err;
        sim::Json json = sim::ParseJson(r.out);
        for (int k = 0; k < 4; k++) {
            std::string row = "rows." + std::to_string(k + 1) + ".", size = sizes[k % 2];
            folded[i][k] = json.Number(row + "folded") * json.Number("about.steps");
            graphs[i][k] = json.Number(row + "graphs") * json.Number("about.steps");
            Strings words = {"whatif", "--format=json",         "--set", "segment_max=" + size,
                             "--set",  "segment_first=" + size, "--set", "hold_us=1000000"};
            if (k / 2)
                words.insert(words.end(), {"--eager", breaks[k / 2]});
            words.push_back(trace);
            r = OnSimulator(words);
            sim::Json counts = sim::ParseJson(r.out);
            ASSERT_TRUE(counts.valid) << r.err;
            if_folded[i][k] = counts.Number("whatif.issued.in_graphs");
            if_graphs[i][k] = counts.Number("whatif.graph_launches");
            if (k / 2) {
                EXPECT_EQ(json.Number("breaks.0.calls"), counts.Number("whatif.eager_by.rule"));
            }
        }
    }
    for (int k = 0; k < 4; k++) {
        SCOPED_TRACE("segments of " + sizes[k % 2] + ", breaks " + breaks[k / 2]);
        EXPECT_NEAR(folded[1][k] - folded[0][k], if_folded[1][k] - if_folded[0][k], 0.01);
        EXPECT_NEAR(graphs[1][k] - graphs[0][k], if_graphs[1][k] - if_graphs[0][k], 0.01);
        EXPECT_GE(if_folded[1][k] - if_folded[0][k], 100);
    }
    EXPECT_LT(folded[1][3], folded[1][1]);
    EXPECT_GT(graphs[1][3], graphs[1][1]);
    EXPECT_GT(graphs[1][0], 2 * graphs[1][1]);
}

TEST(Bench, RecordsAScenarioAndRemovesTheTrace) {
    Result r = Bench({"--scenario", "steady", "--steps", "4-8", "--rounds=1", "--pace=none",
                      "--strategy=piecewise,as-recorded", "--segments=8", "--break=every:6",
                      "--format=json"});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(r.err, "cusplice: every:6: add_scalar, 16.7 % of all launches\n");
    sim::Json json = sim::ParseJson(r.out);
    ASSERT_TRUE(json.valid) << r.out;
    EXPECT_EQ(json.text["about.program"], "scenario steady");
    EXPECT_EQ(json.text["about.trace"], "recorded for this, steps 4-8");
    EXPECT_EQ(json.Number("about.steps"), 5);
    EXPECT_EQ(json.text["rows.2.strategy"], "as-recorded");
    EXPECT_EQ(Left(), 0);
}

// How often they are called stands below the table.
TEST(Bench, MemsetsCanBeBreaksToo) {
    Result r = Bench({"--scenario=memsets", "--rounds=1", "--pace=none", "--strategy=piecewise",
                      "--segments=16", "--break=api:cuMemsetD8*;chain", "--format=json"});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    sim::Json json = sim::ParseJson(r.out);
    EXPECT_EQ(json.text["breaks.0.kernel"], "api:cuMemsetD8*");
    EXPECT_EQ(json.Number("breaks.0.calls"), 72) << "without cuMemsetD2D8Async";
    EXPECT_EQ(json.Number("breaks.0.share"), 0);
    EXPECT_EQ(json.Number("breaks.1.calls"), 48);
    EXPECT_EQ(json.Number("breaks.1.share"), 100);
}

TEST(Bench, RecordsAProgramWhoseOutputStaysOutOfTheTable) {
    Result r = Bench({"--strategy=eager", "--rounds=1", "--pace=none", "--format=csv", "--",
                      "harness/scenario/scenario", "steady", "--steps", "3"});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(r.out.compare(0, 14, "cell,strategy,"), 0) << r.out;
    EXPECT_EQ(ParseCsv(r.out).size(), 1u);
    EXPECT_TRUE(Has(r.err, "codes: ")) << r.err;
    EXPECT_EQ(Left(), 0);
}

TEST(Bench, ARecordingThatFailsLeavesNothing) {
    const struct {
        int status;
        Strings arguments;
        std::string says;
    } cases[] = {
        {2, {"--scenario", "stedy"}, "there is none of that name; the nearest is steady"},
        {2, {"--scenario=steady", "--steps=x"}, "--steps x: A-B is expected"},
        {1, {"--scenario=graph_program"}, "cannot be replayed:\ncusplice:   the program called "},
        {1, {"--", "/bin/true"}, "/bin/true: left no trace: it asked nothing of the GPU\n"},
        {1, {"--", "/bin/sh", "-c", "exit 7"}, "/bin/sh: ended with status 7 while it was rec"},
        // Whoever started the one that started it.
        {-15,
         {"--", "/bin/sh", "-c",
          "read -r _ _ _ parent _ </proc/$PPID/stat; kill -TERM $parent; exec sleep 60"},
         ""},
    };
    for (const auto &one : cases) {
        Result r = Bench(one.arguments);
        EXPECT_EQ(r.Exit(), one.status) << one.says << r.err;
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, one.says)) << "wanted: " << one.says << "\n" << r.err;
        EXPECT_EQ(Left(), 0) << one.says;
    }
}

// ---- what is refused ----

TEST(BenchWords, BadOnesAreRefused) {
    std::string trace = MakeSteps("words.cst", 1), there = Write("there.md", "mine");
    const struct {
        int status;
        Strings arguments;
        std::string says;
    } refusals[] = {
        {2, {}, "a trace is missing, or --scenario NAME, or -- PROGRAM: cusplice bench"},
        {2, {trace, trace}, "one trace at a time"},
        {2, {"--scenario=steady", trace}, "one of them: a trace, --scenario NAME, -- PROGRAM"},
        {2, {trace, "--", "/bin/true"}, "one of them: a trace, --scenario NAME, -- PROGRAM"},
        {2, {"--steps=1-2", trace}, "--steps 1-2: the steps of a trace are those that it has"},
        {2, {"--segmnts", "4", trace}, "unknown option --segmnts; the nearest is --segments"},
        {2, {"--pieces=4,1", trace}, "--pieces is called --segments now"},
        {2,
         {"--segments=4,1", trace},
         "--segments: segment_max = 1: must be a whole number from 2 to"},
        {2, {"--segments=4,,8", trace}, "--segments: segment_max"},
        {2,
         {"--segments=4096", trace},
         "segment_max = 4096: must be a whole number from 2 to 1024"},
        {2, {"--first=65", trace}, "--first: segment_first = 65: must be a whole number from 2 to"},
        {2, {"--strategy=eager,ful", trace}, "--strategy ful: no such value; the nearest is full"},
        {2, {"--break=every:1", trace}, "--break every:1: every:N with a number from 2 to"},
        {2, {"--break=every:1x", trace}, "--break every:1x: every:N"},
        {2, {"--break=;", trace}, "--break ';': none, every:N, sweep or patterns"},
        {2, {"--top=0", trace}, "--top 0: a number from 1 to 50 is expected"},
        {2, {"--rounds=0", trace}, "--rounds 0: a number from 1 to 10000 is expected"},
        {2, {"--pace=slow", trace}, "--pace slow: no such value"},
        {2,
         {"--format=xml", trace},
         "--format xml: no such value: it may be table, csv, json or md"},
        {1,
         {"--break=chain;chian", trace},
         "--break chian: no kernel of the trace has that name; the nearest is chain"},
        {1, {"--break=lib:libx*", trace}, "lib:libx*: a replay loads all code itself"},
        {1, {"--break=re:(", trace}, "--break re:("},
        {1, {"-o", there, trace}, there + ": it is there already (--force replaces it)"},
        {1, {"--svg", there, trace}, "--svg " + there + ": it is there already"},
        {1, {"--svg", trace, "--force", trace}, "--svg " + trace + ": it is what is read"},
        {1, {"-o", "/nowhere/x.md", trace}, "--output /nowhere/x.md: No such file"},
        {1, {"-o", there + "1", "-o", there + "1", trace}, there + "1: named twice"},
        {1, {"-o", there + "1", "--svg", there + "1", trace}, there + "1: named twice"},
        {1,
         {"-o", there + "1", "--svg",
          there.substr(0, there.rfind('/')) + "/./" + there.substr(there.rfind('/') + 1) + "1",
          trace},
         there + "1: named twice"},
        {1,
         {"--svg", there, "--force", "--", there},
         "--svg " + there + ": it is what is read: name another file"},
        {1, {"/nowhere/x.cst"}, "/nowhere/x.cst: No such file"},
        {1, {"tests/golden/trace-v1.cst"}, "record it with cusplice record --replayable"},
    };
    for (const auto &refusal : refusals) {
        Result r = Bench(refusal.arguments);
        EXPECT_EQ(r.Exit(), refusal.status) << refusal.says << r.err;
        EXPECT_EQ(r.out, "");
        EXPECT_TRUE(Has(r.err, refusal.says)) << "wanted: " << refusal.says << "\n" << r.err;
    }
    EXPECT_EQ(ReadFile(there), "mine");
}

// ---- a player that is a script ----

// Steps of `base` and `more` for each player that was started before it; 100 ns more or less from
// pass to pass: medians are 100 more than that. The first steps are 280, 260, ... 20 more than the
// median, and those behind them as long. `wrong`: sums that differ.
Result ByScript(const std::string &trace, Strings arguments, int wrong = 0, int base = 1000,
                int more = 400) {
    std::string folder = CuspliceProgram(), started = Folder() + "/started";
    folder = folder.substr(0, folder.rfind("/bin/")) + "/lib/cusplice";
    mkdir(folder.c_str(), 0755);
    Write("started", "");
    std::ofstream(folder + "/player")
        << "#!/bin/sh\necho x >>" << started << "\nn=$(wc -l <" << started
        << ")\n"
           "echo '{\"ready\":true,\"gpu\":\"<G&\\\\u0022>\",\"driver\":12040,\"ops\":9,"
           "\"launches\":4,\"steps\":2,\"memory_bytes\":7,\"checks\":1,\"interface\":1,"
           "\"warnings\":[]}'\n"
           "while read -r word n_passes; do case $word in check | sums) echo "
           "'{\"checks\":1,\"wrong\":"
        << wrong
        << ",\"where\":[\"0x10\"]}' ;;\n"
           "run) i=0; list=; while [ $i -lt $n_passes ]; do i=$((i + 1)); "
           "list=$list,$(("
        << base << " + " << more
        << " * n + 100 * (i % 3))); done\n"
           "echo '{\"ns\":['${list#,}'],\"step_ns\":['${list#,}'],\"steps\":2,\"in_graphs\":'$((6 "
           "* n_passes))',\"issued\":'"
           "$((8 * n_passes))',\"graph_launches\":'$((3 * n_passes))'}' ;;\n"
           "curve) i=0; list=; while [ $i -lt 18 ]; do i=$((i + 1)); list=$list,$(("
        << base + 100 << " + " << more
        << " * n + (i < 15 ? 20 * (15 - i) : 0))); done\n"
           "echo '{\"ns\":['${list#,}']}' ;; esac; done\n";
    chmod((folder + "/player").c_str(), 0755);
    arguments.insert(arguments.begin(), "bench");
    arguments.push_back(trace);
    return Cusplice(arguments);
}

TEST(BenchFigures, EachCellIsComparedWithThePlainDriverOfItsBatch) {
    std::string svg = Folder() + "/figures.svg";
    Result r = ByScript(MakeSteps("script.cst", 1),
                        {"--segments=4,8,16,32", "--break=none", "--strategy=full,piecewise",
                         "--rounds=1", "--format=csv", "--svg", svg});
    ASSERT_EQ(r.Exit(), 0) << r.err;
    std::vector<Row> rows = ParseCsv(r.out);
    ASSERT_EQ(rows.size(), 9u);
    // The players were 1 plain, 6 cells, 1 plain, 2 cells. A step of the n-th: 1100 + 400 n.
    for (size_t i = 1; i < 9; i++) {
        bool first = i <= 6;
        double step = 1100 + 400 * double(first ? i + 1 : i + 2), eager = first ? 1500 : 4300;
        EXPECT_EQ(Number(rows[i], "step_ns"), step);
        EXPECT_EQ(Number(rows[i], "eager_ns"), eager) << i;
        EXPECT_NEAR(Number(rows[i], "of_eager"), 100 * step / eager, 0.01);
        EXPECT_EQ(Number(rows[i], "noise_ns"), 100);
        EXPECT_EQ(Number(rows[i], "in_graphs"), 75);
        EXPECT_EQ(Number(rows[i], "folded"), 3);
        EXPECT_EQ(Number(rows[i], "graphs"), 1.5);
        EXPECT_EQ(Number(rows[i], "passes"), 20);
    }
    EXPECT_EQ(Number(rows[0], "step_ns"), 2900);
    EXPECT_EQ(Number(rows[0], "of_eager"), 100);
    EXPECT_EQ(Number(rows[0], "passes"), 40);
    EXPECT_EQ(PlotOf(svg), ExpectedPlot(rows));
    std::vector<double> heights = HeightsOf(svg);
    ASSERT_EQ(heights.size(), 9u);
    for (size_t i = 1; i < 9; i++)
        EXPECT_NEAR(heights[i] / heights[0], Number(rows[i], "of_eager") / 100, 0.002)
            << "what is slower than the plain driver beside it stands above the line";
    std::string plot = ReadFile(svg);
    EXPECT_TRUE(Has(plot, ">&lt;G&amp;&quot;&gt;, driver CUDA 12.4, cusplice ")) << plot;
    EXPECT_TRUE(Has(plot, ">time of a step (us)<") && Has(plot, "(segment_max)<")) << plot;
}

// A step of the n-th player: 4100 - 300 n. Nine tenths of the gain are there where a step is longer
// than its median by a tenth of what that is shorter than the plain driver's in the same batch.
TEST(BenchFigures, TheFirstStepsAreComparedWithThePlainDriverOfTheBatch) {
    Result r = ByScript(MakeSteps("curve.cst", 1),
                        {"--segments=4,8,16,32", "--break=none", "--strategy=full,piecewise",
                         "--rounds=1", "--format=csv"},
                        0, 4000, -300);
    ASSERT_EQ(r.Exit(), 0) << r.err;
    std::vector<Row> rows = ParseCsv(r.out);
    ASSERT_EQ(rows.size(), 9u);
    // 300, 600, ... 1800 ns are gained in the first batch, 300 and 600 in the second.
    const int gain[] = {0, 14, 12, 11, 9, 8, 6, 14, 12};
    for (size_t i = 1; i < 9; i++) {
        double step = 4100 - 300 * double(i <= 6 ? i + 1 : i + 2), plain = i <= 6 ? 3800 : 1700;
        double more = 280 + 260 + 240 + 220 + 200 + 180 + 160 + 140 + 120 + 100;
        EXPECT_EQ(Number(rows[i], "step_ns"), step);
        EXPECT_NEAR(Number(rows[i], "first_ten_of_eager"),
                    100 * (10 * step + more) / (10 * plain + more), 0.001)
            << i;
        EXPECT_EQ(Number(rows[i], "gain_at_step"), gain[i]) << i;
    }
    EXPECT_EQ(Number(rows[0], "first_ten_of_eager"), 100);
    EXPECT_EQ(rows[0].at("gain_at_step"), "");
}

TEST(BenchFigures, WrongSumsAreAFailureThatIsShown) {
    std::string out = Folder() + "/wrong.csv";
    Result r = ByScript(MakeSteps("sums.cst", 1),
                        {"--strategy=full", "--segments=4", "--rounds=1", "-o", out}, 1);
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, "cusplice: full, segments of 4: 1 of 1 sums of the memory")) << r.err;
    std::vector<Row> rows = ParseCsv(ReadFile(out));
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(Number(rows[1], "wrong_sums"), 1);
}

TEST(BenchFigures, SaysHowLongItWillTakeWhereItIsLong) {
    std::string path = Fresh("long.cst");
    Made m(path);
    m.Module();
    m.gap_ns = 10000000000;
    uint32_t lane = m.Lane(CST_STREAM_LEGACY);
    m.Chain(lane, m.Alloc(0, 64), 1, 1, 4);
    ASSERT_EQ(m.Close(), 0);
    Strings arguments = {"--strategy=full", "--segments=4", "--rounds=2", "--format=csv"};
    // 2 players, each a second to start, a first pass, 64 that count for nothing and 2 of 10 s.
    Result r = ByScript(path, arguments);
    EXPECT_TRUE(Has(r.err, "cusplice: 2 cells in 1 batches: about 22.4 minutes\n")) << r.err;
    arguments.push_back("--pace=none");
    EXPECT_FALSE(Has(ByScript(path, arguments).err, "minutes"));
}

} // namespace
