// Promise: a process's files are named by its rank, if what started it says one, and by its number;
// no variable can put anything but digits into a name.
#include "shim/base/process_rank.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
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

// On a machine of this name, as a child in a namespace of its own sees it; "?": there is none.
std::string PathOn(const std::string &host) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char out[128] = "?";
        bool own = true;
        if (unshare(CLONE_NEWUTS) == 0 && sethostname(host.c_str(), host.size()) == 0 &&
            (!cus_path_expand("/d/{host}.json", out, sizeof out, &own) || own))
            out[0] = '!';
        _exit(write(ends[1], out, strlen(out)) < 0);
    }
    close(ends[1]);
    char text[128];
    ssize_t got = read(ends[0], text, sizeof text);
    close(ends[0]);
    waitpid(pid, nullptr, 0);
    return std::string(text, got > 0 ? (size_t)got : 0);
}

TEST(Path, HasTheNameOfTheMachine) {
    char self[256] = "", out[512];
    bool own = true;
    ASSERT_EQ(gethostname(self, sizeof self - 1), 0);
    ASSERT_TRUE(cus_path_expand("{host}-{hosts", out, sizeof out, &own));
    EXPECT_EQ(std::string(out), std::string(self) + "-{hosts");
    EXPECT_FALSE(own) << "other processes of this machine write it, too";
    ASSERT_TRUE(cus_path_expand("{host}.{process}", out, sizeof out, &own));
    EXPECT_TRUE(own);
    if (PathOn("a") == "?")
        GTEST_SKIP() << "no namespace can be made here";
    EXPECT_EQ(PathOn("gpu-7.lab_2"), "/d/gpu-7.lab_2.json");
    EXPECT_EQ(PathOn("../x y{pid}%p\n"), "/d/-.-x-y-pid--p-.json") << "no path, no mark";
    EXPECT_EQ(PathOn(""), "/d/host.json");
    EXPECT_EQ(PathOn(std::string(64, 'h')), "/d/" + std::string(64, 'h') + ".json");
}

// What names the file stands at the end of its path.
TEST(ShownPath, LosesItsBeginningAndNoPartOfACharacter) {
    char out[16];
    EXPECT_STREQ(cus_path_shown("", out, sizeof out), "");
    EXPECT_STREQ(cus_path_shown("/d/file.conf", out, 13), "/d/file.conf");
    EXPECT_STREQ(cus_path_shown("/d/file.conf", out, 12), "...ile.conf");
    EXPECT_STREQ(cus_path_shown("/dd/\xc3\xa4.conf", out, 12), "/dd/\xc3\xa4.conf");
    EXPECT_STREQ(cus_path_shown("/dd/\xc3\xa4.conf", out, 11), "...\xc3\xa4.conf");
    EXPECT_STREQ(cus_path_shown("/dd/\xc3\xa4.conf", out, 10), "....conf");
    EXPECT_STREQ(cus_path_shown("/d/file.conf", out, 4), "...");
}

} // namespace
