// Starts servers by fork and exec, and talks to them over sockets. Several threads may each have
// their own servers.
#include "tests/fuzz/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/sim/blocks.h"
#include "tests/sim/branches.h"
#include "tests/sim/records.h"
#include "tests/sim/uploads.h"

namespace fuzz {

namespace {

long NowMs() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool Put(int fd, const void *from, size_t bytes) {
    for (const char *at = static_cast<const char *>(from); bytes > 0;) {
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }
        at += n;
        bytes -= static_cast<size_t>(n);
    }
    return true;
}

// 1: read, 0: the other end is gone, -1: nothing came until `end`.
int Get(int fd, void *to, size_t bytes, long end) {
    for (char *at = static_cast<char *>(to); bytes > 0;) {
        pollfd p = {fd, POLLIN, 0};
        long left = end - NowMs();
        if (left <= 0 || poll(&p, 1, static_cast<int>(left)) == 0) {
            return -1;
        }
        ssize_t n = recv(fd, at, bytes, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return 0;
        }
        at += n;
        bytes -= static_cast<size_t>(n);
    }
    return 1;
}

std::string Directory(const std::string &path) {
    return path.substr(0, path.rfind('/'));
}

uint64_t NumberBehind(const std::string &text, const std::string &key) {
    size_t at = text.find("\"" + key + "\":");
    return at == std::string::npos ? 0 : strtoull(text.c_str() + at + key.size() + 3, nullptr, 10);
}

[[noreturn]] void Exec(const Paths &paths, const std::vector<std::string> &env, int socket,
                       int err) {
    // A limit of memory would be hit by the simulator's arenas; cores of children help nobody.
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (paths.in_turn) {
        personality(ADDR_NO_RANDOMIZE); // what depends on addresses is the same in each run
    }
    if (socket == 3) {
        fcntl(3, F_SETFD, 0);
    } else {
        dup2(socket, 3);
    }
    dup2(err, 1);
    dup2(err, 2);
    std::vector<char *> envp;
    for (const auto &entry : env) {
        envp.push_back(const_cast<char *>(entry.c_str()));
    }
    envp.push_back(nullptr);
    char *argv[] = {const_cast<char *>(paths.server.c_str()), nullptr};
    execve(argv[0], argv, envp.data());
    _exit(127);
}

} // namespace

Paths FindPaths(bool schedules) {
    char exe[4096] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    std::string bin =
        Directory(Directory(Directory(std::string(exe, n > 0 ? static_cast<size_t>(n) : 0))));
    std::string server = bin + "/tests/fuzz/server", simulator = bin + "/harness/sim/lib";
    const char *suppressions = getenv("FUZZ_TSAN_SUPPRESSIONS");
    const char *library = getenv("FUZZ_PRELOAD"), *first = getenv("CUS_TEST_PRELOAD_FIRST");
    if (schedules) {
        return {server,
                simulator,
                bin + "/tests/sched/libcusplice.so",
                bin + "/tests/sched/libsched.so",
                "",
                true};
    }
    return {server,
            simulator,
            library ? library : bin + "/shim/libcusplice.so",
            first ? first : "",
            suppressions ? suppressions : "",
            false};
}

