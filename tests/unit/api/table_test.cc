// Promise: cuda_api.def holds every symbol of the toolkit's stub library once, and agrees with
// cuda.h. What this toolkit lacks is what newer ones brought. tools/toolkits runs this test with
// the headers of each toolkit.

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shim/api/api.h"
#include "shim/stats/tally.h"

struct Argument {
    bool stream;   // CUstream
    bool function; // CUfunction or CUkernel
    bool flags;    // an unsigned int
    bool simple;   // travels in one integer register
};

// Stands in for each row that this toolkit's headers do not declare.
namespace undeclared {
struct Unknown {
    static std::vector<Argument> Described() { return {}; }
    static constexpr bool kDeclared = false;
};
Unknown Prototype(Unknown (*)(), long);

#define CUS_API(symbol, class, scope, arg, abi, act, reason) Unknown symbol();
#include "shim/api/cuda_api.def"
} // namespace undeclared
using namespace undeclared;

namespace {

template <class T> constexpr Argument Describe() {
    return {std::is_same<T, CUstream>::value,
            std::is_same<T, CUfunction>::value || std::is_same<T, CUkernel>::value,
            std::is_same<T, unsigned>::value,
            std::is_integral<T>::value || std::is_enum<T>::value || std::is_pointer<T>::value ||
                // A struct of two ints, by value.
                std::is_same<T, CUmemLocation>::value};
}

static_assert(sizeof(CUmemLocation) == 8, "one register");

template <class... Arguments> struct List {
    static std::vector<Argument> Described() { return {Describe<Arguments>()...}; }
    static constexpr bool kDeclared = true;
};
// Of a name that both cuda.h and `undeclared` declare, this one fits better.
template <class... Arguments> List<Arguments...> Prototype(CUresult (*)(Arguments...), int);

struct Declaration {
    bool declared;
    std::vector<Argument> arguments;
};

const std::vector<Declaration> &Declarations() {
    static const std::vector<Declaration> all = {
#define CUS_API(symbol, class, scope, arg, abi, act, reason)                                       \
    {decltype(Prototype(&symbol, 0))::kDeclared, decltype(Prototype(&symbol, 0))::Described()},
#include "shim/api/cuda_api.def"
    };
    return all;
}

// The toolkit in which each symbol was new, by the simulator's table, without that table's own.
const std::map<std::string, int> &Since() {
    static const std::map<std::string, int> all = [] {
        std::map<std::string, int> since;
        const std::pair<const char *, int> rows[] = {
#define CUSIM_API(symbol, base, version, pt) {#symbol, version},
#include "harness/sim/api.def"
        };
        for (const auto &row : rows)
            if (row.second <= CUS_TABLE_VERSION && strncmp(row.first, "cuSim", 5) != 0 &&
                strncmp(row.first, "cusim", 5) != 0)
                since.insert(row);
        // Their typedefs name CUDA 12.6 and 12.9, whose headers do not declare them yet.
        for (const char *name : {"cuMemBatchDecompressAsync", "cuMemBatchDecompressAsync_ptsz"})
            since.at(name) = 12080;
        since.at("cuGreenCtxGetId") = 13000;
        return since;
    }();
    return all;
}

const std::vector<cus_api_row> &Rows() {
    static const std::vector<cus_api_row> rows(cus_api_rows, cus_api_rows + CUS_API_ROWS);
    return rows;
}

bool Ends(const std::string &text, const char *end) {
    size_t length = strlen(end);
    return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

int FirstStream(const std::vector<Argument> &arguments) {
    for (size_t i = 0; i < arguments.size(); i++) {
        if (arguments[i].stream)
            return static_cast<int>(i);
    }
    return -1;
}

bool NamesFunction(int act) {
    return act == CUS_ACT_TAINT || act == CUS_ACT_TOUCH || act == CUS_ACT_SET_FUNCTION ||
           act == CUS_ACT_KERNEL_FUNCTION;
}

TEST(Table, HoldsEverySymbolOfTheStubOnce) {
    std::string command = std::string("nm -D --defined-only ") + getenv("API_STUB");
    FILE *pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::set<std::string> stub;
    char address[64], kind[8], name[256];
    while (fscanf(pipe, "%63s %7s %255s", address, kind, name) == 3) {
        if (strncmp(name, "cu", 2) == 0)
            stub.insert(std::string(name, strcspn(name, "@")));
    }
    EXPECT_EQ(pclose(pipe), 0);
    std::set<std::string> table, so_far;
    int newest = 0;
    for (const cus_api_row &row : Rows()) {
        EXPECT_TRUE(table.insert(row.name).second) << row.name << " is there twice";
        auto since = Since().find(row.name);
        ASSERT_NE(since, Since().end()) << row.name << " is no row of harness/sim/api.def";
        newest = std::max(newest, since->second);
        if (since->second <= CUDA_VERSION)
            so_far.insert(row.name);
    }
    EXPECT_EQ(so_far, stub);
    EXPECT_EQ(table.size(), Since().size()) << "harness/sim/api.def has more rows";
    EXPECT_EQ(newest, CUS_TABLE_VERSION);
}

// A file without their declarations leaves them out.
TEST(Table, MarksWhatHeadersOfTheTreesToolkitDoNotDeclare) {
    const std::set<std::string> marked = {
#define CUS_API(...)
#define CUS_API_NEWER(symbol, ...) #symbol,
#include "shim/api/cuda_api.def"
    };
    for (const cus_api_row &row : Rows())
        EXPECT_EQ(marked.count(row.name), Since().at(row.name) > CUS_GATE_VERSION) << row.name;
}

TEST(Table, AgreesWithTheHeaderOnWhatThereIs) {
    for (int i = 0; i < CUS_API_ROWS; i++)
        EXPECT_EQ(Declarations()[i].declared, Since().at(Rows()[i].name) <= CUDA_VERSION)
            << Rows()[i].name;
}

TEST(Table, IsSortedSoThatNamesAreFound) {
    for (int i = 0; i < CUS_API_ROWS; i++)
        EXPECT_EQ(cus_api_find(Rows()[i].name), i) << Rows()[i].name;
    EXPECT_EQ(cus_api_find("cuNoSuchThing"), -1);
    EXPECT_EQ(cus_api_find(""), -1);
    EXPECT_STREQ(cus_api_name(CUS_ROW_cuLaunchKernel), "cuLaunchKernel");
    EXPECT_EQ(cus_api_name(CUS_API_ROWS), nullptr);
}

TEST(Table, SaysWhyACallMayPassAndWhyItMayNot) {
    for (const cus_api_row &row : Rows()) {
        if (row.kind == CUS_CLASS_PASS || row.kind == CUS_CLASS_GETTER ||
            row.kind == CUS_CLASS_SHOWS || row.kind == CUS_CLASS_EVENT ||
            row.kind == CUS_CLASS_BARRIER) {
            EXPECT_GT(strlen(row.reason), 10u) << row.name;
        }
    }
}

// The last row of why.def says what holds for any call: it is for those that nobody makes in a
// loop.
TEST(Table, CallsOfAStreamHaveAdviceOfTheirOwn) {
    const char *any = cus_call_advice("cu");
    for (const cus_api_row &row : Rows()) {
        if (row.kind == CUS_CLASS_STREAM || row.kind == CUS_CLASS_SYNC ||
            row.kind == CUS_CLASS_TOUCH || row.kind == CUS_CLASS_GETTER ||
            row.act == CUS_ACT_ALLOC) {
            EXPECT_TRUE(cus_call_advice(row.name) != any || strstr(row.name, "Array") ||
                        strstr(row.name, "Graphics") || strstr(row.name, "External"))
                << row.name;
        }
    }
}

TEST(Table, EachAdviceIsForACallThatThereIs) {
    static const char *const prefixes[] = {
#define CUS_CALL_WHY(prefix, what, advice) prefix,
#include "shim/stats/why.def"
    };
    for (const char *prefix : prefixes) {
        bool any = false;
        for (const cus_api_row &row : Rows())
            any |= row.kind != CUS_CLASS_PASS && strncmp(row.name, prefix, strlen(prefix)) == 0;
        EXPECT_TRUE(any) << prefix;
    }
}

TEST(Table, OnlyPassRowsAreLeftAlone) {
    for (const cus_api_row &row : Rows()) {
        EXPECT_EQ(row.kind == CUS_CLASS_PASS, row.act == CUS_ACT_PASS) << row.name;
        if (row.kind == CUS_CLASS_PASS) {
            EXPECT_STREQ(row.scope_name, "NONE") << row.name;
        }
        if (strcmp(row.scope_name, "NONE") == 0) {
            EXPECT_TRUE(row.kind == CUS_CLASS_PASS || row.kind == CUS_CLASS_RESOLVE ||
                        row.kind == CUS_CLASS_EVENT || row.act == CUS_ACT_END)
                << row.name << " flushes nothing";
        }
        // Flushes where it must (flush.c), its thread's ops alone.
        EXPECT_EQ(row.kind == CUS_CLASS_GETTER, row.act == CUS_ACT_GETTER) << row.name;
        if (row.kind == CUS_CLASS_GETTER) {
            EXPECT_STREQ(row.scope_name, "T") << row.name;
        }
        EXPECT_EQ(row.kind == CUS_CLASS_SHOWS, row.act == CUS_ACT_SHOWS) << row.name;
        if (row.kind == CUS_CLASS_BARRIER || row.kind == CUS_CLASS_TOUCH ||
            row.kind == CUS_CLASS_SHOWS) {
            EXPECT_STREQ(row.scope_name, "P") << row.name;
        }
        if (row.kind == CUS_CLASS_OP) {
            EXPECT_EQ(row.act, CUS_ACT_WRAP) << row.name;
        }
    }
}

TEST(Table, TwinsOfPerThreadStreamsAreMarked) {
    for (const cus_api_row &row : Rows()) {
        bool twin = Ends(row.name, "_ptsz") || Ends(row.name, "_ptds");
        EXPECT_STREQ(row.abi_name, twin ? "PTSZ" : "LEGACY") << row.name;
    }
}

TEST(Table, TwinsAreTreatedAlike) {
    for (const cus_api_row &row : Rows()) {
        if (strcmp(row.abi_name, "PTSZ") != 0)
            continue;
        std::string name = row.name;
        int legacy = cus_api_find(name.substr(0, name.size() - strlen("_ptsz")).c_str());
        ASSERT_GE(legacy, 0) << name;
        const cus_api_row &other = Rows()[legacy];
        EXPECT_EQ(row.kind, other.kind) << name;
        EXPECT_STREQ(row.scope_name, other.scope_name) << name;
        EXPECT_EQ(row.act, other.act) << name;
        EXPECT_EQ(row.arg, other.arg) << name;
    }
}

TEST(Table, NamesTheArgumentThatTheHeaderNames) {
    for (int i = 0; i < CUS_API_ROWS; i++) {
        const cus_api_row &row = Rows()[i];
        const std::vector<Argument> &arguments = Declarations()[i].arguments;
        if (!Declarations()[i].declared)
            continue;
        if (row.arg >= 0) {
            ASSERT_LT(static_cast<size_t>(row.arg), arguments.size()) << row.name;
            if (NamesFunction(row.act)) {
                EXPECT_TRUE(arguments[row.arg].function) << row.name;
            } else if (row.act == CUS_ACT_DUMPS) {
                EXPECT_TRUE(arguments[row.arg].flags) << row.name;
            } else {
                EXPECT_EQ(row.arg, FirstStream(arguments)) << row.name;
            }
            for (int before = 0; before <= row.arg; before++)
                EXPECT_TRUE(arguments[before].simple) << row.name;
        } else if (FirstStream(arguments) >= 0) {
            // A stream that is not looked at: only where everything is flushed anyway, or only what
            // the thread deferred.
            EXPECT_TRUE(strcmp(row.scope_name, "P") == 0 || row.kind == CUS_CLASS_PASS ||
                        row.kind == CUS_CLASS_GETTER)
                << row.name;
        }
        bool needs_stream = strcmp(row.scope_name, "S") == 0 || strcmp(row.scope_name, "T") == 0;
        if (needs_stream && row.act != CUS_ACT_WRAP && row.act != CUS_ACT_POLL &&
            row.act != CUS_ACT_GETTER && row.arg == CUS_ARG_NONE) {
            EXPECT_STREQ(row.name, "cuEventSynchronize");
        }
    }
}

TEST(Table, CallsThatAreMadeForTheProgramFitIntoSixRegisters) {
    for (int i = 0; i < CUS_API_ROWS; i++) {
        const cus_api_row &row = Rows()[i];
        if (row.act < CUS_ACT_FIRST_CALL || row.act == CUS_ACT_WRAP)
            continue;
        EXPECT_LE(Declarations()[i].arguments.size(), 6u) << row.name;
        for (const Argument &argument : Declarations()[i].arguments)
            EXPECT_TRUE(argument.simple) << row.name;
    }
}

void ExpectRow(const char *name, cus_class kind, const char *scope) {
    int row = cus_api_find(name);
    ASSERT_GE(row, 0) << name;
    EXPECT_EQ(Rows()[row].kind, kind) << name;
    EXPECT_STREQ(Rows()[row].scope_name, scope) << name;
}

TEST(Table, WorkOfTwoDevicesComesBehindEverything) {
    for (const char *name : {"cuMemcpyPeer", "cuMemcpyPeer_ptds", "cuMemcpy3DPeer"})
        ExpectRow(name, CUS_CLASS_SYNC, "P");
    for (const char *name : {"cuMemcpyPeerAsync", "cuMemcpy3DPeerAsync"})
        ExpectRow(name, CUS_CLASS_STREAM, "P");
}

TEST(Table, EventsOfWholeContextsComeBehindEverything) {
    for (const char *name : {"cuCtxRecordEvent", "cuCtxWaitEvent", "cuGreenCtxRecordEvent",
                             "cuGreenCtxWaitEvent", "cuGreenCtxCreate", "cuGreenCtxStreamCreate"})
        ExpectRow(name, CUS_CLASS_BARRIER, "P");
}

// HAZARDS D8.
TEST(Table, NothingIsDeferredWhenACaptureBegins) {
    for (const char *name : {"cuStreamBeginCapture", "cuStreamBeginCapture_v2",
                             "cuStreamBeginCapture_v2_ptsz", "cuStreamBeginCaptureToGraph"}) {
        ExpectRow(name, CUS_CLASS_CAPTURE, "P");
        EXPECT_EQ(Rows()[cus_api_find(name)].act, CUS_ACT_BEGIN) << name;
    }
}

// HAZARDS D4.
TEST(Table, WaitingForAnEventIssuesTheStreamFirst) {
    for (const char *name : {"cuStreamWaitEvent", "cuStreamWaitEvent_ptsz"})
        ExpectRow(name, CUS_CLASS_STREAM, "S");
}

TEST(Table, WhatMayReleaseAThreadComesBehindAllThatTheCallerAskedFor) {
    for (const char *name :
         {"cuLaunchHostFunc", "cuStreamAddCallback", "cuStreamWaitValue32_v2",
          "cuStreamWriteValue32_v2", "cuStreamWaitValue64_v2", "cuStreamWriteValue64_v2",
          "cuStreamBatchMemOp_v2", "cuSignalExternalSemaphoresAsync",
          "cuWaitExternalSemaphoresAsync", "cuGraphLaunch"})
        ExpectRow(name, CUS_CLASS_STREAM, "T");
}

// HAZARDS E7.
TEST(Table, CallbacksOfTheProgramPassInOrder) {
    for (const char *name : {"cuLaunchHostFunc", "cuStreamAddCallback"}) {
        ExpectRow(name, CUS_CLASS_STREAM, "T");
        EXPECT_EQ(Rows()[cus_api_find(name)].act, CUS_ACT_FLUSH) << name;
    }
}

// HAZARDS E9.
TEST(Table, CheckpointsComeBehindEverything) {
    for (const char *name : {"cuCheckpointProcessLock", "cuCheckpointProcessCheckpoint",
                             "cuCheckpointProcessRestore", "cuCheckpointProcessUnlock"})
        ExpectRow(name, CUS_CLASS_BARRIER, "P");
}

// Whoever can see memory or events must come behind all that may change them.
TEST(Table, GettersOfMemoryAndOfEventsComeBehindEverything) {
    for (const char *name :
         {"cuMemPoolGetAttribute", "cuMemPoolGetAccess", "cuMemRangeGetAttribute", "cuMemGetAccess",
          "cuDeviceGetGraphMemAttribute", "cuMemGetHandleForAddressRange",
          "cuGraphKernelNodeGetAttribute", "cuGraphAddEventRecordNode",
          "cuGraphExecEventRecordNodeSetEvent"})
        ExpectRow(name, CUS_CLASS_BARRIER, "P");
}

// Rows that a slip would hurt most, spelled out (HAZARDS F1).
TEST(Table, HotCallsPassAndWaitingCallsDoNot) {
    for (const char *name :
         {"cuCtxGetCurrent", "cuStreamIsCapturing", "cuGetExportTable", "cuDeviceGetAttribute"})
        EXPECT_EQ(Rows()[cus_api_find(name)].kind, CUS_CLASS_PASS) << name;
    for (const char *name :
         {"cuMemAlloc_v2", "cuMemHostAlloc", "cuModuleLoadData", "cuStreamCreate",
          "cuLibraryGetKernel", "cuGraphInstantiateWithFlags", "cuMemAdvise_v2"})
        EXPECT_EQ(Rows()[cus_api_find(name)].kind, CUS_CLASS_BARRIER) << name;
    for (const char *name : {"cuMemFree_v2", "cuMemFreeHost", "cuModuleUnload", "cuCtxDestroy_v2"})
        EXPECT_EQ(Rows()[cus_api_find(name)].kind, CUS_CLASS_LIFE) << name;
}

void ExpectRow(const char *name, cus_class kind, const char *scope, int act) {
    int row = cus_api_find(name);
    ASSERT_GE(row, 0) << name;
    EXPECT_EQ(Rows()[row].kind, kind) << name;
    EXPECT_STREQ(Rows()[row].scope_name, scope) << name;
    EXPECT_EQ(Rows()[row].act, act) << name;
}

// The allocator may insert waits (C1); what is freed is used again as soon as the stream gets there
// (C2).
TEST(Hazards, StreamOrderedAllocationIsStreamWork) {
    for (const char *name : {"cuMemAllocAsync", "cuMemAllocFromPoolAsync"})
        ExpectRow(name, CUS_CLASS_STREAM, "S", CUS_ACT_ALLOC_ASYNC);
    ExpectRow("cuMemFreeAsync", CUS_CLASS_STREAM, "S", CUS_ACT_FREE_ASYNC);
}

// B16: a record may be deferred, and nobody may see that it was.
TEST(Hazards, WhatShowsAnEventComesBehindItsDeferredRecord) {
    ExpectRow("cuEventCreate", CUS_CLASS_EVENT, "NONE", CUS_ACT_EVENT_MADE);
    ExpectRow("cuEventDestroy", CUS_CLASS_LIFE, "P", CUS_ACT_EVENT_GOES);
    ExpectRow("cuEventDestroy_v2", CUS_CLASS_EVENT, "NONE", CUS_ACT_EVENT_GOES);
    for (const char *name : {"cuEventQuery", "cuEventElapsedTime", "cuEventElapsedTime_v2"})
        ExpectRow(name, CUS_CLASS_SYNC, "T", CUS_ACT_POLL);
    ExpectRow("cuEventRecord", CUS_CLASS_STREAM, "S", CUS_ACT_RECORD);
    ExpectRow("cuEventRecordWithFlags", CUS_CLASS_STREAM, "S", CUS_ACT_RECORD_FLAGS);
    ExpectRow("cuStreamWaitEvent", CUS_CLASS_STREAM, "S", CUS_ACT_WAIT);
    for (const char *name :
         {"cuGraphAddEventRecordNode", "cuGraphAddEventWaitNode", "cuGraphEventRecordNodeSetEvent",
          "cuGraphEventWaitNodeSetEvent", "cuGraphExecEventRecordNodeSetEvent",
          "cuGraphExecEventWaitNodeSetEvent", "cuGraphAddNode", "cuGraphAddNode_v2",
          "cuGraphNodeSetParams", "cuGraphExecNodeSetParams", "cuGraphKernelNodeSetAttribute",
          "cuIpcGetEventHandle"})
        ExpectRow(name, CUS_CLASS_BARRIER, "P", CUS_ACT_EVENT_OWN);
}

// C2: a free may be deferred, and nobody may see that it was.
TEST(Hazards, WhatShowsMemoryComesBehindDeferredFrees) {
    for (const char *name : {"cuMemGetInfo_v2", "cuPointerGetAttribute", "cuPointerGetAttributes",
                             "cuMemGetAddressRange_v2"})
        ExpectRow(name, CUS_CLASS_SHOWS, "P", CUS_ACT_SHOWS);
}

// C14: where memory runs out in them, graphs are dropped and they are made once more.
TEST(Hazards, CallsThatAllocateAreTriedAgain) {
    for (const char *name :
         {"cuMemAlloc", "cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemAllocManaged",
          "cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemCreate", "cuArrayCreate_v2",
          "cuArray3DCreate_v2", "cuMipmappedArrayCreate", "cuStreamCreate",
          "cuStreamCreateWithPriority", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags",
          "cuGraphInstantiateWithParams"})
        ExpectRow(name, CUS_CLASS_BARRIER, "P", CUS_ACT_ALLOC);
}

// C3, C11: nothing may be pending anywhere, and what was known of addresses is void.
TEST(Hazards, MemoryThatGoesIsFlushedForEverywhere) {
    for (const char *name :
         {"cuMemFree", "cuMemFree_v2", "cuMemFreeHost", "cuMemHostUnregister", "cuMemUnmap",
          "cuMemRelease", "cuMemAddressFree", "cuMemPoolDestroy", "cuMemPoolTrimTo",
          "cuArrayDestroy", "cuMipmappedArrayDestroy", "cuIpcCloseMemHandle",
          "cuDestroyExternalMemory", "cuTexObjectDestroy", "cuSurfObjectDestroy"})
        ExpectRow(name, CUS_CLASS_LIFE, "P", CUS_ACT_MEMORY);
}

// C8: they may read their lists, and their sources, during the call.
TEST(Hazards, BatchCopiesAreNeverDeferred) {
    for (const char *name : {"cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2", "cuMemcpy3DBatchAsync",
                             "cuMemcpy3DBatchAsync_v2"})
        ExpectRow(name, CUS_CLASS_STREAM, "S", CUS_ACT_FLUSH);
}

// C9
TEST(Hazards, DiscardIsStreamWorkAndAdviceIsNot) {
    for (const char *name : {"cuMemDiscardBatchAsync", "cuMemDiscardAndPrefetchBatchAsync",
                             "cuMemPrefetchBatchAsync", "cuMemPrefetchAsync_v2"})
        ExpectRow(name, CUS_CLASS_STREAM, "S", CUS_ACT_FLUSH);
    ExpectRow("cuMemAdvise", CUS_CLASS_BARRIER, "P", CUS_ACT_FLUSH);
    ExpectRow("cuMemAdvise_v2", CUS_CLASS_BARRIER, "P", CUS_ACT_FLUSH);
}

// A9, A23, A31: every kernel asked for before has been launched, and graphs are built anew.
TEST(Hazards, StateThatLaunchesReadBeginsAnEpoch) {
    for (const char *name : {"cuCtxSetLimit", "cuCtxSetCacheConfig", "cuCtxSetSharedMemConfig",
                             "cuCtxSetFlags", "cuCtxResetPersistingL2Cache", "cuDeviceSetMemPool"})
        ExpectRow(name, CUS_CLASS_BARRIER, "P", CUS_ACT_EPOCH);
    for (const char *name : {"cuFuncSetAttribute", "cuKernelSetAttribute", "cuFuncSetCacheConfig",
                             "cuKernelSetCacheConfig", "cuFuncSetSharedMemConfig"})
        ExpectRow(name, CUS_CLASS_SAME, "P", CUS_ACT_SET_FUNCTION);
    ExpectRow("cuStreamSetAttribute", CUS_CLASS_SAME, "S", CUS_ACT_SET_STREAM);
    ExpectRow("cuStreamCopyAttributes", CUS_CLASS_SAME, "S", CUS_ACT_COPY_STREAM);
}

// A20, A24
TEST(Hazards, ReferencesAndTheOldLaunchApiTaint) {
    for (const char *name :
         {"cuModuleGetTexRef", "cuModuleGetSurfRef", "cuTexRefSetAddress_v2", "cuTexRefSetArray",
          "cuSurfRefSetArray", "cuParamSetTexRef", "cuParamSetv", "cuParamSeti", "cuParamSetf",
          "cuParamSetSize", "cuFuncSetBlockShape", "cuFuncSetSharedSize", "cuLaunch",
          "cuLaunchGrid", "cuLaunchGridAsync"})
        ExpectRow(name, CUS_CLASS_BARRIER, "P", CUS_ACT_TAINT);
}

} // namespace
