// Promise: a process has a page from its first deferred launch to its end. The page is written only
// when somebody asks, also while nothing is deferred.
#include "tests/unit/stream/fake_driver.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>

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

bool Within20s(const std::function<bool()> &condition) {
    auto start = std::chrono::steady_clock::now();
    while (!condition()) {
        if (std::chrono::steady_clock::now() - start > std::chrono::seconds(20))
            return false;
        usleep(1000);
    }
    return true;
}

TEST(Live, IsWrittenForThoseWhoAsk) {
    std::string folder = testing::TempDir() + "/live-XXXXXX";
    ASSERT_TRUE(mkdtemp(folder.data()));
    setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
    setenv("CUSPLICE_HOLD_US", "2000", 1);
    setenv("CUSPLICE_LIVE", "yes", 1);
    setenv("CUSPLICE_SEGMENT_FIRST", "64", 1);
    setenv("CUSPLICE_EAGER", "rule", 1);
    fake::Reset();
    ASSERT_TRUE(cus_engine_start(&driver().table));
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    cus_stream_ref ref = {stream, CUS_ABI_LEGACY};
    CUfunction functions[5];
    for (int i = 0; i < 4; i++)
        functions[i] = fake::MakeFunction("k" + std::to_string(i));
    functions[4] = fake::MakeFunction("rule");
    auto step = [&] {
        for (CUfunction f : functions) {
            uint64_t a = 1;
            uint32_t b = 2;
            void *params[2] = {&a, &b};
            cus_launch launch = {};
            launch.stream = ref;
            launch.f = f;
            const uint32_t dims[7] = {1, 1, 1, 32, 1, 1, 0};
            memcpy(launch.dims, dims, sizeof dims);
            launch.params = params;
            launch.real = (void *)driver().table.cuLaunchKernel;
            ASSERT_EQ(fake::Issue(launch), CUDA_SUCCESS);
        }
        cus_engine_flush(CUS_SCOPE_T, &ref, 7);
        cus_engine_step_end(&ref);
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
    ASSERT_TRUE(Within20s([&] {
        struct stat info; // the file is there a moment before it is a page
        return stat(path, &info) == 0 && info.st_size == CUS_PAGE_BYTES &&
               (fd = cus_page_open(path, &why)) >= 0;
    }));
    cus_page page;
    ASSERT_TRUE(Within20s([&] { return cus_page_read(fd, &page, &why); })) << why;
    EXPECT_EQ(page.answers, 0u) << "nobody asked";
    EXPECT_EQ(asked_by, gettid());

    // Three times: by the third the watchdog sleeps for good, and has to be woken.
    for (uint32_t round = 1; round <= 3; round++) {
        cus_counters counters;
        cus_engine_counters(&counters);
        cus_page_ask(fd, &page);
        ASSERT_TRUE(Within20s([&] {
            return cus_page_read(fd, &page, &why) && page.answers == round;
        })) << round;
        EXPECT_EQ(page.facts.ops, counters.ops[CUS_OP_LAUNCH]);
        EXPECT_EQ(page.facts.in_graphs, counters.in_graphs);
        EXPECT_EQ(page.facts.graph_launches, counters.graph_launches);
        EXPECT_GT(page.facts.in_graphs, 0u);
        EXPECT_GT(page.facts.graph_bytes, 0u);
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
