// Promise: cusplice doctor finds each thing that is not right, and says what to do about it; it
// never runs the program, tells no secret, and waits for nobody.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/launcher/launcher.h"
#include "tests/sim/json.h"

namespace {

std::string Real(const std::string &path) {
    char real[PATH_MAX];
    return realpath(path.c_str(), real) ? real : path;
}

// bin/ and lib/ as after an installation, with the real library.
std::string Installation(const std::string &name = "doctor", bool library = true) {
    const std::string root = Folder() + "/" + name;
    for (const char *below : {"", "/bin", "/lib"})
        mkdir((root + below).c_str(), 0700);
    auto copy = [&](const std::string &from, const std::string &to) {
        EXPECT_EQ(RunProgram({"/bin/cp", "-f", from, root + to}).Exit(), 0) << from;
    };
    copy("tools/cusplice", "/bin/cusplice");
    if (library)
        copy("shim/libcusplice.so", "/lib/libcusplice.so");
    return root;
}

// What stands in for /proc, /sys, /dev and /etc: a machine on which nothing is wrong.
struct Root {
    explicit Root(const std::string &name) : below(name), path(Folder() + "/" + name) {
        for (const char *folder : {"", "/dev", "/dev/shm", "/etc", "/proc", "/proc/self"})
            mkdir((path + folder).c_str(), 0700);
        Put("/proc/self/status", "Name:\tx\nTracerPid:\t0\nNoNewPrivs:\t0\nSeccomp:\t0\n");
        Put("/proc/self/cgroup", "0::/\n");
        Put("/etc/os-release", "ID=test\nPRETTY_NAME=\"Test OS 1\"\n");
    }
    void Folders(const std::string &deep) const {
        for (size_t at = deep.find('/', 1); at != std::string::npos; at = deep.find('/', at + 1))
            mkdir((path + deep.substr(0, at)).c_str(), 0700);
        mkdir((path + deep).c_str(), 0700);
    }
    void Put(const std::string &file, const std::string &text) const {
        Folders(file.substr(0, file.rfind('/')));
        Write(below + file, text);
    }
    std::string below, path;
};

struct Answers {
    Result result;
    sim::Json json;
    std::string Of(const std::string &name, const std::string &what) const {
        auto found = json.text.find("answers." + name + "." + what);
        return found == json.text.end() ? "" : found->second;
    }
    std::string Advice(const std::string &name) const {
        std::string all;
        for (int i = 0; i < 6; i++)
            all += Of(name, "advice." + std::to_string(i)) + "\n";
        return all;
    }
};

// On the simulator, if `more` names no other LD_LIBRARY_PATH.
Answers Ask(const Root &root, const Environment &more = {}, const Strings &program = {},
            const std::string &installed = "") {
    const std::string bin = (installed.empty() ? Installation() : installed) + "/bin/cusplice";
    Strings argv = {bin, "doctor", "--root", root.path, "--format", "json"};
    if (!program.empty())
        argv.push_back("--");
    argv.insert(argv.end(), program.begin(), program.end());
    Environment all = {{"LD_LIBRARY_PATH", Real("harness/sim/lib")}, {"CUSIM_DELAY_US", "0"}};
    for (const auto &[key, value] : more)
        all[key] = value;
    Answers answers;
    answers.result = RunProgram(argv, all);
    answers.json = sim::ParseJson(answers.result.out);
    EXPECT_TRUE(answers.json.valid) << answers.result.out << answers.result.err;
    // The exit status says whether anything is wrong, and each thing that is not right has an
    // advice.
    EXPECT_EQ(answers.result.Exit(), answers.json.Number("wrong") > 0 ? 1 : 0);
    for (const auto &[key, value] : answers.json.text) {
        if (key.size() < 8 || key.compare(key.size() - 7, 7, ".status") != 0)
            continue;
        EXPECT_EQ(answers.json.text.count(key.substr(0, key.size() - 6) + "advice.0"),
                  value == "ok" ? 0u : 1u)
            << key << answers.result.out;
    }
    return answers;
}

#define EXPECT_ANSWER(answers, name, status, value, advice)                                        \
    EXPECT_TRUE((answers).Of(name, "status") == (status) &&                                        \
                Has((answers).Of(name, "value"), value) && Has((answers).Advice(name), advice))    \
        << (answers).result.out

TEST(Doctor, FindsNothingWrongOnTheSimulator) {
    Root root("fine");
    Answers a = Ask(root);
    EXPECT_EQ(a.json.Number("wrong"), kLacksARead ? 1 : 0) << a.result.out;
    EXPECT_EQ(a.result.err, "");
    EXPECT_ANSWER(a, "libcuda", "ok", "(the simulator, no GPU); CUDA 13.0", "");
    EXPECT_ANSWER(a, "gpu", "ok", "0: Simulated H200, compute capability 9.0", "");
    EXPECT_ANSWER(a, "routes", "ok",
                  "exported names: to the library; dlsym: to the library; cuGetProcAddress: to the "
                  "library",
                  "");
    EXPECT_ANSWER(a, "selftest", "ok", " launches, results equal; ", "");
    EXPECT_TRUE(Has(a.Of("selftest", "value"), "of them went into graphs"));
    EXPECT_FALSE(Has(a.Of("selftest", "value"), "none of them"));
    EXPECT_ANSWER(a, "system", "ok", "Test OS 1", "");
    EXPECT_EQ(a.Of("program", "status"), "") << "none was named";
}

TEST(Doctor, TextHasTheSameAnswersWithinTheWidth) {
    Root root("text");
    rmdir((root.path + "/dev/shm").c_str());
    Result r = RunProgram({Installation() + "/bin/cusplice", "doctor", "--root", root.path},
                          {{"LD_LIBRARY_PATH", Real("harness/sim/lib")}, {"COLUMNS", "80"}});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.out, "\n  wrong   shm         no file of 64 KiB can be made in")) << r.out;
    EXPECT_TRUE(Has(r.out, "\n                      -> give the container a /dev/shm")) << r.out;
    EXPECT_TRUE(Has(r.out, kLacksARead ? "\n2 things are wrong; " : "\n1 thing is wrong; "))
        << r.out;
    EXPECT_EQ(r.err, "");
    Answers a = Ask(root);
    EXPECT_ANSWER(a, "shm", "wrong", "No such file or directory", "--shm-size");
}

