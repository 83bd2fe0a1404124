// Starts a program as a child, waits for it with a time limit, and keeps its output.
#ifndef TESTS_SIM_CHILD_H
#define TESTS_SIM_CHILD_H

#include <map>
#include <string>
#include <vector>

#include "tests/text.h"

namespace sim {

struct Child {
    std::vector<std::string> command;
    std::map<std::string, std::string> env; // on top of a bare environment
    int timeout_s = 60;
    unsigned user = 0;                   // user and group to run as; 0: those of the test
    std::vector<int> closed = {};        // descriptors that are not open when it starts
    std::map<int, int> descriptors = {}; // its number: that of the test, which has it open as well
    size_t memory_mb = 0; // addresses that it may have; 0, and under a sanitizer: any
};

struct Result {
    int status = -1; // exit status; 128 + signal; -1: did not start
    bool timed_out = false;
    std::string out, err;
    double seconds = 0;
    double peak_mb = 0; // of memory that was resident
};

// Everything CUDA, cusplice and the loader would read is left out of the child's environment unless
// `env` names it.
Result Run(const Child &child);

bool FileExists(const std::string &path);
std::string TempDir(); // fresh for each call, under TEST_TMPDIR
std::string NewPath(); // of a trace to come: in such a folder

// A file of the build, by its path from the root of the tree.
std::string Runfile(const std::string &path);

// "", "asan", "ubsan" or "tsan".
std::string Sanitizer();

} // namespace sim

#endif
