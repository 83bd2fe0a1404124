// Promise: a process that ends while its page is being made leaves no file behind.
#include "tests/unit/stream/program.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

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
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::vector<CUfunction> functions = fake::MakeFunctions(2);
    char path[CUS_PAGE_PATH];
    ASSERT_TRUE(cus_page_path(folder.c_str(), geteuid(), getpid(), path));
    ASSERT_TRUE(Within(20, [&] {
        for (CUfunction f : functions)
            EXPECT_EQ(fake::Launch(stream, f, 1, 2), CUDA_SUCCESS);
        fake::Sync(stream);
        return making.load();
    }));
    EXPECT_EQ(access(path, F_OK), 0);
    cus_engine_drain();
    EXPECT_NE(access(path, F_OK), 0);
    rmdir(folder.c_str());
}

} // namespace
