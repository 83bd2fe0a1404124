// Settings from nowhere: a test begins with an empty folder for the user's file, no file of the
// system, no variable of ours, and collects what is wrong with the files that it then writes.
#ifndef CUSPLICE_TESTS_UNIT_BASE_CONFIG_FILES_H
#define CUSPLICE_TESTS_UNIT_BASE_CONFIG_FILES_H

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "shim/base/config.h"
#include "tests/unit/base/captured.h"

using Strings = std::vector<std::string>;

inline std::string Shown(const cus_problem *problem) {
    char text[1200];
    cus_problem_show(problem, text, sizeof text);
    return text;
}

// `problems` is a Strings.
inline void TakeProblem(void *problems, const cus_problem *problem) {
    static_cast<Strings *>(problems)->push_back(Shown(problem));
}

class ConfigFiles : public testing::Test {
  protected:
    void SetUp() override {
        Strings ours;
        for (char **entry = environ; *entry; entry++)
            if (std::string(*entry).compare(0, 8, "CUSPLICE") == 0)
                ours.push_back(std::string(*entry).substr(0, std::string(*entry).find('=')));
        for (const std::string &name : ours)
            unsetenv(name.c_str());
        home = TempPath("home");
        mkdir(home.c_str(), 0700);
        mkdir((home + "/cusplice").c_str(), 0700);
        unlink(User().c_str());
        setenv("XDG_CONFIG_HOME", home.c_str(), 1);
        system_file = TempPath("system.conf");
        unlink(system_file.c_str());
        cus_config_system_file = system_file.c_str();
    }
    std::string User() const { return home + "/cusplice/cusplice.conf"; }
    // A file that the environment names.
    std::string Named(const std::string &text) {
        std::string path = WriteFile(TempPath("named.conf"), text);
        setenv("CUSPLICE_CONFIG", path.c_str(), 1);
        return path;
    }

    Strings problems;
    std::string home, system_file;
};

#endif