TEST(Doctor, RefusesBadOptions) {
    EXPECT_EQ(Cusplice({"doctor", "--frmat", "json"}).Exit(), 2);
    EXPECT_EQ(Cusplice({"doctor", "--format", "xml"}).Exit(), 2);
    EXPECT_EQ(Cusplice({"doctor", "--seconds", "0"}).Exit(), 2);
    Result r = Cusplice({"doctor", "./program"});
    EXPECT_EQ(r.Exit(), 2);
    EXPECT_EQ(r.err, "cusplice: './program' is too much: a program stands behind -- (cusplice "
                     "doctor -- ./program)\n");
    EXPECT_FALSE(Has(Cusplice({"doctor", "--help"}).out, "--root")) << "it is for tests";
}

TEST(Doctor, TellsNoOtherVariable) {
    Root root("secrets");
    Answers a = Ask(root,
                    {{"HF_TOKEN", "secret-1"},
                     {"AWS_SECRET_ACCESS_KEY", "secret-2"},
                     {"CUSPLICETOKEN", "secret-3"},
                     {"CUDA_CACHE_PATH", "/told"},
                     {"CUSPLICE_HOLD_US", "900"}},
                    {Target(), "--password=secret-4"});
    EXPECT_FALSE(Has(a.result.out + a.result.err, "secret")) << a.result.out;
    EXPECT_ANSWER(a, "environment", "ok", "CUDA_CACHE_PATH=/told", "");
    EXPECT_ANSWER(a, "environment", "ok", "CUSPLICE_HOLD_US=900", "");
    EXPECT_ANSWER(a, "settings", "ok", "hold_us = 900", "");
}

// ---- library, settings, variables ----