Server::Server(const Paths &paths, const Env &settings, bool preload, int patience_ms)
    : patience_ms_(patience_ms) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        start_error_ = "no socket";
        return;
    }
    err_ = memfd_create("fuzz", MFD_CLOEXEC);
    std::vector<std::string> env = {"PATH=/usr/bin:/bin", "HOME=/nonexistent",
                                    "CUSIM_LOG=memory:", "LD_LIBRARY_PATH=" + paths.simulator};
    for (const char *name : {"ASAN_OPTIONS", "UBSAN_OPTIONS"}) {
        if (const char *value = getenv(name)) {
            env.push_back(std::string(name) + "=" + value);
        }
    }
    if (!paths.suppressions.empty()) {
        env.push_back("TSAN_OPTIONS=exitcode=98:suppressions=" + paths.suppressions);
    }
    for (const auto &entry : settings) {
        env.push_back(entry.first + "=" + entry.second);
    }
    if (preload) {
        env.push_back("CUSIM_NODE_ORDER=mixed");    // which the programs never ask for
        const char *planted = getenv("FUZZ_PLANT"); // an error for the preloaded side alone
        env.push_back(std::string("CUSIM_GRAPH_ERROR=") + (planted ? planted : ""));
        if (const char *folder = getenv("FUZZ_RECORD")) {
            env.push_back(std::string("CUSPLICE_RECORD=") + folder + "/%p.cst");
        }
        if (const char *folder = getenv("FUZZ_CACHE")) {
            env.push_back(std::string("CUSPLICE_CACHE_DIR=") + folder);
        }
        // The last three: --config=mutate, ablate, and any with CUS_CHECKS (stream/rest.c).
        for (const char *name : {"SCHED_TRACE", "SCHED_PLANT", "CUSPLICE_MUTATE",
                                 "CUSPLICE_WITHOUT", "CUS_TEST_RESTS"}) {
            if (const char *value = getenv(name)) {
                env.push_back(std::string(name) + "=" + value);
            }
        }
        char name[] = "/tmp/fuzz-stats-XXXXXX";
        int fd = mkstemp(name);
        if (fd >= 0) {
            close(fd);
            stats_ = name;
            env.push_back("CUSPLICE_STATS=" + stats_);
        }
        env.push_back(
            "LD_PRELOAD=" + (paths.preload_first.empty() ? "" : paths.preload_first + ":") +
            paths.library);
    }
    pid_ = fork();
    if (pid_ == 0) {
        Exec(paths, env, ends[1], err_);
    }
    close(ends[1]);
    socket_ = ends[0];
    uint32_t ready;
    if (pid_ < 0 || Get(socket_, &ready, sizeof ready, NowMs() + PATIENCE_MS) != 1) {
        start_error_ = "the server did not start: " + Death();
    }
}

Server::~Server() {
    Counts counts;
    Finish(&counts);
}

// What the child left on its way out; ends it if it lives.
std::string Server::Death() {
    if (pid_ < 0) {
        return "no process";
    }
    int status = 0;
    kill(pid_, SIGKILL);
    pid_t got = waitpid(pid_, &status, 0);
    pid_ = -1;
    char text[6000];
    ssize_t n = pread(err_, text, sizeof text, 0);
    std::ostringstream out;
    if (got > 0 && WIFSIGNALED(status)) {
        out << "signal " << WTERMSIG(status);
    } else {
        out << "exit status " << WEXITSTATUS(status);
    }
    if (n > 0) {
        out << "\n" << std::string(text, static_cast<size_t>(n));
    }
    return out.str();
}

bool Server::Send(const fuzz_request &request) {
    return start_error_.empty() && Put(socket_, &request, sizeof request);
}

std::string Server::Receive(Answer *answer) {
    if (!start_error_.empty()) {
        return start_error_;
    }
    long end = NowMs() + patience_ms_;
    fuzz_reply *r = &answer->reply;
    int got = Get(socket_, r, sizeof *r, end);
    for (unsigned t = 0; got == 1 && t < FUZZ_THREADS; t++) {
        answer->codes[t].resize(r->n_codes[t]);
        got = Get(socket_, answer->codes[t].data(), r->n_codes[t] * sizeof(fuzz_code), end);
    }
    if (got == 1) {
        answer->log.resize(r->log_bytes);
        got = Get(socket_, &answer->log[0], r->log_bytes, end);
    }
    if (got == 1) {
        return "";
    }
    start_error_ = got < 0 ? "stuck: no answer in " + std::to_string(patience_ms_) + " ms" : "died";
    if (got == 0) {
        usleep(200000); // so that it dies its own death
    }
    start_error_ += ": " + Death();
    return start_error_;
}

