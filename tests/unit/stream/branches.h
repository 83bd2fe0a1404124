// Shared code of the branches tests: steps of a program that forks a side stream from its home
// stream and joins it again.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_BRANCHES_H
#define CUSPLICE_TESTS_UNIT_STREAM_BRANCHES_H

#include "tests/unit/stream/events.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "shim/api/api.h"

using Lines = std::vector<std::string>;

class Branches : public fake::ProgramTest {
  protected:
    static constexpr int kEvents = 16;

    virtual fake::Settings EngineSettings() {
        return {{"CUSPLICE_HOLD_US", "1000000"},
                {"CUSPLICE_SEGMENT_FIRST", "32"},
                {"CUSPLICE_SEGMENT_MAX", "32"},
                {"CUSPLICE_DEMOTE", "no"}};
    }
    void SetUp() override {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine(EngineSettings()));
        ProgramTest::SetUp();
        fake::TableOfBranches();
        for (int i = 0; i < kEvents; i++)
            cus_engine_event_made(fake::Event(i));
        Streams(CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
    }
    void TearDown() override {
        ProgramTest::TearDown();
        cus_engine_context_gone(); // while the table has what branches need
        fake::EndEngine();
    }
    // Goes on with other streams.
    void Streams(unsigned home_flags, unsigned side_flags) {
        stream_ = fake::MakeStream(home_flags);
        side_ = fake::MakeStream(side_flags);
        end_ = fake::OwnEvent(fake::OwnEvents());
    }

    // ---- the program's calls ----

    void On(CUstream stream, int i) {
        fake::Call call(stream, functions_[i], 100 + i, 0);
        EXPECT_EQ(hot_ ? fake::Issue(call.launch) : cus_engine_launch(&call.launch), CUDA_SUCCESS);
    }
    void Home(int i) { On(stream_, i); }
    void Side(int i) { On(side_, i); }
    static void Fork(CUstream from, CUstream to, int event) {
        EXPECT_EQ(fake::RecordOn(from, fake::Event(event)), CUDA_SUCCESS);
        EXPECT_EQ(fake::WaitOn(to, fake::Event(event)), CUDA_SUCCESS);
    }
    static void Join(CUstream side, CUstream home, int event) { Fork(side, home, event); }
    // The host waits for the stream.
    static void Await(CUstream stream) {
        cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_T, &ref, CUS_ROW_cuStreamSynchronize);
        cus_engine_step_end(&ref);
    }
    void Sync() { Await(stream_); }
    // A call of the program that names the stream and gives it work.
    static void Name(CUstream stream) {
        cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuLaunchHostFunc);
    }
    static void Gone(CUstream stream) {
        cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
        cus_engine_flush(CUS_SCOPE_S, &ref, CUS_ROW_cuStreamDestroy_v2);
        cus_engine_stream_gone(&ref);
    }

    // ---- a step: its beginning, up to the midst of the branch, and its rest ----

    void First() {
        Home(0);
        Home(1);
        Fork(stream_, side_, 0);
        Side(2);
    }
    void Rest() {
        Side(3);
        Home(4);
        Join(side_, stream_, 1);
        Home(5);
    }
    void Step() {
        First();
        Rest();
        Sync();
    }
    void Steps(int n) {
        for (int i = 0; i < n; i++)
            Step();
    }
    // The first region of a stream is made by the program's own calls.
    void Prime(CUstream side) {
        Home(6);
        Fork(stream_, side, 14);
        On(side, 7);
        Join(side, stream_, 15);
        Sync();
    }
    // Until steps are graphs with a branch.
    void Learn() {
        Prime(side_);
        end_ = fake::OwnEvent(fake::OwnEvents());
        Steps(8);
        ASSERT_NO_FATAL_FAILURE(ExpectGraph());
        Clear();
    }
    static void Clear() {
        fake::driver().journal.clear();
        fake::driver().calls.clear();
    }

    // ---- what the journal then has ----

    std::string At(CUstream stream, int i) const {
        return fake::Line(stream, "k" + std::to_string(i), 100 + i);
    }
    static std::string Recorded(CUstream stream, int event) {
        return fake::RecordLine(fake::Event(event), stream);
    }
    static std::string Waited(CUstream stream, int event) {
        return fake::WaitLine(fake::Event(event), stream);
    }
    // The side stream waits for what graphs did on its branch.
    std::string EndWaited(CUstream stream) const { return fake::WaitLine(end_, stream); }
    std::string EndRecorded() const { return fake::RecordLine(end_, stream_); }

    // Op by op. `owes`: graphs were launched, and the side stream did not wait for their end yet.
    Lines Begun(bool owes = true) const {
        Lines lines = {At(stream_, 0), At(stream_, 1), Recorded(stream_, 0)};
        if (owes)
            lines.push_back(EndWaited(side_));
        lines.push_back(Waited(side_, 0));
        lines.push_back(At(side_, 2));
        return lines;
    }
    Lines Whole(bool owes = true) const {
        Lines lines = Begun(owes);
        for (const std::string &line : Lines{At(side_, 3), At(stream_, 4), Recorded(side_, 1),
                                             Waited(stream_, 1), At(stream_, 5)})
            lines.push_back(line);
        return lines;
    }
    // As a graph.
    Lines Graph() const {
        return {At(stream_, 0),       At(stream_, 1), Recorded(stream_, 0),
                At(stream_, 2),       At(stream_, 3), At(stream_, 4),
                Recorded(stream_, 1), At(stream_, 5), EndRecorded()};
    }
    void ExpectGraph() {
        Clear();
        Step();
        ASSERT_EQ(fake::driver().journal, Graph());
        ASSERT_EQ(fake::driver().calls["cuGraphLaunch"], 1);
    }
    // Steps whose branch came to nothing in a row are graphs again after some (plan/boundaries.md).
    void Again() {
        Steps(60);
        Clear();
        Step();
        ASSERT_FALSE(Has(At(side_, 2)));
        ASSERT_TRUE(Has(EndRecorded()));
    }
    // The journal from here on is this.
    static void Expect(const Lines &lines, const std::function<void()> &calls) {
        Clear();
        calls();
        EXPECT_EQ(fake::driver().journal, lines);
    }
    static size_t Issued() { return fake::driver().journal.size(); }
    static bool Has(const std::string &line) {
        const Lines &journal = fake::driver().journal;
        return std::find(journal.begin(), journal.end(), line) != journal.end();
    }
    // Runs steps, none of which forks the side stream, however often they come.
    void ExpectNoBranch(int steps = 8) {
        for (int i = 0; i < steps; i++) {
            Clear();
            First();
            EXPECT_TRUE(Has(At(side_, 2))) << i;
            Rest();
            Sync();
            EXPECT_TRUE(Has(At(side_, 3))) << i;
        }
        fake::ExpectBalance();
    }

    bool hot_ = true; // launches take the hot paths of a process that is not recorded
    CUstream side_;
    CUevent end_; // which graphs record at the end of the branch
};

#endif
