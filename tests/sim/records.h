// Records of events, in logs of the simulator.
#ifndef TESTS_SIM_RECORDS_H
#define TESTS_SIM_RECORDS_H

#include <string>
#include <vector>

namespace sim {

// The library may leave a record out if its stream records the same event again before anybody sees
// it. Takes out of `expected` the lines "record E3" that `actual` lacks and that come again later;
// before TakeOutBlocks. Both are operations of one stream in order, or logs whose lines begin with
// their stream, stream by stream. Whether somebody saw the event in between, the log does not show:
// the memory does.
void TakeOutRecords(std::vector<std::string> *expected, const std::vector<std::string> &actual);

} // namespace sim

#endif
