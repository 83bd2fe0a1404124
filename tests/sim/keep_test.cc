// Promise: a program does the same while it is recorded for replay. Another process can replay the
// trace, plain and preloaded, with the same memory at the end; otherwise the trace says why it
// cannot be replayed.
#include "tests/sim/cases.h"
#include "tests/sim/recording.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace sim {
namespace {

Setting Plain() {
    Setting setting;
    setting.env = {{"CUSIM_DELAY_US", "5"}};
    return setting;
}

Setting Kept(const std::string &path) {
    Setting setting = Plain();
    setting.preload = true;
    setting.env["CUSPLICE_RECORD"] = path;
    setting.env["CUSPLICE_RECORD_REPLAYABLE"] = "yes";
    return setting;
}

// What the player says, line by line: of the trace, of a first pass, and of one behind three more.
struct Played {
    Json ready, first, runs, last;
    std::string text;
};

Played Play(const std::string &path, bool preload) {
    Setting setting = Plain();
    setting.preload = preload;
    Outcome outcome = RunProgram(
        {"/bin/sh", "-c",
         "(echo check; echo run 3; echo check; echo quit) | exec \"$0\" --pace none \"$1\"",
         Runfile("harness/player/player"), path},
        setting);
    Played played;
    played.text = outcome.result.out + outcome.result.err;
    std::vector<std::string> lines;
    for (size_t at = 0, end; (end = outcome.result.out.find('\n', at)) != std::string::npos;
         at = end + 1)
        lines.push_back(outcome.result.out.substr(at, end - at));
    Json *into[] = {&played.ready, &played.first, &played.runs, &played.last};
    for (size_t i = 0; i < lines.size() && i < 4; i++)
        *into[i] = ParseJson(lines[i]);
    return played;
}

void ExpectReplayed(const std::string &path) {
    for (bool preload : {false, true}) {
        SCOPED_TRACE(preload ? "preloaded" : "plain");
        Played played = Play(path, preload);
        EXPECT_TRUE(played.text.find("\"ready\":true") != std::string::npos) << played.text;
        ASSERT_TRUE(played.first.valid && played.last.valid) << played.text;
        EXPECT_GT(played.first.Number("checks"), 0) << played.text;
        EXPECT_EQ(played.first.Number("wrong"), 0) << played.text;
        EXPECT_EQ(played.last.Number("wrong"), 0) << played.text;
    }
}

// ---- programs that can be replayed ----

class Replayed : public testing::TestWithParam<const char *> {};

TEST_P(Replayed, LeavesTheSameInMemory) {
    const Case &c = CaseOf(GetParam());
    std::string path = NewPath();
    Outcome plain = RunCase(c, Plain()), kept = RunCase(c, Kept(path));
    EXPECT_EQ(kept.result.out, plain.result.out);
    EXPECT_EQ(kept.result.status, plain.result.status);
    Trace trace = OpenGood(path);
    ASSERT_TRUE(trace);
    EXPECT_TRUE(trace->closed);
    EXPECT_EQ(trace->replay.n_obstacles, 0u);
    ExpectReplayed(path);
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, Replayed,
    testing::Values("decode_loop", "decode_legacy", "two_streams", "streams_interleaved",
                    "legacy_blocking", "legacy_nonblocking", "legacy_aliases", "stream_recreate",
                    "many_streams", "steady", "launch_bound", "long_short", "batch_turns",
                    "moving_buffers", "growing_grid", "block_smem", "diverge_branch",
                    "swap_functions", "moving_sync", "never_sync", "poll_copy", "stream_query",
                    "event_query", "memsets", "memsets_2d", "copies", "copies_sync",
                    "copies_registered", "free_reuse", "memory_late", "threads", "thread_handover",
                    "thread_leaves", "ptds", "ptds_legacy", "many_params", "extra_form",
                    "launch_ex", "cooperative", "handles", "func_attribute", "errors",
                    "errors_memory", "module_reload", "library_reload", "primary_reset", "fork",
                    "exit_pending", "exit_quick"),
    [](const auto &info) { return std::string(info.param); });

TEST(Keep, TheDecodeHostAndItsLibraryOfMatrices) {
    std::string path = NewPath();
    std::vector<std::string> command = {Runfile("harness/decode/decode"), "--tokens", "6"};
    Outcome plain = RunProgram(command, Plain()), kept = RunProgram(command, Kept(path));
    EXPECT_EQ(kept.result.out.substr(0, kept.result.out.find("decode:")),
              plain.result.out.substr(0, plain.result.out.find("decode:")));
    EXPECT_EQ(kept.result.status, 0);
    ExpectReplayed(path);
}

// Each op that the program asked for with success is in the work, in the order of each stream.
TEST(Keep, TheWorkIsWhatTheProgramAskedFor) {
    std::string path = NewPath();
    RunCase(CaseOf("decode_loop"), Kept(path));
    Trace trace = OpenGood(path);
    ASSERT_TRUE(trace);
    std::vector<std::string> ops, work;
    for (size_t i = 0; i < trace->n_events; i++) {
        const cst_record *record = trace->events[i];
        if (record->type != CST_OP || ((const cst_op *)record)->result)
            continue;
        const cst_kind *kind = trace->kinds[((const cst_op *)record)->kind];
        ops.push_back(kind->op == CST_OP_LAUNCH ? cst_string(trace.get(), kind->name) : "other");
    }
    for (size_t i = 0; i < trace->replay.n_works; i++) {
        const cst_work *one = trace->replay.works[i];
        if (one->head.flags == CST_WORK_LAUNCH)
            work.push_back(cst_string(trace.get(), trace->replay.codes[one->code]->name));
        else if (one->head.flags == CST_WORK_COPY || one->head.flags == CST_WORK_MEMSET)
            if (!one->sync)
                work.push_back("other");
    }
    EXPECT_GT(work.size(), 100u);
    EXPECT_EQ(work, ops);
}

// How it launched is in the work as well: attributes as they were, and the cooperative form.
TEST(Keep, FormsOfLaunches) {
    std::string path = NewPath(), other = NewPath();
    RunCase(CaseOf("cooperative"), Kept(path));
    RunCase(CaseOf("launch_ex"), Kept(other));
    Trace cooperative = OpenGood(path), ex = OpenGood(other);
    ASSERT_TRUE(cooperative && ex);
    size_t n = 0, attributes = 0;
    for (size_t i = 0; i < cooperative->replay.n_works; i++)
        n += cooperative->replay.works[i]->cooperative;
    for (size_t i = 0; i < ex->replay.n_works; i++)
        attributes += ex->replay.works[i]->n_attributes;
    EXPECT_GT(n, 10u);
    EXPECT_LT(n, cooperative->replay.n_works);
    EXPECT_GT(attributes, 10u);
}

// ---- a part of a program ----

TEST(Keep, StepsInTheMidst) {
    std::string whole = NewPath(), part = NewPath();
    const Case &c = CaseOf("steady");
    Setting setting = Kept(part);
    setting.env["CUSPLICE_RECORD_FROM"] = "10";
    setting.env["CUSPLICE_RECORD_UNTIL"] = "20";
    Outcome plain = RunCase(c, Plain()), kept = RunCase(c, setting);
    RunCase(c, Kept(whole));
    EXPECT_EQ(kept.result.out, plain.result.out);
    Trace all = OpenGood(whole), some = OpenGood(part);
    ASSERT_TRUE(all && some);
    EXPECT_LT(some->replay.n_works, all->replay.n_works / 2);
    EXPECT_GT(some->replay.n_works, 100u);
    size_t memory = 0;
    for (size_t i = 0; i < some->replay.n_parts; i++)
        memory += some->replay.parts[i].of == CST_DATA_MEMORY;
    EXPECT_GT(memory, 0u) << "what was there before is not in the trace";
    ExpectReplayed(part);
}

// ---- programs that cannot be replayed ----

struct Not {
    const char *name, *why;
};

class NotReplayed : public testing::TestWithParam<Not> {};

TEST_P(NotReplayed, RunsAsEverAndSaysWhy) {
    const Case &c = CaseOf(GetParam().name);
    std::string path = NewPath();
    Outcome plain = RunCase(c, Plain()), kept = RunCase(c, Kept(path));
    EXPECT_EQ(kept.result.out, plain.result.out);
    EXPECT_EQ(kept.result.status, plain.result.status);
    Played played = Play(path, false);
    ASSERT_TRUE(played.ready.valid) << played.text;
    EXPECT_NE(played.text.find("\"ready\":false"), std::string::npos);
    EXPECT_NE(played.text.find(GetParam().why), std::string::npos) << played.text;
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, NotReplayed,
    testing::Values(Not{"capture_once", "cuStreamBeginCapture"},
                    Not{"capture_pending_legacy", "cuStreamBeginCapture"},
                    Not{"capture_other_thread", "cuStreamBeginCapture"},
                    Not{"capture_global", "cuStreamBeginCapture"},
                    Not{"capture_failing", "cuStreamBeginCapture"},
                    Not{"capture_fork_join", "cuStreamBeginCapture"},
                    Not{"capture_unknown", "a function that the library does not know"},
                    Not{"graph_program", "cuGraphLaunch"}, Not{"host_func", "cuLaunchHostFunc"},
                    Not{"stream_values", "cuStreamWriteValue32"}, Not{"poll_pinned", "host memory"},
                    Not{"managed", "cuMemAllocManaged"}, Not{"pool_memory", "cuMemAllocAsync"},
                    Not{"copies_2d", "cuMemcpy2DAsync"}, Not{"memset_pinned", "host memory"},
                    Not{"two_contexts", "more than one context"},
                    Not{"sticky_error", "context was lost"},
                    Not{"copy_back", "may not have written yet"}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace sim
