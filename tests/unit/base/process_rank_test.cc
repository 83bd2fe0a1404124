// Promise: a process's files are named by its rank, if what started it says one, and by its number;
// no variable can put anything but digits into a name.
#include "shim/base/process_rank.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>

#include "shim/base/path.h"

namespace {

const char *const kVariables[] = {"RANK",         "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                  "SLURM_PROCID", "VLLM_DP_RANK",         "LOCAL_RANK"};

// In a process of its own, which has read nothing yet: the rank + 1, or 255 for one above 200.
int RankWith(const std::map<std::string, std::string> &variables) {
    pid_t pid = fork();
    if (pid == 0) {
        for (const char *name : kVariables)
            unsetenv(name);
        for (const auto &[name, value] : variables)
            setenv(name.c_str(), value.c_str(), 1);
        int rank = cus_process_rank();
        _exit(rank > 200 ? 255 : rank + 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status) - 1;
}

TEST(Rank, IsInTheFirstVariableThatHasANumber) {
    EXPECT_EQ(RankWith({}), -1);
    std::map<std::string, std::string> all;
    for (int i = 6; i >= 0; i--) {
        EXPECT_EQ(RankWith({{kVariables[i], std::to_string(i + 10)}}), i + 10) << kVariables[i];
        all[kVariables[i]] = std::to_string(i + 10);
        EXPECT_EQ(RankWith(all), i + 10) << "it comes before those behind it";
    }
    all["RANK"] = "none";
    EXPECT_EQ(RankWith(all), 11);
}

TEST(Rank, IsANumberAndBounded) {
    EXPECT_EQ(RankWith({{"RANK", "0"}}), 0);
    EXPECT_EQ(RankWith({{"RANK", "007"}}), 7);
    EXPECT_EQ(RankWith({{"RANK", "999999"}}), 254);
    for (const char *bad : {"", " 3", "3 ", "-1", "+1", "1/..", "../1", "1000000", "0x1", "3\n",
                            "99999999999999999999"})
        EXPECT_EQ(RankWith({{"RANK", bad}}), -1) << bad;
}

TEST(Rank, StaysWhateverTheProgramDoesToItsEnvironment) {
    setenv("RANK", "5", 1);
    EXPECT_EQ(cus_process_rank(), 5);
    setenv("RANK", "6", 1);
    EXPECT_EQ(cus_process_rank(), 5);
    EXPECT_EQ(RankWith({{"RANK", "6"}}), 6) << "a forked child has its own";
}

TEST(Rank, NamesFit) {
    char name[CUS_PROCESS_NAME];
    cus_process_name(CUS_PROCESS_RANK_MAX, 2147483647, name);
    EXPECT_STREQ(name, "rank-999999.pid-2147483647");
    cus_process_name(-1, 7, name);
    EXPECT_STREQ(name, "pid-7");
}

TEST(Path, HasTheNameOfTheProcess) {
    char out[64], small[12];
    bool own = false;
    setenv("RANK", "5", 1);
    ASSERT_EQ(cus_process_rank(), 5);
    ASSERT_TRUE(cus_path_expand("/d/{process}.json", out, sizeof out, &own));
    EXPECT_EQ(out, "/d/rank-5.pid-" + std::to_string(getpid()) + ".json");
    EXPECT_TRUE(own) << "no other process writes it";
    ASSERT_TRUE(cus_path_expand("{proc}{pid}%p", out, sizeof out, &own));
    EXPECT_EQ(out, "{proc}" + std::to_string(getpid()) + std::to_string(getpid()));
    EXPECT_FALSE(cus_path_expand("/d/{process}", small, sizeof small, &own));
}

} // namespace
