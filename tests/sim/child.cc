// Starts children by fork and exec. Runs on the test's thread; no CUDA.
#include "tests/sim/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace sim {

namespace {

double Now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

std::string Env(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

// Who the child is, and what it may have.
void Become(const Child &child) {
    struct rlimit no_core = {0, 0}, memory = {child.memory_mb << 20, child.memory_mb << 20};
    setrlimit(RLIMIT_CORE, &no_core);
    if (child.memory_mb && Sanitizer().empty()) {
        setrlimit(RLIMIT_AS, &memory);
    }
    for (const auto &[here, there] : child.descriptors) {
        dup2(there, here);
    }
    for (int fd : child.closed) {
        close(fd);
    }
    if (child.user &&
        (setgroups(0, nullptr) != 0 || setresgid(child.user, child.user, child.user) != 0 ||
         setresuid(child.user, child.user, child.user) != 0)) {
        _exit(126);
    }
}

[[noreturn]] void Exec(const Child &child, const std::string &out, const std::string &err) {
    int fds[3] = {open("/dev/null", O_RDONLY | O_CLOEXEC),
                  open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
                  open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    for (int i = 0; i < 3; i++) {
        dup2(fds[i], i);
    }
    setpgid(0, 0);
    std::map<std::string, std::string> env = {{"PATH", "/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
    for (const char *name : {"MUTATE_LINES", "MUTATE_LINES_REACHED"}) { // of tools/mutate-lines
        if (getenv(name)) {
            env[name] = getenv(name);
        }
    }
    for (const auto &entry : child.env) {
        env[entry.first] = entry.second;
    }
    std::vector<std::string> lines;
    for (const auto &entry : env) {
        lines.push_back(entry.first + "=" + entry.second);
    }
    std::vector<char *> envp, argv;
    for (auto &line : lines) {
        envp.push_back(line.data());
    }
    envp.push_back(nullptr);
    for (const auto &word : child.command) {
        argv.push_back(const_cast<char *>(word.c_str()));
    }
    argv.push_back(nullptr);
    Become(child);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
}

} // namespace

Result Run(const Child &child) {
    Result result;
    std::string dir = TempDir();
    const int limit_s = child.timeout_s * (getenv("CUS_TEST_EMULATED") ? 10 : 1);
    double start = Now();
    pid_t pid = fork();
    if (pid < 0) {
        return result;
    }
    if (pid == 0) {
        Exec(child, dir + "/out", dir + "/err");
    }
    int status = 0;
    struct rusage usage = {};
    unsigned nap_us = 500;
    for (;;) {
        pid_t got = wait4(pid, &status, WNOHANG, &usage);
        if (got == pid) {
            break;
        }
        if (Now() - start > limit_s && !result.timed_out) {
            result.timed_out = true;
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
        }
        usleep(nap_us);
        nap_us = nap_us < 10000 ? nap_us * 2 : nap_us;
    }
    kill(-pid, SIGKILL); // whatever the child left behind
    result.seconds = Now() - start;
    result.peak_mb = (double)usage.ru_maxrss / 1024;
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = ReadFile(dir + "/out");
    result.err = ReadFile(dir + "/err");
    unlink((dir + "/out").c_str());
    unlink((dir + "/err").c_str());
    rmdir(dir.c_str());
    return result;
}

bool FileExists(const std::string &path) {
    return access(path.c_str(), F_OK) == 0;
}

std::string TempDir() {
    std::string base = Env("TEST_TMPDIR");
    std::string name = (base.empty() ? "/tmp" : base) + "/sim-XXXXXX";
    return mkdtemp(name.data()) ? name : "";
}

std::string NewPath() {
    return TempDir() + "/recorded.cst";
}

std::string Runfile(const std::string &path) {
    std::string root = Env("TEST_SRCDIR"), workspace = Env("TEST_WORKSPACE");
    std::string full = root.empty() ? path : root + "/" + workspace + "/" + path;
    char *real = realpath(full.c_str(), nullptr);
    std::string found = real ? real : full;
    free(real);
    return found;
}

std::string Sanitizer() {
    return Env("CUS_TEST_SANITIZER");
}

} // namespace sim
