// Small files that a stranger could give to the tools, and that ask for too much. Each function
// makes a file in a fresh folder and returns its path.
#ifndef CUSPLICE_TESTS_SECURITY_HOSTILE_H
#define CUSPLICE_TESTS_SECURITY_HOSTILE_H

#include <functional>
#include <string>
#include <vector>

class Made;
class Synth;

namespace security {

// An ordinary trace with what `add` does to it: a thread, a stream, an op, a wait.
std::string TraceWith(const std::function<void(Synth *)> &add, bool packed = false);
// A replayable one of a launch: `module` makes the module that the code is from, and says which.
std::string ReplayableWith(const std::function<uint32_t(Made *)> &module);

// A replayable one of eight steps with the right sums at its end, recorded with these facts.
std::string ReplayableWithFacts(const std::string &facts);

// A module of `bytes` bytes, of which these parts are in the file.
struct Part {
    uint64_t offset;
    size_t bytes;
};
std::string ImageOf(uint64_t bytes, const std::vector<Part> &parts);
std::string ImageInFile(const std::string &path, uint64_t offset, uint64_t bytes);

// The name of a kernel that says much more than it takes: each of `depth` levels doubles it.
std::string NameThatDoubles(unsigned depth);
// So many streams of the GPU, and twice as many records of work on the last of them.
std::string GpuStreams(unsigned n);
// Gigabytes of records, in kilobytes.
std::string Bomb();
// A packed block that says of itself that it unpacks to `raw` bytes; it has `real`.
std::string BlockOf(uint64_t raw, size_t real);

// Databases as nsys exports them, with views in place of tables.
std::string EndlessView(const std::string &name);
std::string HugeText();
// A table, of which a column is what an expression gives.
std::string HugeColumn();
// The same with triggers, functions and files that a reader should have nothing to do with.
std::string ReachingOut(const std::string &victim);

} // namespace security

#endif
