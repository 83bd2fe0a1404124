// Streams that wait for each other, in logs of the simulator.
#ifndef TESTS_SIM_BRANCHES_H
#define TESTS_SIM_BRANCHES_H

#include <string>
#include <vector>

namespace sim {

// The library may issue what a forked stream does between fork and join as a branch of a graph of
// the stream that forked it. Then operations of the one appear under the other, the records and
// waits between them may be missing, and the library has events of its own. So streams that wait
// for each other, there and back, are compared together: by what they did, in any order. The memory
// shows the order, for programs whose results depend on it.
//
// Streams are such by the records and waits of `expected`; with `all`, every stream is. Their lines
// come to the end of both logs, sorted, without records, waits, allocations and frees, and with "@"
// for an address in memory that was allocated in stream order. What the other streams did stays as
// it is, but events have no numbers, for these count all events of the log. Without such streams
// both logs stay as they are. Lines begin with their stream: "S3 record E0".
void JoinBranches(bool all, std::vector<std::string> *expected, std::vector<std::string> *actual);

} // namespace sim

#endif
