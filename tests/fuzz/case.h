// A case: settings, and the programs that one pair of servers runs; the last program is judged. A
// case is made from a seed or read from a file, and can be written to a file or printed as C.
#ifndef TESTS_FUZZ_CASE_H
#define TESTS_FUZZ_CASE_H

#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/program.h"

namespace fuzz {

using Env = std::map<std::string, std::string>;

// One run of a program: the simulator's delays, and the turns of the threads.
struct Timing {
    uint32_t delay_us;
    uint64_t seed;
    sched_plan plan;
};

struct Case {
    Env env; // of both servers: CUSPLICE_* and CUSIM_*
    std::vector<fuzz_program> programs;
    std::string fault; // for the preloaded side: what calls of the library fail, as CUSIM_FAULT
    unsigned schedules = 0;        // orders of turns of each program; 0: threads run as they come
    uint64_t seed = 0;             // with `schedules`: of the timings of the first program
    std::vector<Timing> last = {}; // of the last program, if given
};

// splitmix64
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t Next();
    unsigned Below(unsigned n) { return static_cast<unsigned>(Next() % n); }
    bool Chance(unsigned percent) { return Below(100) < percent; }
    template <class T> T Of(std::initializer_list<T> list) {
        return list.begin()[Below(static_cast<unsigned>(list.size()))];
    }

  private:
    uint64_t state_;
};

// The settings of the n-th batch of a run.
Env MakeEnv(uint64_t seed, uint64_t batch);
// The n-th program of a run. Without graphs of its own where library calls are to fail (`faults`).
fuzz_program MakeProgram(uint64_t seed, uint64_t number, bool faults, bool many_threads = false);
// Which calls of the library fail in the n-th program; "" for none.
std::string MakeFault(uint64_t seed, uint64_t number);

const char *VerbName(unsigned verb);
unsigned VerbFlags(unsigned verb);

std::string ToText(const Case &c);
// "" or what is wrong.
std::string FromText(const std::string &text, Case *c);
// One C file against cuda.h, the programs one behind the other. `head`: a comment, line by line.
std::string ToC(const Case &c, const std::string &head);

} // namespace fuzz

#endif
