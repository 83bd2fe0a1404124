// Runs a function in a forked child and returns its stderr. Options and log are set once in a
// process, so each case needs its own process.
#ifndef CUSPLICE_TESTS_UNIT_BASE_CAPTURED_H
#define CUSPLICE_TESTS_UNIT_BASE_CAPTURED_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/text.h"

inline std::string TempPath(const std::string &name) {
    const char *folder = getenv("TEST_TMPDIR");
    return std::string(folder ? folder : "/tmp") + "/" + std::to_string(getpid()) + "." + name;
}

inline std::string WriteFile(const std::string &path, const std::string &text) {
    std::ofstream(path) << text;
    return path;
}

// "(died)" stands for a child that did not end by itself.
template <class Function> std::string Captured(Function function) {
    std::string path = TempPath("stderr");
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
        dup2(fd, 2);
        function();
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return ReadFile(path) + (WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "(died)");
}

#endif
