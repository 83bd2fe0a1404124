// Promise: the library reads from files as Linux has them how many processors control groups leave
// a process.
#include "shim/base/processors.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace {

class Processors : public testing::Test {
  protected:
    void SetUp() override {
        root_ = testing::TempDir() + "processors";
        std::filesystem::create_directories(root_);
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    void Write(const std::string &path, const std::string &text) {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    unsigned Quota() {
        errno = 4711;
        unsigned quota = cus_processors_quota(root_.c_str());
        EXPECT_EQ(errno, 4711);
        return quota;
    }
    std::string root_;
};

TEST_F(Processors, WithoutGroupsThereIsNoLimit) {
    EXPECT_EQ(Quota(), 0u);
    Write("/proc/self/cgroup", "");
    EXPECT_EQ(Quota(), 0u);
    Write("/proc/self/cgroup", "nonsense\n0:\n0::\n::::\n");
    EXPECT_EQ(Quota(), 0u);
}

TEST_F(Processors, AQuotaIsRoundedUp) {
    Write("/proc/self/cgroup", "0::/\n");
    Write("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    EXPECT_EQ(Quota(), 3u);
    Write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    EXPECT_EQ(Quota(), 2u);
    Write("/sys/fs/cgroup/cpu.max", "1000 100000\n");
    EXPECT_EQ(Quota(), 1u);
    Write("/sys/fs/cgroup/cpu.max", "max 100000\n");
    EXPECT_EQ(Quota(), 0u);
}

TEST_F(Processors, TheLeastOfAllGroupsAboveCounts) {
    Write("/proc/self/cgroup", "0::/a/b\n");
    Write("/sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
    EXPECT_EQ(Quota(), 8u);
    Write("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
    EXPECT_EQ(Quota(), 3u);
    Write("/sys/fs/cgroup/cpu.max", "500000 100000\n");
    EXPECT_EQ(Quota(), 3u);
}

// In a container /proc may name a group of the host's, which is not there.
TEST_F(Processors, TheUppermostGroupCountsWhereTheOthersAreNotSeen) {
    Write("/proc/self/cgroup", "0::/kubepods/pod1/c2\n");
    Write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    EXPECT_EQ(Quota(), 4u);
}

TEST_F(Processors, TheFirstVersionHasFilesOfItsOwn) {
    Write("/proc/self/cgroup", "12:memory:/x\n4:cpu,cpuacct:/x\n3:cpuset:/y\n");
    Write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
    Write("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    Write("/sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "100000\n");
    Write("/sys/fs/cgroup/cpu/y/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(Quota(), 0u);
    Write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "600000\n");
    EXPECT_EQ(Quota(), 6u);
}

} // namespace
