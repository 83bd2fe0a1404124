// Promise: a process has a page from its first deferred launch to its end (tests/sim:top_test: also
// from its first launch on a stream where none is deferred). The page is written only
// when somebody asks, also while nothing is deferred.
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "shim/stats/page.h"

// In place of libc's. The program may change its environment at any time, and no lock of ours keeps
// it from that: only its own threads may look there.
static std::atomic<int> asked_by;
extern "C" char *secure_getenv(const char *name) noexcept {
    if (!strcmp(name, "XDG_RUNTIME_DIR"))
        asked_by = gettid();
    return getenv(name);
}

namespace {

using fake::driver;

constexpr unsigned kGraphUs = 100; // what the launch of a graph takes at least

TEST(Live, IsWrittenForThoseWhoAsk) {
    std::string folder = testing::TempDir() + "/live-XXXXXX";
    ASSERT_TRUE(mkdtemp(folder.data()));
    setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
    setenv("CUSPLICE_HOLD_US", "2000", 1);
    setenv("CUSPLICE_LIVE", "yes", 1);
    setenv("CUSPLICE_SEGMENT_FIRST", "64", 1);
    setenv("CUSPLICE_EAGER", "rule", 1);
    fake::Reset();
    static decltype(driver().table.cuGraphLaunch) launch;
    launch = driver().table.cuGraphLaunch;
    driver().table.cuGraphLaunch = [](CUgraphExec exec, CUstream on) {
        usleep(kGraphUs);
        return launch(exec, on);
    };
    ASSERT_TRUE(cus_engine_start(&driver().table));
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::vector<CUfunction> functions = fake::MakeFunctions(4);
    functions.push_back(fake::MakeFunction("rule"));
    auto step = [&] {
        for (CUfunction f : functions)
            ASSERT_EQ(fake::Launch(stream, f, 1, 2), CUDA_SUCCESS);
        fake::Sync(stream);
    };
    char path[CUS_PAGE_PATH];
    ASSERT_TRUE(cus_page_path(folder.c_str(), geteuid(), getpid(), path));
    step();
    step();
    EXPECT_NE(access(path, F_OK), 0) << "nothing was deferred so far";
    step();
    step();
    const char *why;
    int fd = -1;
    ASSERT_TRUE(Within(20, [&] {
        struct stat info; // the file is there a moment before it is a page
        return stat(path, &info) == 0 && info.st_size == CUS_PAGE_BYTES &&
               (fd = cus_page_open(path, &why)) >= 0;
    }));
    cus_page page;
    ASSERT_TRUE(Within(20, [&] { return cus_page_read(fd, &page, &why); })) << why;
    EXPECT_EQ(page.answers, 0u) << "nobody asked";
    for (int i = 0; i < 40; i++) // some launches of graphs are timed
        step();
    EXPECT_EQ(asked_by, gettid());

    // Three times: by the third the watchdog sleeps for good, and has to be woken.
    for (uint32_t round = 1; round <= 3; round++) {
        cus_counters counters = fake::Counters();
        cus_page_ask(fd, &page);
        ASSERT_TRUE(Within(20, [&] {
            return cus_page_read(fd, &page, &why) && page.answers == round;
        })) << round;
        EXPECT_EQ(page.facts.ops, counters.ops[CUS_OP_LAUNCH]);
        EXPECT_EQ(page.facts.in_graphs, counters.in_graphs);
        EXPECT_EQ(page.facts.graph_launches, counters.graph_launches);
        EXPECT_GT(page.facts.in_graphs, 0u);
        EXPECT_GT(page.facts.graph_bytes, 0u);
        EXPECT_GE(page.facts.graph_ns, 1000u * kGraphUs);
        EXPECT_STREQ(page.facts.mode, "piecewise");
        ASSERT_GT(page.facts.n_breaks, 0u);
        EXPECT_STREQ(page.facts.breaks[0].name, "rule");
        EXPECT_EQ(page.facts.breaks[0].launches, counters.eager_by[CUS_EAGER_RULE]);
        if (round == 1)
            step();
        usleep(150 * 1000); // 64 looks of 1 ms: it sleeps by then; if not, the test is only weaker
    }
    cus_page again;
    ASSERT_TRUE(cus_page_read(fd, &again, &why));
    EXPECT_EQ(again.answers, 3u) << "nobody asked again";
    EXPECT_EQ(access(path, F_OK), 0);
    cus_engine_drain();
    EXPECT_NE(access(path, F_OK), 0);
    close(fd);
    rmdir(folder.c_str());
}

} // namespace