TEST(Doctor, FindsThatTheLibraryIsMissingOrRefused) {
    Root root("library");
    const std::string bare = Installation("bare", false);
    Answers a = Ask(root, {}, {}, bare);
    EXPECT_ANSWER(a, "cusplice", "wrong", "was not found", "install libcusplice.so");
    EXPECT_ANSWER(a, "selftest", "unknown", "there is no library", "first see to");
    Write("bare/lib/libcusplice.so", "no library");
    a = Ask(root, {}, {}, bare);
    EXPECT_ANSWER(a, "cusplice", "wrong", "is no library", "install libcusplice.so");
    EXPECT_ANSWER(a, "routes", "wrong", "the library was not loaded: ERROR: ld.so", "ld.so");
    EXPECT_ANSWER(a, "selftest", "wrong", "none of them went into graphs", "routes");
}

TEST(Doctor, FindsSettingsThatAreWrong) {
    Root root("settings");
    Answers a = Ask(root, {{"CUSPLICE_MODE", "off"}});
    EXPECT_ANSWER(a, "settings", "wrong", "mode is off", "take mode = off");
    EXPECT_ANSWER(a, "selftest", "ok", "went into graphs", "");
    a = Ask(root, {{"CUSPLICE_MODE", "eager"}});
    EXPECT_ANSWER(a, "settings", "note", "mode eager: no graphs", "piecewise");
    a = Ask(root, {{"CUSPLICE_WARMPU", "3"}});
    EXPECT_ANSWER(a, "settings", "wrong", "1 problem, the first: CUSPLICE_WARMPU", "--list");
    // The self-test asks the machine, and not the settings.
    a = Ask(root, {{"CUSPLICE_EAGER", "*"}, {"CUSPLICE_WARMUP", "1000"}});
    EXPECT_ANSWER(a, "settings", "ok", "1 rule; warmup = 1000", "");
    EXPECT_ANSWER(a, "selftest", "ok", " of them went into graphs", "");
}

