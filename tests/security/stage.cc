// Copies programs below /tmp and starts them there. Runs on the test's thread; no CUDA.
#include "tests/security/stage.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace security {

namespace {

namespace fs = std::filesystem;

// What is there, and where it comes from.
const struct {
    const char *to, *from;
} kParts[] = {
    {"bin/cusplice", "tools/cusplice"},
    {"bin/guest", "tests/security/guest"},
    {"bin/scenario", "harness/scenario/scenario"},
    {"lib/cusplice/player", "harness/player/player"},
    {"lib/libcusplice.so", "shim/libcusplice.so"},
    {"sim/libcuda.so.1", "harness/sim/lib/libcuda.so.1"},
    {"sim/libcusim_kernels.so", "harness/sim/lib/libcusim_kernels.so"},
};

std::string Fresh(const std::string &pattern) {
    std::string name = pattern;
    if (!mkdtemp(name.data()) || chmod(name.c_str(), 0755) != 0)
        abort();
    return name;
}

class Stage : public testing::Environment {
  public:
    static Stage &Get() {
        static Stage *stage = static_cast<Stage *>(testing::AddGlobalTestEnvironment(new Stage));
        return *stage;
    }
    void SetUp() override {
        umask(022);
        root = Fresh("/tmp/cusplice-security-XXXXXX");
        for (const auto &part : kParts) {
            fs::path to = root + "/" + part.to;
            fs::create_directories(to.parent_path());
            fs::copy_file(sim::Runfile(part.from), to);
            fs::permissions(to, fs::perms(0755));
        }
    }
    void TearDown() override { fs::remove_all(root); }

    std::string root;
};

// Before main, since an environment may not be added once tests run.
[[maybe_unused]] const Stage &kStage = Stage::Get();

void Own(const std::string &path, unsigned user) {
    if (user && lchown(path.c_str(), user, user) != 0)
        abort();
}

Child Start(Strings command, const Environment &more, unsigned user) {
    Child child;
    child.command = std::move(command);
    child.command[0] = Staged("bin/" + child.command[0]);
    child.timeout_s = kHangs_s * (sim::Sanitizer().empty() ? 1 : 6);
    child.user = user;
    child.env = {{"LD_LIBRARY_PATH", Staged("sim")},
                 {"XDG_CONFIG_HOME", "/nonexistent"},
                 {"XDG_RUNTIME_DIR", "/nonexistent"},
                 {"CUSIM_DELAY_US", "0"},
                 {"ASAN_OPTIONS", "detect_leaks=0:exitcode=99"},
                 {"TSAN_OPTIONS", "exitcode=98:die_after_fork=0:report_thread_leaks=0"},
                 {"UBSAN_OPTIONS", "halt_on_error=1:exitcode=97"}};
    for (const auto &[key, value] : more)
        child.env[key] = value;
    return child;
}

} // namespace

bool IsRoot() {
    static const bool root = [] {
        pid_t pid = fork(); // a container may have one user alone
        if (pid == 0)
            _exit(setresuid(kUser, kUser, kUser) != 0);
        int status = 1;
        waitpid(pid, &status, 0);
        return geteuid() == 0 && status == 0;
    }();
    return root;
}

std::string Staged(const std::string &name) {
    return Stage::Get().root + "/" + name;
}

std::string Folder(unsigned user) {
    std::string path = Fresh(Staged("folder-XXXXXX"));
    Own(path, user);
    return path;
}

std::string Write(const std::string &path, const std::string &text, unsigned user, mode_t mode) {
    std::ofstream(path, std::ios::binary) << text;
    Own(path, user);
    EXPECT_EQ(chmod(path.c_str(), mode), 0) << path;
    return path;
}

void Link(const std::string &path, const std::string &to, unsigned user) {
    EXPECT_EQ(symlink(to.c_str(), path.c_str()), 0) << path;
    Own(path, user);
}

Child Plain(Strings command) {
    return Start(std::move(command), {}, 0);
}

Child Preloaded(Strings command, const Environment &more, unsigned user) {
    Child child = Start(std::move(command), {}, user);
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    child.env["LD_PRELOAD"] =
        (first && *first ? std::string(first) + ":" : "") + Staged("lib/libcusplice.so");
    child.env["CUSPLICE_BUILD_US"] = child.env["CUSPLICE_SUBMIT_NS"] = "0";
    for (const auto &[key, value] : more)
        child.env[key] = value;
    return child;
}

Child Launcher(Strings arguments, const Environment &more, unsigned user) {
    arguments.insert(arguments.begin(), "cusplice");
    Child child = Start(arguments, more, user);
    bool simulates = arguments[1] == "replay" || arguments[1] == "bench" || arguments[1] == "run" ||
                     arguments[1] == "record" || arguments[1] == "verify";
    // It puts the library before all else, but for ASan's runtime, which insists on being first.
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    if (sim::Sanitizer() == "asan" && first)
        child.env.emplace("LD_PRELOAD", first);
    child.memory_mb = simulates ? 0 : 2048; // a fault shall not take the machine with it
    return child;
}

Result Ran(const Child &child) {
    return sim::Run(child);
}

Strings Small() {
    return {"scenario", "launch_bound", "--steps", "6"};
}

const std::string &SmallSays() {
    static const std::string says = [] {
        Result plain = Ran(Plain(Small()));
        EXPECT_EQ(plain.status, 0) << plain.out << plain.err;
        return plain.out;
    }();
    return says;
}

testing::AssertionResult Ended(const Result &result) {
    if (result.timed_out)
        return testing::AssertionFailure() << "it hung\n" << result.err;
    if (result.status < 0 || result.status >= 128)
        return testing::AssertionFailure() << "status " << result.status << "\n" << result.err;
    return testing::AssertionSuccess();
}

testing::AssertionResult AsPlain(const Result &result) {
    testing::AssertionResult ended = Ended(result);
    if (!ended)
        return ended;
    if (result.status != 0 || result.out != SmallSays())
        return testing::AssertionFailure() << "another result: status " << result.status << "\n"
                                           << result.out << result.err;
    return testing::AssertionSuccess();
}

testing::AssertionResult Refused(const Result &result, const std::string &part) {
    testing::AssertionResult ended = Ended(result);
    if (!ended)
        return ended;
    // A player that a signal ended is no refusal of the launcher's.
    if (result.status == 0 || !Has(result.err, part) || !Has(result.err, "cusplice: ") ||
        result.err.size() > 10000)
        return testing::AssertionFailure()
               << "status " << result.status << ", not refused for \"" << part << "\"\n"
               << result.out << result.err;
    return testing::AssertionSuccess();
}

bool Is(const std::string &path, struct stat *info) {
    return lstat(path.c_str(), info) == 0;
}

unsigned ModeOf(const std::string &path) {
    struct stat info;
    return Is(path, &info) ? info.st_mode & 07777 : 0;
}

} // namespace security
