// Promise: several files of settings are read in the documented order, each only if it may be
// believed; a name stands for one file alone; each problem names the line of its include.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "shim/base/config.h"
#include "shim/base/options.h"
#include "shim/base/presets.h"
#include "tests/unit/base/config_files.h"

namespace {

class Include : public ConfigFiles {
  protected:
    void SetUp() override {
        ConfigFiles::SetUp();
        folder = TempPath("include");
        mkdir(folder.c_str(), 0700);
        presets = folder + "/presets";
        mkdir(presets.c_str(), 0700);
        cus_preset_folder = presets.c_str();
        Put("presets/nccl.conf", "[rules]\nnever_defer = nccl*\n");
        Put("presets/vllm.conf", "[rules]\neager = flash*\n");
        Put("presets/readme.txt", "no preset");
    }
    void TearDown() override { cus_preset_folder = nullptr; }
    std::string Put(const std::string &name, const std::string &text) {
        return WriteFile(folder + "/" + name, text);
    }
    // "FILE:LINE KEY=VALUE" for each setting, the folder left out.
    Strings Read(const std::string &list, bool strongest_first = false) {
        setenv("CUSPLICE_CONFIG", list.c_str(), 1);
        got.clear();
        problems.clear();
        (strongest_first ? cus_config_read_strongest : cus_config_read)(CUS_SOURCE_NAMED, Take,
                                                                        TakeOne, this);
        return got;
    }
    std::string Short(const std::string &text) const {
        std::string out = text;
        for (size_t at; (at = out.find(folder + "/")) != std::string::npos;)
            out.erase(at, folder.size() + 1);
        return out;
    }
    static void Take(void *context, const cus_setting *s) {
        auto *self = static_cast<Include *>(context);
        if (s->key)
            self->got.push_back(self->Short(s->file) + ":" + std::to_string(s->line) + " " +
                                s->key + "=" + s->value);
    }
    static void TakeOne(void *context, const cus_problem *problem) {
        auto *self = static_cast<Include *>(context);
        self->problems.push_back(self->Short(Shown(problem)) + (problem->notice ? " !" : ""));
    }
    static void TakeFile(void *context, const char *path, const char *by, int line) {
        auto *self = static_cast<Include *>(context);
        self->got.push_back(self->Short(path) + (by ? " by " + self->Short(by) : "") + " " +
                            std::to_string(line));
    }

