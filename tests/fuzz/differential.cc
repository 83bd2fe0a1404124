// The fuzzer's command; --help and README.md describe it.
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "tests/fuzz/minimise.h"
#include "tests/fuzz/servers.h"

namespace fuzz {
namespace {

enum { BATCH = 40, AHEAD = 3, STEPS_IN_TURN = 12, FIRST_TIMINGS = 2 };

const char help[] =
    R"(differential: generated CUDA programs, plain and under libcusplice.so, on the simulator

  --programs N     how many programs (default 2000)
  --seconds T      or for how long
  --seed S         of programs, settings and timings (default 1)
  --first N        begin with the N-th program of the seed (rounded down to a batch of 40)
  --jobs J         pairs of servers at a time (default: processors)
  --one-pair       one pair of servers and one setting for all programs (tools/soak)
  --schedules N    run each program in N orders of its threads' turns (tests/sched)
  --faults         calls of the library fail now and then (programs without graphs of their own)
  --keep-going     do not stop at the first difference
  --out DIR        where programs that differ are written (default .)
  --replay FILE    run a saved program, up to --tries times
  --minimise FILE  the same, and make it smaller
  --print FILE     a saved program as C
  --only N         print the N-th program of the seed as it would be saved
  --tries K        how often a run is tried again before it counts as alike (default 6)
  --shrink N       the most runs for making a program smaller (default 400)
  --min-share P    fail if less than P percent of the operations went out in graphs (default 15, with
                   --faults or --schedules 5; asked from 200 programs on)

Status: 0 no difference, 1 a difference (or too few graphs), 2 a mistake in the command line.
Environment, for tests of the fuzzer: FUZZ_PRELOAD=FILE preloads another library than libcusplice.so;
FUZZ_PLANT=TEXT is CUSIM_GRAPH_ERROR (harness/sim/README.md) of the preloaded side alone;
FUZZ_RECORD=FOLDER leaves its traces there; FUZZ_CACHE=FOLDER has its signature cache there: the second
time the same programs are run, each begins with what the first time left.
CUSPLICE_WITHOUT and CUSPLICE_MUTATE go on to the preloaded side (a library that is built with --config=ablate
or mutate).
)";

struct Options {
    uint64_t programs = 2000, seed = 1, first = 0, only = UINT64_MAX;
    double seconds = 0;
    unsigned jobs = 0, tries = 6, schedules = 0, shrink = 400;
    int min_share = -1;
    bool faults = false, keep_going = false, one_pair = false;
    std::string out = ".", replay, minimise, print;
};

double Now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

struct Run {
    Options o;
    Paths paths;
    double start = Now();
    std::atomic<uint64_t> next_batch{0}, done{0}, differences{0}, ops{0}, in_graphs{0},
        fallbacks{0};
    std::atomic<bool> stop{false};
    std::mutex report; // one difference at a time, and `turns`
    Turns turns;
};

uint64_t LastProgram(const Options &o) {
    return o.first / BATCH * BATCH + o.programs;
}

bool TimeIsUp(const Run &run) {
    return run.o.seconds > 0 && Now() - run.start > run.o.seconds;
}

bool DiffersIn(const Paths &paths, const Case &c, unsigned tries, std::string *difference,
               int patience_ms = PATIENCE_MS) {
    if (c.schedules) { // each run of it is the same
        tries = 1;
    }
    for (unsigned i = 0; i < tries; i++) {
        std::string text = RunCase(paths, c, i * 1000 + 17, patience_ms);
        if (!text.empty()) {
            *difference = text;
            return true;
        }
    }
    return false;
}

bool WriteFile(const std::string &path, const std::string &text) {
    std::ofstream file(path);
    file << text;
    return static_cast<bool>(file.flush());
}

void TellCase(const Run &run, const Case &c, const std::string &name,
              const std::string &difference) {
    std::string base = run.o.out + "/" + name;
    std::string head = "A program that differs under libcusplice.so (" + name + ").\n\n" +
                       difference + "\nAgain: bazel-bin/tests/fuzz/differential --replay " + base +
                       ".txt\nSettings:";
    for (const auto &entry : c.env) {
        head += " " + entry.first + "=" + entry.second;
    }
    std::string text = ToC(c, head);
    if (!WriteFile(base + ".txt", ToText(c)) || !WriteFile(base + ".c", text)) {
        fprintf(stderr, "fuzz: cannot write %s.txt\n", base.c_str());
    }
    printf("%s\n", text.c_str());
    printf("fuzz: %u operations in %zu program(s); written to %s.txt and %s.c\nfuzz: again with: "
           "bazel-bin/tests/fuzz/differential --replay %s.txt\n",
           c.programs.back().n_ops, c.programs.size(), base.c_str(), base.c_str(), base.c_str());
    fflush(stdout);
}

Case Shrink(const Run &run, const Case &c, std::string *difference) {
    int patience_ms = difference->find("stuck") != std::string::npos ? 3000 : PATIENCE_MS;
    return Minimise(
        c,
        [&](const Case &smaller) {
            std::string text;
            if (!DiffersIn(run.paths, smaller, run.o.tries, &text, patience_ms)) {
                return false;
            }
            *difference = text;
            return true;
        },
        run.o.shrink);
}

// The n-th program of a batch differed: does it alone, or behind those in front of it?
void Investigate(Run *run, const Case &batch, uint64_t number, const std::string &seen) {
    std::lock_guard<std::mutex> lock(run->report);
    std::string difference = seen,
                name = "fuzz-" + std::to_string(run->o.seed) + "-" + std::to_string(number);
    Case alone = batch;
    alone.programs = {batch.programs.back()};
    if (alone.last.size() > FIRST_TIMINGS) { // in turn, as in the batch, then the run that differed
        alone.last.erase(alone.last.begin() + FIRST_TIMINGS, alone.last.end() - 1);
    }
    printf("fuzz: program %llu differs\n%s", static_cast<unsigned long long>(number), seen.c_str());
    fflush(stdout);
    if (!RunPlainTwice(run->paths, alone, number).empty()) {
        printf("fuzz: two plain runs of it differ: the program has no single right answer\n");
    }
    const Case *again = DiffersIn(run->paths, alone, run->o.tries, &difference)   ? &alone
                        : DiffersIn(run->paths, batch, run->o.tries, &difference) ? &batch
                                                                                  : nullptr;
    if (!again) {
        printf("fuzz: it did not differ again, neither alone nor behind the programs in front of "
               "it\n");
        TellCase(*run, batch, name, seen);
        return;
    }
    printf("fuzz: it differs again, %s\n", again == &alone ? "alone" : "behind others");
    fflush(stdout);
    Case small = Shrink(*run, *again, &difference);
    TellCase(*run, small, name, difference);
}

void DoBatch(Run *run, uint64_t batch) {
    const Options &o = run->o;
    uint64_t first = batch * BATCH, end = LastProgram(o), kept = first, sent = first;
    if (!o.one_pair) {
        end = std::min<uint64_t>(first + BATCH, end);
    }
    Case c;
    Turns turns;
    c.env = MakeEnv(o.seed, batch);
    c.schedules = o.schedules;
    if (o.one_pair) { // for who watches it
        c.env["CUSPLICE_STATS_EVERY"] = "2";
    }
    if (o.schedules) { // programs are short
        c.env["CUSPLICE_WARMUP"] = "1";
        c.env["CUSPLICE_DEMOTE"] = "no";
    }
    c.seed = o.seed + first;
    Pair pair(run->paths, c.env);
    std::deque<fuzz_program> programs; // from number `kept` on
    bool dead = false;
    auto send = [&](uint64_t n) {
        sent = n + 1;
        programs.push_back(MakeProgram(o.seed, n, o.faults, o.schedules > 0));
        if (o.schedules) { // a short program in many orders shows more than a long one in few
            programs.back().steps = std::min<uint32_t>(programs.back().steps, STEPS_IN_TURN);
        }
        SendProgram(&pair, programs.back(), o.faults ? MakeFault(o.seed, n) : "",
                    MakeTimings(o.seed + n, o.schedules));
    };
    // The runs of a program in many orders are sent one by one.
    const uint64_t ahead = o.schedules ? 1 : AHEAD;
    for (uint64_t n = first; n < end && n < first + ahead; n++) {
        send(n);
    }
    for (uint64_t n = first; n < end && !dead && !run->stop; n++) {
        if (o.one_pair && TimeIsUp(*run)) {
            end = std::min(end, sent); // what was sent is answered
        }
        for (; n - kept >= BATCH; kept++) {
            programs.pop_front();
        }
        std::vector<Timing> timings = MakeTimings(o.seed + n, o.schedules);
        std::string fault = o.faults ? MakeFault(o.seed, n) : "";
        std::string difference =
            ReceiveProgram(&pair, programs[n - kept], fault, timings, &dead, &turns);
        run->done++;
        if (!difference.empty()) {
            run->differences++;
            Case upto = c;
            upto.programs.assign(programs.begin(),
                                 programs.begin() + static_cast<long>(n - kept) + 1);
            upto.fault = fault;
            if (o.schedules) {
                sched_plan *plan = &timings[turns.differed].plan;
                plan->points = static_cast<uint32_t>(plan->by_takes ? turns.in_turn.takes
                                                                    : turns.in_turn.points);
                timings.resize(turns.differed + 1);
                upto.last = timings;
            }
            if (!o.keep_going) {
                run->stop = true;
            }
            Investigate(run, upto, n, difference);
        }
        if (n + ahead < end) {
            send(n + ahead);
        }
    }
    {
        std::lock_guard<std::mutex> lock(run->report);
        run->turns.schedules += turns.schedules;
        run->turns.points += turns.points;
        run->turns.switches += turns.switches;
        run->turns.longest_ns = std::max(run->turns.longest_ns, turns.longest_ns);
    }
    Counts counts;
    std::string ended = pair.preloaded.Finish(&counts);
    Counts none;
    ended += pair.plain.Finish(&none);
    if (!ended.empty() && !dead) {
        std::lock_guard<std::mutex> lock(run->report);
        run->differences++;
        printf("fuzz: batch %llu (programs %llu and on): %s\n",
               static_cast<unsigned long long>(batch), static_cast<unsigned long long>(first),
               ended.c_str());
        run->stop = run->stop || !o.keep_going;
    }
    run->ops += counts.ops;
    run->in_graphs += counts.in_graphs;
    run->fallbacks += counts.fallbacks;
}

void Work(Run *run) {
    while (!run->stop && !TimeIsUp(*run)) {
        uint64_t batch = run->next_batch++;
        if (batch * BATCH >= LastProgram(run->o) ||
            (run->o.one_pair && batch != run->o.first / BATCH)) {
            break;
        }
        DoBatch(run, batch);
    }
}

int FuzzAll(const Options &o) {
    Run run;
    run.o = o;
    run.paths = FindPaths(o.schedules > 0);
    run.next_batch = o.first / BATCH;
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < o.jobs; i++) {
        workers.emplace_back(Work, &run);
    }
    for (auto &worker : workers) {
        worker.join();
    }
    double seconds = Now() - run.start;
    double share =
        run.ops ? 100.0 * static_cast<double>(run.in_graphs) / static_cast<double>(run.ops) : 0;
    printf("fuzz: seed %llu, %llu programs, %llu differences, %.1f s, %.0f programs a second, %llu "
           "operations, %.0f %% in graphs, %llu calls of the library failed\n",
           static_cast<unsigned long long>(o.seed), static_cast<unsigned long long>(run.done),
           static_cast<unsigned long long>(run.differences), seconds,
           static_cast<double>(run.done) / seconds, static_cast<unsigned long long>(run.ops), share,
           static_cast<unsigned long long>(run.fallbacks));
    if (o.schedules) {
        printf("fuzz: %llu schedules, %.0f points and %.1f switches each, the longest took %.1f ms "
               "of the threads' clock\n",
               static_cast<unsigned long long>(run.turns.schedules),
               static_cast<double>(run.turns.points) / static_cast<double>(run.turns.schedules),
               static_cast<double>(run.turns.switches) / static_cast<double>(run.turns.schedules),
               static_cast<double>(run.turns.longest_ns) / 1e6);
    }
    if (o.faults && run.done >= 200 && run.fallbacks == 0) {
        printf("fuzz: no call of the library failed: nothing was tested\n");
        return 1;
    }
    if (run.differences == 0 && run.done >= 200 && share < o.min_share) {
        printf("fuzz: too few of the operations went out in graphs: nothing was tested\n");
        return 1;
    }
    return run.differences ? 1 : 0;
}

