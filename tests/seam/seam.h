// Runs a small program as a preloaded child, and keeps what driver and engine logged.
#ifndef CUSPLICE_TESTS_SEAM_SEAM_H
#define CUSPLICE_TESTS_SEAM_SEAM_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

using Strings = std::vector<std::string>;

inline std::string Absolute(const char *variable) {
    const char *value = getenv(variable);
    if (!value)
        return "";
    char *path = realpath(value, nullptr);
    std::string result = path ? path : value;
    free(path);
    return result;
}

inline std::string Folder(const std::string &path) {
    return path.substr(0, path.rfind('/'));
}

inline Strings Lines(const std::string &path) {
    Strings lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    return lines;
}

struct Outcome {
    int status;  // what waitpid gave
    Strings log; // everything
    Strings handshake;
    std::string errors; // stderr of the child

    // The log from the engine's start on, without look-ups, each driver call cut to its name.
    Strings Story() const {
        Strings story;
        bool started = false;
        for (std::string line : log) {
            if (line.rfind("engine start", 0) == 0) {
                started = true;
                continue;
            }
            if (!started || line.rfind("cuda cuGetProcAddress", 0) == 0)
                continue;
            if (line.rfind("cuda ", 0) == 0)
                line = line.substr(0, line.find(' ', 5));
            story.push_back(line);
        }
        return story;
    }
    bool Has(const std::string &line) const { return Count(line) > 0; }
    int Count(const std::string &line) const {
        int count = 0;
        for (const std::string &other : log)
            count += other == line;
        return count;
    }
    int CountBeginning(const std::string &beginning) const {
        int count = 0;
        for (const std::string &other : log)
            count += other.rfind(beginning, 0) == 0;
        return count;
    }
    bool AnyEngine() const { return CountBeginning("engine") > 0; }
};

// The lines of the log that begin so, without "engine ".
inline Strings About(const Outcome &outcome, const std::string &beginning) {
    Strings found;
    for (const std::string &line : outcome.log)
        if (line.rfind(beginning, 0) == 0)
            found.push_back(line.substr(strlen("engine ")));
    return found;
}

class Seam : public ::testing::Test {
  protected:
    // Runs a probe with the library preloaded. `program` is SEAM_PROBE or SEAM_PROBE_ELF.
    Outcome Run(const char *program, const char *probe,
                std::map<std::string, std::string> env = {}) {
        char name[] = "/tmp/seam_test.XXXXXX";
        std::string folder = mkdtemp(name);
        std::string fake = Folder(Absolute("SEAM_FAKE"));
        const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
        env["LD_PRELOAD"] =
            (first && *first ? std::string(first) + ":" : "") + Absolute("SEAM_PRELOAD");
        env["LD_LIBRARY_PATH"] = fake;
        env["SEAM_LIBRARIES"] = fake;
        env["SEAM_LOG"] = folder + "/log";
        env["CUSPLICE_HANDSHAKE"] = folder + "/handshake";
        std::ofstream(env["CUSPLICE_HANDSHAKE"]).close(); // the launcher makes it
        env["XDG_CONFIG_HOME"] = folder;
        env["TSAN_OPTIONS"] = "exitcode=98:suppressions=" + Absolute("SEAM_TSAN_SUPPRESSIONS");
        std::string path = Absolute(program), errors = folder + "/errors";
        pid_t child = fork();
        if (child == 0) {
            for (const auto &entry : env)
                setenv(entry.first.c_str(), entry.second.c_str(), 1);
            int file = open(errors.c_str(), O_WRONLY | O_CREAT, 0600);
            dup2(file, 2);
            execl(path.c_str(), path.c_str(), probe, static_cast<char *>(nullptr));
            _exit(127);
        }
        Outcome outcome;
        waitpid(child, &outcome.status, 0);
        outcome.log = Lines(folder + "/log");
        outcome.handshake = Lines(folder + "/handshake");
        for (std::string &line : outcome.handshake)
            line = line.substr(line.find(' ') + 1);
        for (const std::string &line : Lines(errors))
            outcome.errors += line + "\n";
        for (const char *file : {"/log", "/handshake", "/errors"})
            unlink((folder + file).c_str());
        rmdir(folder.c_str());
        EXPECT_TRUE(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0)
            << probe << " ended with " << outcome.status << "\n"
            << outcome.errors;
        return outcome;
    }
};

#endif
