// Allocations and frees in stream order, in logs of the simulator.
#ifndef TESTS_SIM_BLOCKS_H
#define TESTS_SIM_BLOCKS_H

#include <string>
#include <vector>

namespace sim {

// The library may make a free later than the program asked for it, and give its memory to the next
// allocation without asking the driver. So the lines "S3 alloc ADDRESS BYTES" and "S3 free ADDRESS
// BYTES" are taken out of both logs, and an operation of `actual` may work on another block than
// the same operation of `expected`: it then gets the latter's text. What must hold is checked:
//
// - an operation that names memory of a block comes while the block lives, on the block's stream
// - all operations on one allocation work on one block
// - two allocations that live at a time have two blocks
//
// "" or what does not hold. A log of several threads may be odd itself: then nothing is checked.
std::string TakeOutBlocks(std::vector<std::string> *expected, std::vector<std::string> *actual);

} // namespace sim

#endif