bool Load(const std::string &path, Case *c) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    std::string error = file ? FromText(text.str(), c) : "cannot be read";
    if (!error.empty()) {
        fprintf(stderr, "fuzz: %s: %s\n", path.c_str(), error.c_str());
    }
    return error.empty();
}

int Replay(const Options &o, const std::string &path, bool shrink) {
    Run run;
    Case c;
    std::string difference;
    run.o = o;
    if (!Load(path, &c)) {
        return 2;
    }
    run.paths = FindPaths(c.schedules > 0);
    if (!RunPlainTwice(run.paths, c, 1).empty()) {
        printf("fuzz: two plain runs of it differ: the program has no single right answer\n");
    }
    if (!DiffersIn(run.paths, c, o.tries, &difference)) {
        printf("fuzz: no difference in %u runs\n", o.tries);
        return 0;
    }
    printf("%s", difference.c_str());
    if (shrink) {
        Case small = Shrink(run, c, &difference);
        size_t slash = path.rfind('/'), from = slash == std::string::npos ? 0 : slash + 1;
        TellCase(run, small, path.substr(from, path.rfind('.') - from) + "-small", difference);
    }
    return 1;
}

int Main(int argc, char **argv) {
    enum {
        PROGRAMS = 256,
        SECONDS,
        SEED,
        FIRST,
        JOBS,
        FAULTS,
        KEEP,
        PAIR,
        OUT,
        REPLAY,
        MINIMISE,
        PRINT,
        ONLY,
        TRIES,
        SHARE,
        SCHEDULES,
        SHRINK,
        HELP
    };
    const option longs[] = {{"programs", 1, nullptr, PROGRAMS},
                            {"seconds", 1, nullptr, SECONDS},
                            {"seed", 1, nullptr, SEED},
                            {"first", 1, nullptr, FIRST},
                            {"jobs", 1, nullptr, JOBS},
                            {"faults", 0, nullptr, FAULTS},
                            {"keep-going", 0, nullptr, KEEP},
                            {"out", 1, nullptr, OUT},
                            {"one-pair", 0, nullptr, PAIR},
                            {"replay", 1, nullptr, REPLAY},
                            {"minimise", 1, nullptr, MINIMISE},
                            {"print", 1, nullptr, PRINT},
                            {"only", 1, nullptr, ONLY},
                            {"tries", 1, nullptr, TRIES},
                            {"min-share", 1, nullptr, SHARE},
                            {"schedules", 1, nullptr, SCHEDULES},
                            {"shrink", 1, nullptr, SHRINK},
                            {"help", 0, nullptr, HELP},
                            {nullptr, 0, nullptr, 0}};
    Options o;
    bool programs = false;
    for (int c; (c = getopt_long(argc, argv, "h", longs, nullptr)) != -1;) {
        switch (c) {
        case PROGRAMS:
            o.programs = strtoull(optarg, nullptr, 0), programs = true;
            break;
        case SECONDS:
            o.seconds = strtod(optarg, nullptr);
            break;
        case SEED:
            o.seed = strtoull(optarg, nullptr, 0);
            break;
        case FIRST:
            o.first = strtoull(optarg, nullptr, 0);
            break;
        case JOBS:
            o.jobs = static_cast<unsigned>(strtoul(optarg, nullptr, 0));
            break;
        case FAULTS:
            o.faults = true;
            break;
        case KEEP:
            o.keep_going = true;
            break;
        case PAIR:
            o.one_pair = true;
            o.jobs = 1;
            break;
        case OUT:
            o.out = optarg;
            break;
        case REPLAY:
            o.replay = optarg;
            break;
        case MINIMISE:
            o.minimise = optarg;
            break;
        case PRINT:
            o.print = optarg;
            break;
        case ONLY:
            o.only = strtoull(optarg, nullptr, 0);
            break;
        case TRIES:
            o.tries = static_cast<unsigned>(strtoul(optarg, nullptr, 0));
            break;
        case SHRINK:
            o.shrink = static_cast<unsigned>(strtoul(optarg, nullptr, 0));
            break;
        case SCHEDULES:
            o.schedules = static_cast<unsigned>(strtoul(optarg, nullptr, 0));
            break;
        case SHARE:
            o.min_share = atoi(optarg);
            break;
        case HELP:
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs(help, stderr);
            return 2;
        }
    }
    if (optind < argc) {
        fputs(help, stderr);
        return 2;
    }
    if (o.seconds > 0 && !programs) {
        o.programs = UINT64_MAX / 2;
    }
    if (o.min_share < 0) {
        o.min_share = o.faults || o.schedules ? 5 : 15;
    }
    if (o.jobs == 0) {
        o.jobs = std::max(1u, std::thread::hardware_concurrency());
    }
    if (!o.print.empty() || o.only != UINT64_MAX) {
        Case c;
        if (!o.print.empty() && !Load(o.print, &c)) {
            return 2;
        }
        if (o.print.empty()) {
            c.env = MakeEnv(o.seed, o.only / BATCH);
            c.programs = {MakeProgram(o.seed, o.only, o.faults)};
        }
        fputs((o.print.empty() ? ToText(c) : ToC(c, "From " + o.print + ".")).c_str(), stdout);
        return 0;
    }
    if (!o.replay.empty() || !o.minimise.empty()) {
        return Replay(o, o.replay.empty() ? o.minimise : o.replay, o.replay.empty());
    }
    return FuzzAll(o);
}

} // namespace
} // namespace fuzz

int main(int argc, char **argv) {
    return fuzz::Main(argc, argv);
}
