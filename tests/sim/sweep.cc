// Pure functions of the results of runs, except FullSweep, which reads the environment.
#include "tests/sim/sweep.h"

#include <stdlib.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace sim {

bool FullSweep() {
    const char *full = getenv("CUS_TEST_FULL");
    return full && *full == '1';
}

std::vector<long> Picks(long count) {
    std::vector<long> picks;
    for (long n = 1; n <= count; n += FullSweep() || n < 3 ? 1 : n) {
        picks.push_back(n);
    }
    if (!picks.empty() && picks.back() != count) {
        picks.push_back(count);
    }
    return picks;
}

Setting WithFaults(std::map<std::string, std::string> env) {
    Setting setting;
    setting.preload = true;
    setting.library = "tests/sim/libcusplice_faults.so";
    setting.env = std::move(env);
    return setting;
}

std::map<std::string, long> OwnCalls(const Outcome &run) {
    std::map<std::string, long> calls;
    const std::string prefix = "own.";
    for (const auto &entry : run.calls.number) {
        if (entry.first.compare(0, prefix.size(), prefix) == 0) {
            calls[entry.first.substr(prefix.size())] = (long)entry.second;
        }
    }
    return calls;
}

std::map<std::string, long> ProgramCalls(const Outcome &run) {
    std::map<std::string, long> calls;
    for (const auto &entry : run.calls.number) {
        long own = (long)run.calls.Number("own." + entry.first);
        if (entry.first.find('.') == std::string::npos && (long)entry.second > own) {
            calls[entry.first] = (long)entry.second - own;
        }
    }
    return calls;
}

std::string SaidOnce(const Outcome &run) {
    std::set<std::string> said;
    std::istringstream lines(run.result.err);
    for (std::string line; std::getline(lines, line);) {
        if (line.compare(0, 9, "cusplice[") == 0 && !said.insert(line).second) {
            return "said twice: " + line;
        }
    }
    return "";
}

namespace {

// The same for one stream. Takes from `holes` what it needs.
std::string TruncatedStream(const std::vector<std::string> &want,
                            const std::vector<std::string> &have, size_t *holes) {
    size_t at = 0;
    for (size_t i = 0; i < have.size(); i++, at++) {
        while (at < want.size() && want[at] != have[i] && *holes > 0) {
            --*holes;
            at++;
        }
        if (at == want.size() || want[at] != have[i]) {
            return "executes at " + std::to_string(i) +
                   " what was not next: " + have[i].substr(0, 160) +
                   "\n  next was: " + (at < want.size() ? want[at].substr(0, 160) : "(end)");
        }
    }
    return "";
}

} // namespace

std::string Truncated(const Log &whole, const Log &part, size_t holes) {
    // A stream that did not get to anything has no number, and those behind it have others.
    auto from = whole.begin();
    std::string first;
    for (const auto &entry : part) {
        for (;; ++from) {
            if (from == whole.end()) {
                return "stream " + entry.first + " " + (first.empty() ? "is new" : first);
            }
            size_t left = holes;
            std::string difference = TruncatedStream(from->second, entry.second, &left);
            if (difference.empty()) {
                holes = left;
                ++from;
                break;
            }
            first = first.empty() ? difference : first;
        }
    }
    return "";
}

} // namespace sim
