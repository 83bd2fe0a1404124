// A plain and a preloaded server as child processes, and the differences between their results.
#ifndef TESTS_FUZZ_SERVERS_H
#define TESTS_FUZZ_SERVERS_H

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/case.h"

namespace fuzz {

struct Paths {
    std::string server, simulator, library; // library: what the second server preloads
    std::string preload_first;              // a sanitizer's runtime, libsched.so, or ""
    std::string suppressions;               // of ThreadSanitizer, or ""
    bool in_turn;                           // threads of the second server take turns
};

// Where the build puts them, seen from this program. FUZZ_PRELOAD names another library to preload
// (tests of this fuzzer).
// Those of `schedules` take turns (tests/sched).
Paths FindPaths(bool schedules = false);

struct Answer {
    fuzz_reply reply;
    std::vector<fuzz_code> codes[FUZZ_THREADS];
    std::string log;
};

// What the library counted: ops that it saw, those that went out in graphs, own calls that failed
// and were made good.
struct Counts {
    uint64_t ops = 0, in_graphs = 0, fallbacks = 0;
};

// What the threads of the preloaded side did in all of its runs.
struct Turns {
    uint64_t schedules = 0, points = 0, switches = 0;
    uint64_t longest_ns = 0; // of one run, by the threads' clock
    size_t differed = 0;     // the timing that did
    sched_ran in_turn = {};  // the last program at depth 0
};

// How long a server may take for one program; to start, it has that long in any case.
enum { PATIENCE_MS = 30000 };

// One child. Used by one thread.
class Server {
  public:
    Server(const Paths &paths, const Env &env, bool preload, int patience_ms = PATIENCE_MS);
    ~Server(); // ends it, waits for it
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    bool Send(const fuzz_request &request);
    // "" or why there is no answer: it is stuck, it died.
    std::string Receive(Answer *answer);
    // Ends the child and waits; adds what the library counted.
    // "", or how it ended where that was not well: a sanitizer's reports come to light here.
    std::string Finish(Counts *counts);

  private:
    std::string Death();
    int patience_ms_;
    pid_t pid_ = -1;
    int socket_ = -1, err_ = -1;
    std::string stats_;
    std::string start_error_;
};

struct Pair {
    Pair(const Paths &paths, const Env &env, int patience_ms = PATIENCE_MS)
        : plain(paths, env, false, patience_ms), preloaded(paths, env, true, patience_ms) {}
    Server plain, preloaded;
};

// The timings of one program: the first is plain's, the others the preloaded side's. `schedules`:
// how many orders of the threads' turns, for servers with libsched.so; 0 without.
std::vector<Timing> MakeTimings(uint64_t seed, unsigned schedules);

// "" where the answers are alike, else what differs first.
std::string Difference(const fuzz_program &program, const Answer &expected, const Answer &actual);

// Sends the first few; ReceiveProgram sends the rest.
void SendProgram(Pair *pair, const fuzz_program &program, const std::string &fault,
                 const std::vector<Timing> &timings);
// "" or the difference, and after which timing. *dead: one of the servers is of no more use.
std::string ReceiveProgram(Pair *pair, const fuzz_program &program, const std::string &fault,
                           const std::vector<Timing> &timings, bool *dead, Turns *turns);

// Runs a whole case in fresh servers: "" or what differs in its last program.
// A case with timings of its own has no use for `seed`.
std::string RunCase(const Paths &paths, const Case &c, uint64_t seed,
                    int patience_ms = PATIENCE_MS);
// The same with two plain servers: not "" means that the program itself has no single right answer.
std::string RunPlainTwice(const Paths &paths, const Case &c, uint64_t seed);

} // namespace fuzz

#endif