TEST(Doctor, FindsVariablesThatAreInTheWay) {
    Root root("variables");
    const struct {
        const char *name, *value, *status;
    } rows[] = {
        {"CUDA_LAUNCH_BLOCKING", "1", "wrong"},
        {"CUDA_DEVICE_WAITS_ON_EXCEPTION", "1", "wrong"},
        {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1", "wrong"},
        {"CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "1", "wrong"},
        {"CUDA_VISIBLE_DEVICES", "-1", "wrong"},
        {"CUDA_DEVICE_MAX_CONNECTIONS", "1", "note"},
        {"CUDA_INJECTION64_PATH", "/lib/profiler.so", "note"},
        {"CUSPLICE", "off", "wrong"},
        {"LD_LIBRARY_PATH", "/usr/local/cuda/lib64/stubs:harness/sim/lib", "note"},
        {"CUDA_LAUNCH_BLOCKING", "0", "ok"},
        {"CUDA_VISIBLE_DEVICES", "0", "ok"},
    };
    for (const auto &row : rows) {
        Answers a = Ask(root, {{row.name, row.value}});
        EXPECT_ANSWER(a, "environment", row.status, std::string(row.name) + "=" + row.value,
                      std::string(row.status) == "ok" ? ""
                      : row.name[3] == 'P'            ? "CUSPLICE"
                      : row.name[0] == 'L'            ? "stubs"
                                                      : row.name);
    }
    Answers a = Ask(root, {{"CUDA_LAUNCH_BLOCKING", "1"}});
    EXPECT_ANSWER(a, "selftest", "wrong",
                  "none of them went into graphs: warn stream: CUDA_LAUNCH_BLOCKING is set",
                  "the library says why");
}

// ---- the driver ----

// A folder with that libcuda.so.1.
std::string DriverFolder(const std::string &name, const std::string &version) {
    const std::string folder = Folder() + "/" + name;
    mkdir(folder.c_str(), 0700);
    EXPECT_EQ(RunProgram({"/bin/cp", "-f", "tests/launcher/libdriver.so",
                          folder + "/libcuda.so." + version})
                  .Exit(),
              0);
    unlink((folder + "/libcuda.so.1").c_str());
    EXPECT_EQ(symlink(("libcuda.so." + version).c_str(), (folder + "/libcuda.so.1").c_str()), 0);
    return folder;
}

TEST(Doctor, FindsThatLibcudaIsMissingOrDamaged) {
    Root root("missing");
    mkdir((Folder() + "/damaged").c_str(), 0700);
    Write("damaged/libcuda.so.1", "no library");
    Answers a = Ask(root, {{"LD_LIBRARY_PATH", Folder() + "/damaged"}});
    EXPECT_ANSWER(a, "libcuda", "wrong", "libcuda.so.1: ", "--gpus all");
    EXPECT_ANSWER(a, "gpu", "unknown", "did not say", "libcuda");
    EXPECT_ANSWER(a, "selftest", "unknown", "there is no libcuda", "libcuda");
    EXPECT_ANSWER(a, "shm", "ok", "can be written", "") << "the rest goes on";
    if (dlopen("libcuda.so.1", RTLD_LAZY))
        GTEST_SKIP() << "this machine has a driver";
    a = Ask(root, {{"LD_LIBRARY_PATH", "/nowhere"}});
    EXPECT_ANSWER(a, "libcuda", "wrong", "No such file or directory", "NVIDIA_DRIVER_CAPABILITIES");
    EXPECT_ANSWER(a, "driver", "wrong", "nvidia is not loaded", "nvidia-smi");
}

TEST(Doctor, FindsADriverThatFailsHangsOrCrashes) {
    Root root("failing");
    const std::string folder = DriverFolder("driver", "580.95.05");
    const bool exits = Sanitized() && !IsSanitizer("ubsan"); // where it crashes
    const struct {
        const char *what, *value, *advice;
    } rows[] = {
        {"34", "cuInit returned error 34", "lib64/stubs"},
        {"100", "cuInit returned error 100", "make a GPU visible"},
        {"802", "cuInit returned error 802", "nvidia-fabricmanager"},
        {"803", "cuInit returned error 803", "restart the machine"},
        {"804", "cuInit returned error 804", "compatibility package"},
        {"999", "cuInit returned error 999", "nvidia-uvm"},
        {"7", "cuInit returned error 7", "dmesg"},
        {"exit", "cuInit: it ended early", "dmesg"},
        {"crash", exits ? "cuInit: it ended early" : "cuInit: it was ended by signal 11", "dmesg"},
    };
    for (const auto &row : rows) {
        Answers a = Ask(root, {{"LD_LIBRARY_PATH", folder}, {"FAKE_DRIVER", row.what}});
        EXPECT_ANSWER(a, "libcuda", "wrong", row.value, row.advice);
    }
    Answers a = Ask(root, {{"LD_LIBRARY_PATH", folder}});
    EXPECT_ANSWER(a, "gpu", "wrong", "none", "make a GPU visible");
    // Nobody waits longer than was asked for.
    Strings argv = {Installation() + "/bin/cusplice", "doctor", "--seconds", "1"};
    time_t begin = time(nullptr);
    Result r = RunProgram(argv, {{"LD_LIBRARY_PATH", folder}, {"FAKE_DRIVER", "hang"}});
    EXPECT_LT(time(nullptr) - begin, Sanitized() ? 15 : 5);
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.out, "cuInit: no answer within 1 s")) << r.out;
    EXPECT_TRUE(Has(r.out, "the self-test could not run: the driver did not answer")) << r.out;
}