    std::string folder, presets;
    Strings got;
};

TEST_F(Include, AFileIsStrongerThanWhatItIncludesAndALaterOneThanAnEarlierOne) {
    std::string top = Put("top.conf", "hold_us = 1\ninclude = a.conf\ninclude=b.conf\nwarmup = 1\n"
                                      "[rules]\neager = top\n");
    Put("a.conf", "hold_us = 2\n[rules]\neager = a\n");
    Put("b.conf", "include = c.conf\nhold_us = 3\n");
    Put("c.conf", "hold_us = 4\n");
    std::string last = Put("last.conf", "hold_us = 5\n");
    Strings weakest = {"a.conf:1 hold_us=2",   "a.conf:3 eager=a",     "c.conf:1 hold_us=4",
                       "b.conf:2 hold_us=3",   "top.conf:1 hold_us=1", "top.conf:4 warmup=1",
                       "top.conf:6 eager=top", "last.conf:1 hold_us=5"};
    EXPECT_EQ(Read(top + ":" + last), weakest);
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(Read(top + ":" + last, true),
              (Strings{"last.conf:1 hold_us=5", "top.conf:1 hold_us=1", "top.conf:4 warmup=1",
                       "top.conf:6 eager=top", "b.conf:2 hold_us=3", "c.conf:1 hold_us=4",
                       "a.conf:1 hold_us=2", "a.conf:3 eager=a"}));
    Put("a.conf", "hold_us = 60\nwarmup = 8\nvariants = 3\n");
    Put("b.conf", "hold_us = 70\nwarmup = 9\n");
    Put("top.conf", "hold_us = 80\ninclude = a.conf\ninclude = b.conf\n");
    setenv("CUSPLICE_CONFIG", top.c_str(), 1);
    struct cus_options options;
    EXPECT_EQ(cus_options_load(&options, false, nullptr, nullptr), 0);
    EXPECT_EQ(options.hold_us, 80u);
    EXPECT_EQ(options.warmup, 9u);
    EXPECT_EQ(options.variants, 3u);
    cus_options_free(&options);
}

TEST_F(Include, TheUsersFileAndTheSystemsIncludeToo) {
    WriteFile(User(), "include = " + Put("mine.conf", "hold_us = 60\n") + "\n");
    WriteFile(system_file, "include = " + Put("all.conf", "hold_us = 70\nwarmup = 7\n") + "\n");
    struct cus_options options;
    EXPECT_EQ(cus_options_load(&options, false, TakeProblem, &problems), 0);
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(options.hold_us, 60u);
    EXPECT_EQ(options.warmup, 7u);
    cus_options_free(&options);
}

TEST_F(Include, OneThatComesTwiceCountsWhereItIsStrongest) {
    std::string a = Put("a.conf", "include = x.conf\n"), b = Put("b.conf", "hold_us = 2\n");
    std::string x = Put("x.conf", "hold_us = 1\n");
    EXPECT_EQ(Read(a + ":" + b + ":" + folder + "/./x.conf"),
              (Strings{"b.conf:1 hold_us=2", "./x.conf:1 hold_us=1"}));
    EXPECT_EQ(Read(a + ":" + a + ":" + b), (Strings{"x.conf:1 hold_us=1", "b.conf:1 hold_us=2"}));
    EXPECT_EQ(problems, Strings{});
}

TEST_F(Include, NeverGoesRoundAndNeverDeep) {
    std::string a = Put("a.conf", "\ninclude = b.conf\nhold_us = 1\n");
    Put("b.conf", "include = ./a.conf\nhold_us = 2\n");
    EXPECT_EQ(Read(a), (Strings{"b.conf:2 hold_us=2", "a.conf:3 hold_us=1"}));
    EXPECT_EQ(problems, (Strings{"b.conf:1: include = ./a.conf: it includes itself"}));
    for (int i = 0; i < 20; i++)
        Put("deep" + std::to_string(i) + ".conf", "include = deep" + std::to_string(i + 1) +
                                                      ".conf\nwarmup = " + std::to_string(i) +
                                                      "\n");
    EXPECT_EQ(Read(folder + "/deep0.conf").size(), 8u);
    EXPECT_EQ(problems, (Strings{"deep7.conf:1: include = deep8.conf: files include each other "
                                 "more than 8 deep"}));
    // Each one includes the next one often.
    for (int i = 0; i < 7; i++) {
        std::string text;
        for (int n = 0; n < 50; n++)
            text += "include = wide" + std::to_string(i + 1) + ".conf\n";
        Put("wide" + std::to_string(i) + ".conf", text);
    }
    Put("wide7.conf", "hold_us = 1\n");
    EXPECT_EQ(Read(folder + "/wide0.conf"), (Strings{"wide7.conf:1 hold_us=1"}));
    ASSERT_FALSE(problems.empty());
    EXPECT_NE(problems[0].find("too many files are included"), std::string::npos);
}

TEST_F(Include, WhatCannotBeReadIsToldWithTheLine) {
    std::string a = Put("a.conf", "include = gone.conf\ninclude =\ninclude = presets\n"
                                  "include = open.conf\ninclude = ncl\n[rules]\ninclude = nccl\n");
    chmod(Put("open.conf", "hold_us = 1\n").c_str(), 0666);
    EXPECT_EQ(Read(a), (Strings{"a.conf:7 include=nccl"}))
        << "below a head it is a rule's business";
    EXPECT_EQ(
        problems,
        (Strings{"a.conf:1: include = gone.conf: cannot be opened: No such file or directory",
                 "a.conf:2: include = : the name of a file or preset is missing",
                 "a.conf:3: include = presets: there is no such file and no such preset "
                 "(nearest: nccl)",
                 "a.conf:4: include = open.conf: not believed: others than its owner may write "
                 "it (chmod go-w)",
                 "a.conf:5: include = ncl: there is no such file and no such preset "
                 "(nearest: nccl)"}));
}

TEST_F(Include, AnIncludeOfAForeignLinkIsNotBelieved) {
    if (getuid() != 0)
        GTEST_SKIP() << "only root can make another user's link";
    std::string a = Put("a.conf", "include = link.conf\n"), link = folder + "/link.conf";
    Put("true.conf", "hold_us = 1\n");
    unlink(link.c_str());
    ASSERT_EQ(symlink("true.conf", link.c_str()), 0);
    EXPECT_EQ(Read(a), (Strings{"link.conf:1 hold_us=1"}));
    ASSERT_EQ(lchown(link.c_str(), 12345, 12345), 0);
    EXPECT_EQ(Read(a), Strings{});
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].find("a.conf:1: include = link.conf: not believed: "), 0u) << problems[0];
}

