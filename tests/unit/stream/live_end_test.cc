// Promise: a process that ends while its page is being made leaves no file behind.
#include "tests/unit/stream/fake_driver.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "shim/stats/page.h"

namespace {

std::atomic<bool> making;

} // namespace

// In place of libc's: the page is made for so long that the end comes in between.
extern "C" int posix_fallocate(int fd, off_t, off_t bytes) {
    making = true;
    usleep(50 * 1000);
    return ftruncate(fd, bytes) == 0 ? 0 : errno;
}

namespace {

using fake::driver;

TEST(LiveEnd, WaitsForAPageThatIsBeingMade) {
    std::string folder = testing::TempDir() + "/live-XXXXXX";
    ASSERT_TRUE(mkdtemp(folder.data()));
    setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
    setenv("CUSPLICE_LIVE", "yes", 1);
    fake::Reset();
    ASSERT_TRUE(cus_engine_start(&driver().table));
    cus_stream_ref ref = {fake::MakeStream(CU_STREAM_NON_BLOCKING), CUS_ABI_LEGACY};
    CUfunction functions[2] = {fake::MakeFunction("k0"), fake::MakeFunction("k1")};
    char path[CUS_PAGE_PATH];
    ASSERT_TRUE(cus_page_path(folder.c_str(), geteuid(), getpid(), path));
    auto start = std::chrono::steady_clock::now();
    while (!making && std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
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
    }
    ASSERT_TRUE(making);
    EXPECT_EQ(access(path, F_OK), 0);
    cus_engine_drain();
    EXPECT_NE(access(path, F_OK), 0);
    rmdir(folder.c_str());
}

} // namespace
