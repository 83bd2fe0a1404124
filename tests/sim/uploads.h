// Small uploads, in logs of the simulator.
#ifndef TESTS_SIM_UPLOADS_H
#define TESTS_SIM_UPLOADS_H

#include <string>
#include <vector>

namespace sim {

// The library may set 1, 2 or 4 bytes of device memory by a memset where the program copies as much
// from pageable memory. The simulator logs what such a copy writes. Gives both the same text:
// "write ADDRESS BYTES VALUE". A memset of another value, or of more, stays as it is.
void CallUploadsWrites(std::vector<std::string> *lines);

} // namespace sim

#endif
