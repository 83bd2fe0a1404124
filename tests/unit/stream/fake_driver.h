// A driver in one table: streams are journals, graphs are lists of captured ops, and everything is
// synchronous. It shows which calls the engine makes, in which order and with which arguments, and
// how the engine reacts to failures.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_FAKE_DRIVER_H
#define CUSPLICE_TESTS_UNIT_STREAM_FAKE_DRIVER_H

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

extern "C" {
#include "shim/stream/engine.h"
#include "tests/unit/stream/hot_call.h"
}

namespace fake {

struct Node {
    CUfunction f;
    std::vector<unsigned> dims;
    std::vector<uint8_t> params;
    std::vector<Node *> behind; // of a graph: the nodes that come before it
};

struct Stream {
    unsigned flags = 0;
    int priority = 0;
    bool capturing = false;        // by the engine
    bool program_captures = false; // set by a test
    bool busy = false;             // set by a test
    unsigned long long id = 0;
    std::vector<Node *> captured;
    std::vector<Node *> next; // what the next node is captured behind
};

struct Function {
    std::string name;
    std::vector<std::pair<size_t, size_t>> params; // offset, size
};

// Which calls fail, as a test says; none by default.
struct Failing {
    std::function<CUresult(const std::string &)> which;

    template <class Which> Failing &operator=(Which other) {
        which = std::move(other);
        return *this;
    }
    CUresult operator()(const char *call) const { return which ? which(call) : CUDA_SUCCESS; }
};

struct Driver {
    cus_driver table = {};
    std::vector<std::string>
        journal;       // "S1 k0(grid,a,b)" in execution order; graph nodes one by one
    bool lines = true; // false: they are empty, for tests that count them alone
    // Of the graph launched last, unless its nodes are a row: the journal's lines of what each node
    // comes behind, by its own.
    std::map<std::string, std::set<std::string>> behind;
    std::map<std::string, int, std::less<>> calls;
    Failing fail;
    // What functions allow of dynamic shared memory, in bytes; -1: they do not say.
    int shared_max = -1;
    // A graph of so many nodes is about to be instantiated.
    std::function<void(unsigned)> building = [](unsigned) {};
};

Driver &driver();
// Makes a fresh table; functions and streams made before stay valid.
void Reset();
// Streams and graphs that calls of the driver made in a context, or in any, are lost as if it had
// ended. How many there were.
size_t LoseAll(CUcontext context = nullptr);
// How often one was destroyed that was not there, since the last time.
int DestroyedWrongly();
CUstream MakeStream(unsigned flags);
CUfunction MakeFunction(const std::string &name);
Stream *Of(CUstream stream);
// The journal's line of a launch of one of MakeFunction's.
std::string Line(CUstream stream, const std::string &name, uint64_t a, uint32_t b = 0,
                 unsigned grid = 1);

// Entries that Reset leaves out of the table, for tests of launches with a config and of memory
// ops. The journal has those as launches of `copy` (bytes, to, from) and `fill` (elements, to,
// value).
CUresult LaunchEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra);
CUfunction CopyFunction();
CUfunction FillFunction();
CUresult AsLaunch(CUfunction f, size_t size, uint64_t a, uint32_t b, CUstream stream);
CUresult Copy(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult Fill(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream);
// A memset of 64 bytes to 7 by Fill, as a hook describes it.
cus_memset FillCall(CUstream stream, cus_abi abi = CUS_ABI_LEGACY, CUdeviceptr dst = 0x10000);

// The calling thread's, as cuThreadExchangeStreamCaptureMode left it.
extern thread_local CUstreamCaptureMode capture_mode;
extern thread_local int mode_exchanges; // its calls of that

} // namespace fake

#endif