std::string Server::Finish(Counts *counts) {
    std::string ended;
    if (socket_ >= 0) {
        close(socket_);
        socket_ = -1;
    }
    for (int tries = 0; pid_ > 0 && tries < 5000; tries++) {
        int status;
        if (waitpid(pid_, &status, WNOHANG) == pid_) {
            pid_ = -1;
            char text[6000];
            ssize_t n = status ? pread(err_, text, sizeof text, 0) : 0;
            if (status) {
                ended = "a server ended with status " + std::to_string(status) + "\n" +
                        std::string(text, n > 0 ? static_cast<size_t>(n) : 0);
            }
        } else {
            usleep(1000);
        }
    }
    if (pid_ > 0) {
        ended = "a server did not end: " + Death();
    }
    if (err_ >= 0) {
        close(err_);
        err_ = -1;
    }
    if (!stats_.empty()) {
        std::ifstream file(stats_);
        std::stringstream text;
        text << file.rdbuf();
        counts->in_graphs += NumberBehind(text.str(), "in_graphs");
        for (const char *key : {"launches", "memsets", "copies"}) {
            counts->ops += NumberBehind(text.str(), key);
        }
        // Each op went out in a graph or by itself, and for each of these there is one reason.
        uint64_t seen = 0, eager = NumberBehind(text.str(), "eager"), reasons = 0;
        for (const char *key : {"launches", "memsets", "copies", "records", "waits"}) {
            seen += NumberBehind(text.str(), key);
        }
        for (const char *key :
             {"rule", "observing", "diverged", "flushed", "unsupported", "passthrough", "size"}) {
            reasons += NumberBehind(text.str(), key);
        }
        if (ended.empty() && !text.str().empty() &&
            (seen != NumberBehind(text.str(), "in_graphs") + eager || eager != reasons)) {
            ended = "the counters of the library do not add up: " + text.str().substr(0, 1200);
        }
        for (const char *key :
             {"instantiate_failed", "capture_failed", "graph_launch_failed", "setparams_refused"}) {
            counts->fallbacks += NumberBehind(text.str(), key);
        }
        unlink(stats_.c_str());
        stats_.clear();
    }
    return ended;
}

std::vector<Timing> MakeTimings(uint64_t seed, unsigned schedules) {
    Random r(Random(seed).Next());
    std::vector<Timing> timings = {{r.Of<uint32_t>({0, 0, 2}), r.Next(), {}},
                                   {0, r.Next(), {}},
                                   {r.Of<uint32_t>({0, 1, 3, 10}), r.Next(), {}}};
    for (unsigned i = 1; i < schedules; i++) {
        timings.push_back({r.Of<uint32_t>({0, 1, 3, 10}), r.Next(), {}});
    }
    for (size_t i = 2; schedules > 0 && i < timings.size(); i++) {
        timings[i].plan.seed = r.Next();
        timings[i].plan.depth = 1 + r.Below(5);
        timings[i].plan.by_takes = r.Below(2);
    }
    return timings;
}

