// Allocations and frees in stream order, in a log of the simulator.
#ifndef TESTS_SIM_BLOCKS_H
#define TESTS_SIM_BLOCKS_H

#include <string>
#include <vector>

namespace sim {

// The library may make a free later than the program asked for it, and give its memory to the next
// allocation without asking the driver. So logs are compared without these lines ("S3 alloc ADDRESS
// BYTES", "S3 free ADDRESS BYTES"), which are taken out of `lines`. What must hold instead is
// checked: an operation between them that names a block's memory comes while the block lives. ""
// or the first operation that does not.
std::string TakeOutBlocks(std::vector<std::string> *lines);

} // namespace sim

#endif
