/*
 * A folder in which the scripts of tests/gpu find stand-ins for what they run: nvidia-smi in bin/,
 * programs and a library in carry/. Each test has its own, which goes with it.
 */
#ifndef CUSPLICE_TESTS_GPU_STAND_INS_H
#define CUSPLICE_TESTS_GPU_STAND_INS_H

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/text.h"

/* An object that the loader takes, so that LD_PRELOAD is silent. */
const char kAnyLibrary[] = "/lib/x86_64-linux-gnu/libm.so.6";

class StandIns : public testing::Test {
  protected:
    /* `library` is what carry/`as` is a copy of. */
    void Furnish(const std::string &gpu = "Some GPU", const std::string &library = kAnyLibrary,
                 const std::string &as = "libcusplice.so") {
        dir_ = testing::TempDir() + "stand_ins_XXXXXX";
        ASSERT_NE(mkdtemp(dir_.data()), nullptr);
        mkdir((dir_ + "/bin").c_str(), 0755);
        mkdir((dir_ + "/carry").c_str(), 0755);
        Script("bin/nvidia-smi", "echo '" + gpu + ", 1.2'");
        ASSERT_EQ(std::system(("cp " + library + " " + dir_ + "/carry/" + as).c_str()), 0);
    }

    void SetUp() override { Furnish(); }

    void TearDown() override {
        if (!dir_.empty()) {
            EXPECT_EQ(std::system(("rm -rf " + dir_).c_str()), 0);
        }
    }

    void Script(const std::string &name, const std::string &body) {
        std::ofstream(dir_ + "/" + name) << "#!/bin/sh\n" << body << "\n";
        chmod((dir_ + "/" + name).c_str(), 0755);
    }

    /* The exit status of a script of tests/gpu, which writes into `out` of the folder; what it says
     * goes into its log. */
    int Python(const std::string &script, const std::string &arguments,
               const std::string &out = "out") {
        return PythonIn(".", script, "--out " + dir_ + "/" + out + " " + arguments);
    }

    /* The same of a script in another tree, which writes where it writes unless it is told. */
    int PythonIn(const std::string &tree, const std::string &script,
                 const std::string &arguments) {
        std::string command = "PATH=" + dir_ + "/bin:$PATH python3 " + tree + "/tests/gpu/" +
                              script + " --carry " + dir_ + "/carry " + arguments + " > " + dir_ +
                              "/log 2>&1";
        int status = std::system(command.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    std::string Read(const std::string &name) { return ReadFile(dir_ + "/" + name); }

    std::string dir_;
};

#endif