namespace {

std::string CodeText(const fuzz_program &p, const fuzz_code &code) {
    std::ostringstream out;
    if (code.op == 0xFFFF) {
        out << "outside the program's ops: ";
    } else {
        out << "op " << code.op << " (" << VerbName(p.op[code.op].verb) << ") in step " << code.step
            << ": ";
    }
    out << code.code;
    return out.str();
}

std::vector<std::string> Lines(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

// "" if the logs differ in allocations and frees alone, in records that come again, in small
// uploads, and in the order and places of what streams that wait for each other did, which may be
// (tests/sim/blocks.h, records.h, uploads.h, branches.h).
std::string LogDifference(const std::string &expected, const std::string &actual) {
    std::vector<std::string> e = Lines(expected), a = Lines(actual);
    sim::CallUploadsWrites(&e);
    sim::CallUploadsWrites(&a);
    sim::JoinBranches(false, &e, &a);
    sim::TakeOutRecords(&e, a);
    std::string fault = sim::TakeOutBlocks(&e, &a);
    if (!fault.empty()) {
        return fault;
    }
    size_t at = 0;
    while (at < e.size() && at < a.size() && e[at] == a[at]) {
        at++;
    }
    if (at == e.size() && at == a.size()) {
        return "";
    }
    std::ostringstream out;
    out << "the logs differ at line " << at << " of " << e.size() << " and " << a.size() << "\n";
    for (const auto *side : {&e, &a}) {
        out << (side == &e ? "  plain:\n" : "  preloaded:\n");
        for (size_t i = at > 3 ? at - 3 : 0; i < side->size() && i < at + 4; i++) {
            out << (i == at ? "  > " : "    ") << (*side)[i].substr(0, 120) << "\n";
        }
    }
    return out.str();
}

} // namespace

std::string Difference(const fuzz_program &p, const Answer &expected, const Answer &actual) {
    for (unsigned t = 0; t < p.threads; t++) {
        const auto &e = expected.codes[t], &a = actual.codes[t];
        for (size_t i = 0; i < e.size() || i < a.size(); i++) {
            if (i < e.size() && i < a.size() && e[i].code == a[i].code && e[i].op == a[i].op &&
                e[i].step == a[i].step) {
                continue;
            }
            return "thread " + std::to_string(t) + ", code " + std::to_string(i) +
                   "\n  plain: " + (i < e.size() ? CodeText(p, e[i]) : "none") +
                   "\n  preloaded: " + (i < a.size() ? CodeText(p, a[i]) : "none") + "\n";
        }
    }
    if (expected.log != actual.log) {
        std::string difference = LogDifference(expected.log, actual.log);
        if (!difference.empty()) {
            return difference;
        }
    }
    for (unsigned l = 0; l < p.lanes; l++) {
        if (expected.reply.digest[l] != actual.reply.digest[l]) {
            return "the memory of lane " + std::to_string(l) + " differs, and the logs do not\n";
        }
    }
    return "";
}

namespace {

// A server is given no more, so that neither waits for the other to read.
enum { UNREAD = 3 };

bool Send(Pair *pair, const fuzz_program &program, const std::string &fault,
          const std::vector<Timing> &timings, size_t i) {
    fuzz_request request = {};
    request.program = program;
    request.delay_us = timings[i].delay_us;
    request.seed = timings[i].seed;
    request.plan = timings[i].plan;
    request.number = static_cast<uint32_t>(i);
    snprintf(request.fault, sizeof request.fault, "%s", i > 0 ? fault.c_str() : "");
    return (i == 0 ? pair->plain : pair->preloaded).Send(request);
}

} // namespace

void SendProgram(Pair *pair, const fuzz_program &program, const std::string &fault,
                 const std::vector<Timing> &timings) {
    for (size_t i = 0; i < timings.size() && i < UNREAD; i++) {
        Send(pair, program, fault, timings, i);
    }
}

std::string ReceiveProgram(Pair *pair, const fuzz_program &program, const std::string &fault,
                           const std::vector<Timing> &timings, bool *dead, Turns *turns) {
    Answer plain, preloaded;
    std::string difference, error = pair->plain.Receive(&plain);
    *dead = !error.empty();
    if (*dead) {
        return "plain: " + error;
    }
    for (size_t i = 1; i < timings.size(); i++) {
        error = pair->preloaded.Receive(&preloaded);
        if (!error.empty()) {
            *dead = true;
            turns->differed = difference.empty() ? i : turns->differed;
            return difference.empty() ? "preloaded: " + error : difference;
        }
        if (i + UNREAD - 1 < timings.size()) {
            Send(pair, program, fault, timings, i + UNREAD - 1);
        }
        const sched_ran &ran = preloaded.reply.ran;
        turns->schedules += timings[i].plan.depth > 0;
        turns->points += ran.points;
        turns->switches += ran.switches;
        turns->longest_ns = std::max(turns->longest_ns, ran.ns);
        turns->in_turn = timings[i].plan.depth > 0 ? turns->in_turn : ran;
        if (difference.empty()) {
            difference = Difference(program, plain, preloaded);
            turns->differed = i;
        }
    }
    return difference;
}

std::string RunCase(const Paths &paths, const Case &c, uint64_t seed, int patience_ms) {
    Pair pair(paths, c.env, patience_ms);
    std::string difference;
    Turns turns;
    bool dead = false;
    for (size_t i = 0; i < c.programs.size() && !dead; i++) {
        bool last = i + 1 == c.programs.size();
        std::vector<Timing> timings =
            last && !c.last.empty() ? c.last
                                    : MakeTimings((c.schedules ? c.seed : seed) + i, c.schedules);
        SendProgram(&pair, c.programs[i], c.fault, timings);
        difference = ReceiveProgram(&pair, c.programs[i], c.fault, timings, &dead, &turns);
    }
    return difference;
}

std::string RunPlainTwice(const Paths &paths, const Case &c, uint64_t seed) {
    Server one(paths, c.env, false), two(paths, c.env, false);
    std::string difference;
    for (size_t i = 0; i < c.programs.size(); i++) {
        Answer a, b;
        fuzz_request request = {};
        request.program = c.programs[i];
        request.seed = seed + i;
        one.Send(request);
        request.delay_us = 20;
        request.seed = seed * 31 + i;
        two.Send(request);
        difference = one.Receive(&a);
        if (difference.empty()) {
            difference = two.Receive(&b);
        }
        if (difference.empty()) {
            difference = Difference(c.programs[i], a, b);
        }
    }
    return difference;
}

} // namespace fuzz