TEST(Doctor, ComparesTheDriversParts) {
    Root root("parts");
    root.Put("/proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
             "GCC version:  gcc version 12.2.0\n");
    Answers a = Ask(root, {{"LD_LIBRARY_PATH", DriverFolder("driver", "580.95.05")}});
    EXPECT_ANSWER(a, "driver", "wrong", "580.95.05 (open); /dev/nvidiactl is not there", "--gpus");
    for (const char *node : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"})
        root.Put(node, "");
    a = Ask(root, {{"LD_LIBRARY_PATH", DriverFolder("driver", "580.95.05")}});
    EXPECT_ANSWER(a, "driver", "ok", "/dev/nvidia0", "");
    a = Ask(root, {{"LD_LIBRARY_PATH", DriverFolder("older", "570.10")}});
    EXPECT_ANSWER(a, "driver", "wrong", "libcuda is of version 570.10", "restart the machine");
    mkdir((Folder() + "/compat").c_str(), 0700);
    a = Ask(root, {{"LD_LIBRARY_PATH", DriverFolder("compat/of", "590.10")}});
    EXPECT_ANSWER(a, "driver", "ok", "compatibility package, 590.10", "");
    a = Ask(root, {{"CUSIM_DRIVER_VERSION", "12000"}});
    EXPECT_ANSWER(a, "libcuda", "wrong", "CUDA 12.0", "12.4");
    a = Ask(root, {{"CUSIM_DRIVER_VERSION", "13050"}});
    EXPECT_ANSWER(a, "libcuda", "ok", "CUDA 13.5", "");
    a = Ask(root, {{"CUSIM_DRIVER_VERSION", "14000"}});
    EXPECT_ANSWER(a, "libcuda", "note", "CUDA 14.0, newer", "newer cusplice");
}

TEST(Doctor, FindsThatTheSelfTestFails) {
    Root root("selftest");
    Answers a = Ask(root, {{"CUSIM_FAULT", "cuLaunchKernel:7+:719"}});
    EXPECT_ANSWER(a, "selftest", "wrong", "cuLaunchKernel returned error 719", "cuda.h");
    a = Ask(root, {{"CUSIM_GRAPH_ERROR", "drop:2"}});
    EXPECT_ANSWER(a, "selftest", "wrong", "words differ after ", "CUSPLICE=off");
}

// ---- the machine ----

TEST(Doctor, ReadsTheContainersQuota) {
    Root root("quota");
    Answers a = Ask(root);
    EXPECT_TRUE(Has(a.Of("cpus", "value"), "no quota")) << a.result.out;
    root.Put("/proc/self/cgroup", "0::/kubepods/pod1\n");
    root.Put("/sys/fs/cgroup/kubepods/pod1/cpu.max", "50000 100000\n");
    a = Ask(root);
    EXPECT_ANSWER(a, "cpus", "note", "a quota of 1, rounded up", "two processors");
    EXPECT_ANSWER(a, "container", "ok", "that of Kubernetes", "");
    root.Put("/proc/version", "Linux version 4.4.0 gVisor\n");
    a = Ask(root);
    EXPECT_ANSWER(a, "container", "note", "gVisor's", "nvproxy");
}

TEST(Doctor, CountsTheProcessorsOfTheProcess) {
    Root root("cpus");
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    Answers a = Ask(root);
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    EXPECT_ANSWER(a, "cpus", "note", "may run on 1; no quota", "two processors");
}

TEST(Doctor, FindsThatSharedMemoryIsFull) {
    Root root("full");
    const std::string tool = Installation() + "/bin/cusplice";
    Result r = RunProgram({"/usr/bin/env", "-u", "LD_PRELOAD", "unshare", "-Urm", "/bin/sh", "-c",
                           "mount -t tmpfs -o size=4k tmpfs " + root.path +
                               "/dev/shm || exit 99; LD_PRELOAD=" + First() + " " + tool +
                               " doctor --root " + root.path},
                          {{"COLUMNS", "1000"}}); // so that no line ends within the words
    if (r.Exit() == 99 || Has(r.err, "unshare"))
        GTEST_SKIP() << "no namespaces here: " << r.err;
    EXPECT_TRUE(Has(r.out, "wrong   shm ")) << r.out << r.err;
    EXPECT_TRUE(Has(r.out, "No space left on device")) << r.out;
}

// Runs the tool under a filter that answers process_vm_readv so.
Result Filtered(const Root &root, const std::string &answer) {
    const std::string script =
        "import ctypes, os, struct, sys\n"
        "rows = [(0x20, 0, 0, 0), (0x15, 0, 1, 310), (6, 0, 0, " +
        answer +
        "), (6, 0, 0, 0x7fff0000)]\n"
        "code = b''.join(struct.pack('HBBI', *row) for row in rows)\n"
        "room = ctypes.create_string_buffer(code)\n"
        "head = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(rows), "
        "ctypes.addressof(room)))\n"
        "c = ctypes.CDLL(None)\n"
        "if c.prctl(38, 1, 0, 0, 0) or c.prctl(22, 2, head, 0, 0): sys.exit(99)\n"
        "os.environ['LD_PRELOAD'] = sys.argv[1]\n"
        "os.execv(sys.argv[2], sys.argv[2:])\n";
    return RunProgram({"/usr/bin/env", "-u", "LD_PRELOAD", "/usr/bin/python3", "-c", script,
                       First(), Installation() + "/bin/cusplice", "doctor", "--root", root.path});
}

TEST(Doctor, FindsSystemCallsThatAFilterRefuses) {
    if (kLacksARead)
        GTEST_SKIP() << "qemu has no process_vm_readv";
    Root root("seccomp");
    root.Put("/proc/self/status", "NoNewPrivs:\t1\nSeccomp:\t2\n");
    Result r = Filtered(root, "0x00050001"); // EPERM
    if (r.Exit() == 99)
        GTEST_SKIP() << "no filters here";
    EXPECT_TRUE(Has(r.out, "wrong   seccomp     a filter is in force; no new privileges; "
                           "process_vm_readv is refused (Operation not permitted)"))
        << r.out << r.err;
    EXPECT_TRUE(Has(r.out, "-> allow that system call")) << r.out;
    // Ends the thread, or the process: TSan's has a second thread.
    r = Filtered(root, IsSanitizer("tsan") ? "0x80000000" : "0x00000000");
    EXPECT_TRUE(Has(r.out, "process_vm_readv ends the process: Bad system call")) << r.out << r.err;
}

TEST(Doctor, ReadsWhoMayLookIntoAProcess) {
    Root root("ptrace");
    Answers a = Ask(root);
    EXPECT_ANSWER(a, "ptrace", "ok", "no yama", "");
    root.Put("/proc/sys/kernel/yama/ptrace_scope", "1\n");
    a = Ask(root);
    EXPECT_ANSWER(a, "ptrace", "ok", "scope is 1", "");
    root.Put("/proc/sys/kernel/yama/ptrace_scope", "3\n");
    root.Put("/proc/self/status", "TracerPid:\t77\nSeccomp:\t0\n");
    a = Ask(root);
    EXPECT_ANSWER(a, "ptrace", "note", "scope is 3: nobody may", "ptrace_scope=1");
    EXPECT_ANSWER(a, "ptrace", "note", "strace follows", "without");
}

// ---- others in the process ----

TEST(Doctor, FindsOtherPreloadedLibraries) {
    if (Sanitized())
        GTEST_SKIP() << "an interposer has no sanitizer";
    Root root("preloads");
    const std::string launches = Real("tests/gpu/programs/libinterposer_launches.so");
    Answers a = Ask(root, {{"LD_PRELOAD", launches}});
    EXPECT_ANSWER(a, "preloads", "note", launches + " exports ", "interposers");
    EXPECT_ANSWER(a, "interposers", "wrong", "behind the library: " + launches,
                  "trust_interposers");
    EXPECT_TRUE(Has(a.Of("interposers", "value"), "nothing is deferred: ")) << a.result.out;
    EXPECT_ANSWER(a, "selftest", "wrong", "none of them went into graphs", "interposers");
    a = Ask(root, {{"LD_PRELOAD", launches}, {"CUSPLICE_TRUST_INTERPOSERS", "yes"}});
    EXPECT_ANSWER(a, "interposers", "note", "behind the library: ", "");
    EXPECT_ANSWER(a, "selftest", "ok", "went into graphs", "");
    root.Put("/etc/ld.so.preload", launches + " /nowhere/libgone.so\n");
    a = Ask(root);
    EXPECT_ANSWER(a, "preloads", "wrong", "/nowhere/libgone.so is not there", "take that entry");
    EXPECT_TRUE(Has(a.Of("preloads", "value"), launches + " exports ")) << a.result.out;
    root.Put("/etc/ld.so.preload", Folder() + "/stdin\n");
    a = Ask(root);
    EXPECT_ANSWER(a, "preloads", "wrong", "is no 64-bit library", "take that entry");
    root.Put("/etc/ld.so.preload", Installation() + "/lib/libcusplice.so\n");
    a = Ask(root);
    EXPECT_ANSWER(a, "preloads", "ok", "(this library)", "");
    root.Put("/etc/ld.so.preload", Library() + "\n");
    a = Ask(root);
    EXPECT_ANSWER(a, "preloads", "wrong", "is another cusplice", "take that entry");
}

// ---- the program ----

// A copy of a file with one text for another of at least its length.
std::string Changed(const std::string &name, const std::string &from, const std::string &old,
                    std::string now) {
    std::string text = ReadFile(from);
    now.resize(old.size(), 0);
    size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    text.replace(at, old.size(), now);
    const std::string path = Write(name, text);
    chmod(path.c_str(), 0755);
    return path;
}

TEST(Doctor, ReadsAProgramAndNeverRunsIt) {
    NEEDS_A_SHELL();
    Root root("program");
    const std::string made = Folder() + "/made";
    const std::string script = Write("script", "#!/bin/sh\ntouch " + made + "\n");
    chmod(script.c_str(), 0755);
    Answers a = Ask(root, {}, {script, "--help", "x"});
    EXPECT_ANSWER(a, "program", "ok", script + "; a script for ", "");
    EXPECT_ANSWER(a, "loading", "ok", "by LD_PRELOAD", "");
    EXPECT_ANSWER(a, "links", "ok", "nothing of CUDA is linked", "");
    EXPECT_NE(access(made.c_str(), F_OK), 0);
    a = Ask(root, {}, {Target(), "out=ran"});
    EXPECT_FALSE(Has(a.result.out, "ran\n"));
    EXPECT_ANSWER(a, "bindings", "ok", "opens no libraries", "");
    a = Ask(root, {}, {"no-such-program"});
    EXPECT_ANSWER(a, "program", "wrong", "no-such-program is no program", "can be executed");
    EXPECT_ANSWER(a, "loading", "unknown", "no program", "first");
    Write("script", "#!/nowhere/python\n");
    a = Ask(root, {}, {script});
    EXPECT_ANSWER(a, "program", "wrong", "whose interpreter is not there", "first line");
}

TEST(Doctor, FindsProgramsIntoWhichNothingIsPreloaded) {
    Root root("loading");
    Answers a = Ask(root, {}, {StaticTarget()});
    EXPECT_ANSWER(a, "loading", "wrong", "statically linked", "link it dynamically");
    EXPECT_ANSWER(a, "program", "ok", "without a dynamic loader", "");
    a = Ask(root, {},
            {Changed("small", Target(),
                     "\x7f"
                     "ELF\x02",
                     "\x7f"
                     "ELF\x01")});
    EXPECT_ANSWER(a, "loading", "wrong", "32-bit", "64 bits");
    a = Ask(root, {}, {Changed("musl", Target(), kLoader, "/lib/ld-musl-x86_64.so.1")});
    EXPECT_ANSWER(a, "program", "wrong", "ld-musl", "GNU C library");
    EXPECT_ANSWER(a, "links", "ok", "only its own list was read", "");
    a = Ask(root, {}, {Changed("gone", Target(), kLoader, "/lib64/ld-gone")});
    EXPECT_ANSWER(a, "program", "wrong", "/lib64/ld-gone, which is not there", "does not start");
    if (geteuid() != 0)
        GTEST_SKIP() << "only root gives a file away";
    const std::string other = Changed("setuid", Target(), "\x7f", "\x7f");
    ASSERT_EQ(chown(other.c_str(), 65534, 65534), 0);
    ASSERT_EQ(chmod(other.c_str(), 04755), 0);
    a = Ask(root, {}, {other});
    EXPECT_ANSWER(a, "loading", "wrong", "setuid", "chmod ug-s");
}

TEST(Doctor, SaysWhatOfCudaAProgramLinks) {
    Root root("links");
    Answers a = Ask(root, {}, {"harness/decode/decode"});
    EXPECT_ANSWER(a, "links", "ok", "shared runtime libcudart.so.13", "");
    a = Ask(root, {{"CUSIM_DRIVER_VERSION", "12080"}}, {"harness/decode/decode"});
    EXPECT_ANSWER(a, "links", "wrong", "newer than the driver", "update the driver");
    a = Ask(root, {},
            {Changed("needs", "harness/decode/decode", "libcudart.so.13", "libcudagone.so")});
    EXPECT_ANSWER(a, "links", "wrong", "the loader says: libcudagone.so: cannot open",
                  "LD_LIBRARY_PATH");
    const std::string copy = Write("static", ReadFile(Target()) + "/cudart.shm.%08llx%08llx");
    chmod(copy.c_str(), 0755);
    a = Ask(root, {}, {copy});
    EXPECT_ANSWER(a, "links", "ok", "the program has a static runtime", "");
}

// Another loader would find other files: its programs' own lists are read.
TEST(Doctor, ListsByNoOtherLoader) {
    Root root("loaders");
    const std::string usual = kLoader;
    char folder[] = "/tmp/cusXXXXXX"; // with a short name
    ASSERT_NE(mkdtemp(folder), nullptr);
    const std::string other = std::string(folder) + "/ld";
    const std::string program = Changed("loaded", "harness/decode/decode", usual, other);
    ASSERT_EQ(RunProgram({"/bin/cp", "-L", usual, other}).Exit(), 0);
    Answers a = Ask(root, {}, {program});
    EXPECT_ANSWER(a, "links", "ok", "only its own list was read", "");
    unlink(other.c_str());
    ASSERT_EQ(symlink(usual.c_str(), other.c_str()), 0);
    a = Ask(root, {}, {program});
    EXPECT_FALSE(Has(a.Of("links", "value"), "only its own list")) << "the same by another name";
    unlink(other.c_str());
    rmdir(folder);
}

TEST(Doctor, FindsNamespaces) {
    Root root("bindings");
    Answers a = Ask(root, {}, {"tests/launcher/target_namespaces"});
    EXPECT_ANSWER(a, "bindings", "note", "the program calls dlmopen", "in another process");
}

// Files of strangers: whatever stands in them, there is an answer.
TEST(Doctor, SurvivesDamagedPrograms) {
    Root root("damaged_programs");
    const std::string whole = ReadFile(Target());
    for (size_t at : {16u, 32u, 40u, 52u, 54u, 56u, 58u, 60u, 62u, 64u, 72u}) {
        std::string text = whole;
        text.replace(at, 4, "\xff\xff\xff\xff");
        const std::string path = Write("damaged.elf", text);
        chmod(path.c_str(), 0755);
        EXPECT_FALSE(Has(Ask(root, {}, {path}).result.out, "was not answered"));
    }
    Elf64_Ehdr head;
    memcpy(&head, whole.data(), sizeof head);
    for (bool far : {false, true}) { // tables far behind the file, or longer than it
        std::string text = whole;
        for (unsigned i = 0; i < head.e_shnum; i++) {
            Elf64_Shdr section;
            size_t at = head.e_shoff + i * sizeof section;
            memcpy(&section, whole.data() + at, sizeof section);
            (far ? section.sh_offset : section.sh_size) = uint64_t(1) << 40;
            text.replace(at, sizeof section, (const char *)&section, sizeof section);
        }
        const std::string path = Write("tables.elf", text);
        chmod(path.c_str(), 0755);
        EXPECT_FALSE(Has(Ask(root, {}, {path}).result.out, "was not answered"));
    }
    // A text that ends nowhere, up to the end of the last page.
    std::string endless = whole;
    endless.resize((whole.size() + 4095) / 4096 * 4096, 'A');
    for (unsigned i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        size_t at = head.e_phoff + i * sizeof part;
        memcpy(&part, whole.data() + at, sizeof part);
        if (part.p_type == PT_INTERP)
            part.p_offset = whole.size() / 4096 * 4096 + 4088;
        endless.replace(at, sizeof part, (const char *)&part, sizeof part);
    }
    endless.replace(endless.size() - 8, 8, "AAAAAAAA");
    const std::string last = Write("endless.elf", endless);
    chmod(last.c_str(), 0755);
    EXPECT_TRUE(Has(Ask(root, {}, {last}).Of("program", "value"), "without a dynamic loader"));
    for (size_t bytes : {5u, 63u, 64u, 900u}) {
        const std::string path = Write("damaged.elf", whole.substr(0, bytes));
        chmod(path.c_str(), 0755);
        EXPECT_FALSE(Has(Ask(root, {}, {path}).result.out, "was not answered"));
    }
}

} // namespace
