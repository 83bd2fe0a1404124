#include "tests/launcher/launcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

extern char **environ;

namespace {

std::string Absolute(const std::string &path) {
    char real[PATH_MAX];
    return realpath(path.c_str(), real) ? real : path;
}

void Copy(const std::string &from, const std::string &to) {
    std::ifstream in(from, std::ios::binary);
    std::ofstream(to, std::ios::binary) << in.rdbuf();
    chmod(to.c_str(), 0755);
}

// Under qemu the shell is a program for another kind of processor, and its loader says that of the
// library.
std::string WithoutShells(std::string text) {
    const std::string begin = "ERROR: ld.so: object ",
                      end = "cannot be preloaded (cannot open shared object file): ignored.";
    for (size_t at; getenv("CUS_TEST_EMULATED") && (at = text.find(begin)) != std::string::npos;) {
        size_t line = text.find('\n', at);
        if (text.substr(at, line - at).find(end) == std::string::npos)
            break;
        text.erase(at, line - at + 1);
    }
    return text;
}

// Copied, since the launcher looks beside the place that its own file really has.
std::string Installed() {
    static std::string root;
    if (root.empty()) {
        std::string folder = Folder() + "/install";
        mkdir(folder.c_str(), 0755);
        mkdir((folder + "/bin").c_str(), 0755);
        mkdir((folder + "/lib").c_str(), 0755);
        Copy("tools/cusplice", folder + "/bin/cusplice");
        Copy("tests/launcher/libfake.so", folder + "/lib/libcusplice.so");
        root = folder;
    }
    return root;
}

std::vector<std::string> EnvironmentOf(const Environment &more) {
    std::map<std::string, std::string> all;
    for (char **entry = environ; *entry; entry++) {
        std::string text = *entry;
        size_t equals = text.find('=');
        if (text.compare(0, 8, "CUSPLICE") != 0 && text.compare(0, 4, "FAKE") != 0)
            all[text.substr(0, equals)] = text.substr(equals + 1);
    }
    all["XDG_CONFIG_HOME"] = "/nowhere";
    all["CUSPLICE_CACHE_DIR"] =
        ""; // none: what earlier runs left in the tester's home is no matter
    all.erase("LD_PRELOAD");
    if (!First().empty())
        all["LD_PRELOAD"] = First();
    for (const auto &[key, value] : more) {
        all[key] = key == "LD_PRELOAD" ? First() + value : value;
        if (value.empty())
            all.erase(key);
    }
    std::vector<std::string> list;
    for (const auto &[key, value] : all)
        list.push_back(key + "=" + value);
    return list;
}

std::vector<char *> Pointers(const Strings &texts) {
    std::vector<char *> list;
    for (const std::string &text : texts)
        list.push_back(const_cast<char *>(text.c_str()));
    list.push_back(nullptr);
    return list;
}

} // namespace

int Result::Exit() const {
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool Sanitized() {
    return getenv("CUS_TEST_SANITIZER") != nullptr;
}

bool IsSanitizer(const std::string &sanitizer) {
    return Sanitized() && sanitizer == getenv("CUS_TEST_SANITIZER");
}

std::string First() {
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    bool asan = IsSanitizer("asan") && first;
    return asan ? std::string(first) + ":" : "";
}

std::string Folder() {
    static std::string folder;
    if (folder.empty()) {
        const char *base = getenv("TEST_TMPDIR");
        folder = std::string(base ? base : "/tmp") + "/launcher." + std::to_string(getpid());
        mkdir(folder.c_str(), 0755);
        folder = Absolute(folder);
    }
    return folder;
}

std::string Target() {
    return Absolute("tests/launcher/target");
}

std::string StaticTarget() {
    return Absolute("tests/launcher/target_static");
}

std::string Library() {
    return Installed() + "/lib/libcusplice.so";
}

std::string CuspliceProgram() {
    return Installed() + "/bin/cusplice";
}

std::string Write(const std::string &name, const std::string &text) {
    std::string path = Folder() + "/" + name;
    std::ofstream(path) << text;
    return path;
}

Result RunProgram(const Strings &argv, const Environment &more, const std::string &input) {
    Result result;
    std::string in = Write("stdin", input), out = Write("stdout", ""), err = Write("stderr", "");
    std::vector<std::string> environment = EnvironmentOf(more);
    std::vector<char *> arguments = Pointers(argv), variables = Pointers(environment);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open(in.c_str(), O_RDONLY | O_CLOEXEC), 0);
        dup2(open(out.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC), 1);
        dup2(open(err.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC), 2);
        execve(arguments[0], arguments.data(), variables.data());
        _exit(98);
    }
    struct rusage used = {};
    wait4(pid, &result.status, 0, &used);
    result.peak_kib = used.ru_maxrss;
    result.out = WithoutShells(ReadFile(out));
    result.err = WithoutShells(ReadFile(err));
    return result;
}

Result Cusplice(Strings arguments, const Environment &more, const std::string &input) {
    arguments.insert(arguments.begin(), CuspliceProgram());
    return RunProgram(arguments, more, input);
}

int Start(Strings arguments, int *out_fd) {
    int out[2];
    arguments.insert(arguments.begin(), CuspliceProgram());
    std::vector<std::string> environment = EnvironmentOf({{"FAKE_SAYS", "loaded,on,exit 1 0"}});
    std::vector<char *> pointers = Pointers(arguments), variables = Pointers(environment);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        dup2(out[1], 1);
        execve(pointers[0], pointers.data(), variables.data());
        _exit(98);
    }
    close(out[1]);
    *out_fd = out[0];
    return pid;
}
