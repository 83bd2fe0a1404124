// Promise: the stats file has all fields and keeps its invariant; it is written whole or not at
// all, with the right owner.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utime.h>

#include <string>

extern "C" {
#include "shim/stats/stats.h"
}
#include "shim/base/version.h"
#include "shim/stats/stats_json.h"
#include "tests/unit/base/captured.h"

namespace {

const char *ApiName(unsigned row) {
    return row == 7 ? "cuStreamSynchronize" : nullptr;
}

cus_counters Sample() {
    cus_counters c = {};
    c.ops[CUS_OP_LAUNCH] = 100;
    c.ops[CUS_OP_MEMSET] = 20;
    c.ops[CUS_OP_COPY] = 3;
    c.in_graphs = 110;
    c.eager_by[CUS_EAGER_RULE] = 5;
    c.eager_by[CUS_EAGER_FLUSHED] = 8;
    c.graph_launches = 9;
    c.segments = 4;
    c.runs = 6;
    c.sig_exact = 3;
    c.sig_patched = 2;
    c.sig_missed = 1;
    c.patched_nodes = 77;
    c.flushes[7] = 12;
    c.flushes[8] = 13;
    c.flushes[CUS_CAUSE_WATCHDOG] = 14;
    c.breaks[CUS_BREAK_SYNC] = 15;
    c.fallbacks[CUS_FALLBACK_BUDGET] = 16;
    c.graph_bytes = 1u << 20;
    c.build_ns = 123456;
    return c;
}

// The value behind a path of keys, as text; "" where it is not there. Enough of JSON for two levels
// without arrays of objects.
std::string At(const std::string &json, std::initializer_list<std::string> keys) {
    size_t at = 0;
    for (const std::string &key : keys) {
        at = json.find("\"" + key + "\": ", at);
        if (at == std::string::npos)
            return "";
        at += key.size() + 4;
    }
    if (json[at] == '"' || json[at] == '[')
        return json.substr(at, json.find(json[at] == '"' ? '"' : ']', at + 1) - at + 1);
    return json.substr(at, json.find_first_of(",\n}", at) - at);
}

TEST(StatsFile, HasEveryField) {
    cus_counters c = Sample();
    std::string path = TempPath("stats.json");
    const cus_stats_step steps[] = {
        {"mixed", 5, "piecewise", "fmha", "eager", "fm*", "/etc/x.conf", 7},
        {"single", 6, "full", "", nullptr, nullptr, nullptr, 0}};
    cus_stats_facts facts = {"piecewise", "/bin/demo", 42,     "[\"graph 7\", \"eager x\"]",
                             steps,       2,           nullptr};
    ASSERT_TRUE(cus_stats_json(path.c_str(), &c, ApiName, &facts));
    std::string json = ReadFile(path);
    EXPECT_EQ(At(json, {"version"}), "\"" CUSPLICE_VERSION "\"");
    EXPECT_EQ(At(json, {"pid"}), "42");
    EXPECT_EQ(At(json, {"exe"}), "\"/bin/demo\"");
    EXPECT_EQ(At(json, {"mode"}), "\"piecewise\"");
    EXPECT_EQ(At(json, {"ops", "launches"}), "100");
    EXPECT_EQ(At(json, {"ops", "memsets"}), "20");
    EXPECT_EQ(At(json, {"ops", "copies"}), "3");
    EXPECT_EQ(At(json, {"issued", "in_graphs"}), "110");
    EXPECT_EQ(At(json, {"issued", "eager"}), "13");
    EXPECT_EQ(At(json, {"eager_by", "rule"}), "5");
    EXPECT_EQ(At(json, {"eager_by", "observing"}), "0");
    EXPECT_EQ(At(json, {"eager_by", "diverged"}), "0");
    EXPECT_EQ(At(json, {"eager_by", "flushed"}), "8");
    EXPECT_EQ(At(json, {"eager_by", "unsupported"}), "0");
    EXPECT_EQ(At(json, {"eager_by", "passthrough"}), "0");
    EXPECT_EQ(At(json, {"graph_launches"}), "9");
    EXPECT_EQ(At(json, {"segments_formed"}), "4");
    EXPECT_EQ(At(json, {"runs"}), "6");
    EXPECT_EQ(At(json, {"signatures", "exact"}), "3");
    EXPECT_EQ(At(json, {"signatures", "patched"}), "2");
    EXPECT_EQ(At(json, {"signatures", "missed"}), "1");
    EXPECT_EQ(At(json, {"patched_nodes"}), "77");
    EXPECT_EQ(At(json, {"flushes", "cuStreamSynchronize"}), "12");
    EXPECT_EQ(At(json, {"flushes", "api_8"}), "13");
    EXPECT_EQ(At(json, {"flushes", "watchdog"}), "14");
    EXPECT_EQ(At(json, {"breaks", "sync"}), "15");
    EXPECT_EQ(At(json, {"graph_bytes"}), "1048576");
    EXPECT_EQ(At(json, {"build_us"}), "123");
    EXPECT_EQ(At(json, {"fallbacks", "budget"}), "16");
    EXPECT_EQ(At(json, {"segment_list"}), "[\"graph 7\", \"eager x\"]");
    EXPECT_EQ(At(json, {"step_classes", "mixed", "steps"}), "5");
    EXPECT_EQ(At(json, {"step_classes", "mixed", "mode"}), "\"piecewise\"");
    EXPECT_EQ(At(json, {"step_classes", "mixed", "kernel"}), "\"fmha\"");
    EXPECT_EQ(At(json, {"step_classes", "mixed", "policy"}), "\"eager\"");
    EXPECT_EQ(At(json, {"step_classes", "mixed", "pattern"}), "\"fm*\"");
    EXPECT_EQ(At(json, {"step_classes", "mixed", "file"}), "\"/etc/x.conf\"");
    EXPECT_EQ(At(json, {"step_classes", "mixed", "line"}), "7");
    EXPECT_EQ(At(json, {"step_classes", "single", "steps"}), "6");
    EXPECT_EQ(At(json, {"step_classes", "single", "mode"}), "\"full\"");
    EXPECT_EQ(json.find("\"kernel\": \"\""), std::string::npos);
}

// Scripts that read a key by the name that it had go on for one version, and are told the new one.
TEST(StatsFile, AnOldKeyStandsBesideItsNewName) {
    cus_counters c = Sample();
    c.runtime = 21, c.submitted = 22, c.fallbacks[CUS_FALLBACK_OFF] = 24;
    static cus_report report;
    report.off = "somebody";
    cus_stats_facts facts = {"piecewise", "/bin/demo", 42, nullptr, nullptr, 0, &report};
    std::string path = TempPath("old.json");
    ASSERT_TRUE(cus_stats_json(path.c_str(), &c, ApiName, &facts));
    std::string json = ReadFile(path);
    const std::pair<const char *, const char *> keys[] = {
        {"met_before_runtime", "answered_before_runtime"},
        {"pieces", "segments_formed"},
        {"handed", "submitted"},
        {"segments", "runs"},
        {"withholding_off_by", "deferring_off_by"},
    };
    for (const auto &[old, key] : keys) {
        EXPECT_NE(At(json, {key}), "") << key;
        EXPECT_EQ(At(json, {old}), At(json, {key})) << old;
        EXPECT_EQ(At(json, {"renamed", old}), "\"" + std::string(key) + "\"");
    }
    EXPECT_EQ(At(json, {"answered_before_runtime"}), "21");
    EXPECT_EQ(At(json, {"submitted"}), "22");
    EXPECT_EQ(At(json, {"fallbacks", "deferring_off"}), "24");
    EXPECT_EQ(At(json, {"fallbacks", "withholding_off"}), "24");
}

TEST(StatsFile, IsJsonForOthersToo) {
    cus_counters c = Sample();
    std::string path = TempPath("json.json");
    static cus_report report;
    report.n_breaks = 2;
    report.breaks[0] = {"k\"1", "kernel", "rule", "", "", 7, 6};
    report.breaks[1] = {"", "other", "watchdog", "", "", 5, 4};
    report.more_breaks = 3;
    report.more_launches = 2;
    report.n_rules = 1;
    report.rules[0] = {"eager", "a*", "/f", 8, "b"};
    report.n_shapes = 1;
    report.shapes[0] = {"s", 20, 19};
    report.segments = 1;
    report.gone_bytes = 77;
    report.n_segments = 1;
    report.largest[0] = {6, 2, 900, 5, true, "first", "last"};
    report.learned = {30, 9999999, 1000400, true, 501000, 7, 98, 1, {{40, 30, 7900, 0}}};
    cus_stats_facts facts = {"eager", "/odd \"name\"\\with\ttabs\x01", 0, nullptr, nullptr, 0,
                             &report};
    ASSERT_TRUE(cus_stats_json(path.c_str(), &c, nullptr, &facts));
    std::string check =
        "import json,sys; d=json.load(open(sys.argv[1]));"
        "assert d['exe']=='/odd \"name\"\\\\with\\ttabs\\x01', d['exe'];"
        "assert sum(d['ops'].values())==sum(d['issued'].values());"
        "assert sum(d['eager_by'].values())==d['issued']['eager'];"
        "assert 'segment_list' not in d;"
        "assert d['learning']==dict(steps=30,first_ten_us=9999,plain_step_us=1000,"
        "plain_seen=True,first_ten_percent_of_plain=98,late_step_us=501,"
        "gain_at_step=7,first_steps=[dict(us=7,ops=40,in_graphs=30)]), d['learning'];"
        "assert d['breaks_by_kernel']==["
        "dict(name='k\"1',by='kernel',reason='rule',launches=7,runs=6),"
        "dict(name='',by='other',reason='watchdog',launches=5,runs=4)];"
        "assert d['breaks_beyond']==dict(kinds=3,launches=2,runs=0);"
        "assert d['rules_without_match']==["
        "dict(policy='eager',pattern='a*',file='/f',line=8,nearest='b')];"
        "assert d['changing_shapes']==[dict(name='s',launches=20,changed=19)];"
        "m=d['graph_memory'];"
        "assert m['segments']==1 and m['gone_bytes']==77;"
        "assert m['largest']==[dict(ops=6,variants=2,bytes=900,launches=5,gone=1,"
        "first='first',last='last')]";
    std::string program = WriteFile(TempPath("check.py"), check);
    EXPECT_EQ(system(("python3 " + program + " " + path).c_str()), 0) << ReadFile(path);
}

TEST(StatsFile, FactsThatAreNotGivenAreFoundOut) {
    cus_counters c = Sample();
    std::string path = TempPath("facts.json");
    cus_stats_facts facts = {"eager", nullptr, 0, nullptr, nullptr, 0, nullptr};
    ASSERT_TRUE(cus_stats_json(path.c_str(), &c, nullptr, &facts));
    std::string json = ReadFile(path);
    EXPECT_EQ(At(json, {"pid"}), std::to_string(getpid()));
    EXPECT_NE(At(json, {"exe"}).find("stats_test"), std::string::npos);
}

TEST(StatsFile, PidGoesIntoThePath) {
    cus_counters c = {};
    cus_stats_facts facts = {"eager", nullptr, 0, nullptr, nullptr, 0, nullptr};
    for (const char *mark : {"{pid}", "%p"}) {
        std::string path = TempPath("pid.");
        ASSERT_TRUE(cus_stats_json((path + mark + ".json").c_str(), &c, nullptr, &facts));
        EXPECT_NE(ReadFile(path + std::to_string(getpid()) + ".json"), "");
    }
}

TEST(StatsFile, AProcessWithoutOpsLeavesWhatAnotherWroteMeanwhile) {
    cus_counters none = {}, some = Sample();
    cus_stats_facts facts = {"eager", nullptr, 0, nullptr, nullptr, 0, nullptr};
    std::string path = WriteFile(TempPath("shared.json"), "of a child");
    EXPECT_FALSE(cus_stats_json(path.c_str(), &none, nullptr, &facts));
    EXPECT_EQ(ReadFile(path), "of a child");
    EXPECT_TRUE(cus_stats_json(path.c_str(), &some, nullptr, &facts)) << "who saw ops writes";
    EXPECT_NE(ReadFile(path), "of a child");
}

TEST(StatsFile, AFileFromBeforeTheProcessIsOverwritten) {
    cus_counters none = {};
    cus_stats_facts facts = {"eager", nullptr, 0, nullptr, nullptr, 0, nullptr};
    std::string path = WriteFile(TempPath("stale.json"), "of yesterday");
    utimbuf yesterday = {time(nullptr) - 86400, time(nullptr) - 86400};
    utime(path.c_str(), &yesterday);
    EXPECT_TRUE(cus_stats_json(path.c_str(), &none, nullptr, &facts));
    EXPECT_NE(ReadFile(path), "of yesterday");
}

mode_t ModeOf(const std::string &path) {
    struct stat info;
    return lstat(path.c_str(), &info) == 0 ? info.st_mode : 0;
}

TEST(StatsFile, IsTheUsersAlone) {
    cus_counters c = Sample();
    cus_stats_facts facts = {"eager", nullptr, 0, nullptr, nullptr, 0, nullptr};
    std::string path = TempPath("mine.json");
    mode_t before = umask(0);
    ASSERT_TRUE(cus_stats_json(path.c_str(), &c, nullptr, &facts));
    umask(before);
    EXPECT_EQ(ModeOf(path), S_IFREG | 0600u);
}

TEST(StatsFile, LinksInItsPlaceAreReplacedNotFollowed) {
    cus_counters c = Sample();
    cus_stats_facts facts = {"eager", nullptr, 0, nullptr, nullptr, 0, nullptr};
    std::string theirs = WriteFile(TempPath("theirs"), "of somebody else");
    utimbuf yesterday = {time(nullptr) - 86400, time(nullptr) - 86400};
    utime(theirs.c_str(), &yesterday);
    std::string path = TempPath("link.json");
    std::string partial = path + "." + std::to_string(getpid()) + ".partial";
    ASSERT_EQ(symlink(theirs.c_str(), path.c_str()), 0);
    ASSERT_EQ(symlink(theirs.c_str(), partial.c_str()), 0);
    ASSERT_TRUE(cus_stats_json(path.c_str(), &c, nullptr, &facts));
    EXPECT_EQ(ReadFile(theirs), "of somebody else");
    EXPECT_TRUE(S_ISREG(ModeOf(path)));
    EXPECT_EQ(ModeOf(partial), 0u);
}

TEST(StatsFile, APipeThatNobodyReadsHoldsNobodyUp) {
    cus_counters c = Sample();
    cus_stats_facts facts = {"eager", nullptr, 0, nullptr, nullptr, 0, nullptr};
    std::string path = TempPath("pipe");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    Captured([&] {
        if (cus_stats_json(path.c_str(), &c, nullptr, &facts))
            abort();
    });
    EXPECT_TRUE(S_ISFIFO(ModeOf(path)));
}

TEST(StatsFile, StderrMayBeAFileAndStaysWhatItIs) {
    cus_counters c = Sample();
    cus_stats_facts facts = {"eager", nullptr, 0, nullptr, nullptr, 0, nullptr};
    mode_t before = ModeOf("/dev/stderr");
    std::string text = Captured([&] {
        if (!cus_stats_json("/dev/stderr", &c, nullptr, &facts))
            abort();
    });
    EXPECT_NE(text.find("\"mode\": \"eager\""), std::string::npos) << text;
    EXPECT_EQ(ModeOf("/dev/stderr"), before);
}

TEST(StatsFile, NothingHalfWrittenStaysBehind) {
    std::string folder = TempPath("folder");
    mkdir(folder.c_str(), 0700);
    std::string target = folder + "/sub"; // a folder in the file's place: the rename fails
    mkdir(target.c_str(), 0700);
    mkdir((target + "/full").c_str(), 0700);
    cus_counters c = Sample();
    cus_stats_facts facts = {"eager", nullptr, 0, nullptr, nullptr, 0, nullptr};
    std::string text = Captured([&] {
        for (int i = 0; i < 3; i++)
            if (cus_stats_json(target.c_str(), &c, nullptr, &facts) ||
                cus_stats_json("/nowhere/stats.json", &c, nullptr, &facts))
                abort();
    });
    EXPECT_EQ(Count(text, "cannot be written"), 1u) << text;
    EXPECT_EQ(system(("test -z \"$(ls " + folder + " | grep partial)\"").c_str()), 0);
}

TEST(Counters, AddUpFieldByField) {
    cus_counters a = Sample(), sum = Sample();
    cus_counters_add(&sum, &a);
    EXPECT_EQ(sum.ops[CUS_OP_LAUNCH], 200u);
    EXPECT_EQ(sum.flushes[CUS_CAUSE_WATCHDOG], 28u);
    EXPECT_EQ(sum.build_ns, 246912u);
    EXPECT_EQ(sum.breaks[CUS_BREAK_API], 0u);
}

} // namespace
