// Compares two logs of the simulator: stream by stream, operation by operation.
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include <map>
#include <string>
#include <vector>

namespace sim {

using Log =
    std::map<std::string, std::vector<std::string>>; // stream ("S3") -> its operations in order

struct CompareRules {
    // Streams that threads use for the first time in no fixed order have no fixed numbers: compare
    // them as a set.
    bool any_stream_order = false;
    // The order inside a stream is not fixed (branches of a program's own graph, turns of threads):
    // compare what was done.
    bool any_op_order = false;
    // A stream that is forked and joined by events may be a branch of another stream's graph:
    // compare what streams that wait for each other did, together and without records and waits
    // (branches.h). With any_stream_order: what all streams did.
    bool branches = false;
};

Log ParseLog(const std::string &text);

// "" if they agree, else what differs first.
std::string CompareLogs(const Log &expected, const Log &actual, const CompareRules &rules);

size_t CountOps(const Log &log);

} // namespace sim

#endif