TEST_F(Include, ANameIsAPresetUnlessItIsAFileHere) {
    std::string a = Put("a.conf", "include = nccl\n");
    EXPECT_EQ(Read(a), (Strings{"presets/nccl.conf:2 never_defer=nccl*"}));
    mkdir((folder + "/nccl").c_str(), 0700); // a checkout
    EXPECT_EQ(Read(a), (Strings{"presets/nccl.conf:2 never_defer=nccl*"}));
    rmdir((folder + "/nccl").c_str());
    std::string here = Put("nccl", "hold_us = 1\n");
    EXPECT_EQ(Read(a), (Strings{"nccl:1 hold_us=1"}));
    unlink(here.c_str());
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(Read("vllm:nccl"), (Strings{"presets/vllm.conf:2 eager=flash*",
                                          "presets/nccl.conf:2 never_defer=nccl*"}));
    EXPECT_EQ(Read("vlm:nccl.conf:./nccl"), Strings{});
    EXPECT_EQ(problems,
              (Strings{"CUSPLICE_CONFIG: vlm: there is no such file and no such preset (nearest: "
                       "vllm)",
                       "nccl.conf: cannot be opened: No such file or directory",
                       "./nccl: cannot be opened: No such file or directory"}));
    EXPECT_TRUE(cus_preset_is((presets + "/nccl.conf").c_str()));
    EXPECT_FALSE(cus_preset_is(a.c_str()));
    EXPECT_FALSE(cus_preset_is((presets + "/x/nccl.conf").c_str()));
    cus_preset_folder = "/nowhere";
    Read("vllm");
    EXPECT_EQ(problems,
              (Strings{"CUSPLICE_CONFIG: vllm: there is no such file and no such preset"}));
    // Of a long name the end is shown, which says more than its beginning.
    Read(std::string(300, 'd') + "-last");
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_NE(problems[0].find("ddd-last: there is no such file and no such preset"),
              std::string::npos)
        << problems[0];
}

// A path with ':' was one path before there were lists.
TEST_F(Include, APathWithAColonIsNeverTakenForTwoInSilence) {
    std::string colon = Put("c:d.conf", "hold_us = 1\n"), a = Put("a.conf", "hold_us = 2\n");
    std::string quoted = folder + "/c\\:d.conf";
    EXPECT_EQ(Read(quoted), (Strings{"c:d.conf:1 hold_us=1"}));
    EXPECT_EQ(problems, Strings{});
    EXPECT_EQ(Read(a + ":" + quoted + "::" + a + ":"),
              (Strings{"c:d.conf:1 hold_us=1", "a.conf:1 hold_us=2"}));
    EXPECT_EQ(problems, Strings{});
    const std::string told = "CUSPLICE_CONFIG: ':' separates files, and c:d.conf is taken as one: "
                             "write its ':' as '\\:' !";
    EXPECT_EQ(Read(a + ":" + colon), (Strings{"a.conf:1 hold_us=2", "c:d.conf:1 hold_us=1"}));
    EXPECT_EQ(problems, (Strings{told}));
    // Both halves are there as well.
    Put("c", "hold_us = 3\n");
    std::string here = WriteFile("d.conf", "hold_us = 4\n");
    EXPECT_EQ(Read(colon), (Strings{"c:d.conf:1 hold_us=1"}));
    EXPECT_EQ(problems, (Strings{told}));
    unlink(here.c_str());
    std::string slash = Put("e\\f.conf", "hold_us = 5\n");
    EXPECT_EQ(Read(folder + "/e\\\\f.conf"), (Strings{"e\\f.conf:1 hold_us=5"}));
}

TEST_F(Include, OldNamesCountFileByFile) {
    std::string now = Put("now.conf", "segment_first = 8\n");
    std::string old = Put("old.conf", "piece_first = 16\n");
    setenv("CUSPLICE_CONFIG", (now + ":" + old).c_str(), 1);
    struct cus_options options;
    cus_options_load(&options, false, TakeProblem, &problems);
    EXPECT_EQ(options.segment_first, 16u) << "the later file is another place";
    cus_options_free(&options);
    setenv("CUSPLICE_CONFIG", (old + ":" + now).c_str(), 1);
    cus_options_load(&options, false, TakeProblem, &problems);
    EXPECT_EQ(options.segment_first, 8u);
    cus_options_free(&options);
}

TEST_F(Include, FilesAreListedWithWhoIncludesThem) {
    std::string a = Put("a.conf", "\ninclude = nccl\n");
    setenv("CUSPLICE_CONFIG", a.c_str(), 1);
    cus_config_list_files(CUS_SOURCE_NAMED, TakeFile, this);
    EXPECT_EQ(got, (Strings{"presets/nccl.conf by a.conf 2", "a.conf 0"}));
}

} // namespace
